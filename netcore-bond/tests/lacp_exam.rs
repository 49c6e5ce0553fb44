//! Cases that other implementations test themselves with, and faults that others had.

mod lacp_net;

use lacp_net::{BOTH_TIMINGS, Net, config};
use netcore::wire::{LacpState, Lacpdu, PortInformation};
use netcore::{Instant, LinkState, MacAddress};
use netcore_bond::lacp::{Lacp, LacpConfig, LacpRate, MuxState, PortConfig, ReceiveState, Timing};
use std::time::Duration;

fn secs(s: u64) -> Duration {
    Duration::from_secs(s)
}

/// One port whose partner is played by the test.
struct Dut {
    lacp: Lacp,
    now: Instant,
    sent: Vec<Lacpdu>,
}

impl Dut {
    fn new(config: LacpConfig, port: PortConfig) -> Self {
        let mut lacp = Lacp::new(config).unwrap();
        lacp.add_port(&port, LinkState::up(1000), Instant::ZERO).unwrap();
        lacp.open(Instant::ZERO);
        Self { lacp, now: Instant::ZERO, sent: Vec::new() }
    }

    fn number(&self) -> u16 {
        self.lacp.ports()[0].number()
    }

    fn fetch(&mut self) {
        while let Some(frame) = self.lacp.next_frame() {
            self.sent.push(*Lacpdu::parse(&frame.bytes[14..]).unwrap().0);
        }
    }

    fn run(&mut self, span: Duration) {
        let until = self.now + span;
        self.fetch();
        while let Some(at) = self.lacp.poll_at().map(|t| t.max(self.now)).filter(|&t| t <= until) {
            self.now = at;
            self.lacp.poll(at);
            self.fetch();
        }
        self.now = until;
    }

    fn receive(&mut self, actor: PortInformation, partner: PortInformation) {
        let frame = Lacpdu::new(actor, partner, 0).frame(MacAddress([2, 9, 9, 9, 9, 9]));
        self.lacp.handle(self.number(), &frame, self.now).unwrap();
        self.fetch();
    }

    /// Says the same every period until the last LACPDU sent has this state.
    fn hear_until(&mut self, actor: PortInformation, about_us: Option<u8>, wanted: u8, limit: Duration) {
        let start = self.now;
        loop {
            let of_us =
                about_us.map_or(PortInformation::default(), |state| with_state(&self.lacp.ports()[0].actor(), state));
            self.receive(actor, of_us);
            self.run(Duration::from_millis(500));
            let last = self.sent.last().unwrap();
            if last.actor().state().bits() == wanted {
                assert_eq!(*last.partner(), actor, "the partner is told what it said");
                return;
            }
            assert!(self.now - start < limit, "sent {} where {wanted:#04x} is due", last.actor().state());
        }
    }

    fn distributes(&self) -> bool {
        self.lacp.distributes(&self.lacp.ports()[0])
    }

    fn collects(&self) -> bool {
        self.lacp.collects(&self.lacp.ports()[0])
    }
}

fn with_state(info: &PortInformation, state: u8) -> PortInformation {
    let state = LacpState::from_bits_retain(state);
    PortInformation::new(info.system_priority(), info.system(), info.key(), info.port_priority(), info.port(), state)
}

fn fboss_dut(rate: LacpRate, timing: Timing) -> Dut {
    let system = MacAddress([0x02, 0x90, 0xfb, 0x5e, 0x1e, 0x8d]);
    let config = LacpConfig { lacp_rate: rate, min_links: 1, timing, ..LacpConfig::new(system) };
    let port = PortConfig { number: Some(42), key: Some(903), actor_port_prio: 32768, ..PortConfig::new(system) };
    Dut::new(config, port)
}

fn fboss_peer(state: u8) -> PortInformation {
    let system = MacAddress([0x00, 0x1c, 0x73, 0x5b, 0xa8, 0x47]);
    PortInformation::new(32768, system, 609, 32768, 499, LacpState::from_bits_retain(state))
}

#[test]
fn fboss_cold_boot_reconverges_with_a_real_switch() {
    for timing in BOTH_TIMINGS {
        for (rate, fast) in [(LacpRate::Slow, 0), (LacpRate::Fast, 2)] {
            let mut dut = fboss_dut(rate, timing);
            // The partner does not know us yet; our first LACPDU in sync comes after the aggregate wait.
            dut.hear_until(fboss_peer(0x45 | fast), None, 0x0d | fast, secs(3));
            assert!(!dut.distributes());
            dut.hear_until(fboss_peer(0x0d | fast), Some(0x0d | fast), 0x3d | fast, secs(1));
            assert!(dut.distributes() && dut.lacp.carrier());
            let period = if fast != 0 { secs(1) } else { secs(30) };
            for _ in 0..2 {
                dut.receive(fboss_peer(0x3d | fast), with_state(&dut.lacp.ports()[0].actor(), 0x3d | fast));
                dut.run(period);
                assert_eq!(dut.sent.last().unwrap().actor().state().bits(), 0x3d | fast);
                assert!(dut.distributes());
            }
        }
    }
}

