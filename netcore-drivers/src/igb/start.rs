//! The order of initialisation, and stop (82576 datasheet 4.5).

use super::regs::{
    CTRL, DCA_CTRL, DVMOLR, EIAC, EIMC, FACTPS, IMC, MANC, RCTL, RFCTL, RLPML, RXCSUM, TCTL, VET, VMOLR, WUC, WUFC,
    WUS, ctrl, dctl, rctl, receive_queue, rfctl, rx, rxcsum, srrctl, tctl, transmit_queue, tx, vmolr,
};
use super::{Generation, Igb};
use crate::bus::{pci, wait_until};
use crate::error::NicError;
use crate::nic::statistics::Sums;
use crate::nic::{RingAddress, Settings};
use core::time::Duration;
use netcore::Features;

/// Longest wire frame that needs no long-packet enable.
const STANDARD_FRAME: usize = 1522;
/// Retries after a collision; collision distance.
const COLLISIONS: u32 = 15 << tctl::CT_SHIFT | 63 << tctl::COLD_SHIFT;
/// Prefetch below 8 cached descriptors if one more is there, write back each one: with more, write-back can be delayed for
/// ever in MSI-X mode (82576 specification update).
const TRANSMIT_THRESHOLDS: u32 = 8 | 1 << 8 | 1 << 16;
const RECEIVE_THRESHOLDS: u32 = 8 | 8 << 8 | 1 << 16;
/// Bound of a queue's enabling and disabling.
const QUEUE_LIMIT: Duration = Duration::from_millis(10);
/// Bound of the wait for frames that are being sent when the part is stopped.
const DRAIN_LIMIT: Duration = Duration::from_millis(10);
/// MANC: frames go to management firmware.
const MANC_RCV_TCO_EN: u32 = 1 << 17;
/// DCA_CTRL: no hints to caches.
const DCA_DISABLE: u32 = 1;
/// Relaxed ordering of write-back (common to all of the family).
const RELAXED_WRITE_BACK: u32 = 1 << 11;
/// FACTPS: functions and ports are exchanged.
const LAN_FUNCTION_SELECT: u32 = 1 << 30;

impl Igb {
    /// Which port this function is.
    pub(super) fn find_port(&mut self) -> Result<(), NicError> {
        if self.csr.read(FACTPS)? & LAN_FUNCTION_SELECT != 0 && self.part.generation <= Generation::I82576 {
            self.port ^= 1;
        }
        Ok(())
    }

    pub(super) fn bring_up(
        &mut self,
        settings: &Settings,
        transmit: &[RingAddress],
        receive: &[RingAddress],
    ) -> Result<(), NicError> {
        pci::enable(&mut *self.bus)?;
        self.reset()?;
        self.enable_master()?;
        self.announce(true)?;
        self.csr.write(WUC, 0);
        self.csr.write(WUFC, 0);
        self.csr.write(WUS, u32::MAX);
        self.csr.write(VET, 0x8100);
        self.csr.write(DCA_CTRL, DCA_DISABLE);
        self.clear_tables()?;
        self.program_filters(settings)?;
        self.program_flow_control(settings)?;
        self.start_link(settings)?;
        self.program_offloads(settings)?;
        // Statistics clear when they are read; what was counted before is not ours.
        self.collect(&mut Sums::default());
        self.program_transmit(transmit)?;
        self.program_receive(settings, receive)
    }

    fn program_transmit(&mut self, rings: &[RingAddress]) -> Result<(), NicError> {
        for (queue, ring) in (0u16..).zip(rings) {
            let at = transmit_queue(queue);
            self.switch_queue(at + tx::TXDCTL, 0, "a transmit queue's end")?;
            self.csr.write(at + tx::TDLEN, ring.bytes);
            self.csr.write(at + tx::TDBAL, ring.iova as u32);
            self.csr.write(at + tx::TDBAH, (ring.iova >> 32) as u32);
            self.csr.write(at + tx::TDH, 0);
            self.csr.write(at + tx::TDT, 0);
            self.csr.write(at + tx::TDWBAL, 0);
            self.csr.write(at + tx::TDWBAH, 0);
            // The status write must not pass the data.
            self.csr.modify(at + tx::DCA_TXCTRL, RELAXED_WRITE_BACK, 0)?;
            self.switch_queue(at + tx::TXDCTL, TRANSMIT_THRESHOLDS | dctl::ENABLE, "a transmit queue's start")?;
        }
        // The engine comes after its queues.
        let value = self.csr.read(TCTL)? & !(tctl::CT | tctl::COLD);
        self.csr.write(TCTL, value | COLLISIONS | tctl::PSP | tctl::RTLC | tctl::EN);
        Ok(())
    }

