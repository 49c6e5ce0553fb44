//! Receive descriptors: legacy (8254x) and extended (82574).

use crate::ring::{ReceiveFault, ReceiveLayout, Received, Words};
use netcore::ReceiveChecksum;

/// Status bits, at the same places in both layouts.
mod status {
    pub(super) const EOP: u32 = 1 << 1;
    pub(super) const IXSM: u32 = 1 << 2;
    pub(super) const VP: u32 = 1 << 3;
    pub(super) const TCPCS: u32 = 1 << 5;
}

/// Error bits of the legacy layout; the extended layout has them 24 places further up.
mod error {
    pub(super) const CE: u32 = 1 << 0;
    pub(super) const SE: u32 = 1 << 1;
    pub(super) const SEQ: u32 = 1 << 2;
    pub(super) const CXE: u32 = 1 << 4;
    pub(super) const TCPE: u32 = 1 << 5;
    pub(super) const IPE: u32 = 1 << 6;
    pub(super) const RXE: u32 = 1 << 7;
    pub(super) const FRAME: u32 = CE | SE | SEQ | CXE | RXE;
}

/// What the receive queue is switched to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Switches {
    pub(super) checksum: bool,
    pub(super) strip: bool,
    pub(super) keep_bad: bool,
    pub(super) hash: bool,
}

#[inline(always)]
fn common(switches: Switches, len: u16, status_bits: u32, errors: u32, vlan: u16) -> Received {
    let mut received = Received { len, end: status_bits & status::EOP != 0, ..Received::default() };
    if !received.end {
        return received;
    }
    if errors & error::FRAME != 0 && !switches.keep_bad {
        received.fault = Some(if errors & error::CE != 0 {
            ReceiveFault::Crc
        } else if errors & error::RXE != 0 {
            ReceiveFault::Data
        } else {
            ReceiveFault::Symbol
        });
        return received;
    }
    if switches.strip && status_bits & status::VP != 0 {
        received.vlan = Some(vlan);
    }
    if switches.checksum && status_bits & status::IXSM == 0 {
        if errors & (error::TCPE | error::IPE) != 0 {
            received.checksum_error = true;
        } else if status_bits & status::TCPCS != 0 {
            received.checksum = ReceiveChecksum::Unnecessary { levels: 1 };
        }
    }
    received
}

/// Legacy receive descriptors (82546GB manual 3.2.3).
#[derive(Debug)]
pub struct Legacy(pub(super) Switches);

impl Legacy {
    /// The layout with every offload on, for a ring without a device: a bench.
    pub const fn with_every_offload() -> Self {
        Self(Switches { checksum: true, strip: true, keep_bad: false, hash: false })
    }
}

impl ReceiveLayout for Legacy {
    const DONE: u64 = 1 << 32;

    #[inline(always)]
    fn arm(&self, iova: u64) -> Words {
        [iova, 0]
    }

    #[inline(always)]
    fn parse(&self, [_, word]: Words) -> Received {
        common(self.0, word as u16, (word >> 32) as u32 & 0xff, (word >> 40) as u32 & 0xff, (word >> 48) as u16)
    }
}

/// Extended receive descriptors (82574L datasheet 7.1.4).
#[derive(Debug)]
pub struct Extended(pub(super) Switches);

impl ReceiveLayout for Extended {
    const DONE: u64 = 1;

    #[inline(always)]
    fn arm(&self, iova: u64) -> Words {
        [iova, 0]
    }

    #[inline(always)]
    fn parse(&self, [first, second]: Words) -> Received {
        let (status_bits, errors) = (second as u32, (second as u32) >> 24);
        let len = (second >> 32) as u16;
        let mut received = common(self.0, len, status_bits, errors, (second >> 48) as u16);
        let kind = first as u32 & 0xf;
        if received.end && self.0.hash && kind != 0 {
            // Types 1 and 3 cover TCP ports (82574L datasheet table 48).
            received.hash = Some(((first >> 32) as u32, kind == 1 || kind == 3));
        }
        received
    }
}
