//! Non-volatile memory: what its words mean in every family.

use crate::error::NicError;
use netcore::MacAddress;

/// What words 0x00 to 0x3f add up to.
pub const CHECKSUM: u16 = 0xbaba;
/// Words that the checksum covers.
pub const CHECKED_WORDS: u16 = 0x40;
/// Word of the checksum.
pub const CHECKSUM_WORD: u16 = 0x3f;

/// Checks the checksum over words 0x00 to 0x3f.
///
/// # Errors
/// [`NicError::NvmChecksum`]; whatever `read` fails with.
pub fn check(mut read: impl FnMut(u16) -> Result<u16, NicError>) -> Result<(), NicError> {
    let mut sum = 0u16;
    for word in 0..CHECKED_WORDS {
        sum = sum.wrapping_add(read(word)?);
    }
    if sum == CHECKSUM { Ok(()) } else { Err(NicError::NvmChecksum { sum }) }
}

/// The station address in words 0 to 2, low byte first. `port` is the number of the port on parts that share one NVM
/// between two: the second differs in the lowest bit of the last byte.
///
/// # Errors
/// [`NicError::NvmMac`] if it is a group address or zero; whatever `read` fails with.
pub fn mac(port: u8, mut read: impl FnMut(u16) -> Result<u16, NicError>) -> Result<MacAddress, NicError> {
    let mut bytes = [0; 6];
    for word in 0..3 {
        let [low, high] = read(word)?.to_le_bytes();
        bytes[usize::from(word) * 2] = low;
        bytes[usize::from(word) * 2 + 1] = high;
    }
    bytes[5] ^= port & 1;
    let mac = MacAddress(bytes);
    if mac.is_valid_station() { Ok(mac) } else { Err(NicError::NvmMac { mac }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_word_makes_the_sum_baba() {
        let mut words = [0x1234u16; 64];
        words[63] = CHECKSUM.wrapping_sub(0x1234u16.wrapping_mul(63));
        assert_eq!(check(|w| Ok(words[usize::from(w)])), Ok(()));
        words[5] += 1;
        assert_eq!(check(|w| Ok(words[usize::from(w)])), Err(NicError::NvmChecksum { sum: 0xbabb }));
    }

    #[test]
    fn the_second_port_differs_in_the_last_bit() {
        let words = [0x5452, 0x1200, 0x5634];
        let read = |w: u16| Ok(words[usize::from(w)]);
        assert_eq!(mac(0, read).unwrap().to_string(), "52:54:00:12:34:56");
        assert_eq!(mac(1, read).unwrap().to_string(), "52:54:00:12:34:57");
        assert!(matches!(mac(0, |_| Ok(0)), Err(NicError::NvmMac { .. })));
    }

    use alloc::string::ToString;
}
