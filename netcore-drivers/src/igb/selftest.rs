//! Self test of the registers.

use super::Igb;
use super::regs::{FCAH, FCAL, FCRTH, FCT, FCTTV, MTA, RETA, RSSRK, VET, VFTA, receive_queue, rx, transmit_queue, tx};
use crate::error::NicError;
use alloc::format;

/// Registers that hold what is written to them, and which bits (Linux: `reg_test_82576`).
const HOLDING: &[(&str, u32, u32)] = &[
    ("FCAL", FCAL, 0xffff_ffff),
    ("FCAH", FCAH, 0x0000_ffff),
    ("FCT", FCT, 0x0000_ffff),
    ("VET", VET, 0xffff_ffff),
    ("FCTTV", FCTTV, 0x0000_ffff),
    ("FCRTH", FCRTH, 0x0000_fff0),
    ("RDBAL", receive_queue(0) + rx::RDBAL, 0xffff_ff80),
    ("RDBAH", receive_queue(0) + rx::RDBAH, 0xffff_ffff),
    ("RDLEN", receive_queue(0) + rx::RDLEN, 0x000f_ff80),
    ("TDBAL", transmit_queue(0) + tx::TDBAL, 0xffff_ff80),
    ("TDBAH", transmit_queue(0) + tx::TDBAH, 0xffff_ffff),
    ("TDLEN", transmit_queue(0) + tx::TDLEN, 0x000f_ff80),
    ("RETA[0]", RETA, 0x0f0f_0f0f),
    ("RSSRK[0]", RSSRK, 0xffff_ffff),
    ("MTA[0]", MTA, 0xffff_ffff),
    ("MTA[127]", MTA + 127 * 4, 0xffff_ffff),
    ("VFTA[127]", VFTA + 127 * 4, 0xffff_ffff),
];

const PATTERNS: [u32; 4] = [0x5a5a_5a5a, 0xa5a5_a5a5, 0x0000_0000, 0xffff_ffff];

impl Igb {
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
}
