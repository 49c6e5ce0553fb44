//! What only the ixgbe family does: merged packets, flow filters, many queues, modules; and what happens when things go wrong.

mod list;

use core::time::Duration;
use list::frames::{Ip, number, numbered};
use list::model::ModelPeer;
use list::{Bench, Expect, MAC, PEER};
use netcore::{Burst, Driver, DriverError, Features, GsoKind};
use netcore_drivers::NicError;
use netcore_drivers::ixgbe::{Flow, FlowAction, FlowProtocol, Ixgbe, Module};
use netcore_drivers::model::e82599::{E82599, Module as Plugged};
use netcore_drivers::model::{Bench as Models, Timing};
use netcore_drivers::nic::{FlowControl, NicConfig};

fn bench_with(
    device: E82599,
    adjust: impl FnOnce(&mut NicConfig),
) -> (Bench<Ixgbe>, Models, netcore_drivers::model::Port) {
    let models = Models::new();
    let (port, bus) = models.add(Box::new(device), MAC);
    models.timing(port, Timing::instant());
    let peer = ModelPeer { bench: models.clone(), port };
    let probe = |bus| Ixgbe::probe(bus).expect("the model is one of the family");
    let bench = Bench::new(Box::new(bus), Box::new(peer), probe, Expect::model("82599 model"), adjust);
    (bench, models, port)
}

/// Segment `n` of a flow, 1000 bytes of payload.
fn segment(n: u32, push: bool) -> Vec<u8> {
    let mut frame = Ip::tcp4(1000).build();
    let sequence = 1000 + 1000 * n;
    frame[38..42].copy_from_slice(&sequence.to_be_bytes());
    frame[47] = if push { 0x18 } else { 0x10 };
    frame[50..52].fill(0);
    let ip = Ip::tcp4(1000);
    let pseudo = netcore_drivers::model::frames::pseudo(&frame, 14, 4, 6, frame.len() - ip.transport());
    let sum = pseudo.plus(netcore::checksum::sum(&frame[34..])).finish();
    frame[50..52].copy_from_slice(&sum.to_be_bytes());
    frame
}

#[test]
fn segments_of_a_flow_arrive_as_one_packet() {
    let (mut bench, ..) = bench_with(E82599::new(), |config| {
        config.features = Some(Features::all() - Features::RX_ALL - Features::RX_VLAN_FILTER);
    });
    bench.up();
    for n in 0..7 {
        bench.peer.send(&segment(n, n == 6));
    }
    let packet = bench.receive(1).remove(0);
    let gso = packet.gso().expect("a merged packet says so");
    assert_eq!((gso.kind, gso.size, gso.segments), (GsoKind::TCPV4, 1000, 7));
    let bytes = packet.to_vec();
    assert_eq!(bytes.len(), 54 + 7000);
    assert_eq!(u16::from_be_bytes([bytes[16], bytes[17]]), 7040);
    for n in 0..7 {
        assert_eq!(bytes[54 + 1000 * n..54 + 1000 * (n + 1)], segment(0, false)[54..]);
    }
    drop(packet);
    // Without the end of a message the interval of the interrupt ends a merge; another flow does not disturb it.
    bench.peer.send(&segment(0, false));
    bench.peer.send(&Ip::udp4(100).build());
    bench.peer.send(&segment(1, false));
    bench.peer.settle(Duration::from_millis(1));
    let packets = bench.receive(2);
    let mut lengths: Vec<_> = packets.iter().map(|packet| packet.len()).collect();
    lengths.sort_unstable();
    assert_eq!(lengths, [142, 2054]);
    drop(packets);
    // A hole ends it, too.
    bench.peer.send(&segment(0, false));
    bench.peer.send(&segment(2, true));
    let lengths: Vec<_> = bench.receive(2).iter().map(|packet| packet.len()).collect();
    assert_eq!(lengths, [1054, 1054]);
    assert_eq!(bench.statistics().get("rx_merged"), Some(2));
    bench.assert_no_violations();
    bench.down();
}

