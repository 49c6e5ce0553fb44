//! A toy layout: word 0 is the address; word 1 holds length (15:0), end (16), report (17), done (32).

use super::*;
use crate::dma::{DmaBlock, plain_region};
use crate::mmio::Mmio;
use alloc::sync::Arc;
use alloc::vec::Vec;
use netcore::{Burst, Completions, Instant, Packet, PacketPool, PoolCache, PoolConfig, Refusal};
use std::sync::atomic::Ordering::Relaxed;

const TAIL: u32 = 0x18;

#[derive(Default)]
struct Toy {
    limit: u32,
    first_limit: u32,
    cut: u8,
    header: u16,
    context: bool,
    forgotten: u32,
}

impl TransmitLayout for Toy {
    const MAX_DESCRIPTORS: u16 = 6;
    fn plan(&mut self, packet: &Packet, header: &mut [u8; HEADER_ROOM]) -> Result<TransmitPlan, Refusal> {
        if packet.len() > 9000 {
            return Err(Refusal::TooLong { len: packet.len(), max: 9000 });
        }
        header[..usize::from(self.header)].fill(0xee);
        Ok(TransmitPlan {
            context: self.context.then_some([0xc0, 0xc1]),
            first: 1 << 40,
            header: self.header,
            first_limit: self.first_limit,
            limit: self.limit,
            cut: self.cut,
            ..TransmitPlan::default()
        })
    }
    fn forget(&mut self) {
        self.forgotten += 1;
    }
    fn data(plan: &TransmitPlan, iova: u64, len: u32, end: bool, report: bool) -> Words {
        [iova, plan.first | u64::from(len) | u64::from(end) << 16 | u64::from(report) << 17]
    }
}

impl ReceiveLayout for Toy {
    const DONE: u64 = 1 << 32;
    fn arm(&self, iova: u64) -> Words {
        [iova, 0]
    }
    fn parse(&self, words: Words) -> Received {
        Received {
            len: words[1] as u16,
            end: words[1] >> 16 & 1 == 1,
            fault: (words[1] >> 18 & 1 == 1).then_some(ReceiveFault::Crc),
            ..Received::default()
        }
    }
}

fn mapped_pool(buffers: usize) -> PacketPool {
    let config = PoolConfig::with_buffers(buffers);
    PacketPool::from_region(plain_region(buffers * 2176).unwrap(), config).unwrap()
}

struct Rig {
    ring: TransmitRing<Toy>,
    window: Mmio,
    cache: PoolCache,
    block: DmaBlock,
}

/// The ring's memory, seen as hardware sees it.
fn descriptor(block: &DmaBlock, index: usize) -> Words {
    [block.read_u64(index * 16), block.read_u64(index * 16 + 8)]
}

fn transmit_rig(count: u16, toy: Toy) -> Rig {
    let pool = mapped_pool(64);
    let copies = mapped_pool(8);
    let mut arenas = Arenas::new();
    arenas.add(pool.clone());
    arenas.add(copies.clone());
    let region = plain_region(4096).unwrap();
    let (start, iova) = (region.start(), region.iova().clone());
    // SAFETY: the ring keeps the region alive for as long as the rig lives; both only use atomic words.
    let view = unsafe { DmaRegion::from_raw_parts(start, 4096, iova, Box::new(())) };
    let window = Mmio::plain(4096);
    let headers = plain_region(TransmitRing::<Toy>::header_bytes(count)).unwrap();
    let cache = pool.cache();
    let arenas = Arc::new(arenas);
    let ring =
        TransmitRing::new(toy, region, headers, count, window.clone(), TAIL, copies.cache(), arenas, Arc::default());
    Rig { ring: ring.unwrap(), window, cache, block: DmaBlock::new(view).unwrap() }
}

fn plain() -> Toy {
    Toy { limit: 4096, first_limit: 4096, ..Toy::default() }
}

fn finish(rig: &Rig, index: usize) {
    let [_, word] = descriptor(&rig.block, index);
    rig.block.write_u64(index * 16 + 8, word | 1 << 32);
}

#[test]
fn a_ring_is_never_full_and_keeps_descriptors_for_control_frames() {
    let mut rig = transmit_rig(16, plain());
    let mut burst: Burst = (0..20).map(|_| rig.cache.copy_from_slice(&[7; 100]).unwrap()).collect();
    assert_eq!(rig.ring.transmit(&mut burst, false), (13, None));
    assert_eq!((burst.len(), rig.window.read(TAIL)), (7, 13));
    assert_eq!(rig.ring.transmit(&mut burst, false), (0, None));
    assert_eq!(rig.ring.transmit(&mut burst, true), (2, None), "control frames use the rest");
    assert_eq!(rig.window.read(TAIL), 15, "one descriptor always stays free");
}

