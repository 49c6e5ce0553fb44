//! pfifo_fast, fq_codel and tbf.

mod bench_queue;

use bench_queue::{Queue, Spec};
use netcore::{Dequeue, DropReason, Drops, Instant, Qdisc};
use netcore_qdisc::{FqCodel, PfifoFast, Tbf, by_name};
use proptest::prelude::*;

const MS: u64 = 1_000_000;
const S: u64 = 1_000_000_000;

fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

fn tbf(line: &str) -> Queue<Tbf> {
    Queue::new(Tbf::from_words(&words(line)).unwrap()).at(S)
}

fn fq_codel(line: &str) -> Queue<FqCodel> {
    Queue::new(FqCodel::from_words(&words(line)).unwrap()).at(S)
}

#[test]
fn pfifo_fast_sends_earlier_bands_first_and_each_has_the_devices_length() {
    let mut q = Queue::new(PfifoFast::new(2));
    for priority in [2, 2, 2, 0, 6, 7] {
        q.enqueue(Spec { priority, len: 100, ..Spec::default() });
    }
    assert_eq!(q.reasons(), [DropReason::OverLimit]);
    assert_eq!(q.qdisc.band_drops(), [0, 0, 1]);
    let left: Vec<_> = q.depart_all().iter().map(|d| d.id).collect();
    assert_eq!(left, [4, 5, 3, 0, 1]);
    assert_eq!(q.qdisc.options(), "bands 3 priomap 1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1");
    assert!(PfifoFast::from_words(&["limit", "5"]).is_err());
    for _ in 0..2 {
        q.enqueue(Spec { len: 100, ..Spec::default() });
    }
    q.qdisc.set_queue_len(1, &mut q.drops);
    assert_eq!((q.reasons().len(), q.qdisc.len(), q.qdisc.backlog()), (1, 1, 100));
}

#[test]
fn tbf_lets_a_burst_through_and_then_the_rate_exactly() {
    let mut q = tbf("rate 8mbit burst 15140 limit 1mb");
    for _ in 0..30 {
        q.enqueue(Spec { len: 1514, ..Spec::default() });
    }
    let left: Vec<_> = q.depart_all().iter().map(|d| d.time - S).collect();
    for (n, &time) in left.iter().enumerate() {
        assert_eq!(time, (n as u64).saturating_sub(9) * 1_514_000, "{n}");
    }
    assert_eq!(q.qdisc.statistics().overlimits, 20);
}

#[test]
fn tbf_prints_as_the_kernels_and_reads_every_option() {
    // As tc 6.1 shows it for this command.
    let q = tbf("rate 10mbit burst 32kbit latency 50ms");
    assert_eq!(q.qdisc.options(), "rate 10Mbit burst 4Kb lat 50ms");
    let q = tbf("rate 1mbit burst 10kb/8 limit 15kb peakrate 2mbit minburst 1540/8 mpu 64 overhead 14 linklayer atm");
    assert!(q.qdisc.options().starts_with("rate 1Mbit burst 10Kb peakrate 2Mbit minburst 1540b"));
    for wrong in [
        "",
        "rate 1mbit",
        "rate 1mbit burst 10kb",
        "burst 10kb limit 5kb",
        "rate 0 burst 10kb limit 5kb",
        "rate 1mbit burst 0 limit 5kb",
        "rate 1mbit burst 10kb limit 5kb latency 5ms",
        "rate 1mbit rate 2mbit burst 10kb limit 5kb",
        "rate 1mbit burst 10kb limit 5kb peakrate 2mbit",
        "rate 1mbit burst 10kb limit 5kb peakrate 1mbit mtu 1540",
        "rate 1mbit burst 10kb limit 5kb colour blue",
    ] {
        assert!(Tbf::from_words(&words(wrong)).is_err(), "{wrong}");
    }
}

#[test]
fn tbf_obeys_both_buckets() {
    let mut q = tbf("rate 8mbit burst 15140 limit 1mb peakrate 80mbit mtu 1514");
    for _ in 0..20 {
        q.enqueue(Spec { len: 1514, ..Spec::default() });
    }
    let left: Vec<_> = q.depart_all().iter().map(|d| d.time - S).collect();
    let gaps: Vec<_> = left.windows(2).map(|w| w[1] - w[0]).collect();
    assert!(gaps[..9].iter().all(|&gap| gap == 151_400), "{gaps:?}");
    assert!(gaps[11..].iter().all(|&gap| gap == 1_514_000), "{gaps:?}");
}

