//! Pacing: rates, bursts, the nanosecond, extremes of clock and rate, the real fq's departures.

mod bench_queue;

use bench_queue::{Departure, Queue, Spec};
use netcore::Rate;
use netcore_qdisc::autosize::FlowView;
use netcore_qdisc::{Autosize, Fq, FqOptions};
use std::time::Duration;

const S: u64 = 1_000_000_000;

fn with_maxrate(rate: u64) -> Queue<Fq> {
    let maxrate = Some(Rate::from_bytes_per_sec(rate));
    Queue::new(Fq::new(FqOptions { maxrate, ..FqOptions::default() }).unwrap())
}

/// `count` departures of one flow that always has packets of `len` bytes queued.
fn backlogged(q: &mut Queue<Fq>, spec: Spec, count: usize) -> Vec<Departure> {
    q.enqueue(spec);
    (0..count)
        .map(|_| {
            q.enqueue(spec);
            q.depart().unwrap()
        })
        .collect()
}

#[test]
fn goodput_is_within_one_percent_of_maxrate_from_kilobits_to_the_limit_of_tc() {
    for rate in [8_000, 68_750, 68_751, 125_000, 12_500_000, 125_000_000, 1_250_000_000, u64::from(u32::MAX) - 1] {
        for len in [64, 1000, 1514, 3000, 9014, 65_226] {
            if len as u64 > rate {
                // More than a second per packet: Linux sends one each second.
                continue;
            }
            let mut q = with_maxrate(rate).at(S);
            let initial = u64::from(FqOptions::default().initial_quantum) / len as u64 + 2;
            let per_second = (rate / len as u64) as usize;
            let count = (per_second.clamp(1000, 4000) + initial as usize).min(6000);
            let left = backlogged(&mut q, Spec::flow(8, len), count);
            // From the first packet of one turn to the first of another.
            let starts = |w: &[Departure]| w[1].time > w[0].time;
            let first = initial as usize + left[initial as usize..].windows(2).position(starts).unwrap() + 1;
            let last = left.windows(2).rposition(starts).unwrap() + 1;
            let time = left[last].time - left[first].time;
            let bytes = (last - first) * len;
            let goodput = bytes as f64 * 1e9 / time as f64;
            let error = goodput / rate as f64 - 1.0;
            assert!(error.abs() < 0.01, "rate {rate} len {len}: {goodput} bytes/s, {error}");
        }
    }
}

#[test]
fn departures_of_a_paced_flow_are_exact_to_the_nanosecond() {
    // At or below the threshold each packet is paced alone, above it each quantum.
    for (rate, len, per_turn) in [(60_000u64, 1514u64, 1u64), (125_000, 1514, 2), (125_000_000, 3028, 1)] {
        let mut q = with_maxrate(rate).at(S);
        let left = backlogged(&mut q, Spec::flow(8, len as usize), 400);
        let steady = &left[100..];
        let first = steady.iter().position(|d| d.time > steady[0].time).unwrap();
        let gap = len * per_turn * S / rate;
        for pair in steady[first..].chunks_exact(per_turn as usize).collect::<Vec<_>>().windows(2) {
            assert!(pair[0].iter().all(|d| d.time == pair[0][0].time));
            assert_eq!(pair[1][0].time - pair[0][0].time, gap, "rate {rate} len {len}");
        }
    }
}

#[test]
fn the_first_burst_is_the_initial_quantum_and_at_most_one_packet() {
    for (initial, len) in [(15_140usize, 1514usize), (15_140, 1000), (15_140, 65_226), (0, 1514), (900_000, 1514)] {
        let options = FqOptions {
            maxrate: Some(Rate::from_bits_per_sec(10_000_000)),
            initial_quantum: initial as u32,
            flow_limit: 1000,
            ..FqOptions::default()
        };
        let mut q = Queue::new(Fq::new(options).unwrap()).at(S);
        for _ in 0..800 {
            q.enqueue(Spec::flow(8, len));
        }
        let burst: usize = std::iter::from_fn(|| q.depart()).take_while(|d| d.time == S).map(|d| d.len).sum();
        // Without any initial credit the first turn gives a quantum.
        let least = if initial == 0 { 3028 } else { initial };
        assert!(burst >= least.min(len) && burst < least + len, "initial {initial} len {len}: {burst}");
    }
}

#[test]
fn a_flow_served_late_makes_up_for_at_most_half_of_its_delay() {
    let mut q = with_maxrate(1_514_000).at(S);
    q.change("initial_quantum 1514 quantum 1514");
    let mut gaps = Vec::new();
    q.enqueue(Spec::flow(8, 1514));
    let mut due = S;
    for late in [0, 100_000, 400_000, 900_000, 0] {
        q.enqueue(Spec::flow(8, 1514));
        q.now = due + late;
        assert_eq!(q.depart().unwrap().time, due + late);
        let netcore::Dequeue::Throttled(next) = q.dequeue() else { panic!("the next packet waits") };
        gaps.push(next.as_nanos() - q.now);
        due = next.as_nanos();
    }
    assert_eq!(gaps, [1_000_000, 900_000, 600_000, 500_000, 1_000_000]);
}

#[test]
fn one_second_is_the_longest_delay() {
    for rate in [0, 1, 1000] {
        let mut q = with_maxrate(rate).at(S);
        q.change("initial_quantum 0");
        let left = backlogged(&mut q, Spec::flow(8, 1514), 4);
        let times: Vec<_> = left.iter().map(|d| d.time / S).collect();
        assert_eq!(times, [1, 2, 3, 4], "rate {rate}");
        assert_eq!(q.qdisc.counters().pkts_too_long, 4);
    }
}

