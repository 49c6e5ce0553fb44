//! How large the next packet is: segment size, super-packet goal, small-queue limit.

use crate::endpoint::Endpoint;
use crate::profile::{Autosizing, SmallQueues};
use core::time::Duration;
use netcore_qdisc::autosize::{Autosize, AutosizeForm, FlowView};

impl Endpoint {
    /// Segment size now: less when SACK blocks ride along (`tcp_current_mss`).
    pub(crate) fn current_mss(&self) -> u32 {
        let sacks = self.sack_option_len();
        self.cs.mss.saturating_sub(sacks as u32).max(48)
    }

    /// Largest super-packet in bytes of payload, a multiple of the segment size (`tcp_xmit_size_goal`).
    pub(crate) fn super_goal(&self, mss: u32) -> u64 {
        let mss = u64::from(mss);
        if self.config.gso_max_size == 0 {
            return mss;
        }
        let headers = self.frame.header_len(40) as u64;
        let mut goal = u64::from(self.config.gso_max_size).saturating_sub(1 + headers);
        // The sender must be able to send something into half of the peer's window.
        goal = goal.min((self.snd.max_window >> 1).max(mss));
        if self.config.profile.autosizing == Autosizing::First
            && let Some(rate) = self.cs.pacing_rate
        {
            let built = (rate.bytes_per_sec() / 2000).max(u64::from(self.config.profile.min_tso_segs) * mss);
            goal = goal.min(built).min((self.config.profile.limit_output_bytes >> 1).max(mss));
        } else if self.config.profile.small_queues == SmallQueues::Constant {
            goal = goal.min(self.config.profile.limit_output_bytes >> 1);
        }
        let segments = (goal / mss).clamp(1, u64::from(self.config.gso_max_segs));
        let sent = if self.config.profile.whole_splits { u64::from(self.autosize(mss as u32)).max(1) } else { 1 };
        let rest = if segments > sent { segments % sent } else { 0 };
        (segments - rest) * mss
    }

    /// Most segments of the packet sent next (`tcp_tso_segs`).
    pub(crate) fn autosize(&self, mss: u32) -> u32 {
        let p = &self.config.profile;
        let form = match p.autosizing {
            Autosizing::Fixed => AutosizeForm::Fixed,
            Autosizing::First => AutosizeForm::Build,
            Autosizing::Refined => AutosizeForm::Send,
            Autosizing::RttTerm => AutosizeForm::SendRtt,
        };
        let sizes = Autosize {
            gso_max_size: self.config.gso_max_size,
            gso_max_segs: u32::from(self.config.gso_max_segs),
            min_tso_segs: if self.cc_custom { self.cc.min_tso_segs(&self.cs) } else { p.min_tso_segs },
            pacing_shift: p.pacing_shift,
            ..Autosize::of(form)
        };
        let min_rtt = self.rtt.min_rtt_us().map(|us| Duration::from_micros(us.into()));
        sizes.send_segments(&FlowView { mss, pacing_rate: self.cs.pacing_rate, min_rtt, max_window: 0 })
    }

    /// Whether `truesize` more bytes would stay below; a packet is refused if what is there already exceeds the limit
    /// (`tcp_small_queue_check`).
    pub(crate) fn small_queue_full(&self, truesize: u64, retransmission: bool) -> bool {
        let p = &self.config.profile;
        let by_rate = self.cs.pacing_rate.map_or(u64::MAX, |rate| rate.bytes_per_sec() >> p.pacing_shift.min(63));
        let limit = match p.small_queues {
            SmallQueues::Unlimited => return false,
            SmallQueues::Constant => p.limit_output_bytes,
            SmallQueues::Rate => truesize.max(by_rate),
            SmallQueues::Floor => by_rate.max(p.limit_output_bytes),
            SmallQueues::Ceiling => (2 * truesize).max(by_rate).min(p.limit_output_bytes),
        };
        let modern = p.is_rack();
        let limit = if modern && retransmission { limit << 1 } else { limit };
        if self.snd.below.charged() <= limit {
            return false;
        }
        // One packet in the network may always be joined by another: ACKs depend on it.
        !(modern && self.snd.skb_ends.len() <= 1)
    }

    /// Memory that a packet of `payload` bytes is charged with.
    pub(crate) const fn truesize(&self, payload: u64) -> u64 {
        payload + self.config.profile.skb_overhead as u64
    }
}
