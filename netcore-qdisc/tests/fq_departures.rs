//! When packets leave fq: departure times, classification, limits, marks.

mod bench_queue;

use bench_queue::{Queue, Spec};
use netcore::{Dequeue, DropReason, Instant, Qdisc};
use netcore_qdisc::{Fq, FqOptions, FqRules};
use serde_json::Value;
use std::time::Duration;

const MS: u64 = 1_000_000;
const S: u64 = 1_000_000_000;

fn fq(words: &str) -> Queue<Fq> {
    Queue::new(Fq::from_words(&words.split_whitespace().collect::<Vec<_>>()).unwrap()).at(S)
}

#[test]
fn departure_cases_of_the_kernels_so_txtime_test() {
    let Some(path) = netcore_test::shared("exams/fq.json") else { return };
    let table: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let cases = table["behaviour"].as_array().unwrap();
    assert_eq!(cases.len(), 4);
    for case in cases {
        let mut q = fq("");
        let mut names = Vec::new();
        for packet in case["in"].as_array().unwrap() {
            names.push(packet[0].as_str().unwrap());
            let stamp = packet[1].as_u64().map(|ms| S + ms * MS);
            q.enqueue(Spec { stamp, ..Spec::flow(8, 100) });
        }
        let out: Vec<Value> =
            q.depart_all().iter().map(|d| serde_json::json!([names[usize::from(d.id)], (d.time - S) / MS])).collect();
        assert_eq!(&Value::Array(out), &case["out"], "{}", case["id"]);
    }
}

#[test]
fn a_flow_whose_departure_times_go_backwards_leaves_in_order_of_time() {
    // a@20 then b@10: current kernels send b first.
    let mut q = fq("");
    let a = q.enqueue(Spec::flow(8, 100).at(S + 20 * MS));
    let b = q.enqueue(Spec::flow(8, 100).at(S + 10 * MS));
    let left: Vec<_> = q.depart_all().iter().map(|d| (d.id, (d.time - S) / MS)).collect();
    assert_eq!(left, [(b, 10), (a, 20)]);
}

#[test]
fn equal_departure_times_keep_the_order_of_arrival_also_beside_earlier_ones() {
    let mut q = fq("");
    for stamp in [30, 10, 20, 10, 30, 20, 10] {
        q.enqueue(Spec::flow(8, 100).at(S + stamp * MS));
    }
    let left: Vec<_> = q.depart_all().iter().map(|d| d.id).collect();
    assert_eq!(left, [1, 3, 6, 2, 5, 0, 4]);
}

#[test]
fn packets_beyond_the_horizon_are_dropped_or_brought_back_to_it() {
    let mut q = fq("horizon 100us");
    q.enqueue(Spec::flow(8, 100).at(S + 100_001));
    assert_eq!(q.reasons(), [DropReason::Horizon]);
    q.enqueue(Spec::flow(8, 100).at(S + 100_000));
    q.change("horizon_cap");
    q.enqueue(Spec::flow(8, 100).at(S + 3 * S));
    let left: Vec<_> = q.depart_all().iter().map(|d| d.time - S).collect();
    assert_eq!(left, [100_000, 100_000]);
    let c = q.qdisc.counters();
    assert_eq!((c.horizon_drops, c.horizon_caps), (1, 1));
}

#[test]
fn with_an_offload_horizon_packets_go_to_the_device_that_much_early() {
    let options = FqOptions { offload_horizon: Duration::from_micros(50), ..FqOptions::default() };
    let fq = Fq::with_rules(options, FqRules::LINUX_6_18, Duration::from_micros(50)).unwrap();
    let mut q = Queue::new(fq).at(S);
    q.enqueue(Spec::flow(8, 100).at(S + MS));
    assert_eq!(q.depart().unwrap().time, S + MS - 50_000);
}

#[test]
fn each_band_has_a_limit_of_its_own() {
    // The kernel's fq_band_pktlimit.sh: limit 10, 20 packets of one priority, departure in the future.
    let mut q = fq("limit 10");
    for priority in [6, 0, 2] {
        for n in 0..20 {
            q.enqueue(Spec { priority, ..Spec::flow(n, 100) }.at(S + 500 * MS));
        }
    }
    let c = q.qdisc.counters();
    assert_eq!((c.band_packets, c.band_drops), ([10; 3], [10; 3]));
    assert!(q.reasons().iter().all(|&reason| reason == DropReason::BandLimit));
    assert_eq!(q.depart_all().len(), 30);
}

#[test]
fn a_full_flow_drops_the_new_packet_and_leaves_others_alone() {
    let mut q = fq("flow_limit 2");
    for _ in 0..4 {
        q.enqueue(Spec::flow(1, 100).at(S + MS));
    }
    q.enqueue(Spec::flow(2, 100).at(S + MS));
    assert_eq!(q.reasons(), [DropReason::FlowLimit; 2]);
    assert_eq!((q.qdisc.len(), q.qdisc.counters().flows_plimit), (3, 2));
    let left: Vec<_> = q.depart_all().iter().map(|d| d.id).collect();
    assert_eq!(left, [0, 1, 4]);
}

