//! `netcore nic selftest`: the tests of `ethtool -t`.

use super::super::print;
use super::device::{self, Opened};
use anyhow::{Context, bail};
use netcore::{Burst, Completions, MacAddress};
use std::process::ExitCode;
use std::time::Duration;

/// Frames through the loop, of these sizes.
const SIZES: [usize; 6] = [60, 61, 128, 512, 1024, 1514];

pub(super) fn run(name: &str) -> anyhow::Result<ExitCode> {
    let mut opened = device::device(name, 1500)?;
    let mut failed = false;
    for (test, result) in [
        ("registers", opened.nic.test_registers().map_err(anyhow::Error::from)),
        ("NVM", opened.nic.test_nvm().map_err(anyhow::Error::from)),
        ("loopback", loopback(&mut opened)),
    ] {
        let verdict = match &result {
            Ok(()) => "pass".to_owned(),
            Err(error) => format!("FAIL: {error:#}"),
        };
        failed |= result.is_err();
        print(&format!("{test:<10} {verdict}\n"))?;
    }
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn frame(mac: MacAddress, len: usize, number: u8) -> Vec<u8> {
    let mut frame = [mac.0, mac.0].concat();
    frame.extend([0x88, 0xb5]);
    frame.extend((frame.len()..len).map(|at| (at as u8).wrapping_mul(31).wrapping_add(number)));
    frame
}

fn loopback(opened: &mut Opened) -> anyhow::Result<()> {
    opened.up(Duration::from_secs(5))?;
    opened.nic.set_loopback(true).context("loop")?;
    let result = exchange(opened);
    let ended = opened.nic.set_loopback(false).context("end of the loop");
    let down = opened.down();
    result.and(ended).and(down)
}

fn exchange(opened: &mut Opened) -> anyhow::Result<()> {
    let mac = opened.nic.capabilities().mac;
    let mut burst = Burst::new();
    let mut completions = Completions::new();
    let mut sent = Vec::new();
    // Some emulations are deaf for a second after they were started.
    let end = opened.now() + Duration::from_secs(5);
    for (number, len) in (0..).zip(SIZES) {
        let bytes = frame(mac, len, number);
        let mut got = None;
        while got.is_none() {
            if opened.now() >= end {
                bail!("a frame of {len} bytes did not come back within 5 s");
            }
            if sent.is_empty() || opened.now() >= *sent.last().unwrap_or(&opened.now()) + Duration::from_millis(100) {
                burst.push(opened.cache.copy_from_slice(&bytes)?);
                let now = opened.now();
                opened.nic.transmit(0, &mut burst, now)?;
                opened.nic.reclaim(0, &mut completions, now)?;
                completions.clear();
                sent.push(now);
                opened.cache.put_burst(&mut burst);
            }
            opened.receive(&mut burst)?;
            for packet in burst.drain() {
                if packet.to_vec() == bytes {
                    got = Some(());
                }
            }
            opened.idle();
        }
        sent.clear();
    }
    Ok(())
}
