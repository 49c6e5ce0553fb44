//! Counters by the names of `nstat` and `netstat -s`.

use netcore::Statistics;

macro_rules! counters {
    ($($(#[$doc:meta])* $field:ident = $name:literal;)*) => {
        /// What one connection counted. Each field has the name that `nstat` shows ([`Counters::write`]).
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
        #[non_exhaustive]
        pub struct Counters {
            $($(#[$doc])* pub $field: u64,)*
        }

        impl Counters {
            /// Adds all counters to `statistics` under their `nstat` names.
            pub fn write(&self, statistics: &mut Statistics) {
                $(statistics.add($name, self.$field);)*
            }

            /// Every counter with its `nstat` name.
            pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$(($name, self.$field)),*].into_iter()
            }

            /// Adds another connection's counters.
            pub fn merge(&mut self, other: &Self) {
                $(self.$field += other.$field;)*
            }
        }
    };
}

counters! {
    /// Segments received; a merged packet counts as its segments.
    in_segs = "TcpInSegs";
    /// Segments sent, retransmissions excluded; a super-packet counts as its segments.
    out_segs = "TcpOutSegs";
    /// Segments retransmitted.
    retrans_segs = "TcpRetransSegs";
    /// Segments received in error.
    in_errs = "TcpInErrs";
    /// Segments received with a bad checksum.
    in_csum_errors = "TcpInCsumErrors";
    /// RSTs sent.
    out_rsts = "TcpOutRsts";
    /// Pure acknowledgements sent.
    pure_acks_sent = "TcpExtTCPPureAcksSent";
    /// Acknowledgements sent after the delay.
    delayed_acks = "TcpExtDelayedACKs";
    /// Quick-ACK mode was activated by a duplicate.
    delayed_ack_lost = "TcpExtDelayedACKLost";
    /// Acknowledgements that SACK compression left out.
    ack_compressed = "TcpExtTCPAckCompressed";
    /// Segments rejected by their timestamp.
    paws_estab = "TcpExtPAWSEstab";
    /// Segments handled by header prediction.
    hp_hits = "TcpExtTCPHPHits";
    /// Acknowledgements without data received.
    pure_acks = "TcpExtTCPPureAcks";
    /// Fast recoveries entered with SACK.
    sack_recovery = "TcpExtTCPSackRecovery";
    /// Fast recoveries entered without SACK.
    reno_recovery = "TcpExtTCPRenoRecovery";
    /// The peer discarded data that it had selectively acknowledged.
    sack_reneging = "TcpExtTCPSACKReneging";
    /// Reordering detected by FACK.
    fack_reorder = "TcpExtTCPFACKReorder";
    /// Reordering detected by SACK.
    sack_reorder = "TcpExtTCPSACKReorder";
    /// Reordering detected without SACK.
    reno_reorder = "TcpExtTCPRenoReorder";
    /// Reordering detected by timestamps.
    ts_reorder = "TcpExtTCPTSReorder";
    /// Windows restored after every retransmission proved needless.
    full_undo = "TcpExtTCPFullUndo";
    /// Windows restored upon a partial acknowledgement.
    partial_undo = "TcpExtTCPPartialUndo";
    /// Windows restored because DSACKs covered every retransmission.
    dsack_undo = "TcpExtTCPDSACKUndo";
    /// Windows restored in state Loss.
    loss_undo = "TcpExtTCPLossUndo";
    /// Retransmissions found lost.
    lost_retransmit = "TcpExtTCPLostRetransmit";
    /// Retransmissions in fast recovery of packets marked lost.
    fast_retrans = "TcpExtTCPFastRetrans";
    /// Retransmissions in fast recovery of packets not marked lost.
    forward_retrans = "TcpExtTCPForwardRetrans";
    /// Retransmissions in state Loss.
    slow_start_retrans = "TcpExtTCPSlowStartRetrans";
    /// Retransmission timeouts.
    timeouts = "TcpExtTCPTimeouts";
    /// Timeouts that proved needless (F-RTO).
    spurious_rtos = "TcpExtTCPSpuriousRTOs";
    /// Timeouts in fast recovery with SACK.
    sack_recovery_fail = "TcpExtTCPSackRecoveryFail";
    /// Timeouts in fast recovery without SACK.
    reno_recovery_fail = "TcpExtTCPRenoRecoveryFail";
    /// Timeouts in disorder with SACK.
    sack_failures = "TcpExtTCPSackFailures";
    /// Timeouts in state Loss.
    loss_failures = "TcpExtTCPLossFailures";
    /// Tail loss probes sent.
    loss_probes = "TcpExtTCPLossProbes";
    /// Losses that a tail loss probe repaired.
    loss_probe_recovery = "TcpExtTCPLossProbeRecovery";
    /// Retransmissions put off because the original still waits in this host.
    spurious_rtx_host_queues = "TcpExtTCPSpuriousRtxHostQueues";
    /// Retransmissions that found no buffer.
    retrans_fail = "TcpExtTCPRetransFail";
    /// DSACKs sent for data below the acknowledgement.
    dsack_old_sent = "TcpExtTCPDSACKOldSent";
    /// DSACKs sent for out-of-order data.
    dsack_ofo_sent = "TcpExtTCPDSACKOfoSent";
    /// DSACKs received.
    dsack_recv = "TcpExtTCPDSACKRecv";
    /// DSACKs received for out-of-order data.
    dsack_ofo_recv = "TcpExtTCPDSACKOfoRecv";
    /// DSACKs received for data no longer queued, in an episode that could be undone.
    dsack_ignored_old = "TcpExtTCPDSACKIgnoredOld";
    /// DSACKs received while nothing could be undone.
    dsack_ignored_no_undo = "TcpExtTCPDSACKIgnoredNoUndo";
    /// SACK blocks outside what is outstanding.
    sack_discard = "TcpExtTCPSACKDiscard";
    /// Packets put into the out-of-order queue.
    ofo_queue = "TcpExtTCPOFOQueue";
    /// Out-of-order packets that were there already, wholly or partly.
    ofo_merge = "TcpExtTCPOFOMerge";
    /// Packets dropped for lack of receive buffer.
    rcvq_drop = "TcpExtTCPRcvQDrop";
    /// Packets dropped because the window was zero.
    zero_window_drop = "TcpExtTCPZeroWindowDrop";
    /// Windows advertised as zero.
    to_zero_window_adv = "TcpExtTCPToZeroWindowAdv";
    /// Windows advertised as non-zero after zero.
    from_zero_window_adv = "TcpExtTCPFromZeroWindowAdv";
    /// Zero windows advertised anew.
    want_zero_window_adv = "TcpExtTCPWantZeroWindowAdv";
    /// Zero-window probes sent.
    win_probe = "TcpExtTCPWinProbe";
    /// Keep-alive probes sent.
    keep_alive = "TcpExtTCPKeepAlive";
    /// Challenge acknowledgements sent (RFC 5961).
    challenge_ack = "TcpExtTCPChallengeACK";
    /// SYNs within an established connection (RFC 5961).
    syn_challenge = "TcpExtTCPSYNChallenge";
    /// SYNs or SYN-ACKs retransmitted.
    syn_retrans = "TcpExtTCPSynRetrans";
    /// Packets built from data that was sent with the original data already coalesced.
    auto_corking = "TcpExtTCPAutoCorking";
    /// HyStart exits by ACK train.
    hystart_train_detect = "TcpExtTCPHystartTrainDetect";
    /// Sum of windows at those exits.
    hystart_train_cwnd = "TcpExtTCPHystartTrainCwnd";
    /// HyStart exits by delay.
    hystart_delay_detect = "TcpExtTCPHystartDelayDetect";
    /// Sum of windows at those exits.
    hystart_delay_cwnd = "TcpExtTCPHystartDelayCwnd";
    /// Segments delivered, as the ACKs tell.
    delivered = "TcpExtTCPDelivered";
    /// Of those, with a congestion mark.
    delivered_ce = "TcpExtTCPDeliveredCE";
    /// Congestion marks received (`IpExtInCEPkts`).
    in_ce_pkts = "IpExtInCEPkts";
    /// Connections reset by the peer or by bad input.
    estab_resets = "TcpEstabResets";
    /// Aborts because retransmissions went unanswered.
    abort_on_timeout = "TcpExtTCPAbortOnTimeout";
    /// RSTs that data after close provoked.
    abort_on_data = "TcpExtTCPAbortOnData";
    /// RSTs ignored because they were out of window or in the wrong place.
    out_of_window_rst = "TcpExtOutOfWindowRsts";
    /// Loss of FACK's head timeout (2.6).
    loss = "TcpExtTCPLoss";
    /// Transmissions that TCP small queues put off (`TCPOrigDataSent` counts those made).
    small_queue_stops = "netcoreTcpSmallQueueStops";
    /// Packets of original data sent.
    orig_data_sent = "TcpExtTCPOrigDataSent";
}
