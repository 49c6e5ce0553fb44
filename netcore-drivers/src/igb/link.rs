//! The link: copper through the PHY, SerDes through the PCS; flow control.

use super::regs::{
    CTRL, CTRL_EXT, FCAH, FCAL, FCRTH, FCRTL, FCRTV, FCT, FCTTV, PBA, PCS_ANADV, PCS_CFG0, PCS_LCTL, PCS_LPAB,
    PCS_LSTAT, PHPM, RXPBS, SCTL, STATUS, ctrl, ctrl_ext, pcs, status,
};
use super::{Generation, Igb, Medium};
use crate::error::NicError;
use crate::nic::phy::{advertisement, anar, bmcr, pause_bits, resolve_pause};
use crate::nic::{FlowControl, LinkSettings, Settings};
use core::time::Duration;
use netcore::LinkState;
use netcore::driver::Duplex;

/// How long the partner is asked to pause, in 512 bit times.
const PAUSE_TIME: u32 = 0xffff;
/// PHPM: the PHY was told to give up its link.
const GO_LINKD: u32 = 1 << 5;
/// KiB by the code in RXPBS of the I350.
const RXPBS_I350: [u32; 11] = [36, 72, 144, 1, 2, 4, 8, 16, 35, 70, 140];
/// NVM word 3, bit 14: the SerDes does not negotiate (82575, 82576).
const NVM_COMPATIBILITY: u16 = 3;
const NVM_NO_NEGOTIATION: u16 = 1 << 14;

/// What the link code remembers.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct State {
    up: bool,
    /// SerDes: it negotiates.
    negotiates: bool,
    /// What flow control was resolved to.
    flow_control: FlowControl,
}

impl Igb {
    /// What the two sides agreed on about pause frames.
    pub const fn flow_control(&self) -> FlowControl {
        self.link.flow_control
    }

    /// Bytes of the receive packet buffer.
    fn receive_buffer_bytes(&self) -> Result<u32, NicError> {
        let kib = match self.part.generation {
            Generation::I82575 => self.csr.read(PBA)? & 0xffff,
            Generation::I82576 => self.csr.read(RXPBS)? & 0x7f,
            Generation::I350 => {
                let code = self.csr.read(RXPBS)? & 0xf;
                RXPBS_I350.get(code as usize).copied().unwrap_or(36)
            }
            Generation::I210 => 34,
        };
        Ok(kib * 1024)
    }

    /// Programs flow control addresses and watermarks.
    pub(super) fn program_flow_control(&mut self, settings: &Settings) -> Result<(), NicError> {
        self.csr.write(FCT, 0x8808);
        self.csr.write(FCAH, 0x0100);
        self.csr.write(FCAL, 0x00c2_8001);
        self.csr.write(FCTTV, PAUSE_TIME);
        if settings.flow_control.sends() {
            // XOFF at nine tenths, or with room for two frames; XON 16 bytes below it (what Intel's drivers use).
            let bytes = self.receive_buffer_bytes()?;
            let frame = settings.max_wire_frame() as u32;
            let high = (bytes / 10 * 9).min(bytes.saturating_sub(2 * frame)) & 0xfff0;
            self.csr.write(FCRTL, high.saturating_sub(16) | 1 << 31);
            self.csr.write(FCRTH, high);
            // A partner that is still to pause is told again half way through.
            self.csr.write(FCRTV, PAUSE_TIME / 2);
        } else {
            self.csr.write(FCRTL, 0);
            self.csr.write(FCRTH, 0);
        }
        Ok(())
    }

    /// Starts to bring the link up; [`Igb::check_link`] sees it through.
    pub(super) fn start_link(&mut self, settings: &Settings) -> Result<(), NicError> {
        self.link = State::default();
        match self.medium {
            Medium::Copper => self.start_copper(settings),
            Medium::Serdes => self.start_serdes(settings),
        }
    }

