//! Images of non-volatile memory.

use crate::nic::nvm::{CHECKSUM, CHECKSUM_WORD};
use netcore::MacAddress;
use std::vec::Vec;

/// `words` words of NVM with the station address at the front. All others are 0xffff, as in an empty part.
pub fn blank(words: usize, mac: MacAddress) -> Vec<u16> {
    let mut image = vec![0xffff; words.max(64)];
    for (word, pair) in image.iter_mut().zip(mac.0.chunks_exact(2)) {
        *word = u16::from_le_bytes([pair[0], pair[1]]);
    }
    image
}

/// Writes the checksum word.
pub fn seal(image: &mut [u16]) {
    let at = usize::from(CHECKSUM_WORD);
    let sum = image.iter().take(at).fold(0u16, |sum, word| sum.wrapping_add(*word));
    if let Some(word) = image.get_mut(at) {
        *word = CHECKSUM.wrapping_sub(sum);
    }
}
