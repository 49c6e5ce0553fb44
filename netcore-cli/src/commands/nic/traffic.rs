//! `netcore nic pktgen`, `loopback` and `capture`.

use super::super::{capture as progress, print};
use super::device::{self, Opened};
use anyhow::{Context, bail};
use netcore::{Burst, Completions, MacAddress, Packet};
use netcore_drivers::bus::InterruptMode;
use netcore_drivers::pcap::{CaptureWriter, Format, LinkType};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

/// Packets of a burst.
const BURST: usize = 32;
/// Bound of the time to finish what is queued.
const DRAIN: Duration = Duration::from_secs(2);

fn reclaim(opened: &mut Opened, completions: &mut Completions) -> anyhow::Result<u64> {
    completions.clear();
    let now = opened.now();
    Ok(opened.nic.reclaim(0, completions, now)? as u64)
}

pub(super) fn generate(
    name: &str,
    count: u64,
    size: usize,
    destination: MacAddress,
    rate: Option<u64>,
) -> anyhow::Result<ExitCode> {
    if !(60..=9014).contains(&size) {
        bail!("--size is {size}, allowed is 60 to 9014 (without FCS)");
    }
    let mut opened = device::device(name, (size - 14).max(1500))?;
    opened.up_with_link()?;
    let mut frame = [destination.0, opened.nic.capabilities().mac.0].concat();
    // The experimental EtherType (IEEE 802).
    frame.extend([0x88, 0xb5]);
    frame.resize(size, 0);
    let bar = progress::progress(count, "{bar:40} {pos}/{len} frames {per_sec}");
    let mut burst = Burst::with_capacity(BURST);
    let mut received = Burst::new();
    let mut completions = Completions::new();
    let (mut made, mut sent, mut done) = (0, 0, 0);
    let start = opened.now();
    let mut last = start;
    while done < count {
        let due = match rate {
            Some(rate) => {
                let elapsed = (opened.now() - start).as_nanos();
                u64::try_from(elapsed * u128::from(rate) / 1_000_000_000).unwrap_or(u64::MAX).min(count)
            }
            None => count,
        };
        while burst.len() < BURST && made < due {
            let Ok(packet) = opened.cache.copy_chain(&frame) else { break };
            burst.push(packet);
            made += 1;
        }
        let now = opened.now();
        opened.nic.poll(now)?;
        let n = opened.nic.transmit(0, &mut burst, now)? as u64;
        sent += n;
        let finished = reclaim(&mut opened, &mut completions)?;
        done += finished;
        bar.set_position(done);
        // What comes in is not wanted, but its buffers are.
        opened.receive(&mut received)?;
        opened.cache.put_burst(&mut received);
        if n > 0 || finished > 0 {
            last = opened.now();
        } else {
            if sent > done && opened.now() - last > DRAIN {
                bail!("{} frames were not finished within {DRAIN:?}", sent - done);
            }
            opened.idle();
        }
    }
    let seconds = (opened.now() - start).as_secs_f64();
    bar.finish_and_clear();
    opened.down()?;
    let (pps, bits) = (done as f64 / seconds, done as f64 * (size + 24) as f64 * 8.0 / seconds);
    print(&format!(
        "{done} frames of {size} bytes in {seconds:.3} s: {pps:.0} frames/s, {:.1} Mbit/s on the line\n",
        bits / 1e6
    ))?;
    Ok(ExitCode::SUCCESS)
}

/// Swaps the addresses of a frame.
fn turn_round(packet: &mut Packet, opened: &mut Opened) -> bool {
    if packet.len() < 14 || packet.make_writable(14, &mut opened.cache).is_err() {
        return false;
    }
    match packet.head_mut() {
        Ok(head) => {
            let (destination, rest) = head.split_at_mut(6);
            destination.swap_with_slice(&mut rest[..6]);
            true
        }
        Err(_) => false,
    }
}

