//! Other crates' traits over netcore's, one feature per crate and version, so that their majors never force ours.
//!
//! | feature | what it gives |
//! | --- | --- |
//! | `quinn-proto-0_11` | [`quinn::Factory`]: any congestion control of `netcore-cc` inside quinn-proto 0.11 |
#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "quinn-proto-0_11")]
pub mod quinn;
