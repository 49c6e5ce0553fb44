//! Start, silence, restart, rate change, pulled link: within the times of the standard, in both timings.

mod lacp_net;

use lacp_net::{BOTH_TIMINGS, Net, config};
use netcore::LinkState;
use netcore_bond::lacp::{Lacp, LacpConfig, LacpEvent, LacpRate, MuxState, PortConfig, ReceiveState, Timing};
use std::time::Duration;

const TICK: Duration = Timing::TICK;

fn secs(s: u64) -> Duration {
    Duration::from_secs(s)
}

fn net(timing: Timing, rate: LacpRate) -> Net {
    let mut net = Net::new([0, 1].map(|end| LacpConfig { lacp_rate: rate, ..config(end, timing) }), 2);
    net.open();
    net
}

#[test]
fn both_ends_distribute_after_the_aggregate_wait_and_not_before() {
    for timing in BOTH_TIMINGS {
        for (rate, healthy) in [(LacpRate::Slow, 0x3d), (LacpRate::Fast, 0x3f)] {
            let mut net = net(timing, rate);
            let took =
                net.run_until(secs(5), |net| (0..2).all(|l| net.state(0, l) == healthy && net.state(1, l) == healthy));
            assert!(took >= secs(2) && took <= secs(3), "{timing:?} {rate}: {took:?}");
            assert!(net.all_distribute());
            let active = net.ends[0].active_aggregator().unwrap();
            assert_eq!((active.ports, active.partner_system), (2, net.ends[1].config().ad_actor_system));
            net.run(secs(200), |net| assert!(net.all_distribute()));
        }
    }
}

#[test]
fn a_silent_partner_stops_traffic_after_the_timeout_and_is_given_up_three_seconds_later() {
    for timing in BOTH_TIMINGS {
        for (rate, timeout) in [(LacpRate::Fast, secs(3)), (LacpRate::Slow, secs(90))] {
            let mut net = net(timing, rate);
            net.run_secs(200.5);
            let last_heard = net.sent.iter().rfind(|s| s.link == 0 && s.end == 1).unwrap().at;
            net.links[0].passes = false;
            net.run_until(secs(100), |net| !net.distributes(0, 0));
            let silent = net.now - last_heard;
            assert!(silent >= timeout - TICK && silent <= timeout + 2 * TICK, "{timing:?} {rate}: {silent:?}");
            assert_eq!(net.port(0, 0).receive_state(), ReceiveState::Expired);
            assert!(net.distributes(0, 1), "the other link goes on");
            net.run_until(secs(100), |net| net.port(0, 0).receive_state() == ReceiveState::Defaulted);
            let silent = net.now - last_heard;
            let given_up = timeout + secs(3);
            assert!(silent >= given_up - TICK && silent <= given_up + 2 * TICK, "{timing:?} {rate}: {silent:?}");
            assert!(!net.distributes(0, 0), "the aggregator with a partner stays in use");
            net.links[0].passes = true;
            let back = net.run_until(secs(40), Net::all_distribute);
            // A partner that is presumed and not heard is sent to every 30 seconds, as in Linux.
            assert!(back <= secs(33), "{timing:?} {rate}: {back:?}");
        }
    }
}

#[test]
fn a_partner_that_restarts_is_back_within_the_aggregate_wait() {
    for timing in BOTH_TIMINGS {
        let mut net = net(timing, LacpRate::Slow);
        net.run_secs(100.0);
        let mut fresh = Lacp::new(config(1, timing)).unwrap();
        for port in net.ends[1].ports() {
            fresh.add_port(&PortConfig::new(port.address()), LinkState::up(1000), net.now).unwrap();
        }
        fresh.open(net.now);
        net.ends[1] = fresh;
        net.step();
        let stopped = net.run_until(secs(2), |net| !net.distributes(0, 0) && !net.distributes(0, 1));
        assert!(stopped <= Duration::from_millis(500), "{timing:?}: {stopped:?}");
        let back = net.run_until(secs(5), Net::all_distribute);
        assert!(back <= secs(3), "{timing:?}: {back:?}");
    }
}

#[test]
fn a_change_of_rate_is_told_at_once_and_disturbs_nothing() {
    for timing in BOTH_TIMINGS {
        let mut net = net(timing, LacpRate::Slow);
        net.run_secs(100.0);
        let now = net.now;
        net.ends[0].set_lacp_rate(LacpRate::Fast, now);
        net.step();
        net.run(secs(20), |net| assert!(net.all_distribute()));
        let heard = net.sent.iter().filter(|s| s.end == 1 && s.link == 0 && s.at >= now).count();
        assert!((15..=22).contains(&heard), "the partner sends every second: {heard} in 20 s");
        assert_eq!((net.state(0, 0), net.state(1, 0)), (0x3f, 0x3d));
        let now = net.now;
        net.ends[0].set_lacp_rate(LacpRate::Slow, now);
        net.step();
        net.run(secs(120), |net| assert!(net.all_distribute()));
        let heard = net.sent.iter().filter(|s| s.end == 1 && s.link == 0 && s.at >= now).count();
        assert!((3..=8).contains(&heard), "the partner sends every 30 seconds: {heard} in 120 s");
    }
}

