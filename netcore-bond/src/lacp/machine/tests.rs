//! One machine at a time.

use super::*;
use crate::lacp::port::{Participant, Port};
use crate::lacp::timing::{self, Clock, Timing};
use crate::lacp::{LacpConfig, LacpRate, PortConfig};
use core::time::Duration;
use netcore::driver::Duplex;
use netcore::wire::{LacpState, Lacpdu};
use netcore::{Instant, LinkState, MacAddress};
use std::vec::Vec;

const HALF: LinkState = LinkState { up: true, speed_mbps: Some(100), duplex: Duplex::Half };

fn at(ms: u64) -> Clock {
    Clock { at: Instant::from_millis(ms), timing: Timing::EventDriven }
}

fn port(rate: LacpRate) -> Port {
    let mac = MacAddress([2, 0, 0, 0, 0, 1]);
    let config = LacpConfig { lacp_rate: rate, ..LacpConfig::new(mac) };
    Port::new(&config, &PortConfig::new(mac), 1, LinkState::up(1000), Instant::ZERO)
}

/// A port that just began, link up.
fn begun() -> Port {
    let mut port = port(LacpRate::Fast);
    receive(&mut port, None, at(0));
    port.begin = false;
    port
}

fn partner(state: u8) -> Participant {
    Participant {
        system: MacAddress([2, 0, 0, 0, 0, 9]),
        key: 7,
        port: 5,
        state: LacpState::from_bits_retain(state),
        ..Participant::UNKNOWN
    }
}

/// What the partner says if it knows us as we are.
fn pdu(port: &Port, state: u8) -> Lacpdu {
    Lacpdu::new(partner(state).wire(), port.actor.wire(), 0)
}

fn hear(port: &mut Port, state: u8, ms: u64) -> bool {
    let pdu = pdu(port, state);
    receive(port, Some(&pdu), at(ms))
}

#[test]
fn begin_initializes_and_ends_in_port_disabled() {
    let port = begun();
    assert_eq!(port.rx, ReceiveState::PortDisabled);
    assert!(!port.selected && !port.matched && !port.actor.state.contains(LacpState::EXPIRED));
    assert!(port.actor.state.contains(LacpState::DEFAULTED));
    assert_eq!(port.partner, Participant::UNKNOWN);
}

#[test]
fn a_partner_heard_on_another_port_initializes_a_dead_one() {
    let mut port = begun();
    port.update_link(LinkState::DOWN, 0);
    receive(&mut port, None, at(0));
    (port.partner, port.selected, port.moved) = (partner(0x3d), true, true);
    assert!(receive(&mut port, None, at(1)));
    assert_eq!((port.rx, port.partner, port.selected), (ReceiveState::PortDisabled, Participant::UNKNOWN, false));
    // Only there: a port that is in use keeps what it has.
    let mut port = begun();
    receive(&mut port, None, at(0));
    hear(&mut port, 0x3d, 1);
    (port.selected, port.moved) = (true, true);
    assert!(!receive(&mut port, None, at(2)) && port.selected && !port.moved);
}

#[test]
fn lacp_switched_on_leads_from_disabled_to_expired() {
    let mut port = begun();
    port.update_link(HALF, 0);
    port.begin = false;
    assert!(receive(&mut port, None, at(0)));
    assert_eq!(port.rx, ReceiveState::LacpDisabled);
    assert!(port.matched && !port.selected && !port.partner.state.contains(LacpState::AGGREGATION));
    // Neither a timer nor a LACPDU moves it.
    port.current_while = Some(Instant::ZERO);
    receive(&mut port, None, at(1));
    assert!(!hear(&mut port, 0x3d, 2));
    assert_eq!((port.rx, port.partner.system), (ReceiveState::LacpDisabled, MacAddress::default()));
    port.lacp_enabled = true;
    assert!(receive(&mut port, None, at(3)) && port.rx == ReceiveState::PortDisabled);
    port.partner.state.insert(LacpState::SYNCHRONIZATION);
    assert!(receive(&mut port, None, at(4)) && port.rx == ReceiveState::Expired);
    assert_eq!(port.partner.state, LacpState::TIMEOUT, "short timeout, not in sync");
    assert_eq!(port.current_while, Some(Instant::from_millis(3004)));
    assert!(port.actor.state.contains(LacpState::EXPIRED) && !port.matched);
    // Once more is once too often.
    assert!(!receive(&mut port, None, at(5)));
}

