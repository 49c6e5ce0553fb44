//! The link: copper through the PHY, fibre and SerDes through TXCW and RXCW; flow control.

use super::phy::marvell;
use super::regs::{
    CTRL, FCAH, FCAL, FCRTH, FCRTL, FCT, FCTTV, RXCW, STATUS, TCTL, TXCW, ctrl, rxcw, status, tctl, txcw,
};
use super::{Family, Format, Medium};
use crate::error::NicError;
use crate::nic::phy::{advertisement, anar, bmcr, gigabit, pause_bits, resolve_pause};
use crate::nic::{FlowControl, LinkSettings, Settings};
use core::time::Duration;
use netcore::driver::Duplex;
use netcore::{Instant, LinkState};

/// A fibre partner that has not answered after this long does not negotiate.
const FIBRE_PATIENCE: Duration = Duration::from_millis(500);
/// Time between looks for the hang of the 82574's PHY.
const HANG_INTERVAL: Duration = Duration::from_secs(2);
/// Looks in a row with full error counters that make it a hang.
const HANG_LOOKS: u8 = 2;

/// What the link code remembers.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct State {
    up: bool,
    /// Fibre: when negotiation started; `None` before the first look.
    since: Option<Instant>,
    /// Fibre: the link is forced, because the partner did not negotiate.
    forced: bool,
    /// What flow control was resolved to.
    flow_control: FlowControl,
    hang_due: Option<Instant>,
    hang_looks: u8,
}

impl<F: Format> Family<F> {
    /// What the two sides agreed on about pause frames.
    pub const fn flow_control(&self) -> FlowControl {
        self.link.flow_control
    }

    /// Programs flow control addresses and watermarks for a receive buffer of `rx_kib` KiB.
    pub(super) fn program_flow_control(&mut self, settings: &Settings, rx_kib: u32) {
        self.csr.write(FCT, 0x8808);
        self.csr.write(FCAH, 0x0100);
        self.csr.write(FCAL, 0x00c2_8001);
        self.csr.write(FCTTV, 0xffff);
        if settings.flow_control.sends() {
            // XOFF at nine tenths, or with room for one frame; XON right below it (what Linux's driver uses).
            let bytes = rx_kib * 1024;
            let frame = settings.max_wire_frame() as u32;
            let high = (bytes / 10 * 9).min(bytes.saturating_sub(frame)) & 0xfff8;
            self.csr.write(FCRTL, high.saturating_sub(8) | 1 << 31);
            self.csr.write(FCRTH, high);
        } else {
            self.csr.write(FCRTL, 0);
            self.csr.write(FCRTH, 0);
        }
    }

    /// Starts to bring the link up; [`Family::check_link`] sees it through.
    pub(super) fn start_link(&mut self, settings: &Settings) -> Result<(), NicError> {
        self.link = State::default();
        match self.part.medium {
            Medium::Copper => self.start_copper(settings),
            Medium::Fibre | Medium::Serdes => self.start_fibre(settings),
        }
    }

    fn start_copper(&mut self, settings: &Settings) -> Result<(), NicError> {
        // The MAC takes speed and duplex from the PHY.
        self.csr.modify(CTRL, ctrl::FRCSPD | ctrl::FRCDPX | ctrl::ILOS, ctrl::SLU)?;
        self.prepare_phy()?;
        match settings.link {
            LinkSettings::Negotiate(advertise) => {
                let offer = advertisement(advertise, settings.flow_control);
                self.negotiate(offer, advertise.full_1000)
            }
            LinkSettings::Forced { speed_mbps, duplex } => self.force_copper(settings, speed_mbps, duplex),
        }
    }

    fn force_copper(&mut self, settings: &Settings, speed_mbps: u32, duplex: Duplex) -> Result<(), NicError> {
        let (phy_speed, mac_speed) = match speed_mbps {
            10 => (0, 0),
            100 => (bmcr::SPEED_100, ctrl::SPEED_100),
            _ => {
                return Err(NicError::OutOfRange {
                    what: "forced speed on copper, Mbit/s",
                    value: speed_mbps.into(),
                    allowed: "10 or 100; 1000 is negotiated",
                });
            }
        };
        let full = duplex == Duplex::Full;
        let forced = ctrl::FRCSPD | ctrl::FRCDPX | ctrl::SLU | mac_speed | if full { ctrl::FD } else { 0 };
        self.csr.modify(CTRL, ctrl::SPEED | ctrl::ASDE | ctrl::FD, forced)?;
        // Without negotiation the crossover cannot be found automatically (88E1011S datasheet 2.2.5).
        let control = self.read_phy(marvell::PSCR)? & !marvell::PSCR_MDIX_AUTO;
        self.write_phy(marvell::PSCR, control)?;
        let command = phy_speed | if full { bmcr::FULL_DUPLEX } else { 0 } | bmcr::RESET;
        self.write_phy(bmcr::REGISTER, command)?;
        self.bus.sleep(Duration::from_micros(1));
        let pause = if full { settings.flow_control } else { FlowControl::None };
        self.apply_pause(pause)
    }

    fn start_fibre(&mut self, settings: &Settings) -> Result<(), NicError> {
        if self.part.medium == Medium::Serdes && self.part.generation.is_rev3() {
            // Output amplitude from NVM word 6 into register 26 of the SerDes.
            let amplitude = self.read_nvm(6)?;
            if amplitude != 0xffff {
                self.write_phy(26, amplitude & 0xf)?;
            }
        }
        self.csr.modify(CTRL, ctrl::LRST | ctrl::FRCSPD | ctrl::FRCDPX | ctrl::SLU, 0)?;
        self.csr.write(TXCW, self.fibre_offer(settings) | txcw::ANE);
        self.csr.flush()?;
        self.bus.sleep(Duration::from_millis(1));
        Ok(())
    }

