//! Where one NIC poll ends and the next begins.

use super::Arguments;
use netcore::Instant;

/// Decides whether a frame belongs to the poll being gathered.
pub(super) enum Batch {
    /// A number of frames.
    Count { size: usize, seen: usize },
    /// Frames within a span of the first. A frame without time stamp belongs to the poll at hand.
    Span { nanos: u64, first: Option<Instant> },
}

impl Batch {
    pub(super) fn new(arguments: &Arguments) -> Self {
        match (arguments.batch_by_time, arguments.usecs) {
            (true, _) => Self::Span { nanos: 0, first: None },
            (false, Some(usecs)) => Self::Span { nanos: usecs.saturating_mul(1000), first: None },
            (false, None) => Self::Count { size: arguments.batch as usize, seen: 0 },
        }
    }

    /// True if the frame starts a new poll.
    pub(super) fn starts_new(&mut self, at: Option<Instant>) -> bool {
        match self {
            Self::Count { size, seen } => {
                *seen += 1;
                if *seen <= *size {
                    return false;
                }
                *seen = 1;
                true
            }
            Self::Span { nanos, first } => {
                let Some(at) = at else { return false };
                match *first {
                    Some(start) if at >= start && at.nanos_since(start) <= *nanos => false,
                    Some(_) => {
                        *first = Some(at);
                        true
                    }
                    None => {
                        *first = Some(at);
                        false
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cuts(mut batch: Batch, times: &[u64]) -> Vec<bool> {
        times.iter().map(|t| batch.starts_new(Some(Instant::from_nanos(*t)))).collect()
    }

    #[test]
    fn polls_by_count_and_by_time() {
        assert_eq!(cuts(Batch::Count { size: 2, seen: 0 }, &[1, 1, 1, 1, 1]), [false, false, true, false, true]);
        assert_eq!(cuts(Batch::Span { nanos: 0, first: None }, &[1, 1, 2, 2, 3]), [false, false, true, false, true]);
        assert_eq!(
            cuts(Batch::Span { nanos: 10, first: None }, &[1, 11, 12, 22, 5]),
            [false, false, true, false, true]
        );
    }
}
