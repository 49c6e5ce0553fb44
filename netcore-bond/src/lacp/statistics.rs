//! Counters.

/// Counters of a port, with the names of Linux (`ip -s -d link`, `IFLA_BOND_SLAVE…`/`BOND_3AD_STAT…`), and two of our own.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct LacpStatistics {
    /// LACPDUs received.
    pub lacpdu_rx: u64,
    /// LACPDUs handed out for sending.
    pub lacpdu_tx: u64,
    /// Frames of other slow protocols; they were passed on.
    pub lacpdu_unknown_rx: u64,
    /// LACPDUs and Marker PDUs too damaged to read; dropped.
    pub lacpdu_illegal_rx: u64,
    /// Marker PDUs received.
    pub marker_rx: u64,
    /// Marker PDUs handed out for sending.
    pub marker_tx: u64,
    /// Marker responses received.
    pub marker_resp_rx: u64,
    /// Marker responses handed out for sending.
    pub marker_resp_tx: u64,
    /// Marker PDUs that are neither request nor response; dropped.
    pub marker_unknown_rx: u64,
    /// Marker PDUs not answered, because too many answers waited to be sent.
    pub marker_resp_dropped: u64,
    /// LACPDUs that this system had sent itself; dropped.
    pub lacpdu_loopback: u64,
}

impl LacpStatistics {
    /// All counters with their names.
    pub const fn counters(&self) -> [(&'static str, u64); 11] {
        [
            ("lacpdu_rx", self.lacpdu_rx),
            ("lacpdu_tx", self.lacpdu_tx),
            ("lacpdu_unknown_rx", self.lacpdu_unknown_rx),
            ("lacpdu_illegal_rx", self.lacpdu_illegal_rx),
            ("marker_rx", self.marker_rx),
            ("marker_tx", self.marker_tx),
            ("marker_resp_rx", self.marker_resp_rx),
            ("marker_resp_tx", self.marker_resp_tx),
            ("marker_unknown_rx", self.marker_unknown_rx),
            ("marker_resp_dropped", self.marker_resp_dropped),
            ("lacpdu_loopback", self.lacpdu_loopback),
        ]
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.lacpdu_rx += other.lacpdu_rx;
        self.lacpdu_tx += other.lacpdu_tx;
        self.lacpdu_unknown_rx += other.lacpdu_unknown_rx;
        self.lacpdu_illegal_rx += other.lacpdu_illegal_rx;
        self.marker_rx += other.marker_rx;
        self.marker_tx += other.marker_tx;
        self.marker_resp_rx += other.marker_resp_rx;
        self.marker_resp_tx += other.marker_resp_tx;
        self.marker_unknown_rx += other.marker_unknown_rx;
        self.marker_resp_dropped += other.marker_resp_dropped;
        self.lacpdu_loopback += other.lacpdu_loopback;
    }
}
