use super::*;
use alloc::vec::Vec;
use proptest::prelude::*;

/// RFC 1071 word by word.
fn naive(bytes: &[u8]) -> u16 {
    let mut sum = 0u32;
    for pair in bytes.chunks(2) {
        sum += u32::from(u16::from_be_bytes([pair[0], *pair.get(1).unwrap_or(&0)]));
        sum = (sum >> 16) + (sum & 0xffff);
    }
    sum as u16
}

/// Both zeros are one number.
fn same(a: u16, b: u16) -> bool {
    a == b || (a == 0xffff && b == 0) || (a == 0 && b == 0xffff)
}

#[test]
fn rfc1071_example() {
    // Section 3: 0001 f203 f4f5 f6f7 sums to ddf2.
    let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
    assert_eq!(sum(&bytes).fold(), 0xddf2);
    assert_eq!(sum(&bytes).finish(), !0xddf2);
}

#[test]
fn every_path_agrees_with_the_word_loop_at_any_length_and_alignment() {
    let bytes: Vec<u8> = (0..70_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    for len in (0..600).chain([1448, 1500, 9000, 65_514, 65_535, 69_990]) {
        for start in 0..9 {
            let part = &bytes[start..start + len];
            let expected = naive(part);
            assert!(same(sum(part).fold(), expected), "sum, {len} bytes from {start}");
            assert!(same(sum_portable(part).fold(), expected), "portable, {len} bytes from {start}");
            if let Some(avx2) = sum_avx2(part) {
                assert!(same(avx2.fold(), expected), "avx2, {len} bytes from {start}");
            }
        }
    }
}

#[test]
fn all_ones_do_not_overflow_the_lanes() {
    let bytes = alloc::vec![0xff; 300 << 20];
    assert!(same(sum(&bytes).fold(), 0xffff));
    assert!(same(sum_portable(&bytes).fold(), 0xffff));
}

#[test]
fn an_update_never_turns_a_checksum_into_the_other_zero() {
    // RFC 1624 section 4: the example that RFC 1141 gets wrong gives 0x0000, not 0xffff.
    assert_eq!(update16(0xdd2f, 0x5555, 0x3285), 0x0000);
    // Every new value beside words that bring the sum to both zeros: the update is the checksum computed anew, bit for bit.
    for (rest, old) in [(0x0001, 0xfffe), (0xffff, 0x0000), (0xffff, 0xffff), (0x1234, 0x5678), (0x8000, 0x7fff)] {
        let message = |word: u16| sum(&[&u16::to_be_bytes(rest)[..], &word.to_be_bytes()].concat()).finish();
        for new in 0..=u16::MAX {
            assert_eq!(update16(message(old), old, new), message(new), "{rest:#06x}: {old:#06x} to {new:#06x}");
            assert_eq!(update16(message(new), new, old), message(old), "{rest:#06x}: {new:#06x} to {old:#06x}");
        }
    }
}

#[test]
fn udp_sends_a_computed_zero_as_ffff() {
    assert_eq!(Sum::from_word(0xffff).finish(), 0);
    assert_eq!(Sum::from_word(0xffff).finish_udp(), 0xffff);
    assert_eq!(Sum::from_word(0x1234).finish_udp(), !0x1234);
}

proptest! {
    #[test]
    fn sums_of_parts_combine(bytes in prop::collection::vec(any::<u8>(), 0..3000), cut in any::<prop::sample::Index>()) {
        let cut = cut.index(bytes.len() + 1);
        let (a, b) = bytes.split_at(cut);
        let combined = sum(a).plus_at(sum(b), cut);
        prop_assert!(same(combined.fold(), naive(&bytes)));
        if cut % 2 == 0 {
            prop_assert!(same(sum(&bytes).minus(sum(a)).fold(), sum(b).fold()));
        }
    }

    #[test]
    fn incremental_update_equals_a_new_sum(mut bytes in prop::collection::vec(any::<u8>(), 4..200), at in any::<prop::sample::Index>(), new in any::<u32>()) {
        let at = at.index(bytes.len() - 3) & !1;
        let before = sum(&bytes).finish();
        let old = u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap());
        bytes[at..at + 4].copy_from_slice(&new.to_be_bytes());
        // Exactly, unless nothing but zeros is left: then there is no sum that is not zero.
        let (updated, after) = (update32(before, old, new), sum(&bytes).finish());
        let zeros = bytes.iter().all(|byte| *byte == 0);
        prop_assert!(updated == after || zeros && same(updated, after), "{updated:#06x} {after:#06x}");
    }

    #[test]
    fn a_filled_in_checksum_is_valid(mut bytes in prop::collection::vec(any::<u8>(), 2..200), a in any::<[u8; 16]>(), b in any::<[u8; 16]>()) {
        bytes[0] = 0;
        bytes[1] = 0;
        let pseudo = Sum::pseudo_ipv6(&a, &b, 6, bytes.len() as u32);
        let field = pseudo.plus(sum(&bytes)).finish();
        bytes[..2].copy_from_slice(&field.to_be_bytes());
        prop_assert!(pseudo.plus(sum(&bytes)).is_valid());
        let v4 = Sum::pseudo_ipv4(a[..4].try_into().unwrap(), b[..4].try_into().unwrap(), 6, bytes.len() as u32);
        let mut header = a[..4].to_vec();
        header.extend_from_slice(&b[..4]);
        header.extend_from_slice(&[0, 6]);
        header.extend_from_slice(&(bytes.len() as u16).to_be_bytes());
        prop_assert!(same(v4.fold(), naive(&header)));
    }
}
