use super::*;
use crate::pool::{PacketPool, PoolConfig, PoolConfigError};
use crate::time::Instant;
use alloc::vec;
use alloc::vec::Vec;
use proptest::prelude::*;

fn pool(buffers: usize, windows: usize) -> PacketPool {
    PacketPool::new(PoolConfig { buffers, buffer_size: 256, headroom: 64, windows }).unwrap()
}

/// All buffers and windows of the pool are free again.
fn assert_all_home(pool: &PacketPool, windows: usize) {
    let mut cache = pool.cache();
    let mut burst = Burst::new();
    assert_eq!(cache.get_burst(pool.buffers() + 1, &mut burst), pool.buffers());
    cache.put_burst(&mut burst);
    assert_eq!(cache.reserve(0, windows), Ok(()), "windows are missing");
    assert!(cache.reserve(0, windows + 1).is_err());
}

#[test]
fn push_pull_put_trim_work_like_skb() {
    let pool = pool(2, 0);
    let mut cache = pool.cache();
    let mut p = cache.copy_from_slice(b"payload").unwrap();
    assert_eq!((p.headroom(), p.tailroom()), (64, 256 - 64 - 7));
    p.push(3).unwrap().copy_from_slice(b"hdr");
    assert_eq!(p.head(), b"hdrpayload");
    p.pull(1).unwrap();
    p.put(1).unwrap()[0] = b'!';
    assert_eq!(p.to_vec(), b"drpayload!");
    p.trim(4);
    assert_eq!(p.head(), b"drpa");
    assert_eq!(p.push(63), Err(PacketError::NoHeadroom { wanted: 63, available: 62 }));
    assert!(matches!(p.put(1000), Err(PacketError::NoTailroom { wanted: 1000, .. })));
    assert!(matches!(p.pull(5), Err(PacketError::OutOfRange { end: 5, len: 4, .. })));
    assert_eq!(p.head(), b"drpa", "what is refused changes nothing");
}

#[test]
fn exhaustion_is_an_error_value_and_is_counted() {
    let pool = pool(2, 1);
    let mut cache = pool.cache();
    let (a, b) = (cache.get().unwrap(), cache.get().unwrap());
    assert_eq!(cache.get().err(), Some(PoolError::NoBuffer { buffers: 2 }));
    let shared = a.share(&mut cache).unwrap();
    assert_eq!(a.share(&mut cache).err(), Some(PacketError::Pool(PoolError::NoWindow { windows: 1 })));
    assert_eq!(pool.exhausted(), 2);
    drop((a, b, shared));
    assert_eq!(cache.get().map(|p| p.len()), Ok(0));
}

#[test]
fn shared_bytes_are_not_writable_until_the_other_goes() {
    let pool = pool(4, 4);
    let mut cache = pool.cache();
    let mut a = cache.copy_from_slice(b"shared").unwrap();
    let b = a.share(&mut cache).unwrap();
    assert_eq!(a.head_mut(), Err(PacketError::NotWritable));
    assert_eq!((a.headroom(), a.tailroom()), (0, 0));
    cache.put(b);
    a.head_mut().unwrap()[0] = b'S';
    let b = a.share(&mut cache).unwrap();
    a.make_writable(2, &mut cache).unwrap();
    a.head_mut().unwrap()[..2].copy_from_slice(b"XY");
    assert_eq!((a.to_vec(), b.to_vec()), (b"XYared".to_vec(), b"Shared".to_vec()));
}

#[test]
fn a_buffer_goes_home_with_its_last_reference_whichever_that_is() {
    for order in 0..2 {
        let pool = pool(2, 3);
        {
            let mut cache = pool.cache();
            let a = cache.copy_from_slice(b"0123456789").unwrap();
            let b = a.window(2, 5, &mut cache).unwrap();
            assert_eq!(b.head(), b"23456");
            if order == 0 {
                cache.put(a);
                assert_eq!(b.head(), b"23456");
                drop(b);
            } else {
                drop(b);
                cache.put(a);
            }
        }
        assert_all_home(&pool, 3);
    }
}

#[test]
fn packets_outlive_their_pool_and_caches() {
    let packet = {
        let pool = pool(4, 4);
        let mut cache = pool.cache();
        let a = cache.copy_from_slice(b"alive").unwrap();
        a.share(&mut cache).unwrap()
    };
    std::thread::spawn(move || assert_eq!(packet.head(), b"alive")).join().unwrap();
}

#[test]
fn segments_of_caller_memory_and_virtual_bytes_chain() {
    let pool = pool(4, 8);
    let mut cache = pool.cache();
    let mut p = cache.copy_from_slice(b"head").unwrap();
    p.append(cache.from_owner(vec![b'x'; 1000]).unwrap()).unwrap();
    p.append(cache.virtual_bytes(1 << 20).unwrap()).unwrap();
    assert_eq!((p.len(), p.segment_count()), (4 + 1000 + (1 << 20), 3));
    let mut out = [9; 8];
    p.copy_to(1000, &mut out).unwrap();
    assert_eq!(&out, b"xxxx\0\0\0\0");
    assert!(p.copy_to(p.len() - 7, &mut out).is_err());
    let kinds: Vec<_> = p.segments().map(|s| s.is_virtual()).collect();
    assert_eq!(kinds, [false, false, true]);
    assert!(cache.virtual_bytes(MAX_PACKET_LEN + 1).is_err());
    assert_eq!(p.sum_from(1004), crate::checksum::Sum::ZERO, "virtual bytes are zeros and cost nothing");
}