#[test]
fn tbf_drops_what_never_fits_and_what_finds_no_room() {
    let mut q = tbf("rate 8mbit burst 1514 limit 3000");
    q.enqueue(Spec { len: 1515, ..Spec::default() });
    for _ in 0..3 {
        q.enqueue(Spec { len: 1000, ..Spec::default() });
    }
    q.enqueue(Spec { len: 1, ..Spec::default() });
    assert_eq!(q.reasons(), [DropReason::TooLong, DropReason::OverLimit]);
    q.change("rate 8mbit burst 500 limit 3000");
    assert_eq!(q.reasons(), [DropReason::TooLong; 3]);
    assert_eq!((q.qdisc.len(), q.qdisc.backlog()), (0, 0));
}

#[test]
fn fq_codel_gives_each_flow_its_turn_and_new_ones_go_first() {
    let mut q = fq_codel("quantum 1514");
    for _ in 0..4 {
        q.enqueue(Spec { hash: Some(0), len: 1514, ..Spec::default() });
    }
    q.depart();
    q.depart();
    q.enqueue(Spec { hash: Some(1 << 31), len: 64, ..Spec::default() });
    let left: Vec<_> = q.depart_all().iter().map(|d| d.id).collect();
    assert_eq!(left, [4, 2, 3]);
    assert_eq!(q.qdisc.counters().new_flow_count, 2);
}

#[test]
fn fq_codel_keeps_a_standing_queue_near_its_target() {
    // 8 Mbit/s, 2 ms per packet; the source sends 1.1 times as much.
    let mut q = fq_codel("noecn");
    let (mut delays, mut sent) = (Vec::new(), std::collections::HashMap::new());
    for n in 0..30_000u64 {
        if n * 11 % 20 < 11 {
            let id = q.enqueue(Spec { hash: Some(7), len: 1500, ..Spec::default() });
            sent.insert(id, q.now);
        }
        q.now += MS;
        if n % 2 == 1
            && let Dequeue::Packet(p) = q.dequeue()
        {
            delays.push(q.now - sent[&p.vlan().unwrap().tci]);
        }
        q.drops.drain().for_each(drop);
    }
    assert!(q.qdisc.statistics().drops > 500, "{:?}", q.qdisc.statistics());
    // An unresponsive source: CoDel raises its rate of drops until the queue is short.
    let tail = &delays[delays.len() * 9 / 10..];
    let mean = tail.iter().sum::<u64>() / tail.len() as u64;
    assert!(mean < 30 * MS, "{mean} ns");
}

