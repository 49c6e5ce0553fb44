//! Packet scheduling as Linux does it.
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

pub use autosize::{Autosize, AutosizeError, AutosizeForm, PacingRatio, SmallRate};
