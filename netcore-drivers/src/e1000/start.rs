//! The order of initialisation, and stop.

use super::regs::{
    AIT, CTRL, CTRL_EXT, EITR, GCR, GCR2, IMC, ITR, PBA, QUEUE, RADV, RCTL, RDBAH, RDBAL, RDH, RDLEN, RDT, RDTR, RFCTL,
    RSRPD, RXCSUM, TADV, TARC0, TCTL, TDBAH, TDBAL, TDH, TDLEN, TDT, TIDV, TIPG, TXDCTL, VET, WUC, WUFC, WUS, ctrl,
    ctrl_ext, rctl, rfctl, rxcsum, tctl,
};
use super::{Family, Format, Medium};
use crate::bus::pci;
use crate::error::NicError;
use crate::nic::statistics::Sums;
use crate::nic::{RingAddress, Settings};
use netcore::Features;

/// Longest wire frame that needs no long-packet enable.
const STANDARD_FRAME: usize = 1522;

impl<F: Format> Family<F> {
    pub(super) fn bring_up(
        &mut self,
        settings: &Settings,
        transmit: &[RingAddress],
        receive: &[RingAddress],
    ) -> Result<(), NicError> {
        pci::enable(&mut *self.bus)?;
        self.reset()?;
        if self.is_82574() {
            self.prepare_82574()?;
        }
        self.csr.write(WUC, 0);
        self.csr.write(WUFC, 0);
        self.csr.write(WUS, u32::MAX);
        self.csr.write(AIT, 0);
        self.csr.write(VET, 0x8100);
        self.clear_addresses();
        self.program_filters(settings)?;
        let rx_kib = self.receive_share(settings);
        self.csr.write(PBA, rx_kib);
        self.program_flow_control(settings, rx_kib);
        self.start_link(settings)?;
        if self.part.quad {
            self.csr.modify(CTRL_EXT, 0, ctrl_ext::RO_DIS)?;
        }
        self.program_offloads(settings)?;
        // Statistics clear when they are read; what was counted before is not ours.
        Sums::default().harvest(&self.csr, super::statistics::REGISTERS);
        self.program_transmit(transmit)?;
        self.program_receive(settings, receive)
    }

    fn receive_share(&self, settings: &Settings) -> u32 {
        // Of 64 KiB, 82574: of 40 KiB. Transmit must hold two frames and more.
        match (self.is_82574(), settings.max_wire_frame() > 8192) {
            (true, _) => 20,
            (false, true) => 40,
            (false, false) => 48,
        }
    }

    fn prepare_82574(&mut self) -> Result<(), NicError> {
        // L0s and L1 hang this part (specification update, erratum 20): off in the link control register.
        if let Some(at) = pci::find_capability(&mut *self.bus, pci::capability::EXPRESS)? {
            let link = pci::read_u16(&mut *self.bus, at + 0x10)?;
            pci::write_u16(&mut *self.bus, at + 0x10, link & !3)?;
        }
        self.csr.modify(CTRL, ctrl::GIO_MASTER_DISABLE, 0)?;
        self.csr.modify(CTRL_EXT, ctrl_ext::LINK_MODE_HIGH, ctrl_ext::LINK_MODE_LOW | ctrl_ext::DRV_LOAD)?;
        self.csr.modify(GCR, 0x3f, 1 << 22)?;
        self.csr.modify(GCR2, 0, 1)?;
        self.csr.modify(RFCTL, 0, rfctl::ACK_DIS | rfctl::EXTEN)?;
        self.csr.modify(TARC0, 0, 1 << 26)?;
        Ok(())
    }

