//! [`Profile`]: how Linux of an era behaves, as one value.

use crate::error::ConfigError;

/// What is taken for loss.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Detection {
    /// Counting duplicates and SACKed packets, holes included while no reordering was seen (`tcp_fack`, before 4.15).
    Fack,
    /// Counting SACKed packets only (`tcp_fack = 0`, RFC 6675).
    Sack,
    /// Time (RFC 8985, 4.4 and later; alone since 4.18).
    Rack,
}

/// How the window goes down during recovery.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Reduction {
    /// One segment for every second ACK (`tcp_cwnd_down`, before 3.2).
    RateHalving,
    /// Proportional rate reduction (RFC 6937).
    Prr,
}

/// How much a socket may have below TCP: TCP small queues.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum SmallQueues {
    /// No limit (before 3.6).
    Unlimited,
    /// `tcp_limit_output_bytes` (3.6).
    Constant,
    /// `max(truesize, rate >> 10)` (3.12).
    Rate,
    /// `max(tcp_limit_output_bytes, rate >> 10)` (3.13 to 3.19): the sysctl is a floor.
    Floor,
    /// `min(max(2 × truesize, rate >> 10), tcp_limit_output_bytes)` (4.0 and later): the sysctl is a ceiling.
    Ceiling,
}

/// How large super-packets are.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Autosizing {
    /// As large as the device takes (before 3.12).
    Fixed,
    /// 1 ms at the real rate, decided when data is written (95bd09eb2750, 3.12).
    First,
    /// 1/1024 s at the pacing rate, decided when data is sent (605ad7f184b6, 4.0).
    Refined,
    /// As `Refined`, larger for near hosts (5.18).
    RttTerm,
}

/// Part of a free receive buffer that is advertised (`tcp_win_from_space`).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum WindowShare {
    /// `space - space / 2^scale` (`tcp_adv_win_scale`: 2 in 2.6, 1 from 3.4 to 6.5).
    Scale(u8),
    /// The ratio of payload to memory measured per connection (6.6 and later).
    Measured,
}

/// How the receive buffer grows.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum ReceiveTuning {
    /// Twice what the application took in an RTT (before 3.19).
    Twice,
    /// Also what growth of the rate predicts (4.x and later, `tcp_rcv_space_adjust`).
    Predicted,
}

/// How the receiver measures the RTT (`tcp_rcv_rtt_update`).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum ReceiveRtt {
    /// In ticks; without timestamps, a sample below eight times the estimate replaces it (before 3.4: the two were compared
    /// in different units).
    TicksUnscaled,
    /// In ticks; without timestamps, the least sample counts (3.4 to 4.12).
    Ticks,
    /// In µs (4.13 and later).
    Micros,
}

/// Smallest, initial and largest buffer, bytes (`tcp_rmem`, `tcp_wmem`).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct BufferSizes {
    /// Guaranteed.
    pub min: u64,
    /// To begin with.
    pub default: u64,
    /// Limit of autotuning.
    pub max: u64,
}

