//! The order of initialisation, and stop (82599 datasheet 4.6).

use super::regs::{
    AUTOC, CTRL_EXT, DMATXCTL, DTXMXSZRQ, HLREG0, MAXFRS, MTQC, PSRTYPE, RDRXCTL, RFCTL, RQSMR, RTTBCNRC, RTTDCS,
    RTTDQSEL, RXCSUM, RXPBSIZE, TQSM, TXPBSIZE, TXPBTHRESH, ctrl_ext, dctl, hlreg0, rdrxctl, receive_queue, rfctl, rx,
    rxcsum, srrctl, transmit_queue, tx,
};
use super::reset::tolerate;
use super::{Ixgbe, QUEUES, TRANSMIT_QUEUES};
use crate::bus::{pci, wait_until};
use crate::error::NicError;
use crate::nic::statistics::Sums;
use crate::nic::{RingAddress, Settings};
use core::time::Duration;
use netcore::Features;

/// Longest frame, FCS included, that needs no jumbo enable.
const STANDARD_FRAME: usize = 1518;
/// KiB of the packet buffers.
pub(super) const RECEIVE_KIB: u32 = 512;
const TRANSMIT_KIB: u32 = 160;
/// Prefetch below 32 cached descriptors if one more is there; write back each one that asks for it.
const TRANSMIT_THRESHOLDS: u32 = 32 | 1 << 8;
/// Bound of a queue's enabling and disabling.
const QUEUE_LIMIT: Duration = Duration::from_millis(10);
/// Bound of the wait for frames that are being sent when the part is stopped.
const DRAIN_LIMIT: Duration = Duration::from_millis(10);
const STEP: Duration = Duration::from_micros(100);
/// RTTDCS: the arbiter is off while its tables change.
const ARBDIS: u32 = 1 << 6;
/// PSRTYPE: TCP, UDP, IPv4, IPv6, link layer.
const HEADER_TYPES: u32 = 0x1330;
/// Relaxed ordering: transmit write-back; receive data and header write-back, and a bit that must be clear.
const TRANSMIT_RELAXED: u32 = 1 << 11;
const RECEIVE_RELAXED: u32 = 1 << 12 | 1 << 13 | 1 << 15;
/// RSCCTL: merge; descriptors of a merged packet by code.
const RSCEN: u32 = 1;
/// Longest merged packet.
const LONGEST_MERGED: u32 = 0xffff;

impl Ixgbe {
    pub(super) fn bring_up(
        &mut self,
        settings: &Settings,
        transmit: &[RingAddress],
        receive: &[RingAddress],
    ) -> Result<(), NicError> {
        pci::enable(&mut *self.bus)?;
        self.reset(true)?;
        self.original_autoc = self.csr.read(AUTOC)?;
        self.csr.modify(CTRL_EXT, 0, ctrl_ext::NS_DIS | ctrl_ext::DRV_LOAD)?;
        self.clear_tables()?;
        self.order_strictly()?;
        self.program_filters(settings)?;
        let kib = RECEIVE_KIB - self.director_kib();
        self.csr.write(RXPBSIZE, kib << 10);
        for n in 1..8 {
            self.csr.write(RXPBSIZE + 4 * n, 0);
        }
        self.program_watermarks(settings, kib);
        self.program_director()?;
        self.start_link(settings)?;
        for n in 0..32 {
            // Counter set q mod 16 for queue q.
            let first = (4 * n) & 0xf;
            let sets = first | (first + 1) << 8 | (first + 2) << 16 | (first + 3) << 24;
            self.csr.write(RQSMR + 4 * n, sets);
            self.csr.write(TQSM + 4 * n, sets);
        }
        // Statistics clear when they are read; what was counted before is not ours.
        self.collect(&mut Sums::default());
        self.program_transmit(settings, transmit)?;
        self.program_receive(settings, receive)
    }

