use super::*;
use crate::BondError;
use netcore::{Features, Gso, GsoKind};

#[test]
fn a_member_gets_the_bonds_mtu_and_its_own_back() {
    let mut b = Bench::new("mode balance-rr miimon 100", 1);
    b.bond.set_mtu(9000).unwrap();
    b.add();
    assert_eq!(b.nics[1].get().capabilities.mtu, 9000);
    assert!(b.nics[1].get().started);
    let driver = b.bond.remove_member("m1", b.now).unwrap();
    assert_eq!((driver.capabilities().mtu, driver.capabilities().mac), (1500, MacAddress([2, 0, 0, 0, 0xff, 1])));
    assert!(!b.nics[1].get().started);
    assert!(matches!(b.bond.remove_member("m1", b.now), Err(BondError::NoSuchMember { .. })));
}

#[test]
fn a_driver_that_cannot_have_the_mtu_or_the_address_comes_back_as_it_was() {
    let mut b = Bench::new("mode balance-rr miimon 100", 1);
    b.bond.set_mtu(9000).unwrap();
    let small = Handle::new(7);
    small.get().largest_mtu = 1500;
    let refused = b.bond.add_member("small", small.driver(), b.now).err().unwrap();
    assert!(matches!(refused.error, BondError::Mtu { mtu: 9000, .. }));
    let fixed = Handle::new(8);
    fixed.get().fixed_mac = true;
    let refused = b.bond.add_member("fixed", fixed.driver(), b.now).err().unwrap();
    assert!(matches!(refused.error, BondError::Address { .. }));
    assert_eq!(refused.driver.capabilities().mtu, 1500);
    assert!(matches!(b.bond.add_member("m0", fixed.driver(), b.now).err().unwrap().error, BondError::NameTaken { .. }));
    assert_eq!(b.bond.members().len(), 1);
}

#[test]
fn an_mtu_that_one_member_refuses_is_taken_back_from_the_others() {
    let mut b = Bench::new("mode balance-rr miimon 100", 3);
    b.nics[2].get().largest_mtu = 4000;
    assert!(b.bond.set_mtu(9000).is_err());
    assert!(b.nics.iter().all(|nic| nic.get().capabilities.mtu == 1500));
    assert_eq!(b.bond.capabilities().mtu, 1500);
    b.bond.set_mtu(4000).unwrap();
    assert!(b.nics.iter().all(|nic| nic.get().capabilities.mtu == 4000));
}

#[test]
fn a_first_member_with_a_fixed_address_makes_an_active_backup_bond_follow_it() {
    let mut b = Bench::new("mode active-backup miimon 100", 0);
    let fixed = Handle::new(0);
    fixed.get().fixed_mac = true;
    b.bond.set_mac(MacAddress([2, 1, 1, 1, 1, 1])).unwrap();
    b.bond.add_member("m0", fixed.driver(), b.now).map_err(|e| e.error).unwrap();
    assert_eq!(b.bond.option("fail_over_mac").unwrap(), "active 1");
    assert_eq!(b.bond.capabilities().mac, MacAddress([2, 0, 0, 0, 0xff, 0]));
}

#[test]
fn fail_over_mac_decides_who_has_which_address() {
    let own = |n| MacAddress([2, 0, 0, 0, 0xff, n]);
    for (policy, before, after) in [
        ("none", [own(0), own(0)], [own(0), own(0)]),
        ("active", [own(0), own(1)], [own(0), own(1)]),
        ("follow", [own(0), own(1)], [own(1), own(0)]),
    ] {
        let mut b = Bench::new(&std::format!("mode active-backup miimon 100 fail_over_mac {policy}"), 2);
        let macs = |b: &Bench| [0, 1].map(|n: usize| b.nics[n].get().capabilities.mac);
        assert_eq!((macs(&b), b.bond.capabilities().mac), (before, own(0)), "{policy}");
        b.nics[0].up(false);
        b.run(200);
        assert_eq!(macs(&b), after, "{policy}");
        assert_eq!(b.bond.capabilities().mac, if policy == "active" { own(1) } else { own(0) });
    }
}

