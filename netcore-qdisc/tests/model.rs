//! fq against a slow, obvious fq: any sequence of calls gives the same departures, drops and waits.

mod reference;

use netcore::{Dequeue, Drops, Instant, Packet, PacketPool, PoolCache, PoolConfig, Qdisc, Rate, VlanTag};
use netcore_qdisc::{Fq, FqOptions, FqRules};
use proptest::prelude::*;
use reference::{Config, MAX, Outcome, Pkt, Reference};
use std::collections::HashMap;
use std::time::Duration;

#[derive(Clone, Debug)]
enum Step {
    Enqueue { flow: u64, len: u16, stamp: Option<i64>, rate: Option<u64>, priority: u8 },
    Dequeue(u8),
    Wait(u64),
    WaitUntilNext,
    Change(usize),
}

/// Option changes as words and as what they mean to the reference.
type Change = (&'static [&'static str], fn(&mut Config));
const CHANGES: &[Change] = &[
    (&["quantum", "1514"], |c| c.quantum = 1514),
    (&["quantum", "3028"], |c| c.quantum = 3028),
    (&["quantum", "65536"], |c| c.quantum = 65536),
    (&["initial_quantum", "0"], |c| c.initial_quantum = 0),
    (&["initial_quantum", "15140"], |c| c.initial_quantum = 15140),
    (&["maxrate", "100mbit"], |c| c.maxrate = 12_500_000),
    (&["maxrate", "34359738360"], |c| c.maxrate = MAX),
    (&["nopacing"], |c| c.pacing = false),
    (&["pacing"], |c| c.pacing = true),
    (&["limit", "5"], |c| c.limit = 5),
    (&["limit", "10000"], |c| c.limit = 10_000),
    (&["flow_limit", "2"], |c| c.flow_limit = 2),
    (&["flow_limit", "100"], |c| c.flow_limit = 100),
    (&["horizon", "1ms", "horizon_cap"], |c| (c.horizon, c.horizon_drop) = (1_000_000, false)),
    (&["horizon", "10s", "horizon_drop"], |c| (c.horizon, c.horizon_drop) = (10_000_000_000, true)),
    (&["refill_delay", "0"], |c| c.refill_delay = 0),
    (&["refill_delay", "40ms"], |c| c.refill_delay = 40_000_000),
    (&["low_rate_threshold", "0"], |c| c.low_rate = 0),
    (&["low_rate_threshold", "550kbit"], |c| c.low_rate = 68_750),
    (&["weights", "16384", "16384", "589824"], |c| c.weights = [16384, 16384, 589_824]),
    (&["weights", "589824", "196608", "65536"], |c| c.weights = [589_824, 196_608, 65536]),
    (&["offload_horizon", "20us"], |c| c.offload_horizon = 20_000),
    (&["offload_horizon", "0"], |c| c.offload_horizon = 0),
];

fn step() -> impl Strategy<Value = Step> {
    let stamp = prop_oneof![
        3 => Just(None),
        2 => (-5_000i64..2_000_000).prop_map(Some),
        1 => (0i64..20_000_000_000).prop_map(Some),
    ];
    let rate = prop_oneof![
        2 => Just(None),
        2 => (1u64..100_000_000).prop_map(Some),
        1 => (0u64..100_000).prop_map(Some),
        1 => (1u64..50_000_000_000).prop_map(Some),
    ];
    let enqueue = (0u64..7, 1u16..=u16::MAX, stamp, rate, 0u8..16)
        .prop_map(|(flow, len, stamp, rate, priority)| Step::Enqueue { flow, len, stamp, rate, priority });
    let wait = prop_oneof![
        4 => 0u64..200_000,
        2 => 0u64..50_000_000,
        1 => 0u64..10_000_000_000,
        1 => Just(3_000_000_000u64),
        // Forty years.
        1 => Just(1_262_304_000_000_000_000u64),
    ];
    prop_oneof![
        8 => enqueue,
        6 => (1u8..6).prop_map(Step::Dequeue),
        3 => wait.prop_map(Step::Wait),
        3 => Just(Step::WaitUntilNext),
        1 => (0..CHANGES.len()).prop_map(Step::Change),
    ]
}

fn id(packet: &Packet) -> u16 {
    packet.vlan().map_or(u16::MAX, |tag| tag.tci)
}

fn packet(cache: &mut PoolCache, p: &Pkt) -> Packet {
    let mut packet = cache.virtual_bytes(p.len as usize).unwrap();
    packet.set_vlan(Some(VlanTag { tpid: 0x8100, tci: p.id }));
    packet.set_flow_id(Some(p.flow));
    packet.set_departure(p.stamp.map(Instant::from_nanos));
    packet.set_pacing_rate(p.rate.map(Rate::from_bytes_per_sec));
    packet.set_priority(p.priority as u32);
    packet
}

fn start() -> Config {
    Config {
        limit: 10_000,
        flow_limit: 100,
        quantum: 3028,
        initial_quantum: 15_140,
        maxrate: MAX,
        pacing: true,
        refill_delay: 40_000_000,
        low_rate: 68_750,
        horizon: 10_000_000_000,
        horizon_drop: true,
        priomap: [1, 2, 2, 2, 1, 2, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1],
        weights: [589_824, 196_608, 65536],
        offload_horizon: 0,
        fresh_in_band_0: false,
    }
}