#[test]
fn fboss_two_instances_agree_and_keep_it_for_two_silent_periods() {
    for timing in BOTH_TIMINGS {
        for (rate, healthy, period) in [(LacpRate::Slow, 0x3d, secs(30)), (LacpRate::Fast, 0x3f, secs(1))] {
            let mut net = Net::new([0, 1].map(|end| LacpConfig { lacp_rate: rate, ..config(end, timing) }), 1);
            let now = net.now;
            net.ends[0].open(now);
            net.step();
            net.run_secs(7.0);
            net.ends[1].open(net.now);
            net.step();
            net.run_until(secs(35), |net| net.state(0, 0) == healthy && net.state(1, 0) == healthy);
            // After the last word each way: unchanged for two periods, changed after one or two more.
            net.run(period * 2, |_| ());
            net.links[0].passes = false;
            net.run(period * 19 / 10, |net| assert_eq!((net.state(0, 0), net.state(1, 0)), (healthy, healthy)));
            net.run(period * 12 / 10 + Timing::TICK, |_| ());
            assert_ne!(net.state(0, 0), healthy, "{timing:?} {rate}");
            assert_ne!(net.state(1, 0), healthy, "{timing:?} {rate}");
        }
    }
}

#[test]
fn fboss_an_individual_port_never_says_that_it_can_aggregate() {
    for timing in BOTH_TIMINGS {
        let mac = MacAddress([2, 0, 0, 0, 0, 1]);
        let config = LacpConfig { timing, lacp_rate: LacpRate::Fast, ..LacpConfig::new(mac) };
        let mut dut = Dut::new(config, PortConfig { individual: true, ..PortConfig::new(mac) });
        for state in [0x47, 0x0f, 0x3f, 0x3f, 0x3f] {
            dut.receive(fboss_peer(state), dut.lacp.ports()[0].actor());
            dut.run(secs(1));
        }
        dut.run(secs(20));
        assert!(dut.sent.len() > 5 && dut.sent.iter().all(|p| !p.actor().state().contains(LacpState::AGGREGATION)));
        assert!(dut.sent.iter().any(|p| p.actor().state().contains(LacpState::DISTRIBUTING)), "it works alone");
    }
}

#[test]
fn ovs_negotiates_in_five_seconds_and_a_cut_link_expires_in_four() {
    for timing in BOTH_TIMINGS {
        let mut configs =
            [0, 1].map(|end| LacpConfig { ad_actor_sys_prio: 65534, lacp_rate: LacpRate::Fast, ..config(end, timing) });
        configs[0].ad_actor_system = MacAddress([0xaa, 0x55, 0xaa, 0x55, 0, 0]);
        configs[1].ad_actor_system = MacAddress([0xaa, 0x66, 0xaa, 0x66, 0, 0]);
        let mut net = Net::new(configs, 0);
        let now = net.now;
        for ports in [[1, 3], [2, 4]] {
            for (end, key) in [(0, 2), (1, 4)] {
                let port = PortConfig {
                    number: Some(ports[end]),
                    key: Some(key),
                    actor_port_prio: 65535,
                    ..PortConfig::new(lacp_net::mac(end, ports[end]))
                };
                net.ends[end].add_port(&port, LinkState::up(1000), now).unwrap();
            }
            net.join(ports);
        }
        net.open();
        net.run_secs(5.0);
        for end in 0..2 {
            for link in 0..2 {
                let port = net.port(end, link);
                assert_eq!((port.receive_state(), net.state(end, link)), (ReceiveState::Current, 0x3f));
                assert_eq!(port.partner().state().bits(), 0x3f);
                assert!(net.distributes(end, link));
            }
        }
        let partner = net.port(0, 0).partner();
        assert_eq!((partner.system(), partner.port(), partner.key()), (configs[1].ad_actor_system, 3, 4));
        // The cut: carrier stays.
        net.links[0].passes = false;
        net.run_secs(4.1);
        for end in 0..2 {
            let port = net.port(end, 0);
            assert_eq!(port.receive_state(), ReceiveState::Expired, "{timing:?}");
            assert!(port.actor().state().contains(LacpState::EXPIRED));
            assert_eq!(port.partner().state().bits(), 0x37);
            assert!(!net.distributes(end, 0));
            assert_eq!((net.port(end, 1).receive_state(), net.state(end, 1)), (ReceiveState::Current, 0x3f));
        }
    }
}

