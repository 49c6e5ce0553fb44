//! What changed in fq between the kernels that experiments look at.

/// The behaviour of fq in one era. The default is [`FqRules::NETCORE`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct FqRules {
    /// Departure times of packets are honoured (5.0). Before, they are ignored.
    pub departure_times: bool,
    /// Three bands with a limit each (6.7). Before, one band, and `limit` is of the whole qdisc.
    pub bands: bool,
    /// A packet that may leave now goes to an internal queue if no flow could send anything (6.7). Before, packets of
    /// control priority do, always.
    pub fast_path: bool,
    /// The delay of a paced flow makes up for being served late, by at most half (4.9).
    pub drift: bool,
    /// Every packet at or below `low_rate_threshold` is paced (4.9).
    pub low_rate: bool,
    /// Acknowledgements without data are neither paced nor charged (up to 4.20).
    pub free_acks: bool,
    /// Idle flows are freed whenever one is passed (6.7). Before, only if there are many.
    pub eager_gc: bool,
    /// An empty new flow always passes through the old list (6.7). Before, only if that list is not empty.
    pub always_old: bool,
    /// A flow that gets packets again takes its first turn in the band of its previous packet, a fresh one in band 0,
    /// because the kernel lists it before it notes the band (6.7 and later). With many new flows of one band, some then wait
    /// in band 0 while others already take further turns in their own, so turns are not strictly one each.
    pub fresh_in_band_0: bool,
}

impl FqRules {
    /// Linux 6.18.
    pub const LINUX_6_18: Self = Self {
        departure_times: true,
        bands: true,
        fast_path: true,
        drift: true,
        low_rate: true,
        free_acks: false,
        eager_gc: true,
        always_old: true,
        fresh_in_band_0: true,
    };

    /// Linux 6.18, but every flow takes its turns in the band of its packet.
    pub const NETCORE: Self = Self { fresh_in_band_0: false, ..Self::LINUX_6_18 };

    /// Linux 4.0 to 4.8.
    pub const LINUX_4_0: Self = Self {
        departure_times: false,
        bands: false,
        fast_path: false,
        drift: false,
        low_rate: false,
        free_acks: true,
        eager_gc: false,
        always_old: false,
        fresh_in_band_0: false,
    };
}

impl Default for FqRules {
    fn default() -> Self {
        Self::NETCORE
    }
}
