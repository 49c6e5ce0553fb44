//! `cargo xtask oracle`: asks real systems again for the answers that tests compare with.

use crate::guest;
use crate::run::{Outcome, root};
use std::path::PathBuf;
use std::process::Command;

/// Which member a real Linux bond sends each of many frames to, and which options it accepts: into `netcore-bond/testdata`.
pub(crate) fn bond() -> Outcome {
    let folder = std::env::var_os("NETCORE_GUEST").map_or_else(|| root().join("target/guest"), PathBuf::from);
    if !folder.join("vmlinux").exists()
        && let Outcome::Failed(error) = guest::get()
    {
        return Outcome::Failed(error);
    }
    // The folder of one release, or the one below it.
    let modules = folder.join("modules");
    let record = root().join("netcore-bond/oracle/record.py");
    let output = Command::new("python3")
        .arg(&record)
        .args([folder.join("vmlinux"), modules, folder.join("busybox"), root().join("netcore-bond/testdata")])
        .output();
    match output {
        Ok(output) if output.status.success() => {
            Outcome::Passed(String::from_utf8_lossy(&output.stdout).trim().to_string())
        }
        Ok(output) => Outcome::Failed(String::from_utf8_lossy(&output.stderr).into_owned()),
        Err(error) => Outcome::Failed(format!("python3 {}: {error}", record.display())),
    }
}
