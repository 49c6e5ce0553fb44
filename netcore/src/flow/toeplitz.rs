//! The Toeplitz hash of receive-side scaling (Microsoft, "RSS hashing functions"; the same in every Intel NIC).

use alloc::boxed::Box;
use core::net::{Ipv4Addr, Ipv6Addr};

/// Longest input: two IPv6 addresses and two ports.
const INPUT: usize = 36;

/// The key of Microsoft's published verification suite, and the default of many drivers.
pub const MICROSOFT_KEY: [u8; 40] = [
    0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0, 0xd0, 0xca, 0x2b,
    0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac,
    0x01, 0xfa,
];

/// What is hashed: addresses and ports in network order, source first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RssInput {
    bytes: [u8; INPUT],
    len: usize,
}

impl RssInput {
    /// IPv4 addresses (hash type IPv4).
    pub fn ipv4(source: Ipv4Addr, destination: Ipv4Addr) -> Self {
        let mut input = Self { bytes: [0; INPUT], len: 8 };
        input.bytes[..4].copy_from_slice(&source.octets());
        input.bytes[4..8].copy_from_slice(&destination.octets());
        input
    }

    /// IPv6 addresses (hash type IPv6).
    pub fn ipv6(source: Ipv6Addr, destination: Ipv6Addr) -> Self {
        let mut input = Self { bytes: [0; INPUT], len: 32 };
        input.bytes[..16].copy_from_slice(&source.octets());
        input.bytes[16..32].copy_from_slice(&destination.octets());
        input
    }

    /// The same addresses with TCP or UDP ports (hash types TCP and UDP).
    pub fn with_ports(mut self, source: u16, destination: u16) -> Self {
        let at = if self.len > 12 { 32 } else { 8 };
        self.bytes[at..at + 2].copy_from_slice(&source.to_be_bytes());
        self.bytes[at + 2..at + 4].copy_from_slice(&destination.to_be_bytes());
        self.len = at + 4;
        self
    }
}

/// A key made ready: one table of 256 words per input byte.
pub struct Toeplitz {
    tables: Box<[[u32; 256]; INPUT]>,
}

impl Toeplitz {
    /// Makes a key of 40 bytes ready. The tables take 36 KiB.
    pub fn new(key: &[u8; 40]) -> Self {
        let window = |bit: usize| -> u32 {
            // The 32 key bits from `bit` on.
            let byte = bit / 8;
            let mut word = [0; 8];
            word[..5].copy_from_slice(&key[byte..byte + 5]);
            (u64::from_be_bytes(word) << (bit % 8) >> 32) as u32
        };
        let mut tables = Box::new([[0; 256]; INPUT]);
        for (position, table) in tables.iter_mut().enumerate() {
            for (value, entry) in table.iter_mut().enumerate() {
                for bit in 0..8 {
                    if value & 0x80 >> bit != 0 {
                        *entry ^= window(position * 8 + bit);
                    }
                }
            }
        }
        Self { tables }
    }

    /// The hash.
    #[inline]
    pub fn hash(&self, input: &RssInput) -> u32 {
        let bytes = &input.bytes[..input.len];
        bytes.iter().zip(self.tables.iter()).fold(0, |hash, (byte, table)| hash ^ table[usize::from(*byte)])
    }
}

impl core::fmt::Debug for Toeplitz {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Toeplitz").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Microsoft's verification suite: destination, its port, source, its port, hash of addresses, hash with ports.
    #[test]
    fn microsoft_verification_suite() {
        let toeplitz = Toeplitz::new(&MICROSOFT_KEY);
        let v4 = [
            ("161.142.100.80", 1766, "66.9.149.187", 2794, 0x323e_8fc2, 0x51cc_c178),
            ("65.69.140.83", 4739, "199.92.111.2", 14230, 0xd718_262a, 0xc626_b0ea),
            ("12.22.207.184", 38024, "24.19.198.95", 12898, 0xd2d0_a5de, 0x5c2b_394a),
            ("209.142.163.6", 2217, "38.27.205.30", 48228, 0x8298_9176, 0xafc7_327f),
            ("202.188.127.2", 1303, "153.39.163.191", 44251, 0x5d18_09c5, 0x10e8_28a2),
        ];
        for (destination, dport, source, sport, addresses, ports) in v4 {
            let input = RssInput::ipv4(source.parse().unwrap(), destination.parse().unwrap());
            assert_eq!(toeplitz.hash(&input), addresses, "{source}");
            assert_eq!(toeplitz.hash(&input.with_ports(sport, dport)), ports, "{source}");
        }
        let v6 = [
            ("3ffe:2501:200:3::1", 1766, "3ffe:2501:200:1fff::7", 2794, 0x2cc1_8cd5, 0x4020_7d3d),
            ("ff02::1", 4739, "3ffe:501:8::260:97ff:fe40:efab", 14230, 0x0f0c_461c, 0xdde5_1bbf),
            ("fe80::200:f8ff:fe21:67cf", 38024, "3ffe:1900:4545:3:200:f8ff:fe21:67cf", 44251, 0x4b61_e985, 0x02d1_feef),
        ];
        for (destination, dport, source, sport, addresses, ports) in v6 {
            let input = RssInput::ipv6(source.parse().unwrap(), destination.parse().unwrap());
            assert_eq!(toeplitz.hash(&input), addresses, "{source}");
            assert_eq!(toeplitz.hash(&input.with_ports(sport, dport)), ports, "{source}");
        }
    }
}
