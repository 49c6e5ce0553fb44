//! [`Config`]: the socket options of a connection.

use crate::error::ConfigError;
use crate::profile::Profile;
use core::time::Duration;
use netcore::Rate;
use netcore::congestion::PacingStatus;

/// Keep-alive settings (`TCP_KEEPIDLE`, `TCP_KEEPINTVL`, `TCP_KEEPCNT`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeepAlive {
    /// Idle time before the first probe.
    pub idle: Duration,
    /// Time between probes.
    pub interval: Duration,
    /// Unanswered probes before the connection ends.
    pub probes: u32,
}

impl Default for KeepAlive {
    /// Two hours, 75 s, 9 probes.
    fn default() -> Self {
        Self { idle: Duration::from_secs(7200), interval: Duration::from_secs(75), probes: 9 }
    }
}

/// Options of one connection.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Config {
    /// The era's rules.
    pub profile: Profile,
    /// `SO_SNDBUF`, bytes as the kernel holds it (twice what is asked for); `None` is autotuning.
    pub sndbuf: Option<u64>,
    /// `SO_RCVBUF`, bytes as the kernel holds it; `None` is autotuning.
    pub rcvbuf: Option<u64>,
    /// `TCP_NODELAY`.
    pub nodelay: bool,
    /// `TCP_CORK`.
    pub cork: bool,
    /// `SO_KEEPALIVE`.
    pub keep_alive: Option<KeepAlive>,
    /// `TCP_MAXSEG`: largest segment, bytes; `None` follows the MTU.
    pub max_seg: Option<u16>,
    /// `TCP_WINDOW_CLAMP`, bytes.
    pub window_clamp: Option<u64>,
    /// `SO_MAX_PACING_RATE`.
    pub max_pacing_rate: Option<Rate>,
    /// Who paces: nobody, the endpoint, or the fq qdisc below.
    pub pacing: PacingStatus,
    /// Largest super-packet that the device below takes, bytes; 0 switches segmentation offload off.
    pub gso_max_size: u32,
    /// Most segments of a super-packet.
    pub gso_max_segs: u16,
    /// Segmentation asks the device for checksums; otherwise checksums are computed here.
    pub checksum_offload: bool,
    /// Flow id of the packets (the socket); qdiscs and completions know the connection by it.
    pub flow_id: u64,
    /// `SO_PRIORITY`.
    pub priority: u32,
    /// Linger in TIME-WAIT.
    pub time_wait: Duration,
    /// A reordering degree learned on an earlier connection to the same destination (route metric `reordering`).
    pub reordering_metric: Option<u32>,
    /// DSCP bits of the IP header, in place (0 to 252).
    pub tos: u8,
}

impl Config {
    /// Defaults of `profile`.
    pub fn new(profile: Profile) -> Self {
        Self {
            profile,
            sndbuf: None,
            rcvbuf: None,
            nodelay: false,
            cork: false,
            keep_alive: None,
            max_seg: None,
            window_clamp: None,
            max_pacing_rate: None,
            pacing: PacingStatus::None,
            gso_max_size: 65_536,
            gso_max_segs: 65_535,
            checksum_offload: true,
            flow_id: 0,
            priority: 0,
            time_wait: Duration::from_secs(60),
            reordering_metric: None,
            tos: 0,
        }
    }

    /// Checks every value.
    ///
    /// # Errors
    /// [`ConfigError`] names the first that is out of range.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let p = &self.profile;
        let range = |name, value: u64, ok: bool, allowed| {
            if ok { Ok(()) } else { Err(ConfigError::OutOfRange { name, value, allowed }) }
        };
        let limit = 1 << 30;
        for (name, size) in [("SO_SNDBUF", self.sndbuf), ("SO_RCVBUF", self.rcvbuf)] {
            if let Some(size) = size {
                range(name, size, (2304..=4 * limit).contains(&size), "2304 to 4294967296")?;
            }
        }
        for (name, sizes) in [("tcp_rmem", p.rmem), ("tcp_wmem", p.wmem)] {
            let ok =
                sizes.min >= 1 && sizes.min <= sizes.default && sizes.default <= sizes.max && sizes.max <= 4 * limit;
            range(name, sizes.max, ok, "min <= default <= max <= 4294967296")?;
        }
        let seg = self.max_seg.unwrap_or(1460);
        range("TCP_MAXSEG", u64::from(seg), (88..=32_767).contains(&seg), "88 to 32767")?;
        range("gso_max_size", u64::from(self.gso_max_size), self.gso_max_size <= 65_536, "0 to 65536")?;
        range("gso_max_segs", u64::from(self.gso_max_segs), self.gso_max_segs >= 1, "1 to 65535")?;
        range("tcp_reordering", u64::from(p.reordering), p.reordering >= 1, "1 or more")?;
        range(
            "timestamp clock",
            u64::from(p.timestamp_hz),
            (1..=1_000_000).contains(&p.timestamp_hz),
            "1 to 1000000 Hz",
        )?;
        range("tcp_min_tso_segs", u64::from(p.min_tso_segs), p.min_tso_segs >= 1, "1 or more")?;
        range("initial RTO", u64::from(p.initial_rto_us), p.initial_rto_us >= 1_000, "1000 µs or more")?;
        if let WindowScaleShare(Some(scale)) = WindowScaleShare::of(p) {
            range("tcp_adv_win_scale", u64::from(scale), (1..=31).contains(&scale), "1 to 31")?;
        }
        range("IP_TOS", u64::from(self.tos), self.tos & 3 == 0, "0 to 252, ECN bits clear")?;
        p.congestion.validate()?;
        Ok(())
    }
}

/// The scale of [`crate::profile::WindowShare::Scale`].
struct WindowScaleShare(Option<u8>);

impl WindowScaleShare {
    const fn of(profile: &Profile) -> Self {
        match profile.window_share {
            crate::profile::WindowShare::Scale(scale) => Self(Some(scale)),
            crate::profile::WindowShare::Measured => Self(None),
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self::new(Profile::default())
    }
}
