//! `docs/captures.md` maps statements on captures to tests: every capture is there, and every test it names exists.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_path_buf()
}

/// The cells of the rows of a page's tables, less heads and lines.
fn rows(page: &str, head: &str) -> Vec<Vec<String>> {
    page.lines()
        .filter(|line| line.starts_with("| ") && !line.starts_with("| ---") && !line.starts_with(head))
        .map(|line| line.trim_matches('|').split(" | ").map(|cell| cell.trim().to_string()).collect())
        .collect()
}

fn names(cell: &str) -> impl Iterator<Item = String> + '_ {
    cell.split([',', ' ']).filter(|word| word.contains('.')).map(String::from)
}

#[test]
fn every_test_named_exists() {
    let page = std::fs::read_to_string(root().join("docs/captures.md")).unwrap();
    let rows = rows(&page, "| capture |");
    assert!(rows.len() > 50, "the table is read");
    for row in rows {
        let [_, _, test] = row.as_slice() else { panic!("{row:?}: three cells") };
        let (place, function) = test.split_once("::").unwrap_or_else(|| panic!("{test}: crate file::function"));
        let (krate, file) = place.split_once(' ').unwrap();
        let folder = if file.starts_with("src/") { "" } else { "tests/" };
        let path = root().join(krate).join(format!("{folder}{file}.rs"));
        let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert!(text.contains(&format!("#[test]\nfn {function}()")), "{test} is not there");
    }
}

#[test]
fn every_capture_of_the_reference_list_is_there() {
    let Some(index) = netcore_test::shared("exams/pcaps/INDEX.md") else { return };
    let index = std::fs::read_to_string(index).unwrap();
    let page = std::fs::read_to_string(root().join("docs/captures.md")).unwrap();
    let listed: BTreeSet<String> =
        rows(&page, "| capture |").iter().flat_map(|row| names(&row[0]).collect::<Vec<_>>()).collect();
    let mut seen = 0;
    for row in rows(&index, "| file |").iter().filter(|row| row.len() >= 3) {
        for name in names(&row[0]).filter(|name| [".pcap", ".pcapng", ".csv"].iter().any(|end| name.ends_with(end))) {
            assert!(listed.contains(&name), "docs/captures.md lacks {name}");
            seen += 1;
        }
    }
    assert!(seen >= 39, "the list is read: {seen}");
}