#[test]
fn linearize_and_prepend_keep_bytes_metadata_and_offsets() {
    let pool = pool(8, 8);
    let mut cache = pool.cache();
    let mut p = cache.copy_from_slice(b"ab").unwrap();
    p.append(cache.copy_from_slice(b"cdef").unwrap()).unwrap();
    p.set_flow_id(Some(7));
    p.set_offsets(Some(HeaderOffsets { network: 1, transport: 3, ..HeaderOffsets::default() }));
    p.linearize(5, &mut cache).unwrap();
    assert_eq!((p.head(), p.to_vec()), (&b"abcde"[..], b"abcdef".to_vec()));
    assert_eq!(p.offsets().unwrap().transport, 3);
    assert!(p.linearize(7, &mut cache).is_err());
    p.prepend(cache.copy_from_slice(b"##").unwrap()).unwrap();
    assert_eq!(p.to_vec(), b"##abcdef");
    assert_eq!((p.flow_id(), p.offsets().unwrap().transport), (Some(7), 5));
    p.push(1).unwrap()[0] = b'!';
    assert_eq!(p.offsets().unwrap().network, 4);
    p.linearize(8, &mut cache).unwrap();
    p.pull(5).unwrap();
    assert_eq!(p.offsets(), None, "a header that was recorded is gone");
}

#[test]
fn one_time_field_serves_receive_and_departure() {
    let pool = pool(1, 0);
    let mut p = pool.cache().get().unwrap();
    p.set_timestamp(Some(Instant::from_nanos(5)));
    p.set_departure(Some(Instant::from_nanos(9)));
    assert_eq!((p.timestamp(), p.departure()), (None, Some(Instant::from_nanos(9))));
    p.set_timestamp(None);
    assert_eq!(p.departure(), Some(Instant::from_nanos(9)));
}

#[test]
fn a_reused_descriptor_carries_no_metadata() {
    let pool = pool(1, 0);
    let mut cache = pool.cache();
    let mut p = cache.get().unwrap();
    p.set_gso(Some(Gso { kind: GsoKind::TCPV4, size: 1, segments: 2 }));
    p.set_hash(Some(1), true);
    p.set_receive_checksum(ReceiveChecksum::Complete(1));
    p.set_transmit_checksum(Some(PartialChecksum { start: 1, offset: 2 }));
    cache.put(p);
    let p = cache.get().unwrap();
    assert_eq!(
        (p.gso(), p.hash(), p.receive_checksum(), p.transmit_checksum()),
        (None, None, ReceiveChecksum::None, None)
    );
}

#[test]
fn a_burst_that_never_becomes_empty_does_not_grow() {
    let pool = pool(4, 0);
    let mut cache = pool.cache();
    let mut burst = Burst::with_capacity(4);
    burst.push(cache.copy_from_slice(&[1]).unwrap());
    burst.push(cache.copy_from_slice(&[2]).unwrap());
    for turn in 0..10_000 {
        let packet = burst.pop().unwrap();
        assert_eq!(packet.head()[0], 1 + (turn % 2) as u8);
        burst.push(packet);
    }
    assert!(burst.capacity() <= 8, "{}", burst.capacity());
}

#[test]
fn a_checksum_request_moves_with_the_bytes_and_pieces_carry_no_metadata() {
    let pool = pool(4, 4);
    let mut cache = pool.cache();
    let mut p = cache.copy_from_slice(&[0; 60]).unwrap();
    p.set_transmit_checksum(Some(PartialChecksum { start: 34, offset: 16 }));
    p.push(10).unwrap();
    assert_eq!(p.transmit_checksum(), Some(PartialChecksum { start: 44, offset: 16 }));
    p.pull(4).unwrap();
    assert_eq!(p.transmit_checksum(), Some(PartialChecksum { start: 40, offset: 16 }));
    let mut cutter = Cutter::new(p);
    let piece = cutter.take(usize::MAX, &mut cache).unwrap().unwrap();
    assert_eq!((piece.len(), piece.transmit_checksum()), (66, None));
    let mut p = piece;
    p.set_transmit_checksum(Some(PartialChecksum { start: 34, offset: 16 }));
    p.pull(35).unwrap();
    assert_eq!(p.transmit_checksum(), None);
    let mut v = cache.virtual_bytes(9).unwrap();
    assert_eq!(v.put(0), Ok(&mut [][..]));
}