    fn program_transmit(&mut self, rings: &[RingAddress]) -> Result<(), NicError> {
        for (queue, ring) in (0u32..).zip(rings) {
            let at = queue * QUEUE;
            self.csr.write(TDBAL + at, ring.iova as u32);
            self.csr.write(TDBAH + at, (ring.iova >> 32) as u32);
            self.csr.write(TDLEN + at, ring.bytes);
            self.csr.write(TDH + at, 0);
            self.csr.write(TDT + at, 0);
            // Thresholds in descriptors, and every finished descriptor written back.
            let set = 1 << 24 | 1 << 16 | if self.is_82574() { 1 << 22 } else { 0 };
            self.csr.modify(TXDCTL + at, 0x3f << 16, set)?;
        }
        self.csr.write(TIDV, 0);
        self.csr.write(TADV, 0);
        // IPGT 8 on copper, 9 on fibre; IPGR1 8, IPGR2 6 (what IEEE 802.3 asks of these MACs; manual 13.4.34).
        let ipgt = if self.part.medium == Medium::Copper { 8 } else { 9 };
        self.csr.write(TIPG, ipgt | 8 << 10 | 6 << 20);
        let multiple = if self.is_82574() { tctl::MULR } else { 0 };
        self.csr.write(
            TCTL,
            tctl::EN
                | tctl::PSP
                | tctl::COLLISION_THRESHOLD << tctl::CT_SHIFT
                | tctl::COLD_FULL << tctl::COLD_SHIFT
                | tctl::RTLC
                | multiple,
        );
        Ok(())
    }

    fn program_receive(&mut self, settings: &Settings, rings: &[RingAddress]) -> Result<(), NicError> {
        for (queue, ring) in (0u32..).zip(rings) {
            let at = queue * QUEUE;
            self.csr.write(RDBAL + at, ring.iova as u32);
            self.csr.write(RDBAH + at, (ring.iova >> 32) as u32);
            self.csr.write(RDLEN + at, ring.bytes);
            self.csr.write(RDH + at, 0);
            self.csr.write(RDT + at, 0);
        }
        // The receive delay timers can hang reception (erratum); ITR moderates.
        self.csr.write(RDTR, 0);
        self.csr.write(RADV, 0);
        self.csr.write(RSRPD, 0);
        let interval = (settings.moderation.nanos() / 256).min(0xffff) as u32;
        self.csr.write(ITR, interval);
        if self.is_82574() {
            for vector in 0..5 {
                self.csr.write(EITR + 4 * vector, interval);
            }
        }
        self.csr.write(RCTL, self.receive_control(settings));
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
        let (code, extended) = match settings.receive_buffer {
            16384 => (1, true),
            8192 => (2, true),
            4096 => (3, true),
            1024 => (1, false),
            512 => (2, false),
            256 => (3, false),
            _ => (0, false),
        };
        value | code << rctl::BSIZE_SHIFT | if extended { rctl::BSEX } else { 0 }
    }

    /// Writes the receive control register if it changes.
    pub(super) fn update_rctl(&mut self, settings: &Settings) -> Result<(), NicError> {
        let value = self.receive_control(settings);
        let now = self.csr.read(RCTL)?;
        if now & !rctl::LBM != value {
            self.csr.write(RCTL, value | now & rctl::LBM);
            self.csr.flush()?;
        }
        Ok(())
    }

    /// Checksums on receive, tags, hashing.
    pub(super) fn program_offloads(&mut self, settings: &Settings) -> Result<(), NicError> {
        let tags = settings.features.contains(Features::RX_VLAN);
        self.csr.modify(CTRL, ctrl::VME, if tags { ctrl::VME } else { 0 })?;
        let mut value = 0;
        if settings.features.contains(Features::RX_CHECKSUM) {
            value |= rxcsum::IPOFL | rxcsum::TUOFL;
        }
        if self.is_82574() {
            // The hash takes the place of the raw packet checksum.
            value |= rxcsum::PCSD;
            self.program_rss(settings);
        }
        self.csr.write(RXCSUM, value);
        Ok(())
    }

    /// Ends all DMA; see the order in `hw` manuals 14.4: mask, receive off, transmit off, wait, reset.
    pub(super) fn shut_down(&mut self) -> Result<(), NicError> {
        self.csr.write(IMC, u32::MAX);
        self.csr.flush()?;
        let value = self.csr.read(RCTL)?;
        self.csr.write(RCTL, value & !rctl::EN);
        self.csr.flush()?;
        let value = self.csr.read(TCTL)?;
        self.csr.write(TCTL, value & !tctl::EN);
        self.csr.flush()?;
        // The reset waits for a frame in flight, and only after it is memory given back.
        self.reset()?;
        if self.is_82574() {
            self.csr.modify(CTRL_EXT, ctrl_ext::DRV_LOAD, 0)?;
        }
        Ok(())
    }
}
