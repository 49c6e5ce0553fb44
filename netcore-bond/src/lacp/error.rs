//! What can be wrong with a call.

use netcore::MacAddress;
use netcore::wire::WireError;

/// Why a call was refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LacpError {
    /// There is no port with this number.
    #[error("no port has number {port}")]
    NoSuchPort {
        /// The number.
        port: u16,
    },
    /// The number belongs to another port, or is 0.
    #[error("port number {port} cannot be given: 1 to 65535 is allowed, each once")]
    PortNumber {
        /// The number.
        port: u16,
    },
    /// All port numbers are in use.
    #[error("all 65535 port numbers are in use")]
    PortsExhausted,
    /// A setting is out of range.
    #[error("{option} {value} is outside {allowed}")]
    OutOfRange {
        /// Which setting.
        option: &'static str,
        /// What was asked for.
        value: u64,
        /// What is allowed.
        allowed: &'static str,
    },
    /// A text is none of the values of an option.
    #[error("{option} is one of {allowed}")]
    NotAnOption {
        /// Which option.
        option: &'static str,
        /// Its values.
        allowed: &'static str,
    },
    /// No system can have this address.
    #[error("{address} cannot be the address of a system: a unicast address other than zero is needed")]
    SystemAddress {
        /// The address.
        address: MacAddress,
    },
    /// Marker PDUs of a port wait to be sent, as many as may.
    #[error("8 marker frames of port {port} wait to be fetched, no more are kept")]
    MarkersWaiting {
        /// The port.
        port: u16,
    },
    /// A frame of the protocol is damaged; it was counted and dropped.
    #[error("received {0}")]
    Wire(#[from] WireError),
}
