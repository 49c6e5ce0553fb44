//! When we acknowledge: at once, every other segment, after a delay, thinned out.

use crate::endpoint::Endpoint;
use crate::rtt::RTO_MIN_US;
use core::time::Duration;
use netcore::Instant;

/// Shortest delay (`TCP_ATO_MIN`, `TCP_DELACK_MIN`).
const ATO_MIN_US: u64 = 40_000;
/// Longest delay (`TCP_DELACK_MAX`).
const DELACK_MAX_US: u64 = 200_000;
/// Most quick ACKs at the start of a connection (`TCP_MAX_QUICKACKS`).
const MAX_QUICKACKS: u32 = 16;
/// Duplicate ACKs sent at once before compression sets in.
const COMPRESS_AFTER: u8 = 3;
/// ACKs merged at most (`tcp_comp_sack_nr`).
const COMPRESS_MOST: u32 = 44;
/// Longest delay of a compressed ACK, µs (`tcp_comp_sack_delay_ns`).
const COMPRESS_DELAY_US: u64 = 1_000;

/// State of `icsk_ack` and SACK compression.
#[derive(Clone, Debug)]
pub(crate) struct AckPolicy {
    /// An ACK is owed (`ICSK_ACK_SCHED`).
    pub(crate) scheduled: bool,
    /// It is to be sent at once.
    pub(crate) now: bool,
    /// A short segment arrived: the sender has no more (`ICSK_ACK_PUSHED`).
    pub(crate) pushed: bool,
    /// Quick ACKs left.
    pub(crate) quick: u32,
    /// Interactive: data goes both ways (`pingpong`).
    pub(crate) pingpong: bool,
    /// Delay predicted, µs; 0 before the first data.
    pub(crate) ato_us: u64,
    /// When data last arrived.
    pub(crate) last_data: Instant,
    /// Segment size of the peer, as estimated.
    pub(crate) rcv_mss: u32,
    last_seg_size: u32,
    /// ACKs left out since the last one.
    pub(crate) compressed: u32,
    compressed_at: u64,
    dup_acks: u8,
}

impl AckPolicy {
    pub(crate) const fn new(advmss: u32) -> Self {
        // `tcp_initialize_rcv_mss`.
        let rcv_mss = if advmss < 536 { advmss } else { 536 };
        Self {
            scheduled: false,
            now: false,
            pushed: false,
            quick: 0,
            pingpong: false,
            ato_us: 0,
            last_data: Instant::ZERO,
            rcv_mss: if rcv_mss < 88 { 88 } else { rcv_mss },
            last_seg_size: 0,
            compressed: 0,
            compressed_at: 0,
            dup_acks: 0,
        }
    }

    fn in_quick_mode(&self) -> bool {
        self.quick > 0 && !self.pingpong
    }
}

impl Endpoint {
    /// Quick ACKs for the next `most` segments at most (`tcp_incr_quickack`).
    fn increase_quick_acks(&mut self, most: u32) {
        let by_window = self.rcv.wnd / (2 * u64::from(self.rcv.ack.rcv_mss));
        let count = if by_window == 0 { 2 } else { by_window.min(u64::from(most)) as u32 };
        self.rcv.ack.quick = self.rcv.ack.quick.max(count);
    }

    /// Acknowledges at once for a while (`tcp_enter_quickack_mode`).
    pub(crate) fn enter_quick_ack_mode(&mut self, most: u32) {
        self.increase_quick_acks(most);
        self.rcv.ack.pingpong = false;
        self.rcv.ack.ato_us = ATO_MIN_US;
    }

    /// Data arrived (`tcp_event_data_recv`).
    pub(crate) fn data_received(&mut self, len: usize, gso_size: u16, psh: bool, now: Instant) {
        self.rcv.ack.scheduled = true;
        self.measure_rcv_mss(len, gso_size, psh);
        if !self.rcv.timestamps {
            self.measure_receive_rtt(now);
        }
        let rto_us = u64::from(self.rtt.rto_us);
        let gap_us = now.nanos_since(self.rcv.ack.last_data) / 1000;
        if self.rcv.ack.ato_us == 0 {
            // The first data: the sender is in slow start.
            self.increase_quick_acks(MAX_QUICKACKS);
            self.rcv.ack.ato_us = ATO_MIN_US;
        } else if gap_us <= ATO_MIN_US / 2 {
            self.rcv.ack.ato_us = (self.rcv.ack.ato_us >> 1) + ATO_MIN_US / 2;
        } else if gap_us < self.rcv.ack.ato_us {
            self.rcv.ack.ato_us = ((self.rcv.ack.ato_us >> 1) + gap_us).min(rto_us);
        } else if gap_us > rto_us {
            // A long pause: the sender restarts from a small window.
            self.increase_quick_acks(MAX_QUICKACKS);
        }
        self.rcv.ack.last_data = now;
    }