    fn start_copper(&mut self, settings: &Settings) -> Result<(), NicError> {
        if self.part.generation == Generation::I350 {
            self.csr.modify(PHPM, GO_LINKD, 0)?;
        }
        // The MAC takes speed and duplex from the PHY.
        self.csr.modify(CTRL, ctrl::FRCSPD | ctrl::FRCDPX, ctrl::SLU)?;
        match settings.link {
            LinkSettings::Negotiate(advertise) => {
                self.set_crossover(true)?;
                self.negotiate(advertisement(advertise, settings.flow_control), advertise.full_1000)
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
        self.csr.modify(CTRL, ctrl::SPEED | ctrl::FD, forced)?;
        self.set_crossover(false)?;
        self.write_phy(bmcr::REGISTER, phy_speed | if full { bmcr::FULL_DUPLEX } else { 0 })?;
        let pause = if full { settings.flow_control } else { FlowControl::None };
        self.apply_pause(pause)
    }

    fn start_serdes(&mut self, settings: &Settings) -> Result<(), NicError> {
        // Not looped back; the module has power.
        self.csr.write(SCTL, 0x0400);
        self.csr.modify(CTRL_EXT, ctrl_ext::SDP3_DATA, 0)?;
        let pins = if self.part.generation <= Generation::I82576 { ctrl::SWDPIN0 | ctrl::SWDPIN1 } else { 0 };
        let forced = ctrl::SLU | ctrl::SPEED_1000 | ctrl::FRCSPD | ctrl::FD | ctrl::FRCDPX;
        self.csr.modify(CTRL, ctrl::SPEED, forced | pins)?;
        let negotiates = self.serdes_negotiates(settings)?;
        let mut value = self.csr.read(PCS_LCTL)?
            & !(pcs::LCTL_AN_ENABLE
                | pcs::LCTL_AN_TIMEOUT
                | pcs::LCTL_FLV
                | pcs::LCTL_FSD
                | pcs::LCTL_FORCE_LINK
                | pcs::LCTL_FORCE_FC);
        value |= pcs::LCTL_FSV_1000 | pcs::LCTL_FDV;
        if negotiates {
            let pause = pause_bits(settings.flow_control);
            let offer = pcs::FULL_DUPLEX
                | if pause & anar::PAUSE != 0 { pcs::PAUSE } else { 0 }
                | if pause & anar::ASYMMETRIC != 0 { pcs::ASM } else { 0 };
            self.csr.write(PCS_ANADV, offer);
            value |= pcs::LCTL_AN_ENABLE | pcs::LCTL_AN_RESTART;
        } else {
            value |= pcs::LCTL_FSD | pcs::LCTL_FORCE_FC;
            self.apply_pause(settings.flow_control)?;
        }
        self.link.negotiates = negotiates;
        self.csr.modify(PCS_CFG0, 0, pcs::CFG0_EN)?;
        self.csr.write(PCS_LCTL, value);
        self.csr.flush()
    }

    fn serdes_negotiates(&mut self, settings: &Settings) -> Result<bool, NicError> {
        match settings.link {
            LinkSettings::Forced { speed_mbps: 1000, duplex: Duplex::Full } => Ok(false),
            LinkSettings::Forced { speed_mbps, .. } => Err(NicError::OutOfRange {
                what: "forced speed on SerDes, Mbit/s",
                value: speed_mbps.into(),
                allowed: "1000 in full duplex",
            }),
            LinkSettings::Negotiate(_) if self.part.generation <= Generation::I82576 => {
                Ok(self.read_nvm(NVM_COMPATIBILITY)? & NVM_NO_NEGOTIATION == 0)
            }
            LinkSettings::Negotiate(_) => Ok(true),
        }
    }

    /// Looks at the link and does what a change needs.
    pub(super) fn check_link(&mut self, settings: &Settings) -> Result<LinkState, NicError> {
        let state = match self.medium {
            Medium::Copper => {
                let state = self.csr.read(STATUS)?;
                (state & status::LU != 0).then(|| link_state(state))
            }
            Medium::Serdes => {
                let state = self.csr.read(PCS_LSTAT)?;
                let both = pcs::LSTAT_LINK_OK | pcs::LSTAT_SYNC;
                (state & both == both).then(|| LinkState::up(1000))
            }
        };
        if let Some(state) = state
            && !self.link.up
        {
            self.link_came_up(settings, state)?;
        }
        self.link.up = state.is_some();
        Ok(state.unwrap_or(LinkState::DOWN))
    }

    fn link_came_up(&mut self, settings: &Settings, state: LinkState) -> Result<(), NicError> {
        let pause = match (self.medium, settings.link) {
            _ if state.duplex == Duplex::Half => FlowControl::None,
            (Medium::Copper, LinkSettings::Negotiate(_)) => {
                let local = self.read_phy(anar::REGISTER)?;
                let partner = self.read_phy(anar::PARTNER)?;
                resolve_pause(settings.flow_control, local, partner)
            }
            (Medium::Serdes, _) if self.link.negotiates => {
                if self.csr.read(PCS_LSTAT)? & pcs::LSTAT_AN_COMPLETE == 0 {
                    FlowControl::None
                } else {
                    let word = self.csr.read(PCS_LPAB)?;
                    let partner = if word & pcs::PAUSE != 0 { anar::PAUSE } else { 0 }
                        | if word & pcs::ASM != 0 { anar::ASYMMETRIC } else { 0 };
                    resolve_pause(settings.flow_control, pause_bits(settings.flow_control), partner)
                }
            }
            _ => settings.flow_control,
        };
        self.apply_pause(pause)
    }

    fn apply_pause(&mut self, pause: FlowControl) -> Result<(), NicError> {
        let bits = if pause.obeys() { ctrl::RFCE } else { 0 } | if pause.sends() { ctrl::TFCE } else { 0 };
        self.csr.modify(CTRL, ctrl::RFCE | ctrl::TFCE, bits)?;
        self.link.flow_control = pause;
        Ok(())
    }

    /// The PHY, or the PCS, returns what it is given, at 1000 Mbit/s full duplex.
    pub(super) fn loop_back(&mut self, on: bool) -> Result<(), NicError> {
        let forced = ctrl::FRCSPD | ctrl::FRCDPX | ctrl::SPEED_1000 | ctrl::FD | ctrl::SLU;
        match (self.medium, on) {
            (Medium::Copper, true) => {
                self.write_phy(bmcr::REGISTER, bmcr::FULL_DUPLEX | bmcr::SPEED_1000 | bmcr::LOOPBACK)?;
                self.csr.modify(CTRL, ctrl::SPEED, forced)?;
                self.bus.sleep(Duration::from_millis(1));
            }
            (Medium::Copper, false) => {
                self.csr.modify(CTRL, ctrl::FRCSPD | ctrl::FRCDPX, 0)?;
                let command = bmcr::AUTONEGOTIATE | bmcr::RESTART | bmcr::FULL_DUPLEX | bmcr::SPEED_1000;
                self.write_phy(bmcr::REGISTER, command)?;
            }
            (Medium::Serdes, on) => {
                self.csr.write(SCTL, if on { 0x0410 } else { 0x0400 });
            }
        }
        self.csr.flush()
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
