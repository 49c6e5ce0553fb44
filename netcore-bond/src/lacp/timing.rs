//! Timers of the protocol, and the two ways to run them.

use core::time::Duration;
use netcore::Instant;

/// Period of sending to a partner with the short timeout (`Fast_Periodic_Time`).
pub const FAST_PERIODIC: Duration = Duration::from_secs(1);
/// Period of sending to a partner with the long timeout (`Slow_Periodic_Time`).
pub const SLOW_PERIODIC: Duration = Duration::from_secs(30);
/// Silence after which a partner is lost, short (`Short_Timeout_Time`).
pub const SHORT_TIMEOUT: Duration = Duration::from_secs(3);
/// Silence after which a partner is lost, long (`Long_Timeout_Time`).
pub const LONG_TIMEOUT: Duration = Duration::from_secs(90);
/// Time a port has to come into sync before it counts as churning (`Churn_Detection_Time`).
pub const CHURN_DETECTION: Duration = Duration::from_secs(60);
/// Time a port waits for others to join its aggregator (`Aggregate_Wait_Time`).
pub const AGGREGATE_WAIT: Duration = Duration::from_secs(2);
/// Most LACPDUs of a port in one [`FAST_PERIODIC`] (Linux: `AD_MAX_TX_IN_SECOND`).
pub const MAX_TX_IN_SECOND: usize = 3;
/// Time from the first port of an open bond until an aggregator is chosen (Linux: `AD_AGGREGATOR_SELECTION_TIMER`).
pub const AGGREGATOR_SELECTION: Duration = Duration::from_secs(8);

/// When the machines run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Timing {
    /// All machines of all ports once every tick, as Linux does; only received LACPDUs are taken in at once.
    Linux {
        /// Length of a tick. Linux aims at [`Timing::TICK`]; its timer wheel makes it one jiffy longer, 104 ms at 250 Hz.
        /// Timers count ticks: what is called a second has ten.
        tick: Duration,
    },
    /// Whenever something happened or a timer ran out, until nothing moves any more, as the standard has it. No time is
    /// lost to ticks, and nothing has to run in between.
    EventDriven,
}

impl Timing {
    /// The tick that Linux aims at (`AD_TIMER_INTERVAL`).
    pub const TICK: Duration = Duration::from_millis(100);
}

impl Default for Timing {
    fn default() -> Self {
        Self::Linux { tick: Self::TICK }
    }
}

/// The time that a run of the machines goes by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    /// Now, or the last tick.
    pub(super) at: Instant,
    pub(super) timing: Timing,
}

impl Clock {
    /// When a timer started now runs out.
    pub(super) fn after(self, span: Duration) -> Instant {
        match self.timing {
            Timing::EventDriven => self.at + span,
            Timing::Linux { tick } => {
                let ticks = span.as_millis() / Timing::TICK.as_millis();
                self.at + tick.saturating_mul(u32::try_from(ticks).unwrap_or(u32::MAX))
            }
        }
    }

    /// True if the timer runs and its time has come.
    pub(super) fn is_over(self, timer: Option<Instant>) -> bool {
        timer.is_some_and(|at| at <= self.at)
    }

    /// True if the machines run once a tick.
    pub(super) const fn ticks(self) -> bool {
        matches!(self.timing, Timing::Linux { .. })
    }
}
