//! What `ss -ti` shows.

use crate::state::State;
use core::fmt;
use netcore::Rate;
use netcore::congestion::CaState;

/// A snapshot of a connection (`struct tcp_info`, `ss -ti`). Windows in segments, sizes in bytes, times in µs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct TcpInfo {
    /// State of the connection.
    pub state: State,
    /// Loss-recovery state.
    pub ca_state: CaState,
    /// Name of the congestion control.
    pub congestion: &'static str,
    /// Congestion window.
    pub cwnd: u32,
    /// Slow-start threshold.
    pub ssthresh: Option<u32>,
    /// Smoothed RTT.
    pub rtt_us: Option<u32>,
    /// RTT variation.
    pub rttvar_us: u32,
    /// Smallest RTT.
    pub min_rtt_us: Option<u32>,
    /// Retransmission timeout with backoff.
    pub rto_us: u32,
    /// Backoffs in force.
    pub backoff: u32,
    /// Segment size of what is sent, headers excluded.
    pub mss: u32,
    /// Segment size of what is received, as estimated.
    pub rcv_mss: u32,
    /// Segments sent and not cumulatively acknowledged.
    pub unacked: u32,
    /// Of those, selectively acknowledged.
    pub sacked: u32,
    /// Of those, taken for lost.
    pub lost: u32,
    /// Retransmissions in flight.
    pub retrans: u32,
    /// Segments in the network.
    pub in_flight: u32,
    /// Reordering tolerated, segments.
    pub reordering: u32,
    /// The peer's window.
    pub snd_wnd: u64,
    /// Our window as advertised.
    pub rcv_wnd: u64,
    /// Threshold of the advertised window.
    pub rcv_ssthresh: u64,
    /// What receive-buffer autotuning works with.
    pub rcv_space: u64,
    /// RTT as the receiver estimates it.
    pub rcv_rtt_us: Option<u32>,
    /// Receive buffer limit.
    pub rcvbuf: u64,
    /// Send buffer limit.
    pub sndbuf: u64,
    /// Bytes written and not yet sent.
    pub notsent: u64,
    /// Memory handed to the layers below and not yet completed (`sk_wmem_alloc`).
    pub queued_below: u64,
    /// Pacing rate.
    pub pacing_rate: Option<Rate>,
    /// Bytes acknowledged by the peer.
    pub bytes_acked: u64,
    /// Bytes received in order.
    pub bytes_received: u64,
    /// Bytes sent, retransmissions included.
    pub bytes_sent: u64,
    /// Bytes retransmitted.
    pub bytes_retrans: u64,
    /// Segments delivered.
    pub delivered: u64,
    /// Whether the last transmission was limited by the application.
    pub app_limited: bool,
    /// µs busy sending.
    pub busy_us: u64,
    /// µs limited by the peer's window.
    pub rwnd_limited_us: u64,
    /// µs limited by the send buffer.
    pub sndbuf_limited_us: u64,
    /// Options in use: timestamps, SACK, window scaling (send, receive), ECN.
    pub timestamps: bool,
    /// Selective acknowledgements.
    pub sack: bool,
    /// Window scale the peer uses, then ours.
    pub wscale: Option<(u8, u8)>,
    /// Explicit congestion notification.
    pub ecn: bool,
}

impl fmt::Display for TcpInfo {
    /// As `ss -ti` prints it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.timestamps {
            f.write_str("ts ")?;
        }
        if self.sack {
            f.write_str("sack ")?;
        }
        if self.ecn {
            f.write_str("ecn ")?;
        }
        write!(f, "{}", self.congestion)?;
        if let Some((snd, rcv)) = self.wscale {
            write!(f, " wscale:{snd},{rcv}")?;
        }
        write!(f, " rto:{}", self.rto_us / 1000)?;
        if let Some(rtt) = self.rtt_us {
            let (a, b) = (rtt, self.rttvar_us);
            write!(f, " rtt:{}.{:03}/{}.{:03}", a / 1000, a % 1000, b / 1000, b % 1000)?;
        }
        write!(f, " mss:{} rcvmss:{} cwnd:{}", self.mss, self.rcv_mss, self.cwnd)?;
        if let Some(ssthresh) = self.ssthresh {
            write!(f, " ssthresh:{ssthresh}")?;
        }
        write!(
            f,
            " bytes_sent:{} bytes_acked:{} bytes_received:{}",
            self.bytes_sent, self.bytes_acked, self.bytes_received
        )?;
        if let Some(rate) = self.pacing_rate {
            write!(f, " pacing_rate {}bps", rate.bits_per_sec())?;
        }
        if self.busy_us >= 1000 {
            write!(f, " busy:{}ms", self.busy_us / 1000)?;
            for (name, us) in [("rwnd_limited", self.rwnd_limited_us), ("sndbuf_limited", self.sndbuf_limited_us)] {
                if us > 0 {
                    let permille = us.saturating_mul(1000) / self.busy_us;
                    write!(f, " {name}:{}ms({}.{}%)", us / 1000, permille / 10, permille % 10)?;
                }
            }
        }
        write!(f, " unacked:{} retrans:{} lost:{} sacked:{}", self.unacked, self.retrans, self.lost, self.sacked)?;
        write!(f, " reordering:{} rcv_space:{} rcv_ssthresh:{}", self.reordering, self.rcv_space, self.rcv_ssthresh)?;
        write!(f, " notsent:{} snd_wnd:{} rcv_wnd:{}", self.notsent, self.snd_wnd, self.rcv_wnd)
    }
}