#[test]
fn a_flow_filter_chooses_the_queue_or_drops() {
    let (mut bench, ..) = bench_with(E82599::new(), |config| {
        config.queues = 32;
        config.receive_descriptors = 16;
    });
    bench.nic.hardware_mut().set_flow_filters(true);
    bench.up();
    let flow = Flow {
        protocol: FlowProtocol::Tcp,
        source: [10, 0, 0, 1].into(),
        destination: [10, 0, 0, 200].into(),
        source_port: 1000,
        destination_port: 2000,
    };
    // Beyond the sixteen queues that the hash reaches.
    bench.nic.hardware_mut().add_flow_filter(7, flow, FlowAction::Queue(29)).expect("a filter");
    bench.peer.send(&Ip::tcp4(100).build());
    assert_eq!(bench.receive(1)[0].queue(), Some(29));
    bench.peer.send(&Ip::tcp4(100).ports(1001, 2000).build());
    assert!(bench.receive(1)[0].queue().is_some_and(|queue| queue < 16));
    // It is there after a restart.
    let now = bench.now();
    bench.nic.stop(now).expect("stop");
    bench.up();
    bench.peer.send(&Ip::tcp4(100).build());
    assert_eq!(bench.receive(1)[0].queue(), Some(29));
    bench.nic.hardware_mut().add_flow_filter(7, flow, FlowAction::Drop).expect("changed");
    bench.peer.send(&Ip::tcp4(100).build());
    assert!(bench.receive_any().is_empty());
    bench.nic.hardware_mut().remove_flow_filter(7).expect("removed");
    bench.peer.send(&Ip::tcp4(100).build());
    assert!(bench.receive(1)[0].queue().is_some_and(|queue| queue < 16));
    assert!(matches!(bench.nic.hardware_mut().remove_flow_filter(7), Err(NicError::OutOfRange { .. })));
    let high = bench.nic.hardware_mut().add_flow_filter(1, flow, FlowAction::Queue(32));
    assert!(matches!(high, Err(NicError::OutOfRange { value: 32, .. })));
    let statistics = bench.statistics();
    assert_eq!(statistics.get("fdir_match"), Some(3));
    bench.assert_no_violations();
    bench.down();
}

#[test]
fn sixty_four_queues_transmit_and_give_every_buffer_back() {
    let (mut bench, ..) = bench_with(E82599::new(), |config| {
        config.queues = 64;
        config.receive_descriptors = 16;
        config.transmit_descriptors = 64;
    });
    // The rings take all buffers that are left.
    let packets: Vec<_> = (0..64).map(|queue| bench.packet(&numbered(PEER, MAC, 100, queue))).collect();
    bench.up();
    for (queue, packet) in (0..64).zip(packets) {
        let mut burst: Burst = [packet].into_iter().collect();
        let now = bench.now();
        assert_eq!(bench.nic.transmit(queue, &mut burst, now), Ok(1));
    }
    let seen: Vec<u32> = bench.peer.take().iter().map(|frame| number(frame)).collect();
    assert_eq!(seen, (0..64).collect::<Vec<_>>());
    bench.assert_no_violations();
    bench.down();
}

#[test]
fn each_kind_of_module_is_told_and_brings_its_speed() {
    for (plugged, module, ten, speed) in [
        (Plugged::Sr, Module::Optical { also_1g: false }, true, 10_000),
        (Plugged::Lr, Module::Optical { also_1g: false }, true, 10_000),
        (Plugged::DirectAttach, Module::DirectAttach, true, 10_000),
        (Plugged::Sx, Module::Gigabit, false, 1000),
    ] {
        let (mut bench, models, port) = bench_with(E82599::new().with_module(plugged), |_| {});
        models.partner(port, |partner| partner.ten_gigabit = ten);
        bench.up();
        assert_eq!(bench.nic.hardware().module(), Some(module));
        assert_eq!(bench.nic.link().speed_mbps, Some(speed), "{plugged:?}");
        bench.assert_no_violations();
        bench.down();
    }
    let models = Models::new();
    let (_, bus) = models.add(Box::new(E82599::new().with_module(Plugged::Unknown)), MAC);
    assert!(matches!(Ixgbe::probe(Box::new(bus)), Err(NicError::Unsupported { .. })));
}

#[test]
fn an_empty_cage_has_no_link_until_a_module_is_put_in() {
    let models = Models::new();
    let (port, bus) = models.add(Box::new(E82599::new()), MAC);
    models.timing(port, Timing::instant());
    models.faults(port, |faults| faults.sfp_absent = true);
    let peer = ModelPeer { bench: models.clone(), port };
    let probe = |bus| Ixgbe::probe(bus).expect("an empty cage is no error");
    let mut bench = Bench::new(Box::new(bus), Box::new(peer), probe, Expect::model("82599 model"), |_| {});
    let now = bench.now();
    bench.nic.start(now).expect("start");
    for _ in 0..20 {
        bench.peer.settle(Duration::from_millis(100));
        let now = bench.now();
        bench.nic.poll(now).expect("poll");
        assert!(!bench.nic.link().up);
    }
    models.faults(port, |faults| faults.sfp_absent = false);
    models.partner(port, |_| {});
    bench.wait_link(true);
    models.faults(port, |faults| faults.sfp_absent = true);
    models.partner(port, |_| {});
    bench.wait_link(false);
    bench.assert_no_violations();
    bench.down();
}