#[test]
fn a_pulled_link_stops_at_once_and_comes_back_after_the_aggregate_wait() {
    for timing in BOTH_TIMINGS {
        let mut net = net(timing, LacpRate::Fast);
        net.run_secs(20.0);
        net.set_link(1, LinkState::DOWN);
        assert!(!net.distributes(0, 1) && net.distributes(0, 0));
        assert_eq!(net.ends[0].active_aggregator().unwrap().ports, 1);
        net.run(secs(20), |net| assert!(net.distributes(0, 0) && !net.distributes(0, 1)));
        assert_eq!(net.port(0, 1).receive_state(), ReceiveState::PortDisabled);
        assert_eq!(net.state(0, 1) & 0x30, 0, "not in use");
        net.set_link(1, LinkState::up(1000));
        let back = net.run_until(secs(5), Net::all_distribute);
        assert!(back >= secs(2) && back <= secs(3), "{timing:?}: {back:?}");
        assert_eq!(net.ends[0].active_aggregator().unwrap().ports, 2);
    }
}

#[test]
fn a_link_cut_one_way_stops_the_other_way_too_and_sooner_with_independent_control() {
    for timing in BOTH_TIMINGS {
        for (coupled_control, limit) in [(true, secs(10)), (false, secs(4))] {
            let configs =
                [0, 1].map(|end| LacpConfig { lacp_rate: LacpRate::Fast, coupled_control, ..config(end, timing) });
            let mut net = Net::new(configs, 2);
            net.open();
            net.run_until(secs(5), Net::all_distribute);
            // End 0 hears nothing any more. End 1 does, and learns from what it hears that it is not heard.
            net.links[0].fate = Box::new(|_, from| if from == 1 { vec![] } else { vec![Duration::from_micros(50)] });
            let stopped = net.run_until(limit, |net| !net.distributes(1, 0));
            assert!(!net.distributes(0, 0) && net.distributes(1, 1), "{timing:?} {stopped:?}");
        }
    }
}

#[test]
fn with_independent_control_a_port_collects_before_it_distributes() {
    for timing in BOTH_TIMINGS {
        let mut net = Net::new([0, 1].map(|end| LacpConfig { coupled_control: false, ..config(end, timing) }), 1);
        net.open();
        let mut seen = Vec::new();
        net.run(secs(6), |net| {
            let state = net.port(0, 0).mux_state();
            if seen.last() != Some(&state) {
                seen.push(state);
            }
            // Nobody sends to a port that does not take it.
            assert!(!net.distributes(1, 0) || net.ends[0].collects(net.port(0, 0)));
        });
        assert_eq!(seen[seen.len() - 2..], [MuxState::Collecting, MuxState::Distributing], "{timing:?} {seen:?}");
        assert_eq!(net.state(0, 0), 0x3d);
    }
}

#[test]
fn events_tell_what_changed_once() {
    let mut net = net(Timing::EventDriven, LacpRate::Fast);
    net.run_secs(10.0);
    let of_port = |net: &Net, wanted| {
        net.events
            .iter()
            .filter(|(_, end, e)| {
                *end == 0 && matches!(e, LacpEvent::Port { port: 1, distributing, .. } if *distributing == wanted)
            })
            .count()
    };
    assert!(of_port(&net, true) >= 1);
    let carrier = net.events.iter().filter(|(_, end, e)| *end == 0 && matches!(e, LacpEvent::Carrier { .. })).count();
    assert_eq!(carrier, 1);
    let before = net.events.len();
    net.run_secs(100.0);
    assert_eq!(net.events.len(), before, "a steady bond tells nothing");
    net.set_link(0, LinkState::DOWN);
    assert!(
        net.events[before..]
            .iter()
            .any(|(_, end, e)| (*end, *e) == (0, LacpEvent::Port { port: 1, collecting: false, distributing: false }))
    );
}

#[test]
fn min_links_holds_the_carrier_and_nothing_else() {
    let configs = [0, 1].map(|end| LacpConfig { min_links: 2, ..config(end, Timing::EventDriven) });
    let mut net = Net::new(configs, 2);
    net.open();
    net.run_secs(5.0);
    assert!(net.ends[0].carrier());
    net.set_link(0, LinkState::DOWN);
    assert!(!net.ends[0].carrier() && net.distributes(0, 1));
    assert!(matches!(net.events.last(), Some((_, _, LacpEvent::Carrier { up: false }))));
    let now = net.now;
    net.ends[0].set_min_links(1);
    net.ends[0].poll(now);
    net.step();
    assert!(net.ends[0].carrier());
}

#[test]
fn polls_that_come_late_and_irregularly_disturb_nothing() {
    for timing in BOTH_TIMINGS {
        let mut net = net(timing, LacpRate::Fast);
        net.run_until(secs(5), Net::all_distribute);
        let (mut random, end) = (1u64, net.now + secs(600));
        while net.now < end {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            net.now += Duration::from_millis(1 + (random >> 33) % 250);
            let now = net.now;
            net.deliver();
            net.ends[(random >> 32) as usize & 1].poll(now);
            net.step();
            assert!(net.all_distribute(), "{timing:?} at {now}");
        }
    }
}