    fn fibre_offer(&self, settings: &Settings) -> u32 {
        let pause = pause_bits(settings.flow_control);
        let pause_bit = if pause & anar::PAUSE != 0 { txcw::PAUSE } else { 0 };
        let asm_bit = if pause & anar::ASYMMETRIC != 0 { txcw::ASM } else { 0 };
        txcw::FD | pause_bit | asm_bit
    }

    /// Looks at the link and does what a change needs.
    pub(super) fn check_link(&mut self, settings: &Settings, now: Instant) -> Result<LinkState, NicError> {
        if self.part.medium != Medium::Copper {
            self.watch_fibre(settings, now)?;
        }
        let state = self.csr.read(STATUS)?;
        let up = state & status::LU != 0;
        if up && !self.link.up {
            self.link_came_up(settings, state)?;
        }
        self.link.up = up;
        if !up {
            return Ok(LinkState::DOWN);
        }
        if self.is_82574() {
            self.watch_phy(state, now)?;
        }
        Ok(link_state(state))
    }

    fn link_came_up(&mut self, settings: &Settings, state: u32) -> Result<(), NicError> {
        let half = state & status::FD == 0;
        let distance = if half { tctl::COLD_HALF } else { tctl::COLD_FULL };
        self.csr.modify(TCTL, tctl::COLD, distance << tctl::COLD_SHIFT)?;
        let pause = match (self.part.medium, settings.link) {
            _ if half => FlowControl::None,
            (Medium::Copper, LinkSettings::Negotiate(_)) => {
                let local = self.read_phy(anar::REGISTER)?;
                let partner = self.read_phy(anar::PARTNER)?;
                resolve_pause(settings.flow_control, local, partner)
            }
            (Medium::Copper, LinkSettings::Forced { .. }) => settings.flow_control,
            (Medium::Fibre | Medium::Serdes, _) if self.link.forced => settings.flow_control,
            (Medium::Fibre | Medium::Serdes, _) => {
                let local = pause_bits(settings.flow_control);
                let word = self.csr.read(RXCW)?;
                let partner = if word & txcw::PAUSE != 0 { anar::PAUSE } else { 0 }
                    | if word & txcw::ASM != 0 { anar::ASYMMETRIC } else { 0 };
                resolve_pause(settings.flow_control, local, partner)
            }
        };
        self.apply_pause(pause)
    }

    fn apply_pause(&mut self, pause: FlowControl) -> Result<(), NicError> {
        let bits = if pause.obeys() { ctrl::RFCE } else { 0 } | if pause.sends() { ctrl::TFCE } else { 0 };
        self.csr.modify(CTRL, ctrl::RFCE | ctrl::TFCE, bits)?;
        self.link.flow_control = pause;
        Ok(())
    }

    /// Fibre and SerDes: forces the link if the partner does not negotiate, and goes back to negotiation when it does.
    fn watch_fibre(&mut self, settings: &Settings, now: Instant) -> Result<(), NicError> {
        let state = self.csr.read(STATUS)?;
        let word = self.csr.read(RXCW)?;
        // A module says through pin 1 that it sees light; a backplane has no such pin.
        let signal = self.part.medium == Medium::Serdes || self.csr.read(CTRL)? & ctrl::SWDPIN1 != 0;
        if self.link.forced {
            if word & rxcw::C != 0 {
                self.link.forced = false;
                self.link.since = Some(now);
                self.csr.write(TXCW, self.fibre_offer(settings) | txcw::ANE);
                self.csr.modify(CTRL, ctrl::SLU | ctrl::FD, 0)?;
            }
            return Ok(());
        }
        if state & status::LU != 0 || !signal {
            self.link.since = None;
            return Ok(());
        }
        let since = *self.link.since.get_or_insert(now);
        if now - since >= FIBRE_PATIENCE && word & rxcw::C == 0 {
            self.link.forced = true;
            self.csr.write(TXCW, self.fibre_offer(settings));
            self.csr.modify(CTRL, 0, ctrl::SLU | ctrl::FD)?;
        }
        Ok(())
    }

    /// 82574: at 1000 Mbit/s the PHY can hang with both error counters full; only a reset of the PHY helps.
    fn watch_phy(&mut self, state: u32, now: Instant) -> Result<(), NicError> {
        if self.link.hang_due.is_some_and(|due| due > now) || state & status::SPEED < status::SPEED_1000 {
            return Ok(());
        }
        self.link.hang_due = Some(now + HANG_INTERVAL);
        let errors = self.read_phy(marvell::RECEIVE_ERRORS)?;
        let idle = self.read_phy(gigabit::STATUS)? & 0xff;
        if errors == 0xffff && idle == 0xff {
            self.link.hang_looks += 1;
            if self.link.hang_looks >= HANG_LOOKS {
                self.link.hang_looks = 0;
                return self.reset_phy();
            }
        } else {
            self.link.hang_looks = 0;
        }
        Ok(())
    }
}

fn link_state(state: u32) -> LinkState {
    let speed = match state & status::SPEED {
        0 => 10,
        status::SPEED_100 => 100,
        _ => 1000,
    };
    let duplex = if state & status::FD != 0 { Duplex::Full } else { Duplex::Half };
    LinkState { up: true, speed_mbps: Some(speed), duplex }
}