#[test]
fn fq_codel_marks_instead_of_dropping_where_the_sender_can_do_with_it() {
    let mut frame = vec![0u8; 1000];
    frame[12..14].copy_from_slice(&[8, 0]);
    frame[14..34].copy_from_slice(&[0x45, 2, 3, 0xda, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    let mut q = fq_codel("");
    let mut marked = 0;
    for _ in 0..50 {
        let packet = q.bytes(&frame);
        q.qdisc.enqueue(packet, Instant::from_nanos(q.now), &mut q.drops);
    }
    for _ in 0..40 {
        q.now += 20 * MS;
        let Dequeue::Packet(p) = q.dequeue() else { panic!("packets are queued") };
        marked += u64::from(p.head()[15] == 3);
    }
    let c = q.qdisc.counters();
    assert!(marked > 2 && marked == c.ecn_mark, "{marked} {c:?}");
    assert_eq!(q.qdisc.statistics().drops, 0);
    // With a threshold all late packets of the selected class are.
    let mut q = fq_codel("ce_threshold 1ms ce_threshold_selector 2/3");
    let packet = q.bytes(&frame);
    q.qdisc.enqueue(packet, Instant::from_nanos(q.now), &mut q.drops);
    q.now += 2 * MS;
    assert!(matches!(q.dequeue(), Dequeue::Packet(p) if p.head()[15] == 3));
    assert_eq!(q.qdisc.counters().ce_mark, 1);
}

#[test]
fn fq_codel_makes_room_by_halving_the_longest_queue() {
    let mut q = fq_codel("limit 100 drop_batch 64");
    for _ in 0..10 {
        q.enqueue(Spec { hash: Some(1 << 31), len: 100, ..Spec::default() });
    }
    for _ in 0..91 {
        q.enqueue(Spec { hash: Some(0), len: 1000, ..Spec::default() });
    }
    // 91 000 bytes in the longest; dropping ends at half of them.
    assert_eq!(q.drops.len(), 46);
    assert_eq!(q.qdisc.counters().drop_overlimit, 46);
    let mut q = fq_codel("memory_limit 20kb");
    for _ in 0..100 {
        q.enqueue(Spec { hash: Some(0), len: 1000, ..Spec::default() });
    }
    assert!(q.qdisc.counters().drop_overmemory > 0);
    assert!(q.qdisc.counters().memory_used <= 20 << 10);
}

#[test]
fn fq_codel_prints_as_tc_and_refuses_what_linux_refuses() {
    let default = "limit 10240p flows 1024 quantum 1514 target 5ms interval 100ms memory_limit 32Mb ecn drop_batch 64";
    assert_eq!(fq_codel("").qdisc.options(), default);
    let line = "limit 5p flows 64 quantum 300 target 10ms interval 200ms ce_threshold 1ms \
        ce_threshold_selector 0x1/0x3 memory_limit 1Mb drop_batch 1";
    assert_eq!(fq_codel(&format!("{line} noecn")).qdisc.options(), line);
    for wrong in ["flows 0", "flows 65537", "quantum 2000000", "target x", "ce_threshold_selector 5", "limit"] {
        assert!(FqCodel::from_words(&words(wrong)).is_err(), "{wrong}");
    }
    let mut q = fq_codel("");
    assert!(q.qdisc.change(&["flows", "2048"], Instant::ZERO, &mut Drops::new()).is_err());
    q.change("limit 7 target 1ms");
    assert!(q.qdisc.options().starts_with("limit 7p flows 1024 quantum 1514 target 1ms"));
}

#[test]
fn every_qdisc_is_made_by_its_name() {
    for (name, options) in [
        ("fq", "quantum 1514"),
        ("fq_codel", ""),
        ("tbf", "rate 1mbit burst 10kb latency 50ms"),
        ("pfifo_fast", ""),
        ("pfifo", "limit 5"),
        ("bfifo", ""),
    ] {
        assert_eq!(by_name(name, &words(options)).unwrap().unwrap().name(), name);
    }
    assert!(by_name("htb", &[]).is_none());
    assert!(by_name("fq", &["colour"]).unwrap().is_err());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    /// For every qdisc: in = out + dropped + queued, and a flow keeps its order.
    #[test]
    fn conservation_and_order(
        which in 0usize..6,
        steps in prop::collection::vec((0u8..10, 0u64..4, 1usize..3000, 0u64..30_000_000), 1..300),
    ) {
        let (name, options) = [
            ("fq", "limit 20 maxrate 10mbit"),
            ("fq_codel", "limit 20 target 1ms interval 10ms flows 4"),
            ("tbf", "rate 10mbit burst 2000 limit 20000"),
            ("pfifo_fast", ""),
            ("pfifo", "limit 10"),
            ("bfifo", "limit 10000"),
        ][which];
        let mut q = Queue::new(Boxed(by_name(name, &words(options)).unwrap().unwrap())).at(S);
        let (mut entered, mut left, mut dropped) = (0, 0, 0);
        let mut last = std::collections::HashMap::new();
        for (kind, flow, len, wait) in steps {
            match kind {
                0..6 => {
                    q.enqueue(Spec::flow(flow, len));
                    entered += 1;
                }
                6..9 => {
                    if let Dequeue::Packet(p) = q.dequeue() {
                        left += 1;
                        let id = p.vlan().unwrap().tci;
                        prop_assert!(last.insert(p.flow_id(), id).is_none_or(|before| before < id));
                    }
                }
                _ => q.now += wait,
            }
            dropped += q.reasons().len();
            prop_assert_eq!(entered, left + dropped + q.qdisc.0.len());
        }
        q.qdisc.0.reset(&mut q.drops);
        prop_assert_eq!(entered, left + dropped + q.reasons().len());
        prop_assert_eq!((q.qdisc.0.len(), q.qdisc.0.backlog()), (0, 0));
    }
}

/// A qdisc behind a pointer.
struct Boxed(Box<dyn Qdisc>);

impl Qdisc for Boxed {
    fn enqueue(&mut self, packet: netcore::Packet, now: Instant, drops: &mut Drops) {
        self.0.enqueue(packet, now, drops);
    }
    fn dequeue(&mut self, now: Instant, drops: &mut Drops) -> Dequeue {
        self.0.dequeue(now, drops)
    }
    fn len(&self) -> usize {
        self.0.len()
    }
    fn backlog(&self) -> usize {
        self.0.backlog()
    }
    fn statistics(&self) -> netcore::QdiscStatistics {
        self.0.statistics()
    }
    fn name(&self) -> &'static str {
        self.0.name()
    }
    fn reset(&mut self, drops: &mut Drops) {
        self.0.reset(drops);
    }
}