/// Rules of an era. Fields may be changed one by one, as sysctls may.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Profile {
    /// Its name, such as `linux-2.6.35`.
    pub name: &'static str,
    /// Congestion control.
    pub congestion: netcore_cc::Profile,
    /// Loss detection.
    pub detection: Detection,
    /// Window reduction.
    pub reduction: Reduction,
    /// Tail loss probes (3.10 and later).
    pub tail_loss_probe: bool,
    /// Early retransmit with a delay (RFC 5827, 3.5 to 4.11).
    pub early_retransmit: bool,
    /// F-RTO (RFC 5682).
    pub frto: bool,
    /// Forward retransmissions in recovery while no new data may go (before 4.17).
    pub forward_retransmit: bool,
    /// The window comes down to what is in flight plus `reordering` when a state is left (before 3.x).
    pub moderate_cwnd: bool,
    /// Retransmissions may be super-packets (4.x).
    pub retransmit_super: bool,
    /// ACKs of out-of-order data are thinned out (4.18 and later).
    pub sack_compression: bool,
    /// Initial timeout, µs: 3 s before 3.1, then 1 s.
    pub initial_rto_us: u32,
    /// Reordering tolerated at first (`tcp_reordering`), packets.
    pub reordering: u32,
    /// Most reordering tolerated (`tcp_max_reordering`; 127 before 3.18).
    pub max_reordering: u32,
    /// The reordering learned is kept per destination (`tcp_no_metrics_save = 0`).
    pub save_metrics: bool,
    /// TCP small queues.
    pub small_queues: SmallQueues,
    /// `tcp_limit_output_bytes`.
    pub limit_output_bytes: u64,
    /// Super-packet size.
    pub autosizing: Autosizing,
    /// A packet is built from a whole number of those that it is sent as, so that splitting it leaves no smaller one over
    /// (no kernel; Linux leaves one segment of 45 over, and a flow with a small packet in the device has fewer bytes there
    /// than others).
    pub whole_splits: bool,
    /// `tcp_min_tso_segs`.
    pub min_tso_segs: u32,
    /// `tcp_tso_win_divisor`.
    pub tso_win_divisor: u32,
    /// Whether a pacing rate is computed (3.12 and later).
    pub pacing_rate: bool,
    /// `tcp_pacing_ss_ratio`, percent.
    pub pacing_ss_ratio: u32,
    /// `tcp_pacing_ca_ratio`, percent.
    pub pacing_ca_ratio: u32,
    /// `sk_pacing_shift`.
    pub pacing_shift: u8,
    /// Advertised part of the receive buffer.
    pub window_share: WindowShare,
    /// Growth of the receive buffer.
    pub receive_tuning: ReceiveTuning,
    /// How the receiver measures the RTT.
    pub receive_rtt: ReceiveRtt,
    /// `tcp_moderate_rcvbuf`.
    pub moderate_rcvbuf: bool,
    /// `tcp_rmem`.
    pub rmem: BufferSizes,
    /// `tcp_wmem`.
    pub wmem: BufferSizes,
    /// `tcp_slow_start_after_idle`.
    pub slow_start_after_idle: bool,
    /// `tcp_timestamps`.
    pub timestamps: bool,
    /// Timestamp ticks per second: HZ before 4.13, then 1000.
    pub timestamp_hz: u32,
    /// `tcp_sack`.
    pub sack: bool,
    /// `tcp_dsack`.
    pub dsack: bool,
    /// `tcp_window_scaling`.
    pub window_scaling: bool,
    /// ECN is asked for (`tcp_ecn = 1`).
    pub ecn: bool,
    /// RTT samples come from SACKed packets, too, in µs (3.15 and later).
    pub fine_rtt: bool,
    /// Bytes of memory a packet takes besides its payload (`SKB_TRUESIZE`).
    pub skb_overhead: u32,
    /// `tcp_retries1` does nothing without routes; `tcp_retries2`: unanswered timeouts before the connection ends.
    pub retries2: u32,
    /// `tcp_syn_retries`.
    pub syn_retries: u32,
}

const MB: u64 = 1 << 20;

impl Profile {
    /// Linux today (6.18).
    pub fn linux_current() -> Self {
        Self {
            name: "linux-current",
            congestion: netcore_cc::Profile::linux_current(),
            detection: Detection::Rack,
            reduction: Reduction::Prr,
            tail_loss_probe: true,
            early_retransmit: false,
            frto: true,
            forward_retransmit: false,
            moderate_cwnd: false,
            retransmit_super: true,
            sack_compression: true,
            initial_rto_us: 1_000_000,
            reordering: 3,
            max_reordering: 300,
            save_metrics: false,
            small_queues: SmallQueues::Ceiling,
            limit_output_bytes: 4 * MB,
            autosizing: Autosizing::RttTerm,
            whole_splits: false,
            min_tso_segs: 2,
            tso_win_divisor: 3,
            pacing_rate: true,
            pacing_ss_ratio: 200,
            pacing_ca_ratio: 120,
            pacing_shift: 10,
            window_share: WindowShare::Measured,
            receive_tuning: ReceiveTuning::Predicted,
            receive_rtt: ReceiveRtt::Micros,
            moderate_rcvbuf: true,
            rmem: BufferSizes { min: 4096, default: 131_072, max: 32 * MB },
            wmem: BufferSizes { min: 4096, default: 16_384, max: 4 * MB },
            slow_start_after_idle: true,
            timestamps: true,
            timestamp_hz: 1000,
            sack: true,
            dsack: true,
            window_scaling: true,
            ecn: false,
            fine_rtt: true,
            skb_overhead: 1280,
            retries2: 15,
            syn_retries: 6,
        }
    }

