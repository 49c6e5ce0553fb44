//! Sampling.

use crate::workloads::Workload;
use std::time::Instant;

/// Nanoseconds per operation.
pub(crate) struct Nanoseconds {
    pub(crate) min: f64,
    pub(crate) p10: f64,
}

/// Samples taken of each workload.
const SAMPLES: usize = 4000;
/// Samples under callgrind, after as many that warm up.
const COUNTED: usize = 20;

/// The timed part. Callgrind counts what happens below this function.
#[inline(never)]
fn netcore_timed_part(workload: &mut dyn FnMut()) {
    workload();
}

/// The cost of reading the clock twice and of the call, nanoseconds.
fn overhead() -> f64 {
    let mut least = f64::MAX;
    for _ in 0..SAMPLES {
        let start = Instant::now();
        netcore_timed_part(&mut || ());
        least = least.min(start.elapsed().as_nanos() as f64);
    }
    least
}

pub(crate) fn nanoseconds(workload: &Workload) -> Nanoseconds {
    let overhead = overhead();
    let mut state = (workload.make)();
    let mut samples: Vec<f64> = (0..SAMPLES)
        .map(|_| {
            let operations = state.prepare();
            let start = Instant::now();
            netcore_timed_part(&mut || state.run());
            let elapsed = start.elapsed().as_nanos() as f64;
            state.finish();
            (elapsed - overhead).max(0.0) / operations as f64
        })
        .collect();
    samples.sort_by(f64::total_cmp);
    Nanoseconds { min: samples[0], p10: samples[SAMPLES / 10] }
}

/// Runs a workload for callgrind; says how many operations were counted.
pub(crate) fn count(workload: &Workload) -> usize {
    let mut state = (workload.make)();
    for _ in 0..COUNTED {
        state.prepare();
        state.run();
        state.finish();
    }
    let mut operations = 0;
    for _ in 0..COUNTED {
        operations += state.prepare();
        netcore_timed_part(&mut || state.run());
        state.finish();
    }
    operations
}
