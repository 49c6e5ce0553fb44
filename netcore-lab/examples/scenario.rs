//! Runs a scenario file and prints its result as JSON and a digest of a link's capture: the same for the same seed, in any build.
//!
//!     cargo run --example scenario -- netcore-lab/scenarios/lossy-path.toml path

use netcore_drivers::pcap::Format;
use netcore_lab::scenario::{CaptureRequest, Scenario};
use std::io::Write;
use std::sync::{Arc, Mutex};

/// Bytes written and their FNV-1a hash.
#[derive(Clone)]
struct Digest(Arc<Mutex<(u64, u64)>>);

impl Write for Digest {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let mut state = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        for byte in bytes {
            state.1 = (state.1 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
        state.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().ok_or("a scenario file is missing")?;
    let scenario = Scenario::parse(&std::fs::read_to_string(file)?)?;
    let digest = Digest(Arc::new(Mutex::new((0, 0xcbf2_9ce4_8422_2325))));
    let captures = arguments
        .map(|link| CaptureRequest { link, end: None, format: Format::Pcapng, out: Box::new(digest.clone()) })
        .collect();
    let began = std::time::Instant::now();
    let mut world = scenario.build(captures)?;
    let outcome = world.run(&mut |_| ())?;
    println!("{}", serde_json::to_string_pretty(&outcome)?);
    let (bytes, hash) = *digest.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if bytes > 0 {
        println!("captures: {bytes} bytes, {hash:016x}");
    }
    let frames: u64 = outcome.links.iter().flat_map(|link| &link.directions).map(|d| d.delivered).sum();
    let took = began.elapsed();
    eprintln!(
        "{frames} frames over links in {:.2} s: {} ns each",
        took.as_secs_f64(),
        took.as_nanos() as u64 / frames.max(1)
    );
    Ok(())
}
