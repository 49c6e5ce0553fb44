//! Where the headers of a packet are, through tunnels: what receive offload and segmentation have in common.

use netcore::Packet;
use netcore::packet::HeaderOffsets;

/// Network headers in one packet, at most: the outermost and those inside up to three tunnels.
pub(crate) const MAX_LEVELS: usize = 4;

/// Headers longer than this are not walked.
pub(crate) const MAX_HEADERS: usize = 512;

pub(crate) const ETHERTYPE_IPV4: u16 = 0x0800;
pub(crate) const ETHERTYPE_IPV6: u16 = 0x86dd;
pub(crate) const ETHERTYPE_ETHERNET: u16 = 0x6558;

pub(crate) const IPPROTO_IPIP: u8 = 4;
pub(crate) const IPPROTO_TCP: u8 = 6;
pub(crate) const IPPROTO_UDP: u8 = 17;
pub(crate) const IPPROTO_IPV6: u8 = 41;
pub(crate) const IPPROTO_GRE: u8 = 47;

/// What is between a network header and the one around it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Carrier {
    /// Nothing is around it: the link header of the frame.
    #[default]
    Link,
    /// UDP and VXLAN or GENEVE.
    Udp,
    /// GRE without checksum.
    Gre,
    /// GRE with checksum.
    GreChecksum,
    /// GRE with checksum and key, which never merges.
    GreChecksumKey,
    /// Nothing: IP in IP.
    Ip,
}

/// One network header.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Level {
    /// Where it starts.
    pub(crate) network: u16,
    /// Where its carrier starts; same as `network` for IP in IP.
    pub(crate) carrier_at: u16,
    /// The Ethernet header in front of it; 0 if there is none.
    pub(crate) mac: u16,
    pub(crate) v6: bool,
    pub(crate) carrier: Carrier,
}

/// Where all headers are. Two packets of one flow have the same layout unless their TCP options differ in length.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Layout {
    all: [Level; MAX_LEVELS],
    count: u8,
    /// The innermost transport header is UDP, else TCP.
    pub(crate) udp: bool,
    /// Innermost transport header.
    pub(crate) transport: u16,
    /// First byte of payload.
    pub(crate) payload: u16,
}

impl Layout {
    /// The layout of a frame with one network header.
    #[inline(always)]
    pub(crate) const fn plain(network: u16, v6: bool) -> Self {
        let none = Level { network: 0, carrier_at: 0, mac: 0, v6: false, carrier: Carrier::Link };
        let first = Level { network, v6, ..none };
        Self { all: [first, none, none, none], count: 1, udp: false, transport: 0, payload: 0 }
    }

    /// Adds the next network header inwards; false if there are too many.
    #[inline(always)]
    pub(crate) const fn push(&mut self, level: Level) -> bool {
        if self.count as usize >= MAX_LEVELS {
            return false;
        }
        self.all[self.count as usize] = level;
        self.count += 1;
        true
    }

    /// Moves everything behind the outermost network header `n` bytes to the front.
    pub(crate) fn shift(&mut self, n: u16) {
        for level in self.all.iter_mut().take(usize::from(self.count)).skip(1) {
            level.network -= n;
            level.carrier_at -= n;
            level.mac = level.mac.saturating_sub(n);
        }
        self.transport -= n;
        self.payload -= n;
    }

    /// The network headers, outermost first; one at least.
    #[inline(always)]
    pub(crate) fn levels(&self) -> &[Level] {
        self.all.get(..usize::from(self.count)).unwrap_or(&self.all)
    }

    #[inline(always)]
    pub(crate) fn outermost(&self) -> Level {
        self.all[0]
    }

    #[inline(always)]
    pub(crate) fn innermost(&self) -> Level {
        self.all[usize::from(self.count.saturating_sub(1)) & (MAX_LEVELS - 1)]
    }

    #[inline(always)]
    pub(crate) fn is_tunnel(&self) -> bool {
        self.count > 1
    }

    /// Where the network header of a level ends, extension headers included.
    #[inline(always)]
    pub(crate) fn network_end(&self, level: usize) -> u16 {
        match self.levels().get(level + 1) {
            Some(next) => next.carrier_at,
            None => self.transport,
        }
    }

    /// The transport protocol number.
    #[inline(always)]
    pub(crate) fn protocol(&self) -> u8 {
        if self.udp { IPPROTO_UDP } else { IPPROTO_TCP }
    }

    /// Where the checksum field is in the transport header.
    #[inline(always)]
    pub(crate) fn checksum_offset(&self) -> u16 {
        if self.udp { 6 } else { 16 }
    }

    /// The offsets as packet metadata keeps them.
    pub(crate) fn offsets(&self) -> HeaderOffsets {
        let (first, last) = (self.outermost(), self.innermost());
        if !self.is_tunnel() {
            return HeaderOffsets { network: first.network, transport: self.transport, ..HeaderOffsets::default() };
        }
        HeaderOffsets {
            network: first.network,
            transport: self.network_end(0),
            inner_mac: if last.mac != 0 { last.mac } else { last.network },
            inner_network: last.network,
            inner_transport: self.transport,
        }
    }
}

/// The length field of a tunnel's or network header that covers `len` bytes: zero where it does not fit (BIG TCP).
#[inline(always)]
pub(crate) fn length_field(len: usize) -> u16 {
    u16::try_from(len).unwrap_or(0)
}

/// Is a length field of `field` right for `len` bytes? Super-packets beyond 64 KiB say zero.
#[inline(always)]
pub(crate) fn is_length(field: u16, len: usize, packet: &Packet) -> bool {
    usize::from(field) == len || field == 0 && len > usize::from(u16::MAX) && packet.is_super()
}
