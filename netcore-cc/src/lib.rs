//! Congestion control as Linux computes it: Reno, CUBIC of every era, RFC 9438, and each generation of HyStart.
//!
//! An algorithm is a slow start × a window adjustment. [`Profile`] names what an era of Linux had and builds it:
//!
//! ```text
//!   Profile ──build──▶ Builtin = Classic< SlowStart        , WindowAdjustment >
//!                                         UntilLoss          Reno
//!                                         HyStart (7 gens)   Cubic, CubicLegacy
//!                                         HyStartPlusPlus    Rfc9438
//! ```
//!
//! ```
//! use netcore::congestion::{AckEvent, AckSample};
//! use netcore::{CongestionOps, Instant, SendState};
//! use netcore_cc::Profile;
//!
//! let profile = Profile::linux_current();
//! let mut state = SendState::new(profile.initial_window(1448), 1448);
//! profile.prepare(&mut state);
//! let mut cubic = profile.build();
//! cubic.init(&mut state, Instant::ZERO);
//! state.is_cwnd_limited = true;
//! let sample = AckSample { pkts_acked: 2, rtt_us: Some(40_000), ..AckSample::default() };
//! let ack = AckEvent { sample, acked: 2, may_raise: true, ..AckEvent::default() };
//! cubic.on_ack(&mut state, &ack, Instant::from_millis(40));
//! assert_eq!(state.cwnd, 12);
//! ```
#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

extern crate alloc;
#[cfg(any(feature = "std", test))]
extern crate std;

mod builtin;
mod classic;
pub mod path;
pub mod profile;
pub mod rtt;
pub mod slow_start;
mod ticks;
pub mod window;

pub use builtin::Builtin;
pub use classic::Classic;
pub use path::SyntheticPath;
pub use profile::{Algorithm, Profile};
pub use rtt::{DelayMin, DelayUnit};
pub use slow_start::{Detectors, Growth, HyStart, HyStartPlusPlus, HyStartRules, RoundReset, UntilLoss};
pub use window::{Cubic, CubicLegacy, CubicParameters, LegacyRules, ParameterError, Reno, Rfc9438};
