//! Instructions of the timed part, counted by valgrind.

use anyhow::{Context, bail};
use std::process::Command;

/// Instructions per operation of a workload.
pub(crate) fn instructions(name: &str) -> anyhow::Result<f64> {
    let program = std::env::current_exe()?;
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null", "--collect-atstart=no"])
        .arg("--toggle-collect=*netcore_timed_part*")
        .arg(program)
        .args(["--count", name])
        .output()
        .context("valgrind does not start; apt-get install valgrind")?;
    let errors = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        bail!("{name} under valgrind: {errors}");
    }
    let operations: f64 = String::from_utf8_lossy(&output.stdout).trim().parse().context("number of operations")?;
    let collected = errors.lines().find_map(|line| line.split("Collected :").nth(1)?.trim().parse::<f64>().ok());
    Ok(collected.context("callgrind's count")? / operations)
}