    fn program_receive(&mut self, settings: &Settings, rings: &[RingAddress]) -> Result<(), NicError> {
        // A queue that has no buffers drops, instead of holding up all the others; without others the packet buffer holds on,
        // and the partner is asked to pause.
        let drop = settings.queues > 1 && !settings.flow_control.sends();
        let control = srrctl::ONE_BUFFER | (settings.receive_buffer / 1024) | if drop { srrctl::DROP_EN } else { 0 };
        for (queue, ring) in (0u16..).zip(rings) {
            let at = receive_queue(queue);
            self.switch_queue(at + rx::RXDCTL, 0, "a receive queue's end")?;
            self.csr.write(at + rx::RDBAL, ring.iova as u32);
            self.csr.write(at + rx::RDBAH, (ring.iova >> 32) as u32);
            self.csr.write(at + rx::RDLEN, ring.bytes);
            self.csr.write(at + rx::SRRCTL, control);
            self.csr.write(at + rx::RDH, 0);
            self.csr.write(at + rx::RDT, 0);
        }
        // Extension headers are parsed wrongly (82575 and 82576 specification updates).
        self.csr.modify(RFCTL, 0, rfctl::IPV6_EX_DIS)?;
        self.csr.write(RLPML, settings.max_wire_frame() as u32);
        if self.part.generation == Generation::I82575 && self.csr.read(MANC)? & MANC_RCV_TCO_EN != 0 {
            self.flush_receive_fifo(settings)?;
        }
        for queue in 0..rings.len() as u16 {
            let at = receive_queue(queue) + rx::RXDCTL;
            self.switch_queue(at, RECEIVE_THRESHOLDS | dctl::ENABLE, "a receive queue's start")?;
        }
        // The tails follow, which queues ignore before they are enabled.
        self.csr.write(RCTL, self.receive_control(settings));
        self.csr.flush()
    }

    /// Writes a queue's control register and waits until it has taken effect.
    fn switch_queue(&mut self, at: u32, value: u32, what: &'static str) -> Result<(), NicError> {
        self.csr.write(at, value);
        let csr = &self.csr;
        wait_until(&mut *self.bus, what, QUEUE_LIMIT, Duration::from_micros(100), || {
            Ok((csr.read(at)? ^ value) & dctl::ENABLE == 0)
        })
    }

    /// 82575: management frames that came before a driver leave the packet buffer in disorder; it is emptied with every frame
    /// too long.
    fn flush_receive_fifo(&mut self, settings: &Settings) -> Result<(), NicError> {
        let before = self.csr.read(RFCTL)?;
        self.csr.write(RFCTL, before & !(1 << 18));
        self.csr.write(RLPML, 0);
        self.csr.write(RCTL, rctl::LPE | rctl::EN);
        self.csr.flush()?;
        self.bus.sleep(Duration::from_millis(2));
        self.csr.write(RCTL, 0);
        self.csr.write(RFCTL, before);
        self.csr.write(RLPML, settings.max_wire_frame() as u32);
        self.csr.flush()
    }

    /// The receive control register for these settings.
    fn receive_control(&self, settings: &Settings) -> u32 {
        let mut value = rctl::EN | rctl::BAM | rctl::SECRC;
        if settings.promiscuous {
            value |= rctl::UPE | rctl::MPE;
        } else if settings.vlans.is_some() && settings.features.contains(Features::RX_VLAN_FILTER) {
            value |= rctl::VFE;
        }
        if settings.features.contains(Features::RX_ALL) {
            value |= rctl::SBP;
        }
        if settings.max_wire_frame() > STANDARD_FRAME {
            value |= rctl::LPE;
        }
        value
    }

