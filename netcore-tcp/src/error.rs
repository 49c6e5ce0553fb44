//! What goes wrong with a connection, a configuration, a frame.

use alloc::string::String;
use netcore::wire::WireError;

/// Why a connection ended otherwise than by an orderly close.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectionError {
    /// The peer refused the connection (`ECONNREFUSED`).
    #[error("connection refused: a RST answered the SYN")]
    Refused,
    /// The peer reset the connection (`ECONNRESET`).
    #[error("connection reset by peer")]
    Reset,
    /// Nothing came back after all retransmissions (`ETIMEDOUT`).
    #[error("connection timed out after {retransmissions} retransmissions")]
    TimedOut {
        /// How often the oldest segment was sent again.
        retransmissions: u32,
    },
    /// The peer answered no keep-alive probe (`ETIMEDOUT`).
    #[error("keep-alive: no answer to {probes} probes")]
    KeepAlive {
        /// Probes sent.
        probes: u32,
    },
    /// The user aborted the connection.
    #[error("connection aborted")]
    Aborted,
}

/// Why a configuration was refused.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A value is out of range.
    #[error("{name} is {value}, allowed is {allowed}")]
    OutOfRange {
        /// Which setting, by its Linux name.
        name: &'static str,
        /// What it was.
        value: u64,
        /// What is allowed.
        allowed: &'static str,
    },
    /// Both addresses of a path must be of one family.
    #[error("local address {local} and remote address {remote} are of different families")]
    MixedFamilies {
        /// Local address.
        local: core::net::IpAddr,
        /// Remote address.
        remote: core::net::IpAddr,
    },
    /// No such profile.
    #[error("unknown profile \"{name}\"; allowed are {allowed}")]
    UnknownProfile {
        /// What was asked for.
        name: String,
        /// The names there are.
        allowed: &'static str,
    },
    /// A setting of congestion control.
    #[error(transparent)]
    Congestion(#[from] netcore_cc::ParameterError),
}

/// Why an endpoint did not take a frame. The frame is consumed and counted.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Discard {
    /// A header is malformed.
    #[error(transparent)]
    Malformed(#[from] WireError),
    /// It is not TCP over IPv4 or IPv6, or a fragment.
    #[error("not a whole TCP segment")]
    NotTcp,
    /// The checksum is wrong.
    #[error("bad TCP checksum")]
    Checksum,
    /// It belongs to another connection.
    #[error("segment of another connection")]
    OtherConnection,
}