#[test]
fn a_link_that_goes_down_forgets_that_its_partner_was_in_sync() {
    for start in [ReceiveState::Current, ReceiveState::Expired, ReceiveState::Defaulted, ReceiveState::LacpDisabled] {
        let mut port = begun();
        (port.rx, port.partner) = (start, partner(0x3f));
        port.update_link(LinkState::DOWN, 0);
        assert!(receive(&mut port, None, at(0)));
        assert_eq!((port.rx, port.partner.state.bits()), (ReceiveState::PortDisabled, 0x37));
        // Timer, LACPDU and LACP coming on are ignored.
        (port.current_while, port.lacp_enabled) = (Some(Instant::ZERO), true);
        receive(&mut port, None, at(1));
        hear(&mut port, 0x3f, 2);
        assert_eq!((port.rx, port.partner.state.bits()), (ReceiveState::PortDisabled, 0x37));
    }
}

#[test]
fn silence_leads_from_current_to_expired_to_defaulted_and_stays_there() {
    for (rate, timeout) in [(LacpRate::Fast, 3000), (LacpRate::Slow, 90_000)] {
        let mut port = port(rate);
        for _ in 0..2 {
            receive(&mut port, None, at(0));
            port.begin = false;
        }
        assert!(hear(&mut port, 0x3f, 10) && port.rx == ReceiveState::Current);
        port.selected = true;
        assert!(!receive(&mut port, None, at(9 + timeout)));
        assert!(receive(&mut port, None, at(10 + timeout)) && port.rx == ReceiveState::Expired);
        assert_eq!(port.partner.state.bits(), 0x37);
        assert!(!receive(&mut port, None, at(3009 + timeout)) && port.selected);
        assert!(receive(&mut port, None, at(3010 + timeout)) && port.rx == ReceiveState::Defaulted);
        assert!(!port.selected && port.matched && port.partner == Participant::UNKNOWN);
        assert!(port.actor.state.contains(LacpState::DEFAULTED) && !port.actor.state.contains(LacpState::EXPIRED));
        assert!(!receive(&mut port, None, at(10_000_000)));
    }
}

#[test]
fn selected_is_judged_by_the_partner_known_before() {
    let mut port = begun();
    receive(&mut port, None, at(0));
    port.selected = true;
    hear(&mut port, 0x05, 1);
    assert!(!port.selected, "a partner where none was known");
    port.selected = true;
    hear(&mut port, 0x3d, 2);
    assert!(port.selected, "the same partner with other bits");
    hear(&mut port, 0x39, 3);
    assert!(!port.selected, "not aggregatable any more");
    let same = pdu(&port, 0x39);
    type Change = fn(&mut Participant);
    let changes: [Change; 5] = [
        |p| p.port = 6,
        |p| p.port_priority = 1,
        |p| p.system = MacAddress([2, 0, 0, 0, 0, 8]),
        |p| p.system_priority = 1,
        |p| p.key = 1,
    ];
    for change in changes {
        receive(&mut port, Some(&same), at(4));
        port.selected = true;
        let mut other = partner(0x39);
        change(&mut other);
        let pdu = Lacpdu::new(other.wire(), port.actor.wire(), 0);
        receive(&mut port, Some(&pdu), at(5));
        assert!(!port.selected);
        assert_eq!(port.partner, other);
    }
}