    /// Linux today, but packets hold 1/32768 s at the pacing rate instead of 1/1024, and near hosts get no bonus. Below
    /// 760 Mbit/s all flows then send packets of two segments and none of one, so that a device ring, which flows share by
    /// packets, gives them equal shares; above 17 Gbit/s packets are as large as ever. Between, more of them are sent.
    pub fn netcore() -> Self {
        Self {
            name: "netcore",
            autosizing: Autosizing::Refined,
            pacing_shift: 15,
            whole_splits: true,
            ..Self::linux_current()
        }
    }

    /// Linux 4.3 (2015): counting SACKs, PRR, tail loss probes, refined autosizing, two-packet small queues.
    pub fn linux_4_3() -> Self {
        Self {
            name: "linux-4.3",
            congestion: netcore_cc::Profile::linux_4_3(),
            detection: Detection::Fack,
            early_retransmit: true,
            forward_retransmit: true,
            sack_compression: false,
            limit_output_bytes: 262_144,
            autosizing: Autosizing::Refined,
            window_share: WindowShare::Scale(1),
            receive_rtt: ReceiveRtt::Ticks,
            rmem: BufferSizes { min: 4096, default: 87_380, max: 6 * MB },
            timestamp_hz: 250,
            ..Self::linux_current()
        }
    }

    /// Linux 2.6.35 (2010): FACK, rate halving, no small queues, HyStart as first shipped.
    pub fn linux_2_6_35() -> Self {
        Self {
            name: "linux-2.6.35",
            congestion: netcore_cc::Profile::linux_2_6_35(),
            detection: Detection::Fack,
            reduction: Reduction::RateHalving,
            tail_loss_probe: false,
            early_retransmit: false,
            frto: true,
            forward_retransmit: true,
            moderate_cwnd: true,
            retransmit_super: false,
            sack_compression: false,
            initial_rto_us: 3_000_000,
            max_reordering: 127,
            save_metrics: true,
            small_queues: SmallQueues::Unlimited,
            autosizing: Autosizing::Fixed,
            pacing_rate: false,
            window_share: WindowShare::Scale(2),
            receive_tuning: ReceiveTuning::Twice,
            receive_rtt: ReceiveRtt::TicksUnscaled,
            rmem: BufferSizes { min: 4096, default: 87_380, max: 4 * MB },
            wmem: BufferSizes { min: 4096, default: 16_384, max: 4 * MB },
            timestamp_hz: 250,
            fine_rtt: false,
            syn_retries: 5,
            ..Self::linux_current()
        }
    }

    /// Linux 2.6.32 (2009).
    pub fn linux_2_6_32() -> Self {
        Self { name: "linux-2.6.32", congestion: netcore_cc::Profile::linux_2_6_32(), ..Self::linux_2_6_35() }
    }

    /// Linux 2.6.23 (2007): as 2.6.32 without F-RTO and HyStart.
    pub fn linux_2_6_23() -> Self {
        Self {
            name: "linux-2.6.23",
            congestion: netcore_cc::Profile::linux_2_6_23(),
            frto: false,
            ..Self::linux_2_6_35()
        }
    }

    /// Every profile, oldest first.
    pub fn all() -> [Self; 6] {
        [
            Self::linux_2_6_23(),
            Self::linux_2_6_32(),
            Self::linux_2_6_35(),
            Self::linux_4_3(),
            Self::linux_current(),
            Self::netcore(),
        ]
    }

    /// The profile of that name.
    ///
    /// # Errors
    /// [`ConfigError::UnknownProfile`].
    pub fn by_name(name: &str) -> Result<Self, ConfigError> {
        Self::all().into_iter().find(|p| p.name == name).ok_or_else(|| ConfigError::UnknownProfile {
            name: name.into(),
            allowed: "linux-2.6.23, linux-2.6.32, linux-2.6.35, linux-4.3, linux-current, netcore",
        })
    }

    /// Whether loss detection is by time.
    pub(crate) const fn is_rack(&self) -> bool {
        matches!(self.detection, Detection::Rack)
    }
}

impl Default for Profile {
    /// [`Profile::netcore`].
    fn default() -> Self {
        Self::netcore()
    }
}
