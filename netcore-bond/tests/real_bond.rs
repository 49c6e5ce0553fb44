//! The members that real Linux bonds chose: recorded by `oracle/record.py`, and those that came with the reference data.

use netcore::{LinkState, Member, PacketPool, PoolConfig, VlanTag, XmitPolicy};
use netcore_bond::options::XmitHashPolicy;
use netcore_bond::policy::{Hash, RoundRobin};
use netcore_drivers::pcap::CaptureReader;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

fn frames(path: &Path) -> Vec<Vec<u8>> {
    let bytes = std::fs::read(path).unwrap();
    let mut reader = CaptureReader::new(bytes.as_slice()).unwrap();
    let mut all = Vec::new();
    while let Some(record) = reader.next().unwrap() {
        all.push(record.bytes.to_vec());
    }
    all
}

fn recorded(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata").join(name)
}

fn members(n: u16) -> Vec<Member> {
    (0..n).map(|id| Member { id, active: true, link: LinkState::up(1000) }).collect()
}

/// The dissector is not asked about frames with a tag inside: a packet socket, through which the frames were sent, points it
/// behind the tag, which no other sender does.
fn comparable(kind: &str, policy: &str) -> bool {
    !(matches!(kind, "vlan" | "qinq") && policy.starts_with("encap"))
}

#[test]
fn every_policy_chooses_the_member_that_a_real_bond_chose() {
    let frames = frames(&recorded("bond_frames.pcap"));
    let csv = std::fs::read_to_string(recorded("bond_members.csv")).unwrap();
    let mut lines = csv.lines();
    let header: Vec<&str> = lines.next().unwrap().split(',').collect();
    let mut cache = PacketPool::new(PoolConfig::with_buffers(64)).unwrap().cache();
    let mut compared: BTreeMap<&str, usize> = BTreeMap::new();
    let mut wrong = Vec::new();
    for (frame, line) in frames.iter().zip(lines) {
        let row: Vec<&str> = line.split(',').collect();
        let mut packet = cache.copy_from_slice(frame).unwrap();
        packet.set_vlan(row[2].parse().ok().map(|tci| VlanTag { tpid: 0x8100, tci }));
        for (column, answer) in header.iter().zip(&row).skip(3) {
            let (policy, n) = column.split_once('/').unwrap();
            let Ok(policy_value) = policy.parse::<XmitHashPolicy>() else { continue };
            if !comparable(row[1], policy) {
                continue;
            }
            let chosen = Hash::new(policy_value).select(&packet, &members(n.parse().unwrap())).unwrap();
            *compared.entry(policy).or_default() += 1;
            if chosen.to_string() != *answer {
                wrong.push(format!("frame {} ({}) {column}: kernel {answer}, ours {chosen}", row[0], row[1]));
            }
        }
        cache.put(packet);
    }
    assert!(wrong.is_empty(), "{} differences\n{}", wrong.len(), wrong[..wrong.len().min(40)].join("\n"));
    assert_eq!(compared.len(), 6);
    assert!(compared.values().all(|n| *n > 4 * 1100), "{compared:?}");
}

#[test]
fn round_robin_goes_round_as_a_real_bond_does() {
    let frames = frames(&recorded("bond_frames.pcap"));
    let csv = std::fs::read_to_string(recorded("bond_members.csv")).unwrap();
    let header: Vec<&str> = csv.lines().next().unwrap().split(',').collect();
    let mut cache = PacketPool::new(PoolConfig::with_buffers(64)).unwrap().cache();
    for (column, packets, down) in [("rr/1", 1, None), ("rr/3", 3, None), ("rr/1/p1-down", 1, Some(1))] {
        let index = header.iter().position(|name| *name == column).unwrap();
        // With a member down its peer is left out of the recorded numbers.
        let answers: Vec<usize> = csv
            .lines()
            .skip(1)
            .map(|line| {
                let n: usize = line.split(',').nth(index).unwrap().parse().unwrap();
                if down.is_some_and(|down| n >= down) { n + 1 } else { n }
            })
            .collect();
        let mut all = members(4);
        if let Some(down) = down {
            all[down].active = false;
        }
        // The kernel's counter had run before; some start makes all answers equal, IGMP and all.
        let start = (0..12).find(|&start| {
            let mut policy = RoundRobin::new(packets, 0);
            let filler = cache.copy_from_slice(&[0; 60]).unwrap();
            for _ in 0..start {
                policy.select(&filler, &all);
            }
            frames.iter().zip(&answers).all(|(frame, answer)| {
                let packet = cache.copy_from_slice(frame).unwrap();
                let chosen = policy.select(&packet, &all);
                cache.put(packet);
                chosen == Some(*answer)
            })
        });
        assert!(start.is_some(), "{column}: no start of the counter gives what the kernel did");
    }
}

#[test]
fn the_488_frames_of_the_reference_data() {
    let (Some(pcap), Some(csv)) = (
        netcore_test::shared("exams/pcaps/bond_hash_frames.pcap"),
        netcore_test::shared("exams/pcaps/bond_hash_members.csv"),
    ) else {
        return;
    };
    let csv = std::fs::read_to_string(csv).unwrap();
    let header: Vec<&str> = csv.lines().next().unwrap().split(',').collect();
    let mut cache = PacketPool::new(PoolConfig::with_buffers(64)).unwrap().cache();
    let mut rows = 0;
    for (frame, line) in frames(&pcap).iter().zip(csv.lines().skip(1)) {
        let row: Vec<&str> = line.split(',').collect();
        let packet = cache.copy_from_slice(frame).unwrap();
        for (column, answer) in header.iter().zip(&row).skip(2) {
            let (policy, n) = column.split_once('/').unwrap();
            let chosen = Hash::new(policy.parse().unwrap()).select(&packet, &members(n.parse().unwrap()));
            assert_eq!(chosen.unwrap().to_string(), *answer, "frame {line} {column}");
        }
        cache.put(packet);
        rows += 1;
    }
    assert_eq!(rows, 488);
}