    /// Guesses the peer's segment size (`tcp_measure_rcv_mss`).
    fn measure_rcv_mss(&mut self, len: usize, gso_size: u16, psh: bool) {
        let ack = &mut self.rcv.ack;
        let last = ack.last_seg_size;
        ack.last_seg_size = 0;
        let size = if gso_size > 0 { u32::from(gso_size) } else { len as u32 };
        if size >= ack.rcv_mss {
            ack.rcv_mss = size.min(self.rcv.advmss);
            if (len as u64) < u64::from(size) {
                ack.pushed = true;
            }
            return;
        }
        // A smaller size is believed if it comes twice, unless the sender pushed.
        if size >= 536 || (!psh && size >= 88) {
            ack.last_seg_size = size;
            if size == last {
                ack.rcv_mss = size;
                return;
            }
        }
        ack.pushed = true;
    }

    /// Data was handled: acknowledge now, later or not yet (`__tcp_ack_snd_check`).
    pub(crate) fn check_ack(&mut self, now: Instant) {
        if !self.rcv.ack.scheduled || self.rcv.ack.now {
            return;
        }
        let unacked = self.rcv.nxt - self.rcv.wup;
        let two_segments = unacked > u64::from(self.rcv.ack.rcv_mss);
        if (two_segments && self.desired_window() >= self.rcv.wnd) || self.rcv.ack.in_quick_mode() {
            self.rcv.ack.now = true;
            return;
        }
        if self.rcv.ofo.is_empty() {
            self.delay_ack(now);
        } else if !self.config.profile.sack_compression || !self.rec.sack_ok {
            self.rcv.ack.now = true;
        } else {
            self.compress_ack(now);
        }
    }

    fn compress_ack(&mut self, now: Instant) {
        let nxt = self.rcv.nxt;
        let ack = &mut self.rcv.ack;
        if ack.compressed_at != nxt {
            ack.compressed_at = nxt;
            ack.dup_acks = 0;
        }
        if ack.compressed >= COMPRESS_MOST || ack.dup_acks < COMPRESS_AFTER {
            ack.dup_acks = (ack.dup_acks + 1).min(COMPRESS_AFTER);
            ack.now = true;
            return;
        }
        ack.compressed += 1;
        if self.timers.compressed_ack.is_none() {
            let (own, sender) = (self.receive_rtt_us().unwrap_or(0), self.rtt.srtt_us8 / 8);
            let rtt = if sender != 0 && (own == 0 || sender < own) { sender } else { own };
            let delay_us = (u64::from(rtt) / 20).min(COMPRESS_DELAY_US);
            self.timers.compressed_ack = Some(now.plus_nanos(delay_us * 1000));
        }
    }

    /// Arms the delayed-ACK timer (`tcp_send_delayed_ack`).
    fn delay_ack(&mut self, now: Instant) {
        let ack = &self.rcv.ack;
        let mut ato = ack.ato_us;
        if ato > ATO_MIN_US {
            let mut most = if ack.pingpong || ack.pushed { DELACK_MAX_US } else { 500_000 };
            if self.rtt.srtt_us8 != 0 {
                most = most.min(u64::from(self.rtt.srtt_us8 >> 3).max(ATO_MIN_US));
            }
            ato = ato.min(most);
        }
        let ato = ato.clamp(1, u64::from(RTO_MIN_US));
        let at = now + Duration::from_micros(ato);
        if let Some(armed) = self.timers.delayed_ack {
            if armed <= now + Duration::from_micros(ato / 4) {
                self.rcv.ack.now = true;
                return;
            }
            self.timers.delayed_ack = Some(armed.min(at));
        } else {
            self.timers.delayed_ack = Some(at);
        }
    }

    /// The delay is over.
    pub(crate) fn delayed_ack_timer(&mut self, _now: Instant) {
        if !self.rcv.ack.scheduled {
            return;
        }
        if self.rcv.ack.pingpong {
            self.rcv.ack.pingpong = false;
            self.rcv.ack.ato_us = ATO_MIN_US;
        } else {
            self.rcv.ack.ato_us = (self.rcv.ack.ato_us << 1).min(u64::from(self.rtt.rto_us));
        }
        self.rcv.ack.now = true;
        self.counters.delayed_acks += 1;
    }

    /// The time of SACK compression is over.
    pub(crate) fn compressed_ack_timer(&mut self) {
        if self.rcv.ack.compressed > 0 {
            self.rcv.ack.compressed -= 1;
            self.rcv.ack.now = true;
        }
    }

    /// A segment with an acknowledgement leaves (`tcp_event_ack_sent`).
    pub(crate) fn ack_sent(&mut self, segments: u32) {
        let ack = &mut self.rcv.ack;
        if ack.compressed > 0 {
            self.counters.ack_compressed += u64::from(ack.compressed);
            ack.compressed = 0;
        }
        ack.quick = ack.quick.saturating_sub(segments);
        if ack.quick == 0 && ack.ato_us == 0 {
            ack.ato_us = ATO_MIN_US;
        }
        ack.scheduled = false;
        ack.now = false;
        ack.pushed = false;
        self.timers.delayed_ack = None;
        self.timers.compressed_ack = None;
    }
}
