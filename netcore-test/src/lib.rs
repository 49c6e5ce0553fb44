//! What the tests of this repository share.
//!
//! Some tests need what not every machine has: reference data beside the clone, tshark, root, a kernel that lets them make
//! namespaces. Such a test calls [`skip`] with the kind of thing that is missing and returns. The environment variable
//! `NETCORE_REQUIRE` lists kinds, separated by commas, that must not be missing; skipping one of those fails the test.
//! `NETCORE_SKIPS` names a file to which every skip is added.

#[cfg(unix)]
pub mod guest;

use std::path::{Path, PathBuf};

/// Says that a test does not run here and why.
///
/// # Panics
/// If `NETCORE_REQUIRE` lists `kind`.
pub fn skip(kind: &str, reason: &str) {
    let required = std::env::var("NETCORE_REQUIRE").unwrap_or_default();
    assert!(!required.split(',').any(|k| k.trim() == kind), "{kind} is required here, but: {reason}");
    eprintln!("SKIP {kind}: {reason}");
    // A test that passes shows no output, so whoever runs the tests may ask for a list.
    if let Some(list) = std::env::var_os("NETCORE_SKIPS") {
        let line = format!("{kind}: {reason}\n");
        let appended = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(list)
            .and_then(|mut file| std::io::Write::write_all(&mut file, line.as_bytes()));
        appended.expect("the list of skipped tests can be written");
    }
}

/// The root of the workspace.
pub fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate is a folder of the workspace")
}

/// A file of reference data that is not part of the repository: below `NETCORE_SHARED`, or below `shared` beside the clone.
/// `None`, after [`skip`], if it is not there.
///
/// # Panics
/// If it is missing although `NETCORE_REQUIRE` lists `shared`.
pub fn shared(path: &str) -> Option<PathBuf> {
    let root = match std::env::var_os("NETCORE_SHARED") {
        Some(root) => PathBuf::from(root),
        None => workspace().parent()?.join("shared"),
    };
    let file = root.join(path);
    if file.exists() {
        return Some(file);
    }
    skip("shared", &format!("{path} is not part of the repository"));
    None
}

/// A capture that is part of the repository.
pub fn capture(name: &str) -> PathBuf {
    workspace().join("netcore-lab/captures").join(name)
}
