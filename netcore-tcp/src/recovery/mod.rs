//! Loss recovery: what is lost, when to send it again, how far the window goes down, and whether that was wrong.

mod acknowledge;
mod alert;
mod close;
mod cumulative;
mod loss;
mod mark;
mod probe;
mod rack;
mod reduction;
mod reordering;
mod retransmit;
mod sack;
mod undo;

use crate::profile::{Detection, Profile};
use alloc::collections::VecDeque;
use netcore::Instant;

/// State of loss recovery besides what [`netcore::SendState`] holds.
#[derive(Debug)]
pub(crate) struct Recovery {
    /// SACK was negotiated.
    pub(crate) sack_ok: bool,
    /// FACK is in use; off for good once reordering was seen.
    pub(crate) fack: bool,
    /// Recovery ends when this is acknowledged (`high_seq`).
    pub(crate) high_seq: u64,
    /// Where undo may return to (`undo_marker`).
    pub(crate) undo_marker: Option<u64>,
    /// Retransmissions not yet proven needless; `None` before the first (`undo_retrans`).
    pub(crate) undo_retrans: Option<u32>,
    /// When the first retransmission of this episode was made (`retrans_stamp`): time and timestamp.
    pub(crate) retrans_stamp: Option<(Instant, u32)>,
    /// Index of the highest segment selectively acknowledged.
    pub(crate) highest_sack: Option<u64>,
    /// Blocks of the last ACK, which need not be looked at again.
    sack_cache: [(u64, u64); 4],
    /// Below this index every segment that is to be marked lost is marked.
    lost_hint: u64,
    /// Below this index every lost segment was retransmitted.
    retransmit_hint: u64,
    /// Below this index every segment was considered for forward retransmission.
    forward_hint: u64,
    /// The next retransmission need not fit the window (`fast_rexmit`).
    force: bool,
    pub(crate) prr_delivered: u32,
    pub(crate) prr_out: u32,
    /// ACKs counted by rate halving.
    halving_count: u32,
    /// F-RTO is under way.
    frto: bool,
    /// New data is to be sent before retransmissions (F-RTO step 2b).
    send_new_first: bool,
    rack: rack::Rack,
    /// End of the outstanding tail loss probe, and whether it is a retransmission.
    tlp_high_seq: Option<u64>,
    tlp_retrans: bool,
    /// A tail loss probe is to be sent.
    tlp_pending: bool,
    /// Reordering was seen on this connection.
    pub(crate) reord_seen: u32,
    dsack_seen: bool,
    pub(crate) syn_lost: bool,
    /// Timestamp echoed by the ACK at hand.
    pub(crate) current_echo: Option<u32>,
    /// Retransmissions in the order they were made, for RACK: index and time.
    resent: VecDeque<(u64, Instant)>,
    /// All originals below this index are delivered, lost or resent.
    original_hint: u64,
}

impl Recovery {
    pub(crate) fn new(profile: &Profile) -> Self {
        Self {
            sack_ok: false,
            fack: profile.detection == Detection::Fack,
            high_seq: 0,
            undo_marker: None,
            undo_retrans: None,
            retrans_stamp: None,
            highest_sack: None,
            sack_cache: [(0, 0); 4],
            lost_hint: 0,
            retransmit_hint: 0,
            forward_hint: 0,
            force: false,
            prr_delivered: 0,
            prr_out: 0,
            halving_count: 0,
            frto: false,
            send_new_first: false,
            rack: rack::Rack::default(),
            tlp_high_seq: None,
            tlp_retrans: false,
            tlp_pending: false,
            reord_seen: 0,
            dsack_seen: false,
            syn_lost: false,
            current_echo: None,
            resent: VecDeque::new(),
            original_hint: 0,
        }
    }
}

/// What one ACK brought (`FLAG_*` and `struct tcp_sacktag_state`).
#[derive(Clone, Debug, Default)]
pub(crate) struct AckSummary {
    /// Packets in flight before it.
    pub(crate) prior_in_flight: u32,
    /// Index behind the highest SACKed segment before it.
    pub(crate) prior_fack: u64,
    /// The cumulative acknowledgement moved.
    pub(crate) una_advanced: bool,
    /// Data (not only a SYN) was cumulatively acknowledged.
    pub(crate) data_acked: bool,
    /// Retransmitted data was cumulatively acknowledged.
    pub(crate) retrans_data_acked: bool,
    /// It carried SACK blocks, duplicates included.
    pub(crate) sack_blocks: bool,
    /// One of them reached beyond `high_seq`.
    pub(crate) sacked_beyond: bool,
    /// Data was newly SACKed.
    pub(crate) data_sacked: bool,
    /// Never-retransmitted data below `high_seq` was delivered.
    pub(crate) orig_acked: bool,
    /// It updated the window.
    pub(crate) win_update: bool,
    /// It carried data.
    pub(crate) data: bool,
    /// It echoed congestion.
    pub(crate) ece: bool,
    /// It reported a duplicate.
    pub(crate) dsack: bool,
    /// Retransmissions were found lost.
    pub(crate) lost_retrans: bool,
    /// Segments cumulatively acknowledged.
    pub(crate) acked: u32,
    /// Segments delivered: cumulatively or selectively, for the first time.
    pub(crate) delivered: u32,
    /// Lowest index of a never-retransmitted segment delivered out of order.
    pub(crate) reord: Option<u64>,
    /// Send times of the first and last never-retransmitted segments delivered.
    pub(crate) first_acked: Option<Instant>,
    pub(crate) last_acked: Option<Instant>,
    pub(crate) first_sacked: Option<Instant>,
    pub(crate) last_sacked: Option<Instant>,
    /// The newest segment delivered, for the rate sample.
    pub(crate) newest: Option<crate::send::queue::Seg>,
    /// Timestamp echoed.
    pub(crate) echo: Option<u32>,
    /// Duplicates reported of retransmissions.
    pub(crate) lost_before: u64,
    /// It acknowledged something beyond what was known (`FLAG_NOT_DUP` inverse): neither data, window nor progress.
    pub(crate) segments: u32,
}

impl AckSummary {
    /// Neither data nor window update nor progress (`!(flag & FLAG_NOT_DUP)`).
    pub(crate) const fn is_dup(&self) -> bool {
        !(self.data || self.win_update || self.una_advanced)
    }
}
