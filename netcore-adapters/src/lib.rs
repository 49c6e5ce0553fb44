//! Other crates' traits over netcore's, one feature per crate and version, so that their majors never force ours.
//!
//! | feature | what it gives |
//! | --- | --- |
//! | `quinn-proto-0_11` | [`quinn::Factory`]: any congestion control of `netcore-cc` inside quinn-proto 0.11 |
//! | `s2n-quic-core-0_91` | [`s2n::Controllers`]: the same inside s2n-quic-core 0.91 |
//! | `smoltcp-0_14` | [`smoltcp::Device`]: any driver as a device of smoltcp 0.14 |
//! | `embassy-net-driver-0_2` | [`embassy::EmbassyDriver`]: any driver as one of embassy-net |
#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(any(feature = "quinn-proto-0_11", feature = "s2n-quic-core-0_91"))]
mod episode;
#[cfg(feature = "quinn-proto-0_11")]
pub mod quinn;

#[cfg(feature = "s2n-quic-core-0_91")]
pub mod s2n;

#[cfg(feature = "embassy-net-driver-0_2")]
pub mod embassy;
#[cfg(any(feature = "smoltcp-0_14", feature = "embassy-net-driver-0_2"))]
mod frames;
#[cfg(feature = "smoltcp-0_14")]
pub mod smoltcp;
