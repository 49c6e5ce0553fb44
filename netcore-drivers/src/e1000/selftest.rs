//! Self test: registers, and the loop through the PHY.

use super::regs::{CTRL, FCAH, FCAL, FCRTH, FCT, FCTTV, MTA, RDBAH, RDLEN, TDBAH, TDLEN, VET, ctrl};
use super::{Family, Format, Medium};
use crate::error::NicError;
use crate::nic::phy::bmcr;
use alloc::format;
use core::time::Duration;

/// Registers that hold what is written to them, and which bits (Linux: `e1000_reg_test`).
const HOLDING: &[(&str, u32, u32)] = &[
    ("FCAL", FCAL, 0xffff_ffff),
    ("FCAH", FCAH, 0x0000_ffff),
    ("FCT", FCT, 0x0000_ffff),
    ("VET", VET, 0x0000_ffff),
    ("FCTTV", FCTTV, 0x0000_ffff),
    ("FCRTH", FCRTH, 0x0000_fff8),
    ("RDBAH", RDBAH, 0xffff_ffff),
    ("RDLEN", RDLEN, 0x000f_ff80),
    ("TDBAH", TDBAH, 0xffff_ffff),
    ("TDLEN", TDLEN, 0x000f_ff80),
    ("MTA[0]", MTA, 0xffff_ffff),
    ("MTA[127]", MTA + 127 * 4, 0xffff_ffff),
];

const PATTERNS: [u32; 4] = [0x5a5a_5a5a, 0xa5a5_a5a5, 0x0000_0000, 0xffff_ffff];

impl<F: Format> Family<F> {
    pub(super) fn registers_hold(&mut self) -> Result<(), NicError> {
        for &(name, offset, mask) in HOLDING {
            let before = self.csr.read(offset)?;
            for pattern in PATTERNS {
                self.csr.write(offset, pattern & mask);
                let read = self.csr.read(offset)? & mask;
                if read != pattern & mask {
                    let message = format!("{name} holds {read:#010x} after {:#010x} was written", pattern & mask);
                    return Err(NicError::Io { what: "register test", message });
                }
            }
            self.csr.write(offset, before);
        }
        self.csr.flush()
    }

    /// Copper: the PHY returns what it is given, at 1000 Mbit/s full duplex.
    pub(super) fn loop_back(&mut self, on: bool) -> Result<(), NicError> {
        if self.part.medium != Medium::Copper {
            return Err(NicError::Unsupported { what: "loopback on fibre" });
        }
        if on {
            self.write_phy(bmcr::REGISTER, bmcr::FULL_DUPLEX | bmcr::SPEED_1000 | bmcr::LOOPBACK)?;
            let forced = ctrl::FRCSPD | ctrl::FRCDPX | ctrl::SPEED_1000 | ctrl::FD | ctrl::SLU;
            self.csr.modify(CTRL, ctrl::SPEED | ctrl::ILOS, forced)?;
            self.bus.sleep(Duration::from_millis(1));
        } else {
            self.csr.modify(CTRL, ctrl::FRCSPD | ctrl::FRCDPX, 0)?;
            let command = bmcr::AUTONEGOTIATE | bmcr::RESTART | bmcr::FULL_DUPLEX | bmcr::SPEED_1000;
            self.write_phy(bmcr::REGISTER, command)?;
        }
        self.csr.flush()
    }
}