#[test]
fn only_the_last_packet_of_a_burst_reports_and_reclaim_follows_it() {
    let mut rig = transmit_rig(16, plain());
    let mut burst: Burst = (0..5).map(|_| rig.cache.copy_from_slice(&[7; 100]).unwrap()).collect();
    rig.ring.transmit(&mut burst, false);
    let reports: Vec<u64> = (0..5).map(|i| descriptor(&rig.block, i)[1] >> 17 & 1).collect();
    assert_eq!(reports, [0, 0, 0, 0, 1]);
    let mut completions = Completions::new();
    assert_eq!(rig.ring.reclaim(&mut completions, &mut rig.cache), 0);
    finish(&rig, 4);
    assert_eq!(rig.ring.reclaim(&mut completions, &mut rig.cache), 5);
    assert_eq!(completions.len(), 5);
    assert!(rig.ring.is_idle());
}

#[test]
fn every_thirty_second_packet_reports() {
    let mut rig = transmit_rig(64, plain());
    let mut burst: Burst = (0..40).map(|_| rig.cache.copy_from_slice(&[7; 60]).unwrap()).collect();
    assert_eq!(rig.ring.transmit(&mut burst, false).0, 40);
    let reports: Vec<usize> = (0..40).filter(|i| descriptor(&rig.block, *i)[1] >> 17 & 1 == 1).collect();
    assert_eq!(reports, [31, 39]);
}

#[test]
fn packets_in_reach_go_without_a_copy_and_others_are_copied_and_counted() {
    let mut rig = transmit_rig(16, plain());
    let own = rig.cache.copy_from_slice(&[1; 200]).unwrap();
    let at = own.head().as_ptr() as u64;
    let foreign = rig.cache.from_owner(alloc::vec![2u8; 300]).unwrap();
    let mut burst: Burst = [own, foreign].into_iter().collect();
    assert_eq!(rig.ring.transmit(&mut burst, false).0, 2);
    assert_eq!(descriptor(&rig.block, 0)[0], at);
    let copied = descriptor(&rig.block, 1);
    assert_eq!(copied[1] & 0xffff, 300);
    let counters = rig.ring.counters();
    assert_eq!((counters.copied.load(Relaxed), counters.copied_bytes.load(Relaxed)), (1, 300));
}

#[test]
fn short_frames_are_padded_to_sixty_bytes() {
    let mut rig = transmit_rig(16, plain());
    let mut burst: Burst = [rig.cache.copy_from_slice(&[9; 42]).unwrap()].into_iter().collect();
    rig.ring.transmit(&mut burst, false);
    assert_eq!(descriptor(&rig.block, 0)[1] & 0xffff, 60);
    let mut burst: Burst = [rig.cache.copy_from_slice(&[9; 13]).unwrap()].into_iter().collect();
    assert_eq!(rig.ring.transmit(&mut burst, false), (0, Some(Refusal::TooShort { len: 13, min: 14 })));
}

#[test]
fn pieces_are_cut_at_the_limits_and_the_tail_gets_its_own() {
    let toy = Toy { limit: 1000, first_limit: 400, cut: 4, context: true, ..Toy::default() };
    let mut rig = transmit_rig(16, toy);
    let mut burst: Burst = [rig.cache.copy_from_slice(&[9; 1500]).unwrap()].into_iter().collect();
    assert_eq!(rig.ring.transmit(&mut burst, false).0, 1);
    assert_eq!(descriptor(&rig.block, 0), [0xc0, 0xc1]);
    let words: Vec<(u64, u64, u64)> =
        (1..5).map(|i| descriptor(&rig.block, i)[1]).map(|w| (w & 0xffff, w >> 16 & 1, w >> 40 & 1)).collect();
    assert_eq!(words, [(400, 0, 1), (1000, 0, 0), (96, 0, 0), (4, 1, 0)]);
    assert_eq!(rig.window.read(TAIL), 5);
}

#[test]
fn rewritten_headers_go_from_the_header_buffer() {
    let mut rig = transmit_rig(16, Toy { header: 54, ..plain() });
    let packet = rig.cache.copy_from_slice(&[5; 1000]).unwrap();
    let at = packet.head().as_ptr() as u64;
    let mut burst: Burst = [packet].into_iter().collect();
    rig.ring.transmit(&mut burst, false);
    let (first, second) = (descriptor(&rig.block, 0), descriptor(&rig.block, 1));
    assert_eq!((first[1] & 0xffff, second[1] & 0xffff), (54, 946));
    assert_eq!(second[0], at + 54);
}

#[test]
fn virtual_bytes_are_sent_as_zeros() {
    let mut rig = transmit_rig(16, plain());
    let mut packet = rig.cache.copy_from_slice(&[5; 54]).unwrap();
    packet.append(rig.cache.virtual_bytes(5000).unwrap()).unwrap();
    let mut burst: Burst = [packet].into_iter().collect();
    assert_eq!(rig.ring.transmit(&mut burst, false).0, 1);
    let lengths: Vec<u64> = (0..3).map(|i| descriptor(&rig.block, i)[1] & 0xffff).collect();
    assert_eq!(lengths, [54, 4096, 904]);
}

