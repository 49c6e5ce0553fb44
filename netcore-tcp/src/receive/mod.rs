//! The receiving side: reassembly, the window we advertise, when we acknowledge.

pub(crate) mod ack;
mod arrive;
mod data;
mod reassembly;
mod tuning;
mod user;
mod window;

use crate::config::Config;
use crate::path::Path;
use crate::seq::{ORIGIN, SeqSpace};
use ack::AckPolicy;
use netcore::Instant;
use reassembly::{ReadyQueue, Reassembly};
use tuning::{MeasuredRtt, SpaceEstimate};

/// Everything about the peer's stream.
#[derive(Debug)]
pub(crate) struct Receiver {
    pub(crate) space_of_peer: SeqSpace,
    /// Next position expected.
    pub(crate) nxt: u64,
    /// `nxt` when a window was last advertised.
    pub(crate) wup: u64,
    /// Window advertised then, bytes.
    pub(crate) wnd: u64,
    /// Our window scale.
    pub(crate) wscale: u8,
    /// Whether both sides scale windows.
    pub(crate) wscale_ok: bool,
    pub(crate) window_clamp: u64,
    /// Most that is advertised at present (`rcv_ssthresh`).
    pub(crate) ssthresh: u64,
    /// MSS that we told the peer.
    pub(crate) advmss: u32,
    pub(crate) rcvbuf: u64,
    pub(crate) rcvbuf_locked: bool,
    /// Memory of packets received and not read (`sk_rmem_alloc`).
    pub(crate) rmem: u64,
    /// In order, not yet read.
    pub(crate) ready: ReadyQueue,
    /// Out of order.
    pub(crate) ofo: Reassembly,
    /// A duplicate to report in the next ACK.
    pub(crate) dsack: Option<(u64, u64)>,
    pub(crate) ack: AckPolicy,
    pub(crate) space: SpaceEstimate,
    pub(crate) rtt: MeasuredRtt,
    /// Position up to which the user has read.
    pub(crate) copied: u64,
    pub(crate) bytes_received: u64,
    /// Position of the peer's FIN.
    pub(crate) fin: Option<u64>,
    /// Timestamps are in use.
    pub(crate) timestamps: bool,
    /// Latest timestamp to echo (`TS.Recent`).
    pub(crate) ts_recent: u32,
    pub(crate) ts_recent_at: Instant,
    /// Payload per 256 bytes of memory, for [`crate::profile::WindowShare::Measured`].
    pub(crate) scaling_ratio: u8,
    pub(crate) ecn_ok: bool,
    /// Echo congestion until the peer says it reduced (`TCP_ECN_DEMAND_CWR`).
    pub(crate) ecn_demand_cwr: bool,
    /// When anything last arrived, for keep-alive.
    pub(crate) last_arrival: Instant,
}

impl Receiver {
    pub(crate) fn new(config: &Config, path: &Path) -> Self {
        let rcvbuf = config.rcvbuf.unwrap_or(config.profile.rmem.default);
        let mtu_mss = u32::from(path.mtu) - path.ip_header_len() as u32 - 20;
        let advmss = mtu_mss.min(config.max_seg.map_or(u32::MAX, u32::from));
        Self {
            space_of_peer: SeqSpace::default(),
            nxt: ORIGIN,
            wup: ORIGIN,
            wnd: 0,
            wscale: 0,
            wscale_ok: false,
            window_clamp: config.window_clamp.unwrap_or(u64::MAX),
            ssthresh: 0,
            advmss,
            rcvbuf,
            rcvbuf_locked: config.rcvbuf.is_some(),
            rmem: 0,
            ready: ReadyQueue::default(),
            ofo: Reassembly::default(),
            dsack: None,
            ack: AckPolicy::new(advmss),
            space: SpaceEstimate::default(),
            rtt: MeasuredRtt::default(),
            copied: ORIGIN + 1,
            bytes_received: 0,
            fin: None,
            timestamps: false,
            ts_recent: 0,
            ts_recent_at: Instant::ZERO,
            scaling_ratio: 128,
            ecn_ok: false,
            ecn_demand_cwr: false,
            last_arrival: Instant::ZERO,
        }
    }

    /// Bytes of the advertised window that are left (`tcp_receive_window`).
    pub(crate) const fn window_left(&self) -> u64 {
        (self.wup + self.wnd).saturating_sub(self.nxt)
    }
}