#[test]
fn packets_without_a_socket_are_spread_by_their_hash_under_the_orphan_mask() {
    let mut q = fq("orphan_mask 3 maxrate 1gbit");
    for hash in 0..64 {
        q.enqueue(Spec { hash: Some(hash), len: 100, ..Spec::default() });
    }
    assert_eq!(q.qdisc.counters().flows, 4);
    // A socket whose identity equals a hash is another flow.
    q.enqueue(Spec::flow(1, 100));
    assert_eq!(q.qdisc.counters().flows, 5);
    // Without a hash, addresses and ports decide.
    let mut q = fq("maxrate 1gbit");
    for port in [1000u16, 1001, 1000] {
        let mut frame = vec![0u8; 14 + 20 + 8];
        frame[12..14].copy_from_slice(&[8, 0]);
        frame[14..34].copy_from_slice(&[0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        frame[34..36].copy_from_slice(&port.to_be_bytes());
        frame[38..40].copy_from_slice(&[0, 8]);
        let packet = q.bytes(&frame);
        q.qdisc.enqueue(packet, Instant::from_nanos(S), &mut q.drops);
    }
    assert_eq!(q.qdisc.counters().flows, 2);
}

#[test]
fn a_socket_identity_that_is_given_to_another_socket_starts_afresh() {
    let mut q = fq("maxrate 8kbit low_rate_threshold 0");
    let of = |hash| Spec { hash: Some(hash), ..Spec::flow(8, 15_140) };
    q.enqueue(of(1));
    q.enqueue(of(1));
    assert_eq!(q.depart().unwrap().time, S);
    assert!(matches!(q.dequeue(), Dequeue::Throttled(t) if t.as_nanos() == 2 * S));
    q.enqueue(of(2));
    assert_eq!(q.qdisc.counters().throttled_flows, 0);
    assert_eq!(q.depart().unwrap().time, S);
}

#[test]
fn the_fast_path_takes_what_may_leave_while_nothing_else_could() {
    let mut q = fq("");
    q.enqueue(Spec::flow(1, 100));
    assert_eq!(q.qdisc.counters().fastpath, 1);
    assert_eq!(q.qdisc.counters().flows, 0);
    // Not with a rate of its own.
    q.enqueue(Spec::flow(2, 100).rate(1_000_000));
    assert_eq!((q.qdisc.counters().fastpath, q.qdisc.counters().flows), (1, 1));
    // Not while a flow has something to send.
    q.enqueue(Spec::flow(3, 100));
    assert_eq!(q.qdisc.counters().fastpath, 1);
    q.depart_all();
    // While all flows wait for their times it does, for up to eight packets.
    q.enqueue(Spec::flow(4, 100).at(q.now + MS));
    assert!(matches!(q.dequeue(), Dequeue::Throttled(_)));
    for _ in 0..10 {
        q.enqueue(Spec::flow(3, 100));
    }
    assert_eq!(q.qdisc.counters().fastpath, 9);
    // Not with a maxrate.
    let mut q = fq("maxrate 1gbit");
    q.enqueue(Spec::flow(1, 100));
    assert_eq!(q.qdisc.counters().fastpath, 0);
}

#[test]
fn up_to_6_6_control_priority_bypasses_flows() {
    let fq = Fq::with_rules(FqOptions::default(), FqRules::LINUX_4_0, Duration::ZERO).unwrap();
    let mut q = Queue::new(fq).at(S);
    q.enqueue(Spec::flow(1, 100).at(S + MS));
    q.enqueue(Spec { priority: 7, ..Spec::flow(1, 100) });
    // Departure times mean nothing yet.
    let left: Vec<_> = q.depart_all().iter().map(|d| (d.time, d.id)).collect();
    assert_eq!(left, [(S, 1), (S, 0)]);
    assert_eq!(q.qdisc.counters().highprio, 1);
}

#[test]
fn packets_that_leave_too_late_are_marked_in_their_ip_header() {
    let mut q = fq("ce_threshold 1ms");
    let mut frame = vec![0u8; 14 + 20];
    frame[12..14].copy_from_slice(&[8, 0]);
    frame[14..34].copy_from_slice(&[0x45, 2, 0, 20, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    for (wait, marked) in [(MS, false), (MS + 1, true)] {
        let mut packet = q.bytes(&frame);
        packet.set_flow_id(Some(8));
        packet.set_departure(Some(Instant::from_nanos(q.now + MS)));
        q.qdisc.enqueue(packet, Instant::from_nanos(q.now), &mut q.drops);
        q.now += MS + wait;
        let Dequeue::Packet(packet) = q.dequeue() else { panic!("one packet is due") };
        assert_eq!(packet.head()[15], if marked { 3 } else { 2 });
        // RFC 1624: the sum stays right, 0 having stood for an unfilled field.
        assert_eq!(u16::from_be_bytes([packet.head()[24], packet.head()[25]]), if marked { 0xfffe } else { 0 });
    }
    assert_eq!(q.qdisc.counters().ce_mark, 1);
}

#[test]
fn flows_idle_for_three_seconds_are_freed_when_others_come() {
    let mut q = fq("maxrate 1gbit");
    for flow in 0..20 {
        q.enqueue(Spec::flow(flow, 100));
    }
    q.depart_all();
    // Their turns come while another flow still sends; then they are idle.
    for _ in 0..40 {
        q.enqueue(Spec::flow(99, 1514));
    }
    q.depart_all();
    assert_eq!(q.qdisc.counters().flows, 21);
    q.now += 2 * S;
    q.enqueue(Spec::flow(99, 100));
    assert_eq!(q.qdisc.counters().gc, 0);
    q.now += 2 * S;
    q.enqueue(Spec::flow(100, 100));
    let c = q.qdisc.counters();
    assert_eq!((c.gc, c.flows), (8, 14));
}

#[test]
fn credit_is_refilled_after_the_delay_but_a_debt_is_kept() {
    // Two flows; one comes back after being idle. Without pacing, turns alone decide.
    let mut q = fq("nopacing quantum 1514 initial_quantum 1514 maxrate 1gbit");
    for flow in [1, 2] {
        for _ in 0..3 {
            q.enqueue(Spec::flow(flow, 1514));
        }
    }
    let order: Vec<_> = q.depart_all().iter().map(|d| d.flow.unwrap()).collect();
    assert_eq!(order, [1, 2, 1, 2, 1, 2]);
}

#[test]
fn a_smaller_limit_drops_what_would_leave_next_and_what_waits_stays() {
    let mut q = fq("");
    for n in 0..10 {
        q.enqueue(Spec::flow(1, 100).at(S + MS * u64::from(n >= 5)));
    }
    q.change("limit 3");
    assert_eq!(q.reasons(), [DropReason::Reset; 5]);
    assert_eq!(q.qdisc.len(), 5);
    assert_eq!(q.qdisc.statistics().drops, 5);
}

#[test]
fn a_reset_gives_everything_back() {
    let mut q = fq("");
    for n in 0..20 {
        q.enqueue(Spec::flow(n % 3, 100).at(S + (n % 4) * MS));
    }
    q.qdisc.reset(&mut q.drops);
    assert_eq!(q.reasons(), [DropReason::Reset; 20]);
    assert_eq!((q.qdisc.len(), q.qdisc.backlog(), q.qdisc.counters().flows), (0, 0, 0));
    q.enqueue(Spec::flow(1, 100));
    assert_eq!(q.depart_all().len(), 1);
}

#[test]
fn the_headers_of_every_segment_count() {
    let mut q = fq("");
    let mut frame = vec![0u8; 66];
    frame[12..14].copy_from_slice(&[8, 0]);
    frame[14] = 0x45;
    frame[46] = 0x80;
    let mut packet = q.bytes(&frame);
    let payload = q.packet(Spec { len: 3000, ..Spec::default() });
    packet.append(payload).unwrap();
    packet.set_offsets(Some(netcore::HeaderOffsets { network: 14, transport: 34, ..Default::default() }));
    packet.set_gso(Some(netcore::Gso { kind: netcore::GsoKind::TCPV4, size: 1000, segments: 3 }));
    q.qdisc.enqueue(packet, Instant::from_nanos(S), &mut q.drops);
    assert_eq!(q.qdisc.backlog(), 3000 + 3 * 66);
    q.depart_all();
    let s = q.qdisc.statistics();
    assert_eq!((s.bytes, s.packets), (3198, 3));
}

#[test]
fn up_to_4_20_acknowledgements_without_data_are_free_and_data_in_further_segments_is_data() {
    let mut frame = vec![0u8; 14 + 20 + 20];
    frame[12..14].copy_from_slice(&[8, 0]);
    frame[14..34].copy_from_slice(&[0x45, 0, 0, 40, 0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    frame[46] = 0x50;
    frame[47] = 0x10;
    let options = FqOptions { maxrate: Some(netcore::Rate::from_bytes_per_sec(1000)), ..FqOptions::default() };
    let options = FqOptions { initial_quantum: 1, quantum: 256, ..options };
    let mut q = Queue::new(Fq::with_rules(options, FqRules::LINUX_4_0, Duration::ZERO).unwrap()).at(S);
    let mut enqueue = |q: &mut Queue<Fq>, payload: usize| {
        frame[16..18].copy_from_slice(&(40 + payload as u16).to_be_bytes());
        let mut packet = q.bytes(&frame);
        if payload > 0 {
            let tail = q.packet(Spec { len: payload, ..Spec::default() });
            packet.append(tail).unwrap();
        }
        packet.set_flow_id(Some(8));
        q.qdisc.enqueue(packet, Instant::from_nanos(q.now), &mut q.drops);
    };
    for payload in [0, 0, 1000, 0, 0, 1000] {
        enqueue(&mut q, payload);
    }
    let times: Vec<_> = q.depart_all().iter().map(|d| (d.time - S, d.len)).collect();
    // 1054 bytes at 1000 bytes/s, at most one second.
    assert_eq!(times, [(0, 54), (0, 54), (0, 1054), (0, 54), (0, 54), (S, 1054)]);
}
