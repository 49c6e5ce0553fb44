//! Whatever happens to links and members.

use super::*;
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Step {
    Link(usize, bool),
    Send(u8),
    Room(usize, usize),
    Run(u64),
    Add,
    Remove(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0..4_usize, any::<bool>()).prop_map(|(n, up)| Step::Link(n, up)),
        (1..50_u8).prop_map(Step::Send),
        (0..4_usize, 0..20_usize).prop_map(|(n, room)| Step::Room(n, room)),
        (1..3000_u64).prop_map(Step::Run),
        Just(Step::Add),
        (0..4_usize).prop_map(Step::Remove),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// In any mode: nothing goes out on a link that is down (the fake driver panics) or on a member that may not send, no
    /// frame goes out twice except in broadcast, and every frame taken was sent, waits, or is counted as lost.
    #[test]
    fn frames_are_sent_once_on_members_that_may_send_or_counted(
        mode in prop::sample::select(Mode::ALL), steps in prop::collection::vec(step(), 1..40)
    ) {
        let mut b = Bench::new(&std::format!("mode {mode} miimon 50 updelay 100"), 3);
        let (mut taken, mut serial) = (0_usize, 0_u32);
        let mut departed = (0_u64, 0_u64);
        for step in steps {
            match step {
                Step::Link(n, up) => if let Some(nic) = b.nics.get(n) { nic.up(up); b.bond.poll(b.now).unwrap() },
                Step::Room(n, room) => if let Some(nic) = b.nics.get(n) { nic.get().room = room },
                Step::Run(ms) => b.run(ms),
                Step::Add => if b.nics.len() < 6 { b.add() },
                Step::Remove(n) => {
                    let name = std::format!("m{n}");
                    if let Some(m) = b.bond.member(&name) {
                        let (sent, lost) = (m.counters.tx_packets, m.counters.tx_dropped);
                        let waiting = sent - b.nics[n].sent() as u64;
                        departed.0 += sent - waiting;
                        departed.1 += lost + waiting;
                        b.bond.remove_member(&name, b.now).unwrap();
                    }
                }
                Step::Send(n) => {
                    let before = b.sent();
                    let may: Vec<bool> = (0..b.nics.len())
                        .map(|n| b.bond.member(&std::format!("m{n}")).is_some_and(|m| m.active))
                        .collect();
                    let mut burst = Burst::new();
                    for i in 0..n {
                        let mut frame = udp(i);
                        serial += 1;
                        frame[50..54].copy_from_slice(&serial.to_be_bytes());
                        burst.push(b.cache.copy_from_slice(&frame).unwrap());
                    }
                    taken += b.bond.transmit(0, &mut burst, b.now).unwrap();
                    for (n, (before, after)) in before.into_iter().zip(b.sent()).enumerate() {
                        prop_assert!(may[n] || before == after, "member {n} may not send");
                    }
                }
            }
        }
        // Room for all that waits.
        b.nics.iter().for_each(|nic| nic.get().room = usize::MAX);
        b.run(1);
        let mut copies = std::collections::BTreeMap::<u32, u32>::new();
        for nic in &b.nics {
            for frame in &nic.get().sent {
                *copies.entry(u32::from_be_bytes(frame[50..54].try_into().unwrap())).or_default() += 1;
            }
        }
        if mode != Mode::Broadcast {
            prop_assert!(copies.values().all(|n| *n == 1));
            let lost: u64 = b.bond.members().map(|m| m.counters.tx_dropped).sum::<u64>() + b.bond.counters().tx_dropped;
            prop_assert_eq!(copies.len() as u64 + lost + departed.1, taken as u64);
        }
    }

}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// Two 802.3ad bonds whose links lose, double and delay frames and come and go agree once the links are steady.
    #[test]
    fn two_bonds_agree_once_their_links_are_steady(
        pattern in prop::collection::vec((0..100_u8, 0..100_u8, 0..3_usize, any::<bool>()), 1..200),
        fast in any::<bool>(), independent in any::<bool>(),
    ) {
        let rate = if fast { "fast" } else { "slow" };
        let mut ends = [0, 1].map(|end| {
            let control = if independent && end == 0 { "off" } else { "on" };
            let mut b = Bench::new(&std::format!("mode 802.3ad lacp_rate {rate} coupled_control {control}"), 0);
            for n in 0..2 {
                let nic = Handle::new(10 * end + n);
                b.bond.add_member(&std::format!("m{n}"), nic.driver(), b.now).map_err(|e| e.error).unwrap();
                b.nics.push(nic);
            }
            b
        });
        let mut wire: Vec<(u64, usize, usize, Vec<u8>)> = Vec::new();
        let steady = 200 + 2000;
        for tick in 0..(pattern.len() as u64 + steady) {
            let noise = pattern.get(tick as usize).copied();
            if let Some((_, _, link, up)) = noise && link < 2 {
                ends.iter().for_each(|b| b.nics[link].up(up));
            } else if noise.is_none() {
                ends.iter().for_each(|b| b.nics.iter().for_each(|nic| nic.up(true)));
            }
            for (e, b) in ends.iter_mut().enumerate() {
                b.run(100);
                for (n, nic) in b.nics.iter().enumerate() {
                    for frame in core::mem::take(&mut nic.get().control) {
                        let (loss, double, ..) = noise.unwrap_or((100, 100, 0, true));
                        if loss >= 40 {
                            wire.push((tick + u64::from(double % 7), 1 - e, n, frame.clone()));
                        }
                        if double < 20 {
                            wire.push((tick + 3, 1 - e, n, frame));
                        }
                    }
                }
            }
            let (due, later): (Vec<_>, Vec<_>) = wire.into_iter().partition(|(at, ..)| *at <= tick);
            wire = later;
            for (_, e, n, frame) in due {
                if ends[e].nics[n].get().link.up {
                    ends[e].nics[n].get().incoming.push(frame);
                }
            }
            for b in &mut ends {
                prop_assert!(b.receive().is_empty(), "control frames go no further");
            }
        }
        for b in &mut ends {
            for m in b.bond.members() {
                prop_assert!(m.active && m.receives, "{m:?}");
            }
            prop_assert!(b.bond.link().up);
        }
    }
}
