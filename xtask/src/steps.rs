//! The steps of `cargo xtask test`.

use crate::Step;
use crate::run::{Outcome, cargo, counted, has, missing, root, sequence, status};
use std::fs;
use std::process::Command;

/// Crates that hold without the standard library.
const NO_STD: [&str; 6] = ["netcore", "netcore-offload", "netcore-cc", "netcore-qdisc", "netcore-bond", "netcore-tcp"];

/// In order; cheap ones first.
pub(crate) fn all() -> [Step; 10] {
    [
        Step { name: "format", run: format },
        Step { name: "toolchain", run: toolchain },
        Step { name: "licences", run: crate::licences::check },
        Step { name: "lints", run: lints },
        Step { name: "tests", run: tests },
        Step { name: "doc tests", run: doc_tests },
        Step { name: "documentation", run: documentation },
        Step { name: "no_std", run: no_std },
        Step { name: "loom models", run: loom },
        Step { name: "fuzz seeds", run: fuzz_seeds },
    ]
}

fn format() -> Outcome {
    let mut fuzz = cargo(&["fmt", "--check"]);
    fuzz.current_dir(root().join("fuzz"));
    sequence([cargo(&["fmt", "--all", "--check"]), fuzz])
}

/// The version of Rust that `Cargo.toml` states is the one that builds here, or an older one.
fn toolchain() -> Outcome {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap_or_default();
    let stated = manifest.lines().find_map(|line| line.strip_prefix("rust-version = \"")?.strip_suffix('"'));
    let Some(stated) = stated else { return Outcome::Failed("Cargo.toml states no rust-version".into()) };
    let Ok(output) = Command::new("rustc").arg("--version").output() else {
        return Outcome::Failed("rustc does not start".into());
    };
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let version = |text: &str| -> Vec<u32> { text.split('.').map_while(|part| part.parse().ok()).collect() };
    let used = text.split_whitespace().nth(1).unwrap_or_default();
    match (version(stated), version(used)) {
        (stated, used) if used.starts_with(&stated) => {
            Outcome::Passed("built with the oldest version supported".into())
        }
        (stated, used) if used > stated => {
            Outcome::Passed("built with a newer version than the oldest supported".into())
        }
        _ => Outcome::Failed(format!("rust-version is {stated}, rustc is {used}")),
    }
}

fn lints() -> Outcome {
    status(&mut cargo(&[
        "clippy",
        "--workspace",
        "--all-features",
        "--all-targets",
        "--locked",
        "--",
        "-D",
        "warnings",
    ]))
}

/// The tests, counted; what they skipped is listed, since a test that passes shows no output.
fn tests() -> Outcome {
    let skips = root().join("target/skipped-tests.txt");
    let _ = fs::remove_file(&skips);
    let mut command = cargo(&["test", "--workspace", "--all-features", "--locked", "--lib", "--bins", "--tests"]);
    command.env("NETCORE_SKIPS", &skips);
    let outcome = counted(&mut command);
    let mut skipped: Vec<String> = fs::read_to_string(&skips).unwrap_or_default().lines().map(String::from).collect();
    skipped.sort();
    skipped.dedup();
    for line in &skipped {
        println!("SKIP {line}");
    }
    let mut kinds: Vec<&str> = skipped.iter().filter_map(|line| line.split(':').next()).collect();
    kinds.dedup();
    let counts: Vec<String> = kinds
        .iter()
        .map(|kind| (kind, skipped.iter().filter(|line| line.split(':').next() == Some(kind)).count()))
        .map(|(kind, n)| format!("{n} for want of {kind}"))
        .collect();
    match outcome {
        Outcome::Passed(text) if !skipped.is_empty() => {
            Outcome::Passed(format!("{text}; skipped, reasons above: {}", counts.join(", ")))
        }
        outcome => outcome,
    }
}

fn doc_tests() -> Outcome {
    status(&mut cargo(&["test", "--workspace", "--all-features", "--locked", "--doc"]))
}

fn documentation() -> Outcome {
    let mut command = cargo(&["doc", "--workspace", "--all-features", "--no-deps", "--locked"]);
    command.env("RUSTDOCFLAGS", "-D warnings");
    status(&mut command)
}

fn no_std() -> Outcome {
    sequence(NO_STD.map(|name| cargo(&["check", "--package", name, "--no-default-features", "--locked"])))
}

fn loom() -> Outcome {
    let mut command = cargo(&["test", "--package", "netcore", "--lib", "--release", "--locked", "loom"]);
    command
        .env("RUSTFLAGS", "--cfg loom")
        .env("LOOM_MAX_PREEMPTIONS", "3")
        .env("CARGO_TARGET_DIR", root().join("target/loom"));
    status(&mut command)
}

fn fuzz_seeds() -> Outcome {
    status(&mut cargo(&["test", "--manifest-path", "fuzz/Cargo.toml", "--locked"]))
}

/// The criterion benches.
pub(crate) fn bench(filter: Option<&str>) -> Outcome {
    let mut arguments = vec!["bench", "--workspace", "--benches"];
    arguments.extend(filter.map(|filter| ["--", filter]).into_iter().flatten());
    status(&mut cargo(&arguments))
}

/// Instructions per operation of the hot paths.
pub(crate) fn instructions() -> Outcome {
    if !has("valgrind", "--version") {
        return missing("valgrind", "valgrind is not installed: apt-get install valgrind");
    }
    status(&mut cargo(&["run", "--release", "--package", "netcore-bench", "--", "--instructions"]))
}
