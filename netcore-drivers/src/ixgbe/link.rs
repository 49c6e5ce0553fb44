//! The link: serial with a module, backplane, copper; flow control.

use super::regs::{
    ANLP1, AUTOC, AUTOC2, ESDP, FCCFG, FCRTH, FCRTL, FCRTV, FCTTV, LINKS, LINKS2, MFLCN, MMNGC, PCS1GANA, PCS1GANLP,
    PCS1GLCTL, PCS1GLSTA, autoc, autoc2, esdp, links, pcs1g, sync,
};
use super::reset::tolerate;
use super::{Generation, Ixgbe, Medium, Module};
use crate::bus::wait_until;
use crate::error::NicError;
use crate::nic::phy::{anar, pause_bits, resolve_pause};
use crate::nic::{FlowControl, LinkSettings, Settings};
use core::time::Duration;
use netcore::{Instant, LinkState};

/// How long the partner is asked to pause, in 512 bit times.
const PAUSE_TIME: u32 = 0xffff;
/// A speed of two that has brought no link after this long gives way to the other.
const PATIENCE: Duration = Duration::from_millis(1000);
/// NVM word that points at firmware's settings.
const FIRMWARE: u16 = 0x0f;
/// Management owns the link.
const VETO: u32 = 1;
/// Bit of the module in LINKS2: negotiation is possible.
const PARTNER_NEGOTIATES: u32 = 1 << 6;
/// MFLCN: drop pause frames instead of passing them on; obey them.
const DISCARD_PAUSE: u32 = 1 << 1;
const OBEY_PAUSE: u32 = 1 << 3;
const SEND_PAUSE: u32 = 1 << 3;

/// What the link code remembers.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct State {
    up: bool,
    module: Option<Module>,
    /// The speed that is tried, Mbit/s.
    trying: u32,
    since: Option<Instant>,
    /// What flow control was resolved to.
    flow_control: FlowControl,
}

/// Speeds that the settings allow: 10 Gbit/s, 1 Gbit/s.
fn wanted(settings: &Settings) -> Result<(bool, bool), NicError> {
    match settings.link {
        LinkSettings::Negotiate(advertise) => Ok((advertise.full_10000, advertise.full_1000)),
        LinkSettings::Forced { speed_mbps: 10_000, .. } => Ok((true, false)),
        LinkSettings::Forced { speed_mbps: 1000, .. } => Ok((false, true)),
        LinkSettings::Forced { speed_mbps, .. } => {
            Err(NicError::OutOfRange { what: "speed, Mbit/s", value: speed_mbps.into(), allowed: "1000 or 10000" })
        }
    }
}

impl Ixgbe {
    /// What the two sides agreed on about pause frames.
    pub const fn flow_control(&self) -> FlowControl {
        self.link.flow_control
    }

    /// What is in the cage, as far as it was looked at.
    pub const fn module(&self) -> Option<Module> {
        self.link.module
    }

    /// Watermarks in KiB for frames of `frame` bytes and a buffer of `kib`: when the partner is stopped, and when it may go on.
    /// The room above the first takes what is on its way until the partner has stopped (82599 datasheet 3.7.7.3.2).
    pub(super) fn watermarks(&self, frame: u32, kib: u32) -> (u32, u32) {
        let interface = match self.part.generation {
            Generation::I82599 => 2 * 18_944 + 6144,
            // 10GBASE-T keeps more on its way.
            Generation::X540 => 2 * (8192 + 4096 + 25_600) + 6144,
        };
        let delay = 36 * (8 * frame + 672 + 2 * 5556 + interface) / 25 + 1 + 2 * 8 * frame;
        let high = kib.saturating_sub(delay.div_ceil(8192));
        let low = (2 * (2 * 8 * frame + 36 * 10_000 / 25 + 1)).div_ceil(8192);
        (high, low.min(high.saturating_sub(1)))
    }

    /// Programs the watermarks for a buffer of `kib`. Sending and obeying is switched when the link comes up.
    pub(super) fn program_watermarks(&mut self, settings: &Settings, kib: u32) {
        for n in 0..4 {
            self.csr.write(FCTTV + 4 * n, PAUSE_TIME | PAUSE_TIME << 16);
        }
        // A partner that is still to pause is told again half way through.
        self.csr.write(FCRTV, PAUSE_TIME / 2);
        let (high, low) = self.watermarks(settings.max_wire_frame() as u32, kib);
        for n in 0..8 {
            let (first, on) = (n == 0, settings.flow_control.sends());
            if first && on && high > low {
                self.csr.write(FCRTL, low << 10 | 1 << 31);
                self.csr.write(FCRTH, high << 10 | 1 << 31);
            } else {
                self.csr.write(FCRTL + 4 * n, 0);
                // Zero would stop the internal switch.
                self.csr.write(FCRTH + 4 * n, (kib * 1024).saturating_sub(0x6000) & 0x7_ffe0);
            }
        }
        self.csr.write(MFLCN, DISCARD_PAUSE);
        self.csr.write(FCCFG, 0);
    }

