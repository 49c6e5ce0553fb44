//! Whatever links and systems do: no data goes where it is not taken, and once the links are steady, all of them are used.

mod lacp_net;

use lacp_net::{BOTH_TIMINGS, Net, config, mac};
use netcore::LinkState;
use netcore_bond::lacp::{AdSelect, Lacp, LacpConfig, LacpRate, PortConfig};
use proptest::prelude::*;
use std::time::Duration;

/// Something that happens, and how long until the next does.
#[derive(Clone, Debug)]
enum Op {
    /// The carrier of a link goes or comes, seen by both ends.
    Carrier(usize, bool),
    /// The carrier as one end sees it.
    CarrierOneEnd(usize, usize, bool),
    /// A link drops all, both ends believing that it is up.
    Pass(usize, bool),
    /// Loss, duplication (percent) and largest delay (milliseconds) of a link; one way only, or both.
    Fate(usize, u8, u8, u16, Option<usize>),
    /// A system forgets everything.
    Restart(usize),
    Rate(usize, bool),
    Active(usize, bool),
    Speed(usize, u32),
    Reopen(usize),
}

fn op() -> impl Strategy<Value = (Op, Duration)> {
    let (link, end, yes) = (0..4usize, 0..2usize, any::<bool>());
    let op = prop_oneof![
        4 => (link.clone(), yes).prop_map(|(l, u)| Op::Carrier(l, u)),
        2 => (link.clone(), end.clone(), yes).prop_map(|(l, e, u)| Op::CarrierOneEnd(l, e, u)),
        3 => (link.clone(), yes).prop_map(|(l, p)| Op::Pass(l, p)),
        4 => (link.clone(), 0..=100u8, 0..=100u8, 0..3000u16, proptest::option::of(end.clone()))
            .prop_map(|(l, loss, dup, delay, way)| Op::Fate(l, loss, dup, delay, way)),
        1 => end.clone().prop_map(Op::Restart),
        1 => (end.clone(), yes).prop_map(|(e, f)| Op::Rate(e, f)),
        1 => (end.clone(), yes).prop_map(|(e, a)| Op::Active(e, a)),
        1 => (link, prop_oneof![Just(100), Just(1000)]).prop_map(|(l, s)| Op::Speed(l, s)),
        1 => end.prop_map(Op::Reopen),
    ];
    // Short gaps hit the machines in the middle of something, long ones let timers run out.
    let gap = prop_oneof![3 => 0..500u64, 3 => 0..4000u64, 1 => 0..100_000u64].prop_map(Duration::from_millis);
    (op, gap)
}

fn configs() -> impl Strategy<Value = [LacpConfig; 2]> {
    let one = |end: usize| {
        let select =
            prop_oneof![Just(AdSelect::Stable), Just(AdSelect::Bandwidth), Just(AdSelect::Count), Just(AdSelect::Prio)];
        (0..2usize, any::<bool>(), any::<bool>(), select).prop_map(move |(timing, fast, coupled_control, ad_select)| {
            let lacp_rate = if fast { LacpRate::Fast } else { LacpRate::Slow };
            LacpConfig { lacp_rate, coupled_control, ad_select, ..config(end, BOTH_TIMINGS[timing]) }
        })
    };
    (one(0), one(1)).prop_map(|(a, b)| [a, b])
}

fn apply(net: &mut Net, op: &Op, seed: &mut u64) {
    let links = net.links.len();
    let now = net.now;
    match *op {
        Op::Carrier(link, up) => {
            let state = if up { LinkState::up(1000) } else { LinkState::DOWN };
            net.links[link % links].passes = up;
            net.set_link(link % links, state);
        }
        Op::CarrierOneEnd(link, end, up) => {
            let state = if up { LinkState::up(1000) } else { LinkState::DOWN };
            let port = net.links[link % links].ports[end];
            net.ends[end].set_link(port, state, now).unwrap();
        }
        Op::Pass(link, passes) => net.links[link % links].passes = passes,
        Op::Fate(link, loss, dup, delay, way) => {
            *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let mut state = *seed | 1;
            let mut random = move |below: u64| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                state % below
            };
            net.links[link % links].fate = Box::new(move |_, from| {
                if way.is_some_and(|way| way != from) {
                    return vec![Duration::from_micros(50)];
                }
                let copies =
                    if random(100) < u64::from(loss) { 0 } else { 1 + u64::from(random(100) < u64::from(dup)) };
                (0..copies).map(|_| Duration::from_micros(50 + random(1 + 1000 * u64::from(delay)))).collect()
            });
        }
        Op::Restart(end) => {
            let old = &net.ends[end];
            let mut fresh = Lacp::new(*old.config()).unwrap();
            for port in old.ports() {
                let of = PortConfig { number: Some(port.number()), ..PortConfig::new(mac(end, port.number())) };
                fresh.add_port(&of, port.link(), now).unwrap();
            }
            fresh.open(now);
            net.ends[end] = fresh;
        }
        Op::Rate(end, fast) => {
            net.ends[end].set_lacp_rate(if fast { LacpRate::Fast } else { LacpRate::Slow }, now);
        }
        Op::Active(end, active) => net.ends[end].set_lacp_active(active, now),
        Op::Speed(link, speed) => net.set_link(link % links, LinkState::up(speed)),
        Op::Reopen(end) => {
            net.ends[end].close();
            net.ends[end].open(now);
        }
    }
    net.step();
}

proptest! {

    #[test]
    fn steady_links_are_all_used_whatever_was_before(
        configs in configs(),
        links in 1..=4u16,
        slow_links in prop_oneof![Just(0u8), any::<u8>()],
        ops in proptest::collection::vec(op(), 0..40),
        mut seed in any::<u64>(),
    ) {
        let mut net = Net::new(configs, links);
        net.open();
        for (op, gap) in &ops {
            apply(&mut net, op, &mut seed);
            net.assert_sane();
            net.run(*gap, Net::assert_sane);
        }
        for link in 0..net.links.len() {
            net.links[link].passes = true;
            net.links[link].fate = Box::new(|_, _| vec![Duration::from_micros(50)]);
            net.set_link(link, LinkState::up(if slow_links >> link & 1 != 0 { 100 } else { 1000 }));
        }
        let now = net.now;
        net.ends[0].set_lacp_active(true, now);
        net.step();
        // What is still on its way arrives, and who was not heard for long enough before may still expire.
        net.run(Duration::from_secs(95), Net::assert_sane);
        // The longest way back: a partner that is presumed with the long timeout is sent to every 30 s, and choices that
        // differ are settled in 10 s.
        let took = net.run_until(Duration::from_secs(60), Net::agrees);
        net.run(Duration::from_secs(200), |net| {
            assert!(net.agrees(), "used after {took:?}, and then no more");
            net.assert_sane();
        });
    }
}
