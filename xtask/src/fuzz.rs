//! Fuzzing with libFuzzer through cargo-fuzz, on the stable toolchain.

use crate::run::{Outcome, cargo, has, missing, root, status};
use std::fs;

/// The targets: one file each.
fn targets() -> Vec<String> {
    let Ok(entries) = fs::read_dir(root().join("fuzz/fuzz_targets")) else { return Vec::new() };
    let mut names: Vec<String> =
        entries.flatten().filter_map(|entry| Some(entry.path().file_stem()?.to_str()?.to_string())).collect();
    names.sort();
    names
}

/// What watches memory while a target runs.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Sanitizer {
    /// Nothing: twice as fast.
    None,
    /// AddressSanitizer.
    Address,
}

/// Every target for `seconds` each.
pub(crate) fn all(seconds: u64, sanitizer: Sanitizer) -> Outcome {
    let targets = targets();
    let mut failed = Vec::new();
    for target in &targets {
        match one(target, seconds, sanitizer) {
            Outcome::Passed(_) => {}
            Outcome::Failed(reason) => failed.push(format!("{target}: {reason}")),
            skipped => return skipped,
        }
    }
    if failed.is_empty() {
        Outcome::Passed(format!("{} targets, {seconds} s each", targets.len()))
    } else {
        Outcome::Failed(failed.join("; "))
    }
}

/// One target for `seconds`, starting from its seeds.
pub(crate) fn one(target: &str, seconds: u64, sanitizer: Sanitizer) -> Outcome {
    if !has("cargo", "fuzz") && !has("cargo-fuzz", "--version") {
        return missing("fuzz", "cargo-fuzz is not installed: cargo install cargo-fuzz --locked");
    }
    if !targets().iter().any(|name| name == target) {
        return Outcome::Failed(format!("no target \"{target}\"; there are {}", targets().join(", ")));
    }
    let corpus = root().join("fuzz/corpus").join(target);
    if let Err(error) = fs::create_dir_all(&corpus) {
        return Outcome::Failed(format!("{}: {error}", corpus.display()));
    }
    let time = format!("-max_total_time={seconds}");
    let (corpus, seeds) = (format!("corpus/{target}"), format!("seeds/{target}"));
    let sanitizer = match sanitizer {
        Sanitizer::None => "none",
        Sanitizer::Address => "address",
    };
    // Coverage instrumentation and sanitizers are not stable; their runtime comes with the stable toolchain all the same.
    let mut command = cargo(&[
        "fuzz",
        "run",
        "-s",
        sanitizer,
        target,
        &corpus,
        &seeds,
        "--",
        &time,
        "-max_len=4096",
        "-print_final_stats=1",
        "-verbosity=0",
    ]);
    command.env("RUSTC_BOOTSTRAP", "1").current_dir(root().join("fuzz"));
    status(&mut command)
}
