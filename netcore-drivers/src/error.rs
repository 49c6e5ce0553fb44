//! Why a NIC could not do something.

use alloc::string::String;
use netcore::DriverError;

/// Why a bus, a NIC or its model refused or failed. Turns into [`DriverError`] at the border of a driver.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NicError {
    /// Registers read as all ones: the device left the bus.
    #[error("device removed")]
    Removed,
    /// The device did not do something within its time limit.
    #[error("{what} did not finish within {limit_us} µs")]
    Timeout {
        /// What was waited for.
        what: &'static str,
        /// The bound of the wait, microseconds.
        limit_us: u64,
    },
    /// No driver of this crate knows the device.
    #[error("PCI device {vendor:04x}:{device:04x} is not one of {family}")]
    UnknownDevice {
        /// PCI vendor id.
        vendor: u16,
        /// PCI device id.
        device: u16,
        /// The family that was asked.
        family: &'static str,
    },
    /// The non-volatile memory is damaged.
    #[error("NVM checksum is {sum:#06x}, allowed is 0xbaba")]
    NvmChecksum {
        /// Sum of the words.
        sum: u16,
    },
    /// There is no NVM.
    #[error("there is no NVM (EECD.PRES is off)")]
    NvmAbsent,
    /// The NVM holds no usable station address.
    #[error("NVM holds {mac} as station address, which is a group address or zero")]
    NvmMac {
        /// What it holds.
        mac: netcore::MacAddress,
    },
    /// The PHY did not answer, or answered with an error.
    #[error("PHY {phy} register {register}: {what}")]
    Phy {
        /// PHY address on the management bus.
        phy: u8,
        /// Register number.
        register: u8,
        /// What happened.
        what: &'static str,
    },
    /// Somebody else holds a semaphore.
    #[error("semaphore {what} is held by another agent")]
    Semaphore {
        /// Which one.
        what: &'static str,
    },
    /// A setting is out of range.
    #[error("{what} is {value}, allowed is {allowed}")]
    OutOfRange {
        /// Which setting.
        what: &'static str,
        /// What was asked for.
        value: u64,
        /// What is allowed.
        allowed: &'static str,
    },
    /// The device or the back end has no such thing.
    #[error("{what} is not supported by this device")]
    Unsupported {
        /// What.
        what: &'static str,
    },
    /// No memory that the device can reach.
    #[error("no device-visible memory of {bytes} bytes: {message}")]
    NoDmaMemory {
        /// How much was asked for.
        bytes: usize,
        /// What the back end said.
        message: String,
    },
    /// The back end failed.
    #[error("{what}: {message}")]
    Io {
        /// What was attempted.
        what: &'static str,
        /// What the system said.
        message: String,
    },
}

impl From<NicError> for DriverError {
    fn from(error: NicError) -> Self {
        match error {
            NicError::Removed => Self::Removed,
            NicError::Timeout { what, limit_us } => Self::Timeout { what, limit_us },
            NicError::Unsupported { what } => Self::Unsupported { what },
            NicError::OutOfRange { what, value, allowed } => Self::OutOfRange { what, value, allowed: allowed.into() },
            other => Self::Io { what: "NIC", message: alloc::format!("{other}") },
        }
    }
}
