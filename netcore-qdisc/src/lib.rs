//! Packet scheduling as Linux does it.
//!
//! [`Fq`] is fair queueing with pacing: a flow per socket, departure times honoured to the nanosecond, at a cost per packet
//! that does not depend on the number of flows. [`tc`] reads and prints options as `tc` does.
//!
//! [`FqCodel`], [`Tbf`] and [`PfifoFast`] are there because people compare against them; [`by_name`] makes any of the four from the
//! words of a `tc` command.
//!
//! [`autosize`] says how many segments a sender puts into one super-packet; it works for any sender, with or without the
//! qdiscs of this crate.
#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

extern crate alloc;
#[cfg(any(feature = "std", test))]
extern crate std;

pub mod autosize;
pub mod fq;
pub mod fq_codel;
mod packets;
mod pfifo_fast;
pub mod tbf;
pub mod tc;
mod wire;

use netcore::{Drops, Fifo, FifoLimit, Instant, Qdisc, QdiscError};

pub use autosize::{Autosize, AutosizeError, AutosizeForm, FlowView, PacingRatio};
pub use fq::{Fq, FqCounters, FqOptions, FqRules, HorizonPolicy};
pub use fq_codel::{FqCodel, FqCodelCounters, FqCodelOptions};
pub use pfifo_fast::PfifoFast;
pub use tbf::{Tbf, TbfOptions};

/// The band of each priority in pfifo_fast and fq (Linux: `sch_default_prio2band`): interactive and control traffic in band
/// 0, best effort in 1, bulk in 2.
pub const PRIO2BAND: [u8; 16] = [1, 2, 2, 2, 1, 2, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1];

/// A qdisc by the name that `tc` uses, with options in `tc` syntax, for an MTU of 1500: `fq`, `fq_codel`, `tbf`,
/// `pfifo_fast`, `pfifo` or `bfifo`. `None` if there is no such qdisc.
///
/// # Errors
/// [`QdiscError`] if an option is wrong.
pub fn by_name(name: &str, words: &[&str]) -> Option<Result<alloc::boxed::Box<dyn Qdisc>, QdiscError>> {
    fn boxed<Q: Qdisc + 'static>(qdisc: Result<Q, QdiscError>) -> Result<alloc::boxed::Box<dyn Qdisc>, QdiscError> {
        qdisc.map(|qdisc| alloc::boxed::Box::new(qdisc) as _)
    }
    let changed = |mut qdisc: Fifo| qdisc.change(words, Instant::ZERO, &mut Drops::new()).map(|()| qdisc);
    Some(match name {
        "fq" => boxed(Fq::from_words(words)),
        "fq_codel" => boxed(FqCodel::from_words(words)),
        "tbf" => boxed(Tbf::from_words(words)),
        "pfifo_fast" => boxed(PfifoFast::from_words(words)),
        "pfifo" => boxed(changed(Fifo::default())),
        "bfifo" => boxed(changed(Fifo::new(FifoLimit::Bytes(Fifo::DEFAULT_PACKETS * 1514)))),
        _ => return None,
    })
}
