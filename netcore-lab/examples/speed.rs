//! How many packets per second of wall time the lab simulates, and in how much memory: one bulk flow over a dumbbell of
//! 10 Gbit/s, real headers, three links, two switches, both endpoints.
//!
//!     cargo run --release -p netcore-lab --example speed [RTT in ms] [seconds]

use netcore_lab::scenario::Scenario;
use std::time::Instant;

const TEXT: &str = include_str!("../scenarios/dumbbell.toml");

/// The most memory this process had, MiB (`VmHWM`).
fn peak_mib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse::<u64>().ok().map(|kib| kib / 1024)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let rtt: f64 = arguments.next().map_or(Ok(80.0), |word| word.parse())?;
    let seconds: f64 = arguments.next().map_or(Ok(1.2), |word| word.parse())?;
    let settings = [
        format!("duration={seconds} s"),
        format!("link.0.delay={} us", rtt * 1000.0 / 80.0),
        format!("link.1.delay={} us", rtt * 1000.0 * 38.0 / 80.0),
        format!("link.2.delay={} us", rtt * 1000.0 / 80.0),
    ];
    let scenario = Scenario::parse_with(TEXT, &settings)?;
    let began = Instant::now();
    let outcome = scenario.run(&mut |_| ())?;
    let wall = began.elapsed().as_secs_f64();
    let middle = outcome.links.iter().find(|link| link.name == "middle").ok_or("the link in the middle is missing")?;
    let frames: Vec<u64> = middle.directions.iter().map(|d| d.delivered).collect();
    let data = frames.iter().copied().max().unwrap_or(0);
    println!(
        "{rtt} ms, {seconds} s simulated in {wall:.3} s: {data} data packets, {} ACKs, {:.2} Mpps, {:.0} ns per data packet, {} MiB",
        frames.iter().sum::<u64>() - data,
        data as f64 / wall / 1e6,
        wall * 1e9 / data.max(1) as f64,
        peak_mib().map_or_else(|| "?".into(), |mib| mib.to_string()),
    );
    Ok(())
}
