//! What can be made to go wrong.

use core::time::Duration;

/// Faults that a test switches on and off while a model runs ([`Bench::faults`](super::Bench::faults)).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Faults {
    /// The device was pulled: registers and configuration space read as all ones, DMA stops.
    pub removed: bool,
    /// Transmit descriptors are not fetched.
    pub transmit_hang: bool,
    /// Every DMA access fails from now on, as after a bus error.
    pub dma_error: bool,
    /// Descriptors are written back this much later than they are done.
    pub late_write_back: Option<Duration>,
    /// One word of the NVM is wrong, so that its checksum is.
    pub nvm_damaged: bool,
    /// There is no NVM.
    pub nvm_absent: bool,
    /// There is no module in the SFP cage.
    pub sfp_absent: bool,
    /// The PHY does not answer.
    pub phy_absent: bool,
    /// The reset bit never clears.
    pub reset_stuck: bool,
    /// DMA transactions stay pending after a master disable.
    pub master_stuck: bool,
    /// A queue enable or disable bit never follows.
    pub queue_stuck: bool,
    /// Firmware holds the hardware semaphores.
    pub semaphore_held: bool,
}