#[test]
fn a_queue_keeps_order_and_returns_what_it_holds() {
    let pool = pool(8, 0);
    let mut cache = pool.cache();
    let mut q = PacketQueue::new();
    let mut other = PacketQueue::new();
    for byte in 1..4 {
        q.push_back(cache.copy_from_slice(&[byte]).unwrap());
        other.push_back(cache.copy_from_slice(&[byte + 10]).unwrap());
    }
    q.push_front(cache.copy_from_slice(&[0]).unwrap());
    q.append(&mut other);
    assert!(other.is_empty() && q.len() == 7);
    assert_eq!(q.front().unwrap().head(), [0]);
    let bytes: Vec<u8> = q.iter().map(|p| p.head()[0]).collect();
    assert_eq!(bytes, [0, 1, 2, 3, 11, 12, 13]);
    assert_eq!(q.pop_front().unwrap().head(), [0]);
    drop(q);
    drop(cache);
    assert_all_home(&pool, 0);
}

#[test]
fn wrong_geometry_is_refused_with_what_is_allowed() {
    let base = PoolConfig::with_buffers(4);
    for (config, what) in [
        (PoolConfig { buffers: 0, ..base }, "buffers"),
        (PoolConfig { buffer_size: 0, ..base }, "buffer_size"),
        (PoolConfig { headroom: base.buffer_size, ..base }, "headroom"),
        (PoolConfig { windows: usize::MAX, ..base }, "windows"),
    ] {
        let error = PacketPool::new(config).unwrap_err();
        assert!(matches!(error, PoolConfigError::OutOfRange { what: w, .. } if w == what), "{error}");
    }
}

/// A packet of several segments of all kinds, and its bytes.
fn chain(parts: &[(u8, usize)], cache: &mut PoolCache) -> (Packet, Vec<u8>) {
    let mut packet = cache.get().unwrap();
    let mut bytes = Vec::new();
    for (index, (kind, len)) in parts.iter().enumerate() {
        let part: Vec<u8> = (0..*len).map(|i| (i * 7 + index) as u8).collect();
        let segment = match kind % 3 {
            0 => cache.copy_from_slice(&part[..part.len().min(150)]).unwrap(),
            1 => cache.from_owner(part.clone()).unwrap(),
            _ => cache.virtual_bytes(*len).unwrap(),
        };
        bytes.extend(segment.to_vec());
        packet.append(segment).unwrap();
    }
    (packet, bytes)
}

proptest! {
    #[test]
    fn cutting_gives_the_bytes_in_order_and_returns_all_memory(
        parts in prop::collection::vec((any::<u8>(), 0usize..400), 1..6),
        sizes in prop::collection::vec(1usize..300, 1..40),
        windows in 0usize..40,
    ) {
        let pool = pool(64, 64);
        {
            let mut cache = pool.cache();
            let (packet, bytes) = chain(&parts, &mut cache);
            // Fewer windows than it may take: a failed cut loses nothing.
            let mut taken = Vec::new();
            while let Ok(p) = cache.virtual_bytes(0) { taken.push(p); }
            for p in taken.drain(..windows.min(taken.len())) { cache.put(p); }
            let mut cutter = Cutter::new(packet);
            let mut got = Vec::new();
            for size in sizes.iter().cycle().take(2000) {
                match cutter.take(*size, &mut cache) {
                    Ok(Some(piece)) => {
                        prop_assert!(piece.len() <= *size);
                        prop_assert!(piece.len() == *size || cutter.is_empty());
                        got.extend(piece.to_vec());
                        cache.put(piece);
                    }
                    Ok(None) => break,
                    Err(PacketError::Pool(_)) => { got.extend(cutter.into_rest().unwrap().to_vec()); cutter = Cutter::new(cache.get().unwrap()); break; }
                    Err(error) => return Err(TestCaseError::fail(alloc::format!("{error}"))),
                }
            }
            if let Some(rest) = cutter.into_rest() { got.extend(rest.to_vec()); }
            prop_assert_eq!(got, bytes);
        }
        assert_all_home(&pool, 64);
    }

    #[test]
    fn windows_trims_and_sums_see_the_same_bytes(
        parts in prop::collection::vec((any::<u8>(), 0usize..400), 1..6),
        a in any::<prop::sample::Index>(), b in any::<prop::sample::Index>(),
    ) {
        let pool = pool(64, 64);
        {
            let mut cache = pool.cache();
            let (mut packet, bytes) = chain(&parts, &mut cache);
            let (a, b) = (a.index(bytes.len() + 1), b.index(bytes.len() + 1));
            let (from, to) = (a.min(b), a.max(b));
            let window = packet.window(from, to - from, &mut cache).unwrap();
            prop_assert_eq!(window.to_vec(), &bytes[from..to]);
            prop_assert!(packet.window(from, bytes.len() + 1, &mut cache).is_err());
            prop_assert_eq!(packet.sum_from(from).fold() % 0xffff, crate::checksum::sum(&bytes[from..]).fold() % 0xffff);
            packet.trim(to);
            prop_assert_eq!(packet.to_vec(), &bytes[..to]);
            packet.append(window).unwrap();
            prop_assert_eq!(packet.len(), to + to - from);
            packet.linearize(packet.len().min(150), &mut cache).unwrap();
            prop_assert_eq!(&packet.to_vec()[..to], &bytes[..to]);
        }
        assert_all_home(&pool, 64);
    }
}