#[test]
fn dpdk_four_members_are_in_use_within_thirty_ticks_of_a_partner_that_answers() {
    for timing in BOTH_TIMINGS {
        let mac = |n: u16| MacAddress([2, 0, 0, 0, 1, n as u8]);
        let mut lacp = Lacp::new(LacpConfig { timing, ..LacpConfig::new(mac(0)) }).unwrap();
        for n in 1..=4 {
            lacp.add_port(&PortConfig::new(mac(n)), LinkState::up(10_000), Instant::ZERO).unwrap();
        }
        lacp.open(Instant::ZERO);
        let mut last = [0; 4];
        for tick in 0..=30 {
            let now = Instant::ZERO + Timing::TICK * tick;
            lacp.poll(now);
            while let Some(frame) = lacp.next_frame() {
                let (pdu, _) = Lacpdu::parse(&frame.bytes[14..]).unwrap();
                last[usize::from(frame.port) - 1] = pdu.actor().state().bits();
                let partner = PortInformation::new(
                    0x8000,
                    MacAddress([2, 7, 7, 7, 7, 7]),
                    7,
                    128,
                    frame.port,
                    LacpState::from_bits_retain(0x3d),
                );
                lacp.handle(frame.port, &Lacpdu::new(partner, *pdu.actor(), 0).frame(mac(9)), now).unwrap();
            }
        }
        assert_eq!(last, [0x3d; 4], "{timing:?}");
        assert_eq!(lacp.active_aggregator().unwrap().ports, 4);
    }
}

#[test]
fn two_passive_ends_say_nothing_and_an_active_one_starts_the_talk() {
    for timing in BOTH_TIMINGS {
        for links in [1, 2] {
            let mut net = Net::new([0, 1].map(|end| LacpConfig { lacp_active: false, ..config(end, timing) }), links);
            net.open();
            net.run_secs(120.0);
            assert_eq!(net.sent.len(), 0, "{timing:?}");
            assert!((0..2).all(|end| net.port(end, 0).mux_state() != MuxState::CollectingDistributing));
            let now = net.now;
            net.ends[0].set_lacp_active(true, now);
            net.step();
            let took = net.run_until(secs(5), |net| net.state(0, 0) == 0x3d && net.state(1, 0) == 0x3c);
            assert!(net.sent[0].end == 0 && net.all_distribute(), "{timing:?}: after {took:?}");
            net.run(secs(300), |net| assert!(net.all_distribute()));
            let spoken = net.sent.iter().filter(|s| s.end == 1 && s.link == 0 && s.at > now + secs(10)).count();
            assert!((8..=12).contains(&spoken), "the passive end keeps its rate: {spoken} in 300 s");
        }
    }
}

#[test]
fn data_waits_for_the_partner_and_stops_at_once() {
    for timing in BOTH_TIMINGS {
        for coupled_control in [true, false] {
            let mac = MacAddress([2, 0, 0, 0, 0, 1]);
            let config = LacpConfig { coupled_control, timing, ..LacpConfig::new(mac) };
            let mut dut = Dut::new(config, PortConfig::new(mac));
            dut.run(secs(1));
            dut.receive(fboss_peer(0x05), dut.lacp.ports()[0].actor());
            dut.run(secs(4));
            assert!(!dut.distributes() && dut.lacp.ports()[0].actor().state().contains(LacpState::SYNCHRONIZATION));
            for (state, collects, distributes) in
                [(0x0d, true, coupled_control), (0x1d, true, true), (0x3d, true, true), (0x05, false, false)]
            {
                dut.receive(fboss_peer(state), dut.lacp.ports()[0].actor());
                if state != 0x05 {
                    dut.run(secs(1));
                }
                let got = (dut.collects(), dut.distributes());
                assert_eq!(got, (collects, distributes), "{timing:?} coupled {coupled_control} at {state:#04x}");
            }
        }
    }
}

#[test]
fn lacpdus_go_out_without_any_data_and_if_polled_late() {
    for timing in BOTH_TIMINGS {
        let mut net = Net::new([0, 1].map(|end| config(end, timing)), 2);
        net.open();
        net.run(secs(600), |_| ());
        assert!(net.all_distribute());
        // An application that comes by every 20 seconds only.
        let before = net.sent.len();
        for _ in 0..30 {
            net.now += secs(20);
            for end in 0..2 {
                let now = net.now;
                net.ends[end].poll(now);
            }
            net.step();
            net.deliver();
            net.step();
            assert!(net.all_distribute(), "{timing:?}");
        }
        let sent = net.sent.len() - before;
        assert!((4 * 10..=4 * 31).contains(&sent), "{timing:?}: {sent} in 600 s");
    }
}
