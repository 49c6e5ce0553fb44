//! Which kernel's rules receive offload follows, and the geometry of its table.

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
    /// Length from the outermost network header on that a merged packet stays below (Linux: `gro_max_size`), 1 to 65536.
    pub max_size: usize,
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
            max_size: 65536,
            flush_timeout: core::time::Duration::ZERO,
            tick: core::time::Duration::from_millis(4),
        }
    }
}

impl GroConfig {
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
        if !(1..=65536).contains(&self.max_size) {
            return refuse("max_size", self.max_size, "1 to 65536");
        }
        if self.tick.is_zero() {
            return refuse("tick", 0, "more than zero");
        }
        Ok(())
    }
}
