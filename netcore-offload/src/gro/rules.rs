//! Which kernel's rules receive offload follows, and the geometry of its table.

use crate::layout::MAX_LEVELS;

/// How IPv4 identifications of merged segments must relate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum IpIdRule {
    /// Innermost header only: +1 per segment, whatever DF says (Linux 4.0).
    Increment,
    /// All constant or all +1, decided by the second segment, for inner and outer headers on their own (Linux 6.18).
    ConstantOrIncrement,
}

/// Rules of merging that changed over the years. The fields say what differs; everything else has stayed the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct GroRules {
    /// See [`IpIdRule`].
    pub ip_id: IpIdRule,
    /// Whether a tunnel packet with a zero outer UDP checksum merges although the device verified nothing. Linux refused
    /// until commit 89e5c58fc1e2 (2021).
    pub zero_checksum_tunnels: bool,
    /// Whether a held segment with CWR takes a successor without it (Linux 4.0: yes; today: no).
    pub cwr_takes_successor: bool,
    /// Merge received super-packets (hardware LRO, a TAP) further.
    pub merge_super: bool,
}

impl GroRules {
    /// The rules of Linux 6.18.
    pub const fn linux_current() -> Self {
        Self {
            ip_id: IpIdRule::ConstantOrIncrement,
            zero_checksum_tunnels: true,
            cwr_takes_successor: false,
            merge_super: true,
        }
    }

    /// The rules of Linux 4.0 (2015).
    pub const fn linux_4_0() -> Self {
        Self { ip_id: IpIdRule::Increment, zero_checksum_tunnels: false, cwr_takes_successor: true, merge_super: false }
    }
}

/// What chooses the bucket of the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum BucketHash {
    /// The receive hash in the packet's metadata; packets without one share bucket 0 (Linux).
    Device,
    /// A hash of the innermost addresses and ports.
    Flow,
}

/// How many packets can be held.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct GroTable {
    /// Number of buckets: a power of two from 1 to 4096.
    pub buckets: usize,
    /// Packets held per bucket, 1 to 8; a further flow pushes out the bucket's oldest.
    pub depth: usize,
    /// What chooses the bucket.
    pub hash: BucketHash,
}

impl GroTable {
    /// Eight buckets of eight by receive hash (Linux since 4.20).
    pub const fn linux_current() -> Self {
        Self { buckets: 8, depth: 8, hash: BucketHash::Device }
    }

    /// One list of eight (Linux 4.0).
    pub const fn linux_4_0() -> Self {
        Self { buckets: 1, depth: 8, hash: BucketHash::Device }
    }

    /// 256 buckets of eight by flow: keeps a thousand flows apart without a device hash.
    pub const fn large() -> Self {
        Self { buckets: 256, depth: 8, hash: BucketHash::Flow }
    }
}

/// Which plain UDP datagrams merge. Datagrams to a tunnel's port are never plain.
///
/// Merged datagrams keep their boundaries ([`Gso::size`](netcore::Gso::size)), so only a receiver that asked for them may get
/// them. Whoever asks for a port whose datagrams carry a tunnel that this configuration does not know merges across the
/// tunnel's networks; the kernel has the same limit (`udp_gro_receive`).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum UdpGro {
    /// None: every datagram goes up alone (Linux without a `UDP_GRO` socket).
    #[default]
    Off,
    /// Those to these destination ports (Linux: sockets with the option `UDP_GRO`).
    Ports(alloc::vec::Vec<u16>),
    /// All (Linux: the device feature `rx-udp-gro-forwarding`).
    All,
}

impl UdpGro {
    #[inline(always)]
    pub(super) fn wants(&self, port: u16) -> bool {
        match self {
            Self::Off => false,
            Self::Ports(ports) => ports.contains(&port),
            Self::All => true,
        }
    }
}

/// Why a configuration was refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GroConfigError {
    /// A setting is out of range.
    #[error("GRO {what} is {value}, allowed is {allowed}")]
    OutOfRange {
        /// Which setting.
        what: &'static str,
        /// What was asked for.
        value: usize,
        /// What is allowed.
        allowed: &'static str,
    },
}

