//! Receive filters: the words that go into receive address, multicast hash and VLAN registers (same in every family).

use netcore::MacAddress;

/// Words of the multicast table array.
pub const MULTICAST_WORDS: usize = 128;
/// Words of the VLAN filter table.
pub const VLAN_WORDS: usize = 128;
/// RAH bit 31: the address is valid.
pub const ADDRESS_VALID: u32 = 1 << 31;

/// Low and high word of a receive address register pair: first byte of the address in the low byte of the low word.
pub const fn receive_address(mac: MacAddress) -> (u32, u32) {
    let [a, b, c, d, e, f] = mac.0;
    (u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, 0, 0]) | ADDRESS_VALID)
}

/// The address in a receive address register pair.
pub const fn address_of(low: u32, high: u32) -> MacAddress {
    let [a, b, c, d] = low.to_le_bytes();
    let [e, f, ..] = high.to_le_bytes();
    MacAddress([a, b, c, d, e, f])
}

/// The 12-bit hash of a group address with filter type 0 (MO = 00: bits 47:36 of the address), which all drivers use.
pub const fn multicast_hash(mac: MacAddress) -> u16 {
    multicast_hash_of(mac, 0)
}

/// The 12-bit hash of a group address for filter type `mo`, 0 to 3.
pub const fn multicast_hash_of(mac: MacAddress, mo: u8) -> u16 {
    let (m4, m5) = (mac.0[4] as u16, mac.0[5] as u16);
    let hash = match mo & 3 {
        0 => m4 >> 4 | m5 << 4,
        1 => m4 >> 3 | m5 << 5,
        2 => m4 >> 2 | m5 << 6,
        _ => m4 | m5 << 8,
    };
    hash & 0xfff
}

/// The multicast table that lets these groups through.
pub fn multicast_table(groups: &[MacAddress]) -> [u32; MULTICAST_WORDS] {
    let mut table = [0; MULTICAST_WORDS];
    for group in groups {
        let hash = multicast_hash(*group);
        table[usize::from(hash >> 5)] |= 1 << (hash & 31);
    }
    table
}

/// The VLAN table that lets these ids through. Id 0 is always among them: frames that are only priority-tagged have it.
pub fn vlan_table(ids: &[u16]) -> [u32; VLAN_WORDS] {
    let mut table = [0; VLAN_WORDS];
    table[0] = 1;
    for id in ids {
        let id = id & 0xfff;
        table[usize::from(id >> 5)] |= 1 << (id & 31);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_takes_the_bits_that_the_filter_type_says() {
        let mac = MacAddress([1, 0, 0x5e, 0, 0xab, 0xcd]);
        assert_eq!(multicast_hash_of(mac, 0), 0xcda);
        assert_eq!(multicast_hash_of(mac, 1), 0x9b5);
        assert_eq!(multicast_hash_of(mac, 2), 0x36a);
        assert_eq!(multicast_hash_of(mac, 3), 0xdab);
    }

    #[test]
    fn a_receive_address_reads_back() {
        let mac = MacAddress([0x52, 0x54, 0, 0x12, 0x34, 0x56]);
        assert_eq!(receive_address(mac), (0x1200_5452, 0x8000_5634));
        assert_eq!(address_of(0x1200_5452, 0x8000_5634), mac);
    }

    #[test]
    fn vlan_zero_is_always_let_through() {
        let table = vlan_table(&[100, 4094]);
        assert_eq!((table[0], table[3], table[127]), (1, 1 << 4, 1 << 30));
    }
}