#[test]
fn a_damaged_section_of_the_nvm_and_no_nvm_are_errors() {
    for (damaged, absent) in [(true, false), (false, true)] {
        let models = Models::new();
        let (port, bus) = models.add(Box::new(E82599::new()), MAC);
        models.faults(port, |faults| {
            faults.nvm_damaged = damaged;
            faults.nvm_absent = absent;
        });
        let error = Ixgbe::probe(Box::new(bus)).err();
        if damaged {
            assert!(matches!(error, Some(NicError::NvmChecksum { sum: 0xbbba | 0xb9ba })), "{error:?}");
        } else {
            assert_eq!(error, Some(NicError::NvmAbsent));
        }
    }
}

#[test]
fn what_is_stuck_ends_within_its_bound() {
    type Fault = fn(&mut netcore_drivers::model::Faults);
    type Expected = fn(&NicError) -> bool;
    let cases: [(&str, Fault, Expected); 3] = [
        ("reset", |f| f.reset_stuck = true, |e| matches!(e, NicError::Timeout { what: "reset", .. })),
        ("semaphore", |f| f.semaphore_held = true, |e| matches!(e, NicError::Semaphore { .. })),
        ("removed", |f| f.removed = true, |e| matches!(e, NicError::Removed)),
    ];
    for (what, fault, expected) in cases {
        let models = Models::new();
        let (port, bus) = models.add(Box::new(E82599::new()), MAC);
        models.faults(port, fault);
        let error = Ixgbe::probe(Box::new(bus)).err().unwrap_or_else(|| panic!("{what}: no error"));
        assert!(expected(&error), "{what}: {error}");
    }
    let (mut bench, models, port) = bench_with(E82599::new(), |_| {});
    bench.up();
    models.faults(port, |faults| faults.queue_stuck = true);
    let now = bench.now();
    assert!(matches!(bench.nic.stop(now), Err(DriverError::Timeout { .. })));
    bench.assert_all_back();
    // A bus master that does not stop is reset twice.
    models.faults(port, |faults| {
        faults.queue_stuck = false;
        faults.master_stuck = true;
    });
    bench.up();
    models.faults(port, |faults| faults.master_stuck = false);
    bench.down();
}

#[test]
fn a_transmit_hang_is_found_and_ends_with_a_restart() {
    let (mut bench, models, port) = bench_with(E82599::new(), |_| {});
    bench.up();
    models.faults(port, |faults| faults.transmit_hang = true);
    let packet = bench.packet(&numbered(PEER, MAC, 100, 1));
    let mut burst: Burst = [packet].into_iter().collect();
    let now = bench.now();
    bench.nic.transmit(0, &mut burst, now).expect("transmit");
    for _ in 0..40 {
        bench.peer.settle(Duration::from_millis(100));
        let now = bench.now();
        bench.nic.poll(now).expect("poll");
    }
    models.faults(port, |faults| faults.transmit_hang = false);
    assert!(bench.statistics().get("tx_timeout_count") >= Some(1));
    bench.wait_link(true);
    let packets = vec![bench.packet(&numbered(PEER, MAC, 100, 2))];
    assert_eq!(number(&bench.transmit(packets, 1)[0]), 2);
    bench.down();
}

#[test]
fn a_full_packet_buffer_asks_the_partner_to_pause() {
    let (mut bench, ..) = bench_with(E82599::new(), |config| {
        config.receive_descriptors = 32;
        config.flow_control = FlowControl::Full;
    });
    bench.up();
    for n in 0..700 {
        bench.peer.send(&numbered(MAC, PEER, 1000, n));
    }
    let sent = bench.peer.take();
    assert!(sent.iter().any(|frame| frame[12..16] == [0x88, 0x08, 0, 1] && frame[16..18] == [0xff, 0xff]));
    while !bench.receive_any().is_empty() {}
    let sent = bench.peer.take();
    assert!(sent.iter().any(|frame| frame[12..16] == [0x88, 0x08, 0, 1] && frame[16..18] == [0, 0]), "and to go on");
    bench.assert_no_violations();
    bench.down();
}