/// Everything that can be chosen about a [`Gro`](super::Gro). `Default` is Linux 6.18 with its default settings.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct GroConfig {
    /// Rules of merging.
    pub rules: GroRules,
    /// Geometry of the table.
    pub table: GroTable,
    /// UDP destination ports whose payload is VXLAN.
    pub vxlan_ports: alloc::vec::Vec<u16>,
    /// UDP destination ports whose payload is GENEVE.
    pub geneve_ports: alloc::vec::Vec<u16>,
    /// Merge inside GRE (version 0, with or without key and checksum).
    pub gre: bool,
    /// Merge inside IPv4 and IPv6 packets that carry IP packets (4in4, 6in4, 4in6, 6in6).
    pub ip_in_ip: bool,
    /// Tunnels inside each other that are followed, 0 to 3. Linux follows one (`encap_mark`); a packet with more goes up alone.
    pub max_tunnels: usize,
    /// Which plain UDP datagrams merge.
    pub udp: UdpGro,
    /// Length from the outermost network header on that a merged packet stays below (Linux: `gro_max_size`,
    /// `gro_ipv4_max_size`), 1 to [`GroConfig::MAX_SIZE`]. Above 65536 (BIG TCP) only plain TCP grows beyond 64 KiB: the IPv4
    /// total length is then 0, and IPv6 gets a hop-by-hop header with a jumbo payload option.
    pub max_size: usize,
    /// Flows that counters are kept for ([`Gro::flows`](super::Gro::flows)), 0 to 2^20; further flows share one entry. 0 keeps
    /// none and costs nothing.
    pub flow_counters: usize,
    /// How long a packet may be held past the end of its poll; zero delivers at the end of the poll (Linux:
    /// `gro_flush_timeout`).
    pub flush_timeout: core::time::Duration,
    /// Length of a clock tick (Linux: one jiffy). A poll that exhausts its budget leaves held what was first held in the
    /// current tick, so that merging goes on in the next poll; with ticks longer than 1 ms it delivers everything (Linux:
    /// `napi_gro_flush(n, HZ >= 1000)`).
    pub tick: core::time::Duration,
}

impl Default for GroConfig {
    fn default() -> Self {
        Self {
            rules: GroRules::linux_current(),
            table: GroTable::linux_current(),
            vxlan_ports: alloc::vec![4789],
            geneve_ports: alloc::vec![6081],
            gre: true,
            ip_in_ip: true,
            max_tunnels: 1,
            udp: UdpGro::Off,
            max_size: 65536,
            flow_counters: 0,
            flush_timeout: core::time::Duration::ZERO,
            tick: core::time::Duration::from_millis(4),
        }
    }
}

impl GroConfig {
    /// Largest [`GroConfig::max_size`] (Linux: `GRO_MAX_SIZE`).
    pub const MAX_SIZE: usize = 8 * 65535;

    /// Linux 6.18.
    pub fn linux_current() -> Self {
        Self::default()
    }

    /// Linux 4.0 (2015).
    pub fn linux_4_0() -> Self {
        Self { rules: GroRules::linux_4_0(), table: GroTable::linux_4_0(), ..Self::default() }
    }

    pub(super) fn check(&self) -> Result<(), GroConfigError> {
        let refuse = |what, value, allowed| Err(GroConfigError::OutOfRange { what, value, allowed });
        if !self.table.buckets.is_power_of_two() || self.table.buckets > 4096 {
            return refuse("buckets", self.table.buckets, "a power of two from 1 to 4096");
        }
        if !(1..=8).contains(&self.table.depth) {
            return refuse("depth", self.table.depth, "1 to 8");
        }
        if !(1..=Self::MAX_SIZE).contains(&self.max_size) {
            return refuse("max_size", self.max_size, "1 to 524280");
        }
        if self.max_tunnels >= MAX_LEVELS {
            return refuse("max_tunnels", self.max_tunnels, "0 to 3");
        }
        if self.flow_counters > 1 << 20 {
            return refuse("flow_counters", self.flow_counters, "0 to 2^20");
        }
        if self.tick.is_zero() {
            return refuse("tick", 0, "more than zero");
        }
        Ok(())
    }
}
