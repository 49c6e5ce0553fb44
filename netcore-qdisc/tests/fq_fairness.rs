//! Fairness: no flow gets ahead of another by more than one quantum and one packet; bands share by weight.

mod bench_queue;

use bench_queue::{Queue, Spec};
use netcore::Qdisc;
use netcore_qdisc::{Fq, FqOptions};

const SIZES: [usize; 9] = [64, 128, 590, 1514, 3028, 4000, 9014, 32_768, 65_536];

/// Serves flows that never run empty, calling `check` after each departure with bytes served per flow.
fn serve(options: FqOptions, specs: &[Spec], count: usize, mut check: impl FnMut(&[usize])) -> Vec<usize> {
    let mut q = Queue::new(Fq::new(options).unwrap());
    for _ in 0..2 {
        for &spec in specs {
            q.enqueue(spec);
        }
    }
    let mut served = vec![0; specs.len()];
    for _ in 0..count {
        let d = q.depart().unwrap();
        let flow = d.flow.unwrap() as usize;
        served[flow] += d.len;
        q.enqueue(specs[flow]);
        check(&served);
    }
    assert!(q.qdisc.statistics().drops == 0);
    served
}

#[test]
fn no_flow_gets_ahead_by_more_than_a_quantum_and_a_packet() {
    for quantum in [256, 1514, 3028, 18_028, 1 << 20] {
        // The first packet goes past the flows, so pacing is off and a maxrate is set.
        let options = FqOptions {
            quantum,
            initial_quantum: quantum,
            pacing: false,
            maxrate: Some(netcore::Rate::from_bits_per_sec(1)),
            ..FqOptions::default()
        };
        for a in SIZES {
            for b in SIZES {
                let specs = [Spec::flow(0, a), Spec::flow(1, b)];
                let count = if quantum > 100_000 && a.min(b) < 1000 { 20_000 } else { 600 };
                serve(options, &specs, count, |served| {
                    for (ahead, behind, len) in [(0, 1, a), (1, 0, b)] {
                        let lead = served[ahead].saturating_sub(served[behind]);
                        assert!(lead <= quantum as usize + len, "quantum {quantum} sizes {a} {b}: {lead}");
                    }
                });
            }
        }
        let all: Vec<Spec> = (0..).zip(SIZES).map(|(flow, len)| Spec::flow(flow, len)).collect();
        let rounds = if quantum > 100_000 { 80_000 } else { 10_000 };
        serve(options, &all, rounds, |served| {
            for (ahead, &len) in SIZES.iter().enumerate() {
                let lead = served[ahead] - *served.iter().min().unwrap();
                assert!(lead <= quantum as usize + len, "quantum {quantum} size {len}: {lead}");
            }
        });
    }
}

#[test]
fn bands_share_by_weight_whatever_the_packet_sizes() {
    for weights in [[589_824, 196_608, 65_536], [16_384, 16_384, 16_384], [65_536, 655_360, 131_072]] {
        for len in SIZES {
            let options = FqOptions { weights, pacing: false, ..FqOptions::default() };
            // One socket with a rate keeps packets off the fast path.
            let flow = |flow: u64, priority| Spec { priority, ..Spec::flow(flow, len) }.rate(u64::MAX - 1);
            let specs = [flow(0, 6), flow(1, 0), flow(2, 2)];
            let count = (20 * weights.iter().sum::<u32>() as usize / len).clamp(3_000, 60_000);
            let served = serve(options, &specs, count, |_| ());
            let turns: Vec<f64> = served.iter().zip(weights).map(|(&s, w)| s as f64 / f64::from(w)).collect();
            for (a, &wa) in weights.iter().enumerate() {
                for b in 0..3 {
                    let lead = turns[a] - turns[b];
                    assert!(lead <= 1.0 + len as f64 / f64::from(wa), "{weights:?} len {len}: {served:?}");
                }
            }
        }
    }
}

#[test]
fn ten_thousand_flows_are_served_in_turn() {
    let options = FqOptions {
        limit: 1 << 20,
        pacing: false,
        maxrate: Some(netcore::Rate::from_bits_per_sec(1)),
        ..FqOptions::default()
    };
    let mut q = Queue::new(Fq::new(FqOptions { initial_quantum: 1514, quantum: 1514, ..options }).unwrap());
    for _ in 0..3 {
        for flow in 0..10_000 {
            q.enqueue(Spec::flow(flow, 1514));
        }
    }
    let left = q.depart_all();
    for (n, d) in left.iter().enumerate() {
        assert_eq!(d.flow, Some(n as u64 % 10_000), "{n}");
    }
}
