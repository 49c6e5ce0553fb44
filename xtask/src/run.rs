//! Running commands and reporting on them.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

/// How a step ended.
pub(crate) enum Outcome {
    /// Passed, with what it counted if it counts.
    Passed(String),
    /// Failed, and why.
    Failed(String),
    /// Could not run here, and what is missing.
    Skipped(String),
}

/// The root of the workspace.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}

/// True if `NETCORE_REQUIRE` lists this kind of thing, so that its absence is a failure.
pub(crate) fn required(kind: &str) -> bool {
    std::env::var("NETCORE_REQUIRE").is_ok_and(|list| list.split(',').any(|k| k.trim() == kind))
}

/// What to say when something is missing.
pub(crate) fn missing(kind: &str, reason: &str) -> Outcome {
    if required(kind) {
        Outcome::Failed(format!("{kind} is required: {reason}"))
    } else {
        Outcome::Skipped(reason.into())
    }
}

/// A cargo command at the root of the workspace.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments).current_dir(root());
    command
}

/// True if the program starts.
pub(crate) fn has(program: &str, argument: &str) -> bool {
    let result = Command::new(program).arg(argument).stdout(Stdio::null()).stderr(Stdio::null()).status();
    result.is_ok_and(|status| status.success())
}

/// Runs a command with its output shown.
pub(crate) fn status(command: &mut Command) -> Outcome {
    match command.status() {
        Ok(status) if status.success() => Outcome::Passed(String::new()),
        Ok(status) => Outcome::Failed(format!("{status}")),
        Err(error) => Outcome::Failed(format!("{}: {error}", command.get_program().to_string_lossy())),
    }
}

/// Runs a test command with its output shown, and adds up what its test binaries counted.
pub(crate) fn counted(command: &mut Command) -> Outcome {
    let mut child = match command.stdout(Stdio::piped()).spawn() {
        Ok(child) => child,
        Err(error) => return Outcome::Failed(format!("{}: {error}", command.get_program().to_string_lossy())),
    };
    let (mut passed, mut failed) = (0u32, 0u32);
    if let Some(output) = child.stdout.take() {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            println!("{line}");
            // test result: ok. 12 passed; 0 failed; …
            let count = |word: &str| -> u32 {
                let words: Vec<&str> = line.split_whitespace().collect();
                words
                    .windows(2)
                    .find(|pair| pair[1].starts_with(word))
                    .and_then(|pair| pair[0].parse().ok())
                    .unwrap_or(0)
            };
            if line.starts_with("test result:") {
                passed += count("passed");
                failed += count("failed");
            }
        }
    }
    match child.wait() {
        Ok(status) if status.success() => Outcome::Passed(format!("{passed} tests")),
        Ok(status) => Outcome::Failed(format!("{failed} of {} tests, {status}", passed + failed)),
        Err(error) => Outcome::Failed(error.to_string()),
    }
}

/// Runs commands until one does not pass.
pub(crate) fn sequence(commands: impl IntoIterator<Item = Command>) -> Outcome {
    for mut command in commands {
        match status(&mut command) {
            Outcome::Passed(_) => {}
            other => return other,
        }
    }
    Outcome::Passed(String::new())
}

/// The steps run so far.
#[derive(Default)]
pub(crate) struct Report {
    steps: Vec<(String, Duration, Outcome)>,
}

impl Report {
    /// Runs a step and records how it ended.
    pub(crate) fn run(&mut self, name: &str, step: impl FnOnce() -> Outcome) {
        println!("\n=== {name}");
        let start = Instant::now();
        let outcome = step();
        self.steps.push((name.to_string(), start.elapsed(), outcome));
    }

    /// The summary: one line per step, then the counts.
    pub(crate) fn finish(self) -> ExitCode {
        let width = self.steps.iter().map(|(name, ..)| name.len()).max().unwrap_or(0);
        let (mut passed, mut failed, mut skipped) = (0, 0, 0);
        println!("\n=== summary");
        for (name, time, outcome) in &self.steps {
            let (word, text) = match outcome {
                Outcome::Passed(text) => ("ok", text),
                Outcome::Failed(text) => ("FAILED", text),
                Outcome::Skipped(text) => ("skipped", text),
            };
            match outcome {
                Outcome::Passed(_) => passed += 1,
                Outcome::Failed(_) => failed += 1,
                Outcome::Skipped(_) => skipped += 1,
            }
            println!("{name:<width$}  {:>6.1} s  {word:<7}  {text}", time.as_secs_f64());
        }
        println!("\n{passed} passed, {failed} failed, {skipped} skipped");
        if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}