#[test]
fn a_partner_that_has_us_wrong_is_told_and_is_not_in_sync() {
    type Change = fn(&mut Participant);
    // What changes; whether it needs telling; whether it is still us.
    let cases: [(Change, bool, bool); 11] = [
        (|_| (), false, true),
        (|p| p.port = 2, true, false),
        (|p| p.port_priority = 2, true, false),
        (|p| p.system.0[0] ^= 4, true, false),
        (|p| p.system_priority = 2, true, false),
        (|p| p.key ^= 2, true, false),
        (|p| p.state.toggle(LacpState::AGGREGATION), true, false),
        (|p| p.state.toggle(LacpState::ACTIVITY), true, true),
        (|p| p.state.toggle(LacpState::TIMEOUT), true, true),
        (|p| p.state.toggle(LacpState::SYNCHRONIZATION), true, true),
        (|p| p.state.toggle(LacpState::COLLECTING | LacpState::DISTRIBUTING | LacpState::EXPIRED), false, true),
    ];
    for (i, (change, told, matched)) in cases.into_iter().enumerate() {
        let mut port = begun();
        receive(&mut port, None, at(0));
        let mut us = port.actor;
        change(&mut us);
        port.ntt = false;
        receive(&mut port, Some(&Lacpdu::new(partner(0x3d).wire(), us.wire(), 0)), at(1));
        assert_eq!((port.ntt, port.matched, port.partner_in_sync()), (told, matched, matched), "case {i}");
        // An individual partner need not know us.
        receive(&mut port, Some(&Lacpdu::new(partner(0x39).wire(), us.wire(), 0)), at(2));
        assert!(port.matched && port.partner_in_sync());
    }
}

#[test]
fn the_period_follows_the_partner_and_a_change_to_fast_is_at_once() {
    let mut port = begun();
    receive(&mut port, None, at(0));
    (port.partner.state, port.ntt) = (LacpState::TIMEOUT, false);
    assert!(periodic(&mut port, at(0)) && port.periodic == PeriodicState::FastPeriodic);
    assert!(!periodic(&mut port, at(999)) && !port.ntt);
    assert!(periodic(&mut port, at(1000)) && port.ntt && port.periodic == PeriodicState::PeriodicTx);
    port.partner.state = LacpState::empty();
    assert!(periodic(&mut port, at(1000)) && port.periodic == PeriodicState::SlowPeriodic);
    port.ntt = false;
    assert!(!periodic(&mut port, at(30_999)) && periodic(&mut port, at(31_000)) && port.ntt);
    periodic(&mut port, at(31_000));
    (port.ntt, port.partner.state) = (false, LacpState::TIMEOUT);
    assert!(periodic(&mut port, at(32_000)) && port.ntt, "told at once");
    port.actor.state.remove(LacpState::ACTIVITY);
    assert!(periodic(&mut port, at(32_000)) && port.periodic == PeriodicState::NoPeriodic, "both passive");
    port.partner.state.insert(LacpState::ACTIVITY);
    assert!(periodic(&mut port, at(32_000)) && port.periodic == PeriodicState::FastPeriodic);
}

#[test]
fn in_ticks_a_period_is_nine_ticks_and_the_one_spent_sending() {
    let mut port = begun();
    let tick = |n: u64| Clock { at: Instant::from_millis(100 * n), timing: Timing::default() };
    receive(&mut port, None, tick(0));
    let sends: Vec<u64> = (0..40)
        .filter(|&n| {
            periodic(&mut port, tick(n));
            core::mem::take(&mut port.ntt)
        })
        .collect();
    assert_eq!(sends, [9, 19, 29, 39]);
}

#[test]
fn no_more_than_three_lacpdus_leave_in_any_second() {
    for ticks in [false, true] {
        let mut port = begun();
        receive(&mut port, None, at(0));
        port.partner.state = LacpState::TIMEOUT;
        periodic(&mut port, at(0));
        let timing = if ticks { Timing::default() } else { Timing::EventDriven };
        let step = if ticks { 100 } else { 7 };
        let sent: Vec<u64> = (0..20_000)
            .step_by(step)
            .filter(|&ms| {
                port.ntt = true;
                transmit(&mut port, Clock { at: Instant::from_millis(ms), timing })
            })
            .collect();
        for window in sent.windows(timing::MAX_TX_IN_SECOND + 1) {
            let span = window[timing::MAX_TX_IN_SECOND] - window[0];
            assert!(span >= if ticks { 900 } else { 1000 }, "{window:?}");
        }
        assert!(sent.len() >= 55, "and no fewer: {} in 20 s", sent.len());
    }
}

const READY: Control =
    Control { active: true, has_partner: true, others_ready: true, selection_pending: false, coupled: true };