#[test]
fn a_slow_socket_is_paced_and_a_fast_one_beside_it_is_not_delayed() {
    let mut q = Queue::new(Fq::new(FqOptions::default()).unwrap()).at(S);
    for _ in 0..50 {
        q.enqueue(Spec::flow(1, 1514).rate(125_000));
        q.enqueue(Spec::flow(2, 1514).rate(1_250_000_000));
    }
    let left = q.depart_all();
    let last = |flow| left.iter().rfind(|d| d.flow == Some(flow)).unwrap().time - S;
    // 25 turns, five of them free, one delay each but the last.
    assert_eq!(last(1), 20 * 3028 * 8_000);
    assert!(last(2) < 100_000, "{}", last(2));
}

#[test]
fn a_rate_below_one_packet_per_tick_is_kept_all_the_same() {
    // 10 Mbit/s, 1200 bytes, the owner looks every millisecond (1250 bytes), ten seconds: a token bucket that throws
    // remainders away sends 9.6 Mbit/s.
    let mut q = with_maxrate(1_250_000).at(S);
    q.enqueue(Spec::flow(8, 1200));
    let mut bytes = 0;
    for tick in 0..10_000u64 {
        q.now = S + tick * 1_000_000;
        while let netcore::Dequeue::Packet(p) = q.dequeue() {
            bytes += p.len();
            q.enqueue(Spec::flow(8, 1200));
        }
    }
    let mbit = bytes as f64 * 8.0 / 10.0 / 1e6;
    assert!((mbit - 10.0).abs() < 0.1, "{mbit} Mbit/s");
}

#[test]
fn any_origin_of_the_clock_and_years_of_idling_change_nothing() {
    let year = 31_557_600 * S;
    let relative = |origin: u64, idle: u64| {
        let mut q = with_maxrate(125_000_000).at(origin);
        let mut left = backlogged(&mut q, Spec::flow(8, 1514), 30);
        q.depart_all();
        let before = q.now;
        q.now = q.now.saturating_add(idle);
        let after = q.now;
        for d in backlogged(&mut q, Spec::flow(8, 1514), 30) {
            left.push(Departure { time: d.time - after + before, ..d });
        }
        left.iter().map(|d| (d.time - origin, d.len)).collect::<Vec<_>>()
    };
    let expected = relative(S, 10 * S);
    for (origin, idle) in [(1, 10 * S), (S, 40 * year), (300 * year, 200 * year), (1 << 62, 1 << 61)] {
        assert_eq!(relative(origin, idle), expected, "origin {origin}");
    }
    // At the end of time nothing wraps.
    let mut q = with_maxrate(125).at(u64::MAX - 10);
    for _ in 0..100 {
        q.enqueue(Spec::flow(8, 1514));
    }
    for _ in 0..100 {
        if let netcore::Dequeue::Throttled(t) = q.dequeue() {
            assert!(t.as_nanos() >= u64::MAX - 10);
        }
    }
}

#[test]
fn time_that_goes_backwards_is_taken_as_the_latest_seen() {
    let mut q = with_maxrate(125_000_000).at(10 * S);
    q.enqueue(Spec::flow(8, 1514));
    q.now = S;
    assert!(matches!(q.dequeue(), netcore::Dequeue::Packet(_)));
    q.enqueue(Spec::flow(9, 1514));
    assert!(matches!(q.dequeue(), netcore::Dequeue::Packet(_)));
}

#[test]
fn giants_and_huge_quanta_do_not_stop_the_wheel() {
    let mut q = Queue::new(Fq::from_words(&["quantum", "256", "initial_quantum", "1048576"]).unwrap()).at(S);
    q.change("limit 4000000 flow_limit 1000");
    for _ in 0..20 {
        q.enqueue(Spec { rate: Some(50_000_000_000), ..Spec::flow(8, 1 << 30) });
        q.enqueue(Spec { rate: Some(50_000_000_000), ..Spec::flow(9, 64) });
    }
    assert_eq!(q.depart_all().len(), 40);
}

fn median(mut values: Vec<u64>) -> u64 {
    values.sort_unstable();
    values[values.len() / 2]
}

#[test]
fn sizes_and_spacing_are_those_of_the_real_fq() {
    for (name, rate) in [("fq_pacing_10mbit.csv", 1_250_000), ("fq_pacing_100mbit.csv", 12_500_000)] {
        let Some(path) = netcore_test::shared(&format!("exams/pcaps/{name}")) else { return };
        let real: Vec<(u64, u64)> = std::fs::read_to_string(path)
            .unwrap()
            .lines()
            .skip(1)
            .map(|line| {
                let (time, payload) = line.split_once(',').unwrap();
                (time.parse().unwrap(), payload.parse().unwrap())
            })
            .collect();
        // A sender of the same kind: sizes by autosizing, each packet stamped one packet time after the one before.
        let view = FlowView {
            mss: 1448,
            pacing_rate: Some(Rate::from_bytes_per_sec(rate)),
            min_rtt: Some(Duration::from_millis(25)),
            max_window: 0,
        };
        let payload = u64::from(Autosize::linux().send_segments(&view)) * 1448;
        let mut q = Queue::new(Fq::new(FqOptions::default()).unwrap()).at(S);
        for n in 0..90 {
            q.enqueue(Spec::flow(8, payload as usize + 66).at(S + n * (payload * S / rate)));
        }
        let left = q.depart_all();
        let ours = median(left.windows(2).map(|w| w[1].time - w[0].time).collect()) as f64 / 1000.0;
        let steady = &real[real.len() / 4..];
        let theirs = median(steady.windows(2).map(|w| w[1].0 - w[0].0).collect()) as f64;
        assert_eq!(payload, median(steady.iter().map(|d| d.1).collect()), "{name}");
        assert!((ours / theirs - 1.0).abs() < 0.01, "{name}: {ours} us, real {theirs} us");
    }
}