fn check(origin: u64, rules: FqRules, steps: &[Step]) -> Result<(), TestCaseError> {
    let mut cache = PacketPool::new(PoolConfig::with_buffers(1024)).unwrap().cache();
    let mut fq = Fq::with_rules(FqOptions::default(), rules, Duration::from_millis(1)).unwrap();
    let mut slow = Reference::new(Config { fresh_in_band_0: rules.fresh_in_band_0, ..start() });
    let mut drops = Drops::new();
    let (mut now, mut next, mut ids) = (origin, origin, 0u16);
    let (mut entered, mut left, mut dropped) = (0, 0, 0);
    for step in steps {
        match *step {
            Step::Enqueue { flow, len, stamp, rate, priority } => {
                let stamp = stamp.map(|d| now.saturating_add_signed(d)).filter(|&t| t != 0);
                let p = Pkt::new(ids, flow, i64::from(len), stamp, rate, usize::from(priority));
                ids += 1;
                entered += 1;
                fq.enqueue(packet(&mut cache, &p), Instant::from_nanos(now), &mut drops);
                let expected = slow.enqueue(p, now);
                let reason = drops.as_slice().first().map(|d| d.reason.name());
                prop_assert_eq!(reason, expected.err());
                dropped += drops.drain().count();
            }
            Step::Dequeue(count) => {
                for _ in 0..count {
                    let got = match fq.dequeue(Instant::from_nanos(now), &mut drops) {
                        Dequeue::Packet(p) => Outcome::Packet(id(&p)),
                        Dequeue::Empty => Outcome::Empty,
                        Dequeue::Throttled(t) => {
                            next = t.as_nanos();
                            prop_assert!(next > now, "throttled until {next} at {now}");
                            Outcome::Throttled(next)
                        }
                    };
                    left += usize::from(matches!(got, Outcome::Packet(_)));
                    prop_assert_eq!(got, slow.dequeue(now));
                }
            }
            Step::Wait(ns) => now = now.saturating_add(ns),
            Step::WaitUntilNext => now = now.max(next),
            Step::Change(n) => {
                let (words, apply) = CHANGES[n];
                fq.change(words, Instant::from_nanos(now), &mut drops).unwrap();
                apply(&mut slow.config);
                let ids: Vec<u16> = drops.drain().map(|d| id(&d.packet)).collect();
                dropped += ids.len();
                prop_assert_eq!(ids, slow.shrink(now));
            }
        }
        prop_assert_eq!(fq.len(), slow.len());
        prop_assert_eq!(fq.backlog() as i64, slow.backlog());
        prop_assert_eq!(entered, left + dropped + fq.len());
        let c = fq.counters();
        prop_assert_eq!((c.flows as usize, c.throttled_flows as usize), (slow.flows(), slow.waiting()));
        prop_assert_eq!((c.fastpath, c.gc, c.throttled), (slow.fastpath, slow.gc, slow.throttled));
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn departures_are_those_of_the_reference(
        origin in prop_oneof![Just(0u64), any::<u64>(), Just(u64::MAX - 1_000_000)],
        steps in prop::collection::vec(step(), 1..120),
    ) {
        check(origin, FqRules::default(), &steps)?;
        check(origin, FqRules::LINUX_6_18, &steps)?;
    }

    /// Without departure times and with sockets that are given to others in between, packets of a flow keep their order and
    /// none is lost.
    #[test]
    fn order_within_a_flow_and_conservation_hold_when_sockets_are_reused(
        steps in prop::collection::vec((step(), 0u32..3), 1..200),
    ) {
        let mut cache = PacketPool::new(PoolConfig::with_buffers(1024)).unwrap().cache();
        let mut fq = Fq::new(FqOptions::default()).unwrap();
        let mut drops = Drops::new();
        let (mut now, mut entered, mut left, mut dropped) = (0u64, 0u16, 0, 0);
        let mut last: HashMap<Option<u64>, u16> = HashMap::new();
        for (step, hash) in steps {
            match step {
                Step::Enqueue { flow, len, rate, priority, .. } => {
                    let p = Pkt::new(entered, flow, i64::from(len), None, rate, usize::from(priority));
                    let mut packet = packet(&mut cache, &p);
                    packet.set_hash(Some(hash), true);
                    fq.enqueue(packet, Instant::from_nanos(now), &mut drops);
                    entered += 1;
                }
                Step::Dequeue(count) => for _ in 0..count {
                    if let Dequeue::Packet(p) = fq.dequeue(Instant::from_nanos(now), &mut drops) {
                        left += 1;
                        // The internal queue may overtake what a flow holds back, never the other way round.
                        let before = last.insert(p.flow_id(), id(&p));
                        prop_assert!(fq.counters().fastpath > 0 || before.is_none_or(|before| before < id(&p)));
                    }
                },
                Step::Wait(ns) => now = now.saturating_add(ns),
                Step::WaitUntilNext => now += 1_000_000,
                Step::Change(_) => {}
            }
            dropped += drops.drain().count();
            prop_assert_eq!(usize::from(entered), left + dropped + fq.len());
        }
        // Everything leaves in the end.
        for _ in 0..10_000 {
            match fq.dequeue(Instant::from_nanos(now), &mut drops) {
                Dequeue::Packet(_) => left += 1,
                Dequeue::Throttled(t) => now = t.as_nanos(),
                Dequeue::Empty => break,
            }
        }
        prop_assert_eq!((fq.len(), usize::from(entered)), (0, left + dropped));
    }
}