#[test]
fn a_packet_that_is_too_scattered_is_sent_from_a_copy() {
    let mut rig = transmit_rig(16, plain());
    let mut packet = rig.cache.copy_from_slice(&[5; 100]).unwrap();
    for _ in 0..9 {
        packet.append(rig.cache.copy_from_slice(&[6; 100]).unwrap()).unwrap();
    }
    let mut burst: Burst = [packet].into_iter().collect();
    assert_eq!(rig.ring.transmit(&mut burst, false), (1, None));
    assert_eq!(rig.window.read(TAIL), 1);
    assert_eq!(rig.ring.counters().copied_bytes.load(Relaxed), 1000);
}

#[test]
fn a_full_ring_leaves_the_packet_and_forgets_its_context() {
    let mut rig = transmit_rig(8, Toy { context: true, ..plain() });
    let mut burst: Burst = (0..4).map(|_| rig.cache.copy_from_slice(&[7; 100]).unwrap()).collect();
    assert_eq!(rig.ring.transmit(&mut burst, false).0, 2);
    assert_eq!((burst.len(), rig.ring.layout_mut().forgotten), (2, 1));
}

#[test]
fn release_gives_every_buffer_back() {
    let pool = mapped_pool(40);
    let mut cache = pool.cache();
    let window = Mmio::plain(4096);
    let mut ring = ReceiveRing::new(
        Toy::default(),
        plain_region(4096).unwrap(),
        16,
        window,
        TAIL,
        ReceiveBuffers { len: 2048, within_64k: false },
        0,
        Arc::default(),
    )
    .unwrap();
    assert_eq!(ring.arm(&mut cache), 15);
    ring.release(&mut cache);
    let mut burst = Burst::new();
    assert_eq!(cache.get_burst(40, &mut burst), 40);
}

#[test]
fn receive_chains_buffers_rearms_and_drops_bad_frames() {
    let pool = mapped_pool(64);
    let mut cache = pool.cache();
    let window = Mmio::plain(4096);
    let region = plain_region(4096).unwrap();
    let (start, iova) = (region.start(), region.iova().clone());
    // SAFETY: as in `transmit_rig`.
    let view = unsafe { DmaRegion::from_raw_parts(start, 4096, iova, Box::new(())) };
    let block = DmaBlock::new(view).unwrap();
    let buffers = ReceiveBuffers { len: 2048, within_64k: false };
    let mut ring =
        ReceiveRing::new(Toy::default(), region, 16, window.clone(), TAIL, buffers, 3, Arc::default()).unwrap();
    ring.arm(&mut cache);
    ring.publish();
    assert_eq!(window.read(TAIL), 15);
    let done = 1 << 32;
    for (i, word) in [2048 | done, 100 | 1 << 16 | done, 60 | 1 << 16 | 1 << 18 | done].into_iter().enumerate() {
        block.write_u64(i * 16 + 8, word);
    }
    let mut burst = Burst::new();
    assert_eq!(ring.receive(&mut burst, 8, &mut cache, Instant::ZERO), 1);
    let packet = burst.pop().unwrap();
    assert_eq!((packet.len(), packet.segment_count(), packet.queue()), (2148, 2, Some(3)));
    assert_eq!(ring.counters().crc_errors.load(Relaxed), 1);
    assert_eq!((ring.armed(), window.read(TAIL)), (15, 2), "three more were armed");
}

#[test]
fn an_empty_pool_leaves_descriptors_unarmed_and_old_done_bits_are_not_believed() {
    let pool = mapped_pool(16);
    let mut cache = pool.cache();
    let region = plain_region(4096).unwrap();
    let (start, iova) = (region.start(), region.iova().clone());
    // SAFETY: as in `transmit_rig`.
    let view = unsafe { DmaRegion::from_raw_parts(start, 4096, iova, Box::new(())) };
    let block = DmaBlock::new(view).unwrap();
    let buffers = ReceiveBuffers { len: 2048, within_64k: false };
    let mut ring =
        ReceiveRing::new(Toy::default(), region, 16, Mmio::plain(4096), TAIL, buffers, 0, Arc::default()).unwrap();
    ring.arm(&mut cache);
    let mut held = Burst::new();
    for index in 0..15 {
        block.write_u64(index * 16 + 8, 60 | 1 << 16 | 1 << 32);
    }
    assert_eq!(ring.receive(&mut held, 64, &mut cache, Instant::ZERO), 15);
    assert_eq!(ring.armed(), 1, "one buffer was left in the pool");
    assert_eq!(ring.receive(&mut held, 64, &mut cache, Instant::ZERO), 0);
    assert!(ring.counters().no_buffer.load(Relaxed) > 0);
    cache.put_burst(&mut held);
    assert_eq!(ring.receive(&mut held, 64, &mut cache, Instant::ZERO), 0);
    assert_eq!(ring.armed(), 15, "armed again once there are buffers");
}