    /// Writes the receive control register if it changes.
    pub(super) fn update_rctl(&mut self, settings: &Settings) -> Result<(), NicError> {
        let value = self.receive_control(settings);
        if self.csr.read(RCTL)? != value {
            self.csr.write(RCTL, value);
            self.csr.flush()?;
        }
        Ok(())
    }

    /// Checksums on receive, tags, hashing.
    pub(super) fn program_offloads(&mut self, settings: &Settings) -> Result<(), NicError> {
        let tags = settings.features.contains(Features::RX_VLAN);
        self.csr.modify(CTRL, ctrl::VME, if tags { ctrl::VME } else { 0 })?;
        let strip = if tags { vmolr::STRVLAN } else { 0 };
        match self.part.generation {
            Generation::I82575 => {}
            // The frame check sequence is removed for every pool, as RCTL says.
            Generation::I82576 => {
                for pool in 0..8 {
                    self.csr.modify(VMOLR + 4 * pool, vmolr::STRVLAN, strip | vmolr::STRCRC)?;
                }
            }
            Generation::I350 | Generation::I210 => {
                for pool in 0..u32::from(self.part.generation.queues()) {
                    self.csr.modify(DVMOLR + 0x40 * pool, vmolr::STRVLAN, strip | vmolr::STRCRC)?;
                }
            }
        }
        // The hash takes the place of the raw packet checksum.
        let mut value = rxcsum::PCSD;
        if settings.features.contains(Features::RX_CHECKSUM) {
            value |= rxcsum::IPOFL | rxcsum::TUOFL;
            if self.part.generation != Generation::I82575 {
                value |= rxcsum::CRCOFL;
            }
        }
        self.csr.write(RXCSUM, value);
        self.program_rss(settings);
        Ok(())
    }

    /// Ends all DMA: mask, receive off, transmit off, reset.
    pub(super) fn shut_down(&mut self) -> Result<(), NicError> {
        self.csr.write(IMC, u32::MAX);
        self.csr.write(EIMC, u32::MAX);
        self.csr.write(EIAC, 0);
        let value = self.csr.read(RCTL)?;
        self.csr.write(RCTL, value & !rctl::EN);
        self.csr.flush()?;
        let mut stuck = Ok(());
        for queue in 0..self.part.generation.queues() {
            let at = receive_queue(queue) + rx::RXDCTL;
            if self.csr.read(at)? & dctl::ENABLE != 0 {
                stuck = keep(stuck, self.switch_queue(at, 0, "a receive queue's end"))?;
            }
        }
        for queue in 0..self.part.generation.queues() {
            let at = transmit_queue(queue);
            if self.csr.read(at + tx::TXDCTL)? & dctl::ENABLE == 0 {
                continue;
            }
            // Frames on their way out have their time, if there is a link for them.
            let csr = &self.csr;
            let drained = wait_until(&mut *self.bus, "transmission", DRAIN_LIMIT, Duration::from_micros(100), || {
                Ok(csr.read(at + tx::TDH)? == csr.read(at + tx::TDT)?)
            });
            if let Err(error @ NicError::Removed) = drained {
                return Err(error);
            }
            stuck = keep(stuck, self.switch_queue(at + tx::TXDCTL, 0, "a transmit queue's end"))?;
        }
        let value = self.csr.read(TCTL)?;
        self.csr.write(TCTL, value & !tctl::EN);
        self.csr.flush()?;
        // Reset waits for DMA to end, and only after it is memory given back.
        self.reset()?;
        self.announce(false)?;
        stuck
    }
}

/// Keeps the first failure and goes on, unless the device is gone.
fn keep(before: Result<(), NicError>, now: Result<(), NicError>) -> Result<Result<(), NicError>, NicError> {
    match now {
        Err(error @ NicError::Removed) => Err(error),
        now => Ok(before.and(now)),
    }
}
