//! What the hot paths cost.
//!
//! One sample is one batch of operations between two readings of the clock, with everything around it (filling packets,
//! returning buffers) outside. Nanoseconds are the least and the tenth percentile over many samples: on a shared machine only
//! ratios within one run mean anything. Instructions come from callgrind, which counts the timed part alone and sees no
//! AVX-512, so the checksums there are those of AVX2.

mod callgrind;
mod frames;
mod measure;
mod nic;
mod workloads;

use clap::Parser;
use std::process::ExitCode;

/// What the hot paths of netcore cost.
#[derive(Parser)]
#[command(after_help = "Examples:
  cargo run --release -p netcore-bench                   nanoseconds per operation
  cargo run --release -p netcore-bench -- --instructions instructions per operation, with valgrind
  cargo run --release -p netcore-bench -- gro            only what has \"gro\" in its name")]
struct Arguments {
    /// Only workloads whose name contains this
    filter: Option<String>,

    /// Count instructions with callgrind as well
    #[arg(long)]
    instructions: bool,

    /// Run one workload a few times and say how many operations that were (used under callgrind)
    #[arg(long, hide = true)]
    count: Option<String>,
}

fn main() -> anyhow::Result<ExitCode> {
    let arguments = Arguments::parse();
    let mut workloads = workloads::all();
    workloads.extend(nic::all());
    if let Some(name) = &arguments.count {
        let workload = workloads.iter().find(|w| w.name == name.as_str());
        let Some(workload) = workload else { anyhow::bail!("no workload {name}") };
        println!("{}", measure::count(workload));
        return Ok(ExitCode::SUCCESS);
    }
    println!("checksum implementation: {}", netcore::checksum::implementation());
    println!("{:<34} {:>9} {:>9} {:>13} {:>10}", "operation", "ns min", "ns p10", "instructions", "budget ns");
    for workload in &workloads {
        if arguments.filter.as_ref().is_some_and(|filter| !workload.name.contains(filter.as_str())) {
            continue;
        }
        let ns = measure::nanoseconds(workload);
        let instructions = match arguments.instructions {
            true => format!("{:.1}", callgrind::instructions(workload.name)?),
            false => String::new(),
        };
        let budget = workload.budget.map_or_else(String::new, |ns| format!("{ns}"));
        println!("{:<34} {:>9.2} {:>9.2} {:>13} {:>10}", workload.name, ns.min, ns.p10, instructions, budget);
    }
    Ok(ExitCode::SUCCESS)
}