    fn apply_pause(&mut self, pause: FlowControl) {
        self.csr.write(MFLCN, DISCARD_PAUSE | if pause.obeys() { OBEY_PAUSE } else { 0 });
        self.csr.write(FCCFG, if pause.sends() { SEND_PAUSE } else { 0 });
        self.link.flow_control = pause;
    }

    /// Starts to bring the link up; [`Ixgbe::check_link`] sees it through.
    pub(super) fn start_link(&mut self, settings: &Settings) -> Result<(), NicError> {
        self.link = State::default();
        wanted(settings)
            .map(|_| ())
            .or_else(|error| if self.part.medium == Medium::Copper { Ok(()) } else { Err(error) })?;
        match self.part.medium {
            Medium::Copper => self.negotiate_copper(settings),
            Medium::SfpPlus => self.start_module(settings),
            Medium::Backplane => self.start_backplane(settings),
            Medium::Parallel => {
                let value = self.original_autoc | autoc::RESTART_AN;
                self.write_autoc(value)
            }
        }
    }

    fn start_backplane(&mut self, settings: &Settings) -> Result<(), NicError> {
        let (ten, one) = wanted(settings)?;
        let mut value =
            self.original_autoc & !(autoc::KR | autoc::KX | autoc::KX4 | autoc::SYM_PAUSE | autoc::ASM_PAUSE);
        if ten {
            value |= self.original_autoc & (autoc::KR | autoc::KX4);
        }
        if one {
            value |= self.original_autoc & autoc::KX;
        }
        let pause = pause_bits(settings.flow_control);
        value |= if pause & anar::PAUSE != 0 { autoc::SYM_PAUSE } else { 0 }
            | if pause & anar::ASYMMETRIC != 0 { autoc::ASM_PAUSE } else { 0 };
        self.write_autoc(value)
    }

    /// Looks at the cage and sets the link up for what is in it; an empty one is looked at again later.
    fn start_module(&mut self, settings: &Settings) -> Result<(), NicError> {
        let Some(module) = self.identify_module()? else { return Ok(()) };
        self.set_up_module(module)?;
        self.link.module = Some(module);
        let (ten, _) = wanted(settings)?;
        let first = if module == Module::Gigabit || !ten { 1000 } else { 10_000 };
        self.try_speed(settings, first)
    }

    fn try_speed(&mut self, settings: &Settings, mbps: u32) -> Result<(), NicError> {
        self.link.trying = mbps;
        self.link.since = None;
        let ten = mbps == 10_000;
        self.csr.modify(ESDP, esdp::SDP5, esdp::SDP5_DIR | if ten { esdp::SDP5 } else { 0 })?;
        if !ten {
            let pause = pause_bits(settings.flow_control);
            let bits = if pause & anar::PAUSE != 0 { pcs1g::SYM } else { 0 }
                | if pause & anar::ASYMMETRIC != 0 { pcs1g::ASM } else { 0 };
            self.csr.modify(PCS1GANA, pcs1g::SYM | pcs1g::ASM, bits)?;
            self.csr.modify(PCS1GLCTL, pcs1g::LOW_LINK_LATCH | pcs1g::FORCE, pcs1g::AN_TIMEOUT | pcs1g::AN_ENABLE)?;
        }
        let mode = if ten { autoc::LMS_10G_SERIAL } else { autoc::LMS_1G_AN };
        self.csr.modify(AUTOC2, autoc2::PMD_10G, autoc2::PMD_SFI)?;
        let value = self.original_autoc & !(autoc::LMS | autoc::PMD_1G_KX) | mode;
        self.write_autoc(value)?;
        self.flap_laser()
    }

    /// Off and on: the partner sees a loss of signal, and starts anew.
    fn flap_laser(&mut self) -> Result<(), NicError> {
        if self.csr.read(MMNGC)? & VETO != 0 {
            return Ok(());
        }
        self.csr.modify(ESDP, 0, esdp::SDP3 | esdp::SDP3_DIR)?;
        self.csr.flush()?;
        self.bus.sleep(Duration::from_micros(100));
        self.csr.modify(ESDP, esdp::SDP3, 0)?;
        self.csr.flush()
    }

    pub(super) fn laser_off(&mut self) -> Result<(), NicError> {
        if self.part.medium != Medium::SfpPlus || self.csr.read(MMNGC)? & VETO != 0 {
            return Ok(());
        }
        self.csr.modify(ESDP, 0, esdp::SDP3 | esdp::SDP3_DIR).map(|_| ())
    }