#[test]
fn the_mux_waits_two_seconds_and_for_its_neighbours() {
    let mut port = begun();
    port.selected = true;
    assert!(mux(&mut port, READY, at(0)) && port.mux == MuxState::Waiting);
    assert!(!mux(&mut port, READY, at(1999)));
    let waits = Control { others_ready: false, ..READY };
    assert!(!mux(&mut port, waits, at(2000)) && port.ready_n);
    port.ntt = false;
    assert!(mux(&mut port, READY, at(2100)) && port.mux == MuxState::Attached);
    assert!(port.in_sync() && port.ntt);
    // Not before the partner is in sync and the first choice of an aggregator is made.
    assert!(!mux(&mut port, READY, at(2200)));
    port.partner = partner(0x0d);
    assert!(!mux(&mut port, Control { selection_pending: true, ..READY }, at(2300)));
    assert!(!mux(&mut port, Control { active: false, ..READY }, at(2300)));
    assert!(mux(&mut port, READY, at(2400)) && port.mux == MuxState::CollectingDistributing);
    assert!(port.active && port.collecting);
    port.partner.state.remove(LacpState::SYNCHRONIZATION);
    assert!(mux(&mut port, READY, at(2500)) && port.mux == MuxState::Attached && !port.active && !port.collecting);
    port.selected = false;
    assert!(mux(&mut port, READY, at(2600)) && port.mux == MuxState::Detached && !port.in_sync() && !port.ready_n);
}

#[test]
fn attached_to_an_aggregator_that_is_not_active_is_not_in_sync() {
    let mut port = begun();
    (port.selected, port.mux, port.ready_n) = (true, MuxState::Waiting, true);
    let idle = Control { active: false, ..READY };
    assert!(mux(&mut port, idle, at(0)) && port.mux == MuxState::Attached && !port.in_sync());
    port.ntt = false;
    assert!(mux(&mut port, READY, at(1)) && port.in_sync() && port.ntt, "the partner hears of it at once");
}

#[test]
fn with_independent_control_distribution_follows_the_partners_collecting() {
    let apart = Control { coupled: false, ..READY };
    let mut port = begun();
    (port.selected, port.mux, port.partner) = (true, MuxState::Attached, partner(0x0d));
    assert!(mux(&mut port, apart, at(0)) && port.mux == MuxState::Collecting);
    assert!(port.collecting && !port.active);
    assert_eq!(port.actor.state.bits() & 0x38, 0x18);
    assert!(!mux(&mut port, apart, at(1)));
    port.partner = partner(0x1d);
    assert!(mux(&mut port, apart, at(2)) && port.mux == MuxState::Distributing && port.active);
    port.partner = partner(0x0d);
    assert!(mux(&mut port, apart, at(3)) && port.mux == MuxState::Collecting && !port.active && port.collecting);
    port.partner = partner(0x05);
    assert!(mux(&mut port, apart, at(4)) && port.mux == MuxState::Attached && !port.collecting);
    // Synchronization lost at this end, because the aggregator is no longer the active one.
    (port.mux, port.partner) = (MuxState::Distributing, partner(0x3d));
    let idle = Control { active: false, ..apart };
    port.set_actor(LacpState::SYNCHRONIZATION, false);
    assert!(mux(&mut port, idle, at(5)) && port.mux == MuxState::Collecting);
    assert!(mux(&mut port, idle, at(6)) && port.mux == MuxState::Attached && !port.in_sync());
}

#[test]
fn churn_is_found_after_sixty_seconds_out_of_sync() {
    let mut port = begun();
    port.churned = true;
    assert!(churn(&mut port, at(0)));
    assert_eq!(port.actor_churn.state(), ChurnState::Monitoring);
    assert!(!churn(&mut port, at(59_999)));
    port.set_actor(LacpState::SYNCHRONIZATION, true);
    assert!(churn(&mut port, at(60_000)));
    assert_eq!((port.actor_churn.state(), port.actor_churn.count()), (ChurnState::None, 0));
    assert_eq!((port.partner_churn.state(), port.partner_churn.count()), (ChurnState::Churned, 1));
    // What was found stands until the machines start again.
    assert!(!churn(&mut port, at(600_000)));
    receive(&mut port, None, at(600_000));
    assert!(port.rx == ReceiveState::Expired && churn(&mut port, at(600_000)));
    assert_eq!(port.partner_churn.state(), ChurnState::Monitoring);
    assert_eq!(timing::CHURN_DETECTION, Duration::from_secs(60));
}