    /// No write-back may pass the data before it; no rate limits.
    fn order_strictly(&mut self) -> Result<(), NicError> {
        for queue in 0..QUEUES {
            self.csr.write(RTTDQSEL, queue.into());
            self.csr.write(RTTBCNRC, 0);
            self.csr.modify(transmit_queue(queue) + tx::DCA_TXCTRL, TRANSMIT_RELAXED, 0)?;
            self.csr.modify(receive_queue(queue) + rx::DCA_RXCTRL, RECEIVE_RELAXED, 0)?;
        }
        Ok(())
    }

    fn program_transmit(&mut self, settings: &Settings, rings: &[RingAddress]) -> Result<(), NicError> {
        self.program_mac(settings)?;
        self.csr.modify(RTTDCS, 0, ARBDIS)?;
        self.csr.write(MTQC, 0);
        for n in 0..8 {
            let kib = if n == 0 { TRANSMIT_KIB } else { 0 };
            self.csr.write(TXPBSIZE + 4 * n, kib << 10);
            // Room for one jumbo frame.
            self.csr.write(TXPBTHRESH + 4 * n, kib.saturating_sub(10));
        }
        self.csr.write(DTXMXSZRQ, 0xfff);
        self.csr.modify(RTTDCS, ARBDIS, 0)?;
        // The engine comes before its queues.
        self.csr.modify(DMATXCTL, 0, 1)?;
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
            self.switch_queue(at + tx::TXDCTL, TRANSMIT_THRESHOLDS | dctl::ENABLE, "a transmit queue's start")?;
        }
        Ok(())
    }

    /// Frame sizes, FCS.
    fn program_mac(&mut self, settings: &Settings) -> Result<(), NicError> {
        // A tag comes on top of the limit.
        let longest = settings.max_frame() + 4;
        let jumbo = if longest > STANDARD_FRAME { hlreg0::JUMBOEN } else { 0 };
        self.csr.modify(HLREG0, hlreg0::JUMBOEN, hlreg0::TXCRCEN | hlreg0::RXCRCSTRP | hlreg0::TXPADEN | jumbo)?;
        self.csr.write(MAXFRS, (longest as u32) << 16);
        Ok(())
    }

    fn program_receive(&mut self, settings: &Settings, rings: &[RingAddress]) -> Result<(), NicError> {
        self.program_offloads(settings)?;
        let merges = settings.features.contains(Features::LRO);
        let merging = if merges { rdrxctl::RSCACKC | rdrxctl::FCOE_WRFIX } else { 0 };
        self.csr.modify(RDRXCTL, rdrxctl::RSCFRSTSIZE | rdrxctl::DMAIDONE, rdrxctl::CRCSTRIP | merging)?;
        let off = if merges { 0 } else { rfctl::RSC_DIS };
        self.csr.modify(RFCTL, rfctl::RSC_DIS, rfctl::NFSW_DIS | rfctl::NFSR_DIS | off)?;
        self.csr.write(PSRTYPE, HEADER_TYPES);
        if merges {
            // The interval and the route of the interrupt end a merge, also while nobody is interrupted.
            self.program_throttle(settings);
            self.route_queues(settings.queues, |queue| u32::from(queue) & 0x3f);
        }
        // A queue that has no buffers drops, instead of holding up all the others; without others the packet buffer holds on,
        // and the partner is asked to pause.
        let drop = if settings.queues > 1 && !settings.flow_control.sends() { srrctl::DROP_EN } else { 0 };
        let control = srrctl::ONE_BUFFER | srrctl::HEADER_256 | (settings.receive_buffer / 1024) | drop;
        for (queue, ring) in (0u16..).zip(rings) {
            let at = receive_queue(queue);
            self.switch_queue(at + rx::RXDCTL, 0, "a receive queue's end")?;
            self.csr.write(at + rx::RDBAL, ring.iova as u32);
            self.csr.write(at + rx::RDBAH, (ring.iova >> 32) as u32);
            self.csr.write(at + rx::RDLEN, ring.bytes);
            self.csr.write(at + rx::SRRCTL, control);
            self.csr.write(at + rx::RDH, 0);
            self.csr.write(at + rx::RDT, 0);
            self.csr.write(at + rx::RSCCTL, if merges { merge_control(settings.receive_buffer) } else { 0 });
        }
        let strip = if settings.features.contains(Features::RX_VLAN) { dctl::VME } else { 0 };
        for queue in 0..rings.len() as u16 {
            self.switch_queue(receive_queue(queue) + rx::RXDCTL, dctl::ENABLE | strip, "a receive queue's start")?;
        }
        // The tails follow, which queues ignore before they are enabled, and reception after them.
        self.csr.flush()
    }

    /// Writes a queue's control register and waits until it has taken effect.
    fn switch_queue(&mut self, at: u32, value: u32, what: &'static str) -> Result<(), NicError> {
        self.csr.write(at, value);
        let csr = &self.csr;
        wait_until(&mut *self.bus, what, QUEUE_LIMIT, STEP, || Ok((csr.read(at)? ^ value) & dctl::ENABLE == 0))
    }

    /// Checksums on receive, hashing.
    pub(super) fn program_offloads(&mut self, settings: &Settings) -> Result<(), NicError> {
        // The hash takes the place of the raw packet checksum.
        self.csr.write(RXCSUM, rxcsum::PCSD);
        self.program_rss(settings);
        Ok(())
    }

    /// Tags, which may be switched while a queue runs.
    pub(super) fn program_stripping(&mut self, settings: &Settings) -> Result<(), NicError> {
        let strip = if settings.features.contains(Features::RX_VLAN) { dctl::VME } else { 0 };
        for queue in 0..settings.queues {
            self.csr.modify(receive_queue(queue) + rx::RXDCTL, dctl::VME, strip)?;
        }
        self.csr.flush()
    }

    /// Ends all DMA: mask, receive off, transmit off, reset.
    pub(super) fn shut_down(&mut self) -> Result<(), NicError> {
        self.mask_all();
        self.disable_receive()?;
        let mut stuck = Ok(());
        for queue in 0..QUEUES {
            let at = receive_queue(queue) + rx::RXDCTL;
            if self.csr.read(at)? & dctl::ENABLE != 0 {
                stuck = keep(stuck, self.switch_queue(at, 0, "a receive queue's end"))?;
            }
        }
        // What the queue still has in hand gets to memory.
        self.bus.sleep(STEP);
        for queue in 0..TRANSMIT_QUEUES {
            let at = transmit_queue(queue);
            if self.csr.read(at + tx::TXDCTL)? & dctl::ENABLE == 0 {
                continue;
            }
            // Frames on their way out have their time, if there is a link for them.
            let csr = &self.csr;
            tolerate(wait_until(&mut *self.bus, "transmission", DRAIN_LIMIT, STEP, || {
                Ok(csr.read(at + tx::TDH)? == csr.read(at + tx::TDT)?)
            }))?;
            stuck = keep(stuck, self.switch_queue(at + tx::TXDCTL, 0, "a transmit queue's end"))?;
        }
        self.csr.modify(DMATXCTL, 1, 0)?;
        self.csr.flush()?;
        // Reset waits for DMA to end, and only after it is memory given back.
        self.reset(true)?;
        self.announce(false)?;
        self.laser_off()?;
        stuck
    }
}

/// RSCCTL for buffers of `buffer` bytes: as many as stay below 64 KiB.
pub(super) fn merge_control(buffer: u32) -> u32 {
    let code = [16, 8, 4, 1].iter().position(|n| n * buffer <= LONGEST_MERGED).unwrap_or(3);
    RSCEN | (3 - code as u32) << 2
}

/// Keeps the first failure and goes on, unless the device is gone.
fn keep(before: Result<(), NicError>, now: Result<(), NicError>) -> Result<Result<(), NicError>, NicError> {
    match now {
        Err(error @ NicError::Removed) => Err(error),
        now => Ok(before.and(now)),
    }
}