/// How the device says that there is something to do.
#[derive(Clone, Copy, clap::ValueEnum)]
pub(super) enum Interrupts {
    /// The shared line.
    Intx,
    /// A message.
    Msi,
    /// A message per queue.
    Msix,
}

/// Longest sleep while waiting for an interrupt: timers are due meanwhile.
const NAP: Duration = Duration::from_millis(50);

pub(super) fn reflect(name: &str, seconds: f64, interrupts: Option<Interrupts>) -> anyhow::Result<ExitCode> {
    let mut opened = device::device(name, 1500)?;
    let mode = interrupts.map(|interrupts| match interrupts {
        Interrupts::Intx => InterruptMode::Intx,
        Interrupts::Msi => InterruptMode::Msi,
        Interrupts::Msix => InterruptMode::MsiX,
    });
    if let Some(mode) = mode {
        opened.nic.set_interrupts(mode)?;
    }
    let mut count = 0u64;
    opened.up_with_link()?;
    let end = opened.now() + Duration::try_from_secs_f64(seconds)?;
    let (mut burst, mut out) = (Burst::new(), Burst::new());
    let mut completions = Completions::new();
    let (mut frames, mut dropped) = (0u64, 0u64);
    while opened.now() < end {
        opened.receive(&mut burst)?;
        while let Some(mut packet) = burst.pop() {
            if turn_round(&mut packet, &mut opened) {
                out.push(packet);
            } else {
                dropped += 1;
                opened.cache.put(packet);
            }
        }
        let now = opened.now();
        let sent = opened.nic.transmit(0, &mut out, now)? as u64;
        frames += sent;
        // A reflector that cannot keep up drops; it does not queue.
        dropped += out.len() as u64;
        opened.cache.put_burst(&mut out);
        let finished = reclaim(&mut opened, &mut completions)?;
        if sent > 0 || finished > 0 {
            continue;
        }
        if mode.is_none() {
            opened.idle();
        } else if let Some((vector, _)) = opened.nic.wait(NAP)? {
            count += 1;
            // What came before the vector is armed again interrupts at once, so nothing is missed.
            opened.nic.rearm(vector)?;
        }
    }
    opened.down()?;
    let interrupts = if mode.is_some() { format!(", {count} interrupts") } else { String::new() };
    print(&format!("{frames} frames sent back, {dropped} dropped{interrupts}\n"))?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn capture(name: &str, out: &Path, seconds: f64, count: Option<u64>) -> anyhow::Result<ExitCode> {
    let mut opened = device::device(name, 9000)?;
    let file = File::create(out).with_context(|| out.display().to_string())?;
    let mut writer = CaptureWriter::new(BufWriter::new(file), Format::for_path(out), LinkType::ETHERNET)?;
    opened.nic.set_promiscuous(true)?;
    // A capture shows the frame as it was on the line, its tag included.
    let features = opened.nic.capabilities().features - netcore::Features::RX_VLAN;
    opened.nic.set_features(features)?;
    opened.up_with_link()?;
    let epoch = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?;
    let start = opened.now();
    let end = start + Duration::try_from_secs_f64(seconds)?;
    let mut burst = Burst::new();
    let mut frames = 0;
    'capturing: while opened.now() < end {
        if opened.receive(&mut burst)? == 0 {
            opened.idle();
        }
        while let Some(packet) = burst.pop() {
            let received = packet.timestamp().unwrap_or(start);
            let at = netcore::Instant::ZERO + epoch + (received - start);
            writer.write_packet(&packet, Some(at)).context("writing the capture")?;
            opened.cache.put(packet);
            frames += 1;
            if count.is_some_and(|count| frames >= count) {
                break 'capturing;
            }
        }
    }
    opened.cache.put_burst(&mut burst);
    writer.flush().context("writing the capture")?;
    opened.down()?;
    print(&format!("{frames} frames in {}\n", out.display()))?;
    let _ = std::io::stdout().flush();
    Ok(ExitCode::SUCCESS)
}
