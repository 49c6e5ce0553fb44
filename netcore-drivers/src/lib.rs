//! Drivers of netcore: implementations of [`netcore::Driver`].
//!
//! | module | device | feature |
//! | --- | --- | --- |
//! | [`pcap`] | capture files, pcap and pcapng | `pcap` |
#![forbid(unsafe_code)]

#[cfg(feature = "pcap")]
pub mod pcap;
