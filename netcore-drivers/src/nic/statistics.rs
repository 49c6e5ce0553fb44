//! Clear-on-read statistics registers into 64-bit counters that do not wrap.

use crate::mmio::Csr;
use alloc::vec::Vec;

/// How a statistics register is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Width {
    /// 32 bits at the offset.
    Low32,
    /// 64 bits: the low half at the offset, then the high half behind it. Reading the high half clears both, so it is read
    /// last (82545 manual 13.7: "the upper half … must be read after the lower half").
    Pair,
}

/// A statistics register and the name ethtool has for it.
#[derive(Clone, Copy, Debug)]
pub struct Register {
    /// ethtool's name.
    pub name: &'static str,
    /// Offset in BAR 0.
    pub offset: u32,
    /// How it is read.
    pub width: Width,
}

/// 64-bit sums of clear-on-read registers.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Sums {
    sums: Vec<u64>,
}

impl Sums {
    /// `n` sums of zero.
    pub fn new(n: usize) -> Self {
        Self { sums: alloc::vec![0; n] }
    }

    /// Adds to one sum; ignored if there is no such sum.
    pub fn add(&mut self, index: usize, value: u64) {
        if let Some(sum) = self.sums.get_mut(index) {
            *sum = sum.wrapping_add(value);
        }
    }

    /// One sum.
    pub fn get(&self, index: usize) -> u64 {
        self.sums.get(index).copied().unwrap_or(0)
    }

    /// Reads all registers, in order, and adds each to the sum of the same index. Nothing is added if the device is gone:
    /// all-ones reads are no counts.
    pub fn harvest(&mut self, csr: &Csr, registers: &[Register]) {
        for (index, register) in registers.iter().enumerate() {
            let Ok(low) = csr.read(register.offset) else { return };
            let value = match register.width {
                Width::Low32 => u64::from(low),
                Width::Pair => match csr.read(register.offset + 4) {
                    Ok(high) => u64::from(low) | u64::from(high) << 32,
                    Err(_) => return,
                },
            };
            self.add(index, value);
        }
    }
}
