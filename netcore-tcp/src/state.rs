//! The states of a connection (RFC 9293 section 3.3.2).

/// State of a connection.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum State {
    /// No connection.
    Closed,
    /// Waiting for a connection request.
    Listen,
    /// A SYN was sent.
    SynSent,
    /// A SYN was received and answered.
    SynReceived,
    /// Data flows.
    Established,
    /// The user closed; the FIN is not acknowledged.
    FinWait1,
    /// The FIN is acknowledged; the peer may still send.
    FinWait2,
    /// The peer closed; the user may still send.
    CloseWait,
    /// Both sides closed; our FIN is not acknowledged.
    Closing,
    /// The peer closed first and our FIN is not acknowledged.
    LastAck,
    /// Waiting for old segments to die out.
    TimeWait,
}

impl State {
    /// Whether the connection is past its handshake and not closed.
    pub const fn is_synchronized(self) -> bool {
        !matches!(self, Self::Closed | Self::Listen | Self::SynSent | Self::SynReceived)
    }

    /// Whether data may still be accepted from the user.
    pub const fn may_send(self) -> bool {
        matches!(self, Self::SynSent | Self::SynReceived | Self::Established | Self::CloseWait)
    }

    /// Whether new data may still arrive from the peer.
    pub const fn may_receive(self) -> bool {
        matches!(self, Self::Established | Self::FinWait1 | Self::FinWait2)
    }

    /// The name in `ss`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Closed => "CLOSED",
            Self::Listen => "LISTEN",
            Self::SynSent => "SYN-SENT",
            Self::SynReceived => "SYN-RECV",
            Self::Established => "ESTAB",
            Self::FinWait1 => "FIN-WAIT-1",
            Self::FinWait2 => "FIN-WAIT-2",
            Self::CloseWait => "CLOSE-WAIT",
            Self::Closing => "CLOSING",
            Self::LastAck => "LAST-ACK",
            Self::TimeWait => "TIME-WAIT",
        }
    }
}
