//! Public captures that are damaged, odd, or of an old format: what a right decoder says of them.

mod capture;

use capture::{Frame, counts, frames, is_bad};
use netcore::dissect::ChecksumVerdict;
use netcore::wire::{EtherType, Ipv4Header, Ipv6Header, Protocol, SackBlock, WireError};
use netcore_drivers::pcap::LinkType;
use std::collections::BTreeSet;

/// Bits turned over at random all over a capture of HTTP: the same counts as tshark's.
#[test]
fn random_bit_errors_are_counted_exactly() {
    let Some(frames) = frames("fuzz_http.pcap") else { return };
    assert_eq!(frames.len(), 131);
    assert!(frames.iter().all(|f| f.bytes.len() <= 1514 && f.bytes.len() == f.original));
    assert_eq!(frames.iter().filter(|f| f.dissect().ethertype == EtherType::IPV4).count(), 125);
    let v4: Vec<&Frame> = frames.iter().filter(|f| f.dissect().outer.is_some_and(|n| n.version == 4)).collect();
    assert_eq!(v4.len(), 123);
    for f in &v4 {
        let at = usize::from(f.dissect().outer.unwrap().offset);
        assert_eq!(Ipv4Header::parse(&f.bytes[at..]).unwrap().0.header_len(), 20);
    }
    assert_eq!(v4.iter().filter(|f| is_bad(f.outer().0)).count(), 43);
    let fragment = |f: &&&Frame| f.dissect().outer.is_some_and(|n| n.fragment);
    assert_eq!(v4.iter().filter(fragment).count(), 5);
    let tcp: Vec<_> =
        v4.iter().filter(|f| !fragment(f) && f.dissect().outer.unwrap().protocol == Protocol::TCP).collect();
    assert_eq!(tcp.len(), 117);
    let verdicts = counts(tcp.iter().map(|f| match f.outer().1 {
        verdict if is_bad(verdict) => "bad",
        Some(ChecksumVerdict::Good) => "good",
        _ => "not verifiable",
    }));
    assert_eq!(verdicts.into_iter().collect::<Vec<_>>(), [("bad", 70), ("good", 46), ("not verifiable", 1)]);
}

/// 64 bytes of a frame that says it had 262144: everything within them is read, nothing beyond.
#[test]
fn a_tcp_header_longer_than_the_capture_is_cut_and_nothing_behind_it_is_read() {
    let Some(frames) = frames("trunc_tcp.pcap") else { return };
    let f = &frames[0];
    assert_eq!((frames.len(), f.link_type, f.bytes.len(), f.original), (1, LinkType::ETHERNET, 64, 262_144));
    let d = f.dissect();
    let outer = d.outer.unwrap();
    assert_eq!((d.ethertype, outer.version, outer.protocol), (EtherType::IPV4, 4, Protocol::TCP));
    assert!(outer.cut);
    assert_eq!(usize::from(outer.upper), 34);
    // The header says 60 bytes, 30 are there.
    assert_eq!(f.bytes[34 + 12] >> 4, 15);
    assert!(f.tcp().is_none());
    let (at, error) = d.stopped.unwrap();
    assert!(at >= 34 && matches!(error, WireError::Truncated { .. }), "byte {at}: {error}");
    assert!(outer.end as usize <= 64 && d.payload as usize <= 64 && d.payload_len() <= 64);
    assert_eq!(f.outer().1, Some(ChecksumVerdict::Unverifiable), "cut, so not bad");
}

/// Two different versions of the same four bytes.
#[test]
fn the_same_sequence_numbers_sent_twice_with_other_bytes() {
    let Some(frames) = frames("tcp_overlap.pcap") else { return };
    assert_eq!(frames.len(), 7);
    assert!(frames.iter().all(|f| (f.dissect().tags, f.dissect().tci[0] & 0xfff) == (1, 6)));
    let isn = frames[0].tcp().unwrap().0.seq();
    let segment = |number: usize| {
        let (tcp, _, payload) = frames[number - 1].tcp().unwrap();
        (tcp.seq().wrapping_sub(isn), payload)
    };
    assert_eq!((segment(5).1, segment(6).1), (&b"GOOD"[..], &b"EVIL"[..]));
    assert_eq!(segment(5).0, segment(6).0);
    assert_eq!(frames.iter().filter(|f| !f.tcp().unwrap().2.is_empty()).count(), 2);
}

/// Four datagrams in pieces that arrive in turns.
#[test]
fn fragments_of_four_ipv6_datagrams_are_told_apart_by_identification() {
    let Some(frames) = frames("ipv6_fragments.pcap") else { return };
    let mut first = BTreeSet::new();
    let ids = counts(frames.iter().map(|f| {
        let network = f.dissect().outer.unwrap();
        let (header, rest) = Ipv6Header::parse(&f.bytes[usize::from(network.offset)..]).unwrap();
        let piece = header.extensions(rest).map(Result::unwrap).find(|e| e.kind == Protocol::FRAGMENT).unwrap().bytes;
        let id = u32::from_be_bytes([piece[4], piece[5], piece[6], piece[7]]);
        if network.fragment_offset == 0 {
            assert_eq!(network.protocol, Protocol::UDP);
            assert!(first.insert(id), "one first fragment each");
        }
        id
    }));
    assert_eq!(
        ids.into_iter().collect::<Vec<_>>(),
        [(0x002c_5323, 7), (0x02df_87d0, 9), (0x98d6_87d1, 13), (0xc976_a67e, 7)]
    );
    assert_eq!(first.len(), 4);
}

#[test]
fn nanoseconds_in_a_big_endian_file() {
    let Some(frames) = frames("nanosecs_be.pcap") else { return };
    assert_eq!(frames.len(), 10);
    let first = frames[0].at.unwrap().as_nanos();
    assert_eq!((first / 1_000_000_000, first % 1_000_000_000), (1_766_361_926, 0x09fe_183b));
    assert!(frames.iter().all(|f| f.tcp().is_some() && is_bad(f.outer().1)), "left to a device that never was");
}

#[test]
fn simple_packet_blocks_have_no_time() {
    let Some(frames) = frames("pcapng_test016_be.pcapng") else { return };
    let seen: Vec<_> = frames.iter().map(|f| (f.bytes.len(), f.at.is_some())).collect();
    assert_eq!(seen, [(314, false), (342, true), (314, false), (342, true)]);
    assert_eq!(frames.iter().filter(|f| is_bad(f.outer().0)).count(), 2);
}

/// RFC 2883: a first block below the acknowledgement, or inside the second block, reports a duplicate.
#[test]
fn a_receiver_reports_the_three_segments_that_came_twice() {
    let Some(frames) = frames("tcp_reorder_rcv.pcap") else { return };
    let mut duplicates = Vec::new();
    for f in &frames {
        let Some((tcp, options, _)) = f.tcp() else { continue };
        let blocks: Vec<SackBlock> =
            options.filter_map(Result::ok).flat_map(|o| o.sack_blocks().collect::<Vec<_>>()).collect();
        let Some(first) = blocks.first() else { continue };
        let at_most = |a: u32, b: u32| b.wrapping_sub(a) < 1 << 31;
        let inside = |outer: &SackBlock| at_most(outer.left, first.left) && at_most(first.right, outer.right);
        if at_most(first.right, tcp.ack()) || blocks.get(1).is_some_and(inside) {
            duplicates.push(first.right.wrapping_sub(first.left));
        }
    }
    assert_eq!(duplicates, [1448; 3]);
}
