//! The running kernel, asked what it makes of frames: everything happens in namespaces that vanish with the thread.
#![allow(unreachable_pub, dead_code)]

mod gro;
mod gso;
pub mod sys;

pub use gro::{Delivered, KernelGro};
pub use gso::KernelGso;

use std::io::{Error, Result};
use std::process::Command;

/// EtherType of frames that mark the end of a burst.
const FENCE: u16 = 0x88b5;

/// Runs `ip` in this thread's namespaces.
fn ip(arguments: &str) -> Result<()> {
    let output = Command::new("ip").args(arguments.split_whitespace()).output()?;
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() { Ok(()) } else { Err(Error::other(format!("ip {arguments}: {message}"))) }
}

fn sysctl(path: &str, value: &str) -> Result<()> {
    std::fs::write(format!("/proc/sys/{path}"), value)
}

/// A frame that nothing but the test understands.
fn fence(number: u64) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 8];
    frame.extend(FENCE.to_be_bytes());
    frame.extend(number.to_be_bytes());
    frame.resize(60, 0);
    frame
}

fn is_fence(frame: &[u8]) -> bool {
    frame.get(12..14) == Some(&FENCE.to_be_bytes())
}
