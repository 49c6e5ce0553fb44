//! Reading the captures with known answers.
#![allow(dead_code, unreachable_pub)]

use netcore::Instant;
use netcore::dissect::{ChecksumVerdict, Dissection, TunnelPorts, dissect};
use netcore::wire::{Protocol, TcpHeader, TcpOptions};
use netcore_drivers::pcap::{CaptureReader, LinkType};
use std::collections::BTreeMap;

pub const GOOD: Option<ChecksumVerdict> = Some(ChecksumVerdict::Good);

pub struct Frame {
    pub bytes: Vec<u8>,
    pub original: usize,
    pub at: Option<Instant>,
    pub link_type: LinkType,
}

impl Frame {
    pub fn dissect(&self) -> Dissection {
        dissect(&self.bytes, &TunnelPorts::default())
    }

    /// Verdicts on the header and on what follows it.
    pub fn outer(&self) -> (Option<ChecksumVerdict>, Option<ChecksumVerdict>) {
        self.dissect().outer_checksums(&self.bytes, self.original).map_or((None, None), |c| (c.header, c.upper))
    }

    pub fn inner(&self) -> (Option<ChecksumVerdict>, Option<ChecksumVerdict>) {
        self.dissect().inner_checksums(&self.bytes, self.original).map_or((None, None), |c| (c.header, c.upper))
    }

    pub fn inner_protocol(&self) -> Option<Protocol> {
        Some(self.dissect().inner?.protocol)
    }

    /// The innermost TCP header, its options and its payload.
    pub fn tcp(&self) -> Option<(&TcpHeader, TcpOptions<'_>, &[u8])> {
        let d = self.dissect();
        let network = d.innermost().filter(|network| network.protocol == Protocol::TCP)?;
        let (tcp, options, _) = TcpHeader::parse(self.bytes.get(usize::from(network.upper)..)?).ok()?;
        Some((tcp, options, self.bytes.get(d.payload as usize..network.end as usize)?))
    }

    /// Sixteen bits at an offset.
    pub fn u16(&self, at: usize) -> u16 {
        u16::from_be_bytes([self.bytes[at], self.bytes[at + 1]])
    }
}

/// All frames of a capture among the answers; `None` where they are missing. The files are whole.
pub fn frames(name: &str) -> Option<Vec<Frame>> {
    let bytes = std::fs::read(netcore_test::shared(&format!("exams/pcaps/{name}"))?).unwrap();
    let mut reader = CaptureReader::new(bytes.as_slice()).unwrap();
    let mut frames = Vec::new();
    while let Some(r) = reader.next().unwrap() {
        frames.push(Frame {
            bytes: r.bytes.to_vec(),
            original: r.original_len as usize,
            at: r.timestamp,
            link_type: r.link_type,
        });
    }
    assert_eq!(reader.damage(), None, "{name}");
    Some(frames)
}

/// How many there are of each.
pub fn counts<K: Ord>(of: impl Iterator<Item = K>) -> BTreeMap<K, usize> {
    let mut counts = BTreeMap::new();
    of.for_each(|key| *counts.entry(key).or_insert(0) += 1);
    counts
}

/// The checksum does not verify: wrong, or left to a device at the capture point.
pub fn is_bad(verdict: Option<ChecksumVerdict>) -> bool {
    matches!(verdict, Some(ChecksumVerdict::Bad { .. } | ChecksumVerdict::Partial { .. }))
}
