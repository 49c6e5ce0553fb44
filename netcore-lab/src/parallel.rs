//! Independent runs on all processors. Results come in the order of the inputs, whatever finishes first.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Calls `run` for each input and collects the results. `progress` is told the fraction done.
///
/// # Errors
/// The error of the first input that failed.
pub fn map<T: Sync, R: Send, E: Send>(
    inputs: &[T],
    progress: &mut dyn FnMut(f64),
    run: impl Fn(&T) -> Result<R, E> + Sync,
) -> Result<Vec<R>, E> {
    let workers = std::thread::available_parallelism().map_or(1, usize::from).min(inputs.len()).max(1);
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::with_capacity(inputs.len()));
    let (report, reports) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..workers {
            let report = report.clone();
            let (next, done, run) = (&next, &done, &run);
            scope.spawn(move || {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(input) = inputs.get(index) else { break };
                    let result = run(input);
                    let failed = result.is_err();
                    done.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push((index, result));
                    let _ = report.send(());
                    if failed {
                        next.store(inputs.len(), Ordering::Relaxed);
                    }
                }
            });
        }
        drop(report);
        let mut finished = 0;
        while reports.recv().is_ok() {
            finished += 1;
            progress(f64::from(finished) / inputs.len().max(1) as f64);
        }
    });
    let mut results = done.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    results.sort_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_keep_the_order_and_the_first_error_wins() {
        let inputs: Vec<u32> = (0..50).collect();
        let mut last = 0.0;
        let squares = map(&inputs, &mut |f| last = f, |n| Ok::<_, u32>(n * n)).unwrap();
        assert_eq!(squares, inputs.iter().map(|n| n * n).collect::<Vec<_>>());
        assert_eq!(last, 1.0);
        assert_eq!(map(&[1, 2, 3], &mut |_| (), |n| if *n == 1 { Err(*n) } else { Ok(*n) }), Err(1));
    }
}