#[test]
fn features_are_a_union_with_a_segmenter_and_sizes_are_minima() {
    struct Nothing;
    impl Segmenter for Nothing {
        fn segment(
            &mut self,
            packet: Packet,
            _: Features,
            _: &mut PoolCache,
            out: &mut Burst,
        ) -> Result<usize, netcore::NotSegmented> {
            out.push(packet);
            Ok(1)
        }

        fn fill_checksum(&mut self, _: &mut Packet, _: &mut PoolCache) -> Result<(), netcore::SegmentError> {
            Ok(())
        }
    }
    let mut bond: Bond<Fake> = Bond::new("bond0", Options::new(Mode::BalanceRr), pool(), 1);
    let (able, plain) = (Handle::new(0), Handle::new(1));
    {
        let c = &mut able.get().capabilities;
        (c.features, c.supported) =
            (Features::TSO | Features::SCATTER_GATHER, Features::TSO | Features::SCATTER_GATHER);
        (c.gso, c.gso_max_size, c.gso_max_segments) = (GsoKind::TCPV4, 65536, 64);
        plain.get().capabilities.gso_max_size = 32768;
    }
    for (name, nic) in [("able", &able), ("plain", &plain)] {
        bond.add_member(name, nic.driver(), Instant::ZERO).map_err(|e| e.error).unwrap();
    }
    assert!(!bond.capabilities().features.contains(Features::TSO));
    let gso = Gso { kind: GsoKind::TCPV4, size: 1448, segments: 2 };
    let mut cache = pool();
    let mut big = cache.copy_from_slice(&udp(1)).unwrap();
    big.set_gso(Some(gso));
    let mut burst = Burst::new();
    burst.push(big);
    bond.start(Instant::ZERO).unwrap();
    // In turn: the second member, which is plain, comes first, and refuses for the bond.
    assert!(matches!(bond.transmit(0, &mut burst, Instant::ZERO), Err(netcore::DriverError::Refused { .. })));
    assert_eq!(burst.len(), 1);
    bond.set_segmenter(Box::new(Nothing));
    assert!(bond.capabilities().features.contains(Features::TSO));
    assert_eq!((bond.capabilities().gso_max_size, bond.capabilities().gso_max_segments), (32768, 64));
    assert_eq!(bond.transmit(0, &mut burst, Instant::ZERO), Ok(1));
    assert_eq!((able.sent(), plain.sent(), bond.counters().tx_software), (0, 1, 1));
}

#[test]
fn options_change_live_or_say_why_not() {
    let mut b = Bench::new("mode active-backup miimon 100", 2);
    let now = b.now;
    let errno = |result: Result<(), BondError>| match result {
        Err(BondError::Option(error)) => error.errno(),
        other => panic!("{other:?}"),
    };
    assert_eq!(errno(b.bond.set_option("mode", "balance-rr", now)), "ENOTEMPTY");
    assert_eq!(errno(b.bond.set_option("active_slave", "m9", now)), "ENODEV");
    b.bond.set_option("active_slave", "m1", now).unwrap();
    assert_eq!(b.bond.option("active_slave").unwrap(), "m1");
    b.bond.set_option("primary", "m0", now).unwrap();
    assert_eq!(b.bond.active_member(), Some("m0"));
    assert_eq!(b.bond.option("slaves").unwrap(), "m0 m1");
    b.bond.set_option("primary_reselect", "failure", now).unwrap();
    b.nics[0].up(false);
    b.run(200);
    b.nics[0].up(true);
    b.run(200);
    assert_eq!(b.bond.active_member(), Some("m1"), "the primary waits for a failure");
    assert!(b.bond.set_member_queue("m0", 3).is_err());
    b.bond.set_member_priority("m0", 5, now).unwrap();
    assert!(b.bond.set_member_port_priority("m0", 5, now).is_err());
}

#[test]
fn events_tell_what_happened() {
    let mut b = Bench::new("mode active-backup miimon 100", 2);
    let events = b.events();
    assert!(events.contains(&BondEvent::Added { member: 1 }) && events.contains(&BondEvent::Carrier { up: true }));
    b.nics[0].up(false);
    b.run(200);
    let events = b.events();
    for expected in [
        BondEvent::Link { member: 0, link: MemberLink::Down },
        BondEvent::Sends { member: 0, sends: false },
        BondEvent::Active { member: Some(1) },
        BondEvent::NotifyPeers,
    ] {
        assert!(events.contains(&expected), "{expected:?} in {events:?}");
    }
}
