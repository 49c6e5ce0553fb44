//! [`NicDevice`]: a NIC of any family, and [`open`].

use super::{Causes, Hardware, Limits, Nic, NicConfig, Settings};
use crate::bus::{Bus, InterruptMode, pci};
use crate::error::NicError;
use alloc::boxed::Box;
use core::time::Duration;
use netcore::{Driver, MacAddress, PacketPool};

/// What a NIC of any family can do besides [`Driver`].
pub trait NicDevice: Driver {
    /// What the part can do.
    fn limits(&self) -> &Limits;

    /// The settings in force.
    fn settings(&self) -> &Settings;

    /// The station address in NVM.
    fn permanent_mac(&self) -> MacAddress;

    /// The bus.
    fn bus(&mut self) -> &mut dyn Bus;

    /// See [`Nic::set_interrupts`].
    ///
    /// # Errors
    /// As there.
    fn set_interrupts(&mut self, mode: InterruptMode) -> Result<(), NicError>;

    /// See [`Nic::wait`].
    ///
    /// # Errors
    /// As there.
    fn wait(&mut self, limit: Duration) -> Result<Option<(u16, Causes)>, NicError>;

    /// See [`Nic::rearm`].
    ///
    /// # Errors
    /// As there.
    fn rearm(&mut self, vector: u16) -> Result<(), NicError>;

    /// See [`Hardware::test_registers`]. The device is stopped.
    ///
    /// # Errors
    /// As there.
    fn test_registers(&mut self) -> Result<(), NicError>;

    /// See [`Hardware::test_nvm`].
    ///
    /// # Errors
    /// As there.
    fn test_nvm(&mut self) -> Result<(), NicError>;

    /// See [`Hardware::set_loopback`]. The device is started.
    ///
    /// # Errors
    /// As there.
    fn set_loopback(&mut self, on: bool) -> Result<(), NicError>;
}

impl<H: Hardware> NicDevice for Nic<H> {
    fn limits(&self) -> &Limits {
        self.hardware().limits()
    }
    fn settings(&self) -> &Settings {
        self.settings()
    }
    fn permanent_mac(&self) -> MacAddress {
        self.hardware().permanent_mac()
    }
    fn bus(&mut self) -> &mut dyn Bus {
        self.hardware_mut().bus()
    }
    fn set_interrupts(&mut self, mode: InterruptMode) -> Result<(), NicError> {
        self.set_interrupts(mode)
    }
    fn wait(&mut self, limit: Duration) -> Result<Option<(u16, Causes)>, NicError> {
        self.wait(limit)
    }
    fn rearm(&mut self, vector: u16) -> Result<(), NicError> {
        self.rearm(vector)
    }
    fn test_registers(&mut self) -> Result<(), NicError> {
        self.hardware_mut().test_registers()
    }
    fn test_nvm(&mut self) -> Result<(), NicError> {
        self.hardware_mut().test_nvm()
    }
    fn set_loopback(&mut self, on: bool) -> Result<(), NicError> {
        self.hardware_mut().set_loopback(on)
    }
}

/// A part that a driver of this crate knows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KnownPart {
    /// Name of the part.
    pub part: &'static str,
    /// Name of the driver, Linux's.
    pub driver: &'static str,
}

/// The part with this PCI identity, if a driver of this crate knows it.
pub fn known_part(vendor: u16, device: u16) -> Option<KnownPart> {
    if vendor != pci::VENDOR_INTEL {
        return None;
    }
    #[cfg(feature = "e1000")]
    if let Some(part) = crate::e1000::PARTS.iter().find(|part| part.device == device) {
        let pcie = part.generation == crate::e1000::Generation::E82574;
        return Some(KnownPart { part: part.name, driver: if pcie { "e1000e" } else { "e1000" } });
    }
    #[cfg(feature = "igb")]
    if let Some(part) = crate::igb::PARTS.iter().find(|part| part.device == device) {
        return Some(KnownPart { part: part.name, driver: "igb" });
    }
    #[cfg(feature = "ixgbe")]
    if let Some(part) = crate::ixgbe::PARTS.iter().find(|part| part.device == device) {
        return Some(KnownPart { part: part.name, driver: "ixgbe" });
    }
    let _ = device;
    None
}

/// Takes over a device of any family. `pool` must be from this bus ([`packet_pool`](super::packet_pool)); `adjust` changes
/// the configuration.
///
/// # Errors
/// [`NicError::UnknownDevice`]; whatever the family's probe and [`Nic::new`] fail with.
pub fn open(
    mut bus: Box<dyn Bus>,
    pool: PacketPool,
    adjust: impl FnOnce(&mut NicConfig),
) -> Result<Box<dyn NicDevice>, NicError> {
    let identity = pci::identify(&mut *bus)?;
    let mut config = NicConfig::new(pool);
    adjust(&mut config);
    let unknown = NicError::UnknownDevice { vendor: identity.vendor, device: identity.device, family: "any family" };
    let known = known_part(identity.vendor, identity.device).ok_or(unknown.clone())?;
    match known.driver {
        #[cfg(feature = "e1000")]
        "e1000" => Ok(Box::new(Nic::new(crate::e1000::E1000::probe(bus)?, config)?)),
        #[cfg(feature = "e1000")]
        "e1000e" => Ok(Box::new(Nic::new(crate::e1000::E1000e::probe(bus)?, config)?)),
        #[cfg(feature = "igb")]
        "igb" => Ok(Box::new(Nic::new(crate::igb::Igb::probe(bus)?, config)?)),
        #[cfg(feature = "ixgbe")]
        "ixgbe" => Ok(Box::new(Nic::new(crate::ixgbe::Ixgbe::probe(bus)?, config)?)),
        _ => Err(unknown),
    }
}