    /// Firmware changes the link state machine, too ("LESM").
    fn shares_autoc(&mut self) -> Result<bool, NicError> {
        let mut at = FIRMWARE;
        for offset in [2, 1] {
            let pointer = self.read_nvm(at)?;
            if pointer == 0 || pointer == 0xffff {
                return Ok(false);
            }
            at = pointer.wrapping_add(offset);
        }
        let state = self.read_nvm(at)?;
        Ok(state != 0xffff && state & 1 << 15 != 0)
    }

    /// Writes AUTOC and empties the pipeline behind it, which would keep the mode before.
    fn write_autoc(&mut self, value: u32) -> Result<(), NicError> {
        if self.csr.read(AUTOC2)? & autoc2::LINK_DISABLE != 0 {
            self.csr.modify(AUTOC2, autoc2::LINK_DISABLE, 0)?;
        }
        if self.shares_autoc()? {
            return self.holding(sync::MAC_CSR, |this| this.write_autoc_owned(value));
        }
        self.write_autoc_owned(value)
    }

    fn write_autoc_owned(&mut self, value: u32) -> Result<(), NicError> {
        let value = value | autoc::RESTART_AN;
        self.csr.write(AUTOC, value);
        // Into a mode of the other kind and back: the state machine is seen to run.
        self.csr.write(AUTOC, value ^ autoc::LMS_NEGOTIATES);
        let csr = &self.csr;
        let (limit, step) = (Duration::from_millis(40), Duration::from_millis(4));
        if value & autoc::LMS_NEGOTIATES == 0 {
            tolerate(wait_until(&mut *self.bus, "reset of the link pipeline", limit, step, || {
                Ok(csr.read(ANLP1)? >> 16 & 0xf != 0)
            }))?;
        }
        self.csr.write(AUTOC, value);
        self.csr.flush()
    }

    /// Looks at the link and does what a change needs. A module that was just put in takes some milliseconds.
    pub(super) fn check_link(&mut self, settings: &Settings, now: Instant) -> Result<LinkState, NicError> {
        if self.part.medium == Medium::SfpPlus {
            if !self.module_present()? {
                self.link.module = None;
                self.link.up = false;
                return Ok(LinkState::DOWN);
            }
            if self.link.module.is_none() {
                self.start_module(settings)?;
            }
        }
        self.csr.read(LINKS)?;
        let state = self.csr.read(LINKS)?;
        let up = state & links::UP != 0;
        if up && !self.link.up {
            self.link_came_up(settings, state)?;
        }
        self.link.up = up;
        if !up {
            self.try_other_speed(settings, now)?;
            return Ok(LinkState::DOWN);
        }
        let speed = match state >> links::SPEED_SHIFT & 3 {
            1 => 100,
            2 => 1000,
            _ => 10_000,
        };
        Ok(LinkState::up(speed))
    }

    /// Optics of two speeds do not negotiate: each is tried in turn.
    fn try_other_speed(&mut self, settings: &Settings, now: Instant) -> Result<(), NicError> {
        let Some(Module::Optical { also_1g: true }) = self.link.module else { return Ok(()) };
        if wanted(settings)? != (true, true) {
            return Ok(());
        }
        let since = *self.link.since.get_or_insert(now);
        if now >= since + PATIENCE {
            let other = if self.link.trying == 10_000 { 1000 } else { 10_000 };
            self.try_speed(settings, other)?;
        }
        Ok(())
    }

    fn link_came_up(&mut self, settings: &Settings, state: u32) -> Result<(), NicError> {
        let bits = |symmetric: bool, asymmetric: bool| {
            (if symmetric { anar::PAUSE } else { 0 }) | if asymmetric { anar::ASYMMETRIC } else { 0 }
        };
        let local = pause_bits(settings.flow_control);
        let partner = match self.part.medium {
            Medium::Copper => Some(self.copper_pause()?.1),
            Medium::Backplane
                if state & links::AN_COMPLETE != 0 && self.csr.read(LINKS2)? & PARTNER_NEGOTIATES != 0 =>
            {
                let word = self.csr.read(ANLP1)?;
                Some(bits(word & 1 << 10 != 0, word & 1 << 11 != 0))
            }
            Medium::SfpPlus if self.link.trying == 1000 => {
                let pcs = self.csr.read(PCS1GLSTA)?;
                if pcs & pcs1g::STA_COMPLETE != 0 && pcs & pcs1g::STA_TIMED_OUT == 0 {
                    let word = self.csr.read(PCS1GANLP)?;
                    Some(bits(word & pcs1g::SYM != 0, word & pcs1g::ASM != 0))
                } else {
                    None
                }
            }
            // Serial 10 Gbit/s does not negotiate: what was asked for is done.
            _ => None,
        };
        let pause = match partner {
            Some(partner) => resolve_pause(settings.flow_control, local, partner),
            None => settings.flow_control,
        };
        self.apply_pause(pause);
        self.csr.flush()
    }
}
