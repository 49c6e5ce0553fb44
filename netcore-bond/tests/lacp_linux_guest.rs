//! LACP with a real Linux bond: two igb of a guest, this system at the other end of their cables.
//!
//! The guest's bond is made through sysfs; what it says is read from its LACPDUs and from `/proc/net/bonding`. With
//! `NETCORE_WRITE_FIXTURES=1`, the exchange becomes `testdata/linux_bond.pcap`, which `lacp_linux_recorded` replays.
#![cfg(unix)]

use netcore::wire::{EtherType, EthernetHeader, LacpState, Lacpdu};
use netcore::{Instant, LinkState, MacAddress};
use netcore_bond::lacp::{
    AdSelect, Handled, Lacp, LacpConfig, LacpError, LacpEvent, LacpRate, MuxState, PortConfig, Timing,
};
use netcore_drivers::pcap::{CaptureWriter, Format, LinkType};
use netcore_test::guest::{Guest, GuestBuilder, GuestFiles};
use std::time::Duration;

const OURS: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);

fn port_address(port: u16) -> MacAddress {
    MacAddress([2, 0, 0, 0, 1, port as u8])
}

/// What the guest last said on a link.
#[derive(Clone, Copy, Default)]
struct Heard {
    state: u8,
    of_us: u8,
    count: usize,
}

struct Bench {
    guest: Guest,
    lacp: Lacp,
    start: std::time::Instant,
    /// State of a port that is in use.
    healthy: u8,
    /// Frames pass, per link; the test sees what the guest sends all the same.
    passes: [bool; 2],
    heard: [Heard; 2],
    last_sent: [Instant; 2],
    /// Echo requests that came in on each link, and those that came where none may come.
    data: [usize; 2],
    stray: usize,
    /// The last marker that was answered.
    marker: Option<u32>,
    record: Option<CaptureWriter<Vec<u8>>>,
}

fn fast() -> LacpConfig {
    LacpConfig { lacp_rate: LacpRate::Fast, ..LacpConfig::new(OURS) }
}

fn system(now: Instant, config: LacpConfig) -> Lacp {
    let mut lacp = Lacp::new(config).unwrap();
    for (port, speed) in [(1, 1000), (2, if config.ad_select == AdSelect::Prio { 10_000 } else { 1000 })] {
        lacp.add_port(&PortConfig::new(port_address(port)), LinkState::up(speed), now).unwrap();
    }
    lacp.open(now);
    lacp
}

impl Bench {
    fn now(&self) -> Instant {
        Instant::ZERO + self.start.elapsed()
    }

    fn record(&mut self, frame: &[u8]) {
        let now = self.now();
        if let Some(writer) = &mut self.record {
            writer.write(Some(now), &[frame], frame.len()).unwrap();
        }
    }

    /// One look at everything.
    fn turn(&mut self) {
        let mut frame = [0; 2048];
        for link in 0..2 {
            while let Some(len) = self.guest.nic(link).receive(&mut frame) {
                let frame = &frame[..len];
                if let Ok((pdu, _)) = Lacpdu::parse(&frame[14..]) {
                    let (state, of_us) = (pdu.actor().state().bits(), pdu.partner().state().bits());
                    self.heard[link] = Heard { state, of_us, count: self.heard[link].count + 1 };
                }
                if !self.passes[link] {
                    continue;
                }
                let now = self.now();
                match self.lacp.handle(link as u16 + 1, frame, now) {
                    Ok(Handled::Pass) => self.answer(link, frame),
                    Ok(_) => self.record(frame),
                    Err(LacpError::NoSuchPort { .. }) => {}
                    Err(error) => panic!("{error}"),
                }
            }
        }
        let now = self.now();
        self.lacp.poll(now);
        while let Some(frame) = self.lacp.next_frame() {
            let link = usize::from(frame.port) - 1;
            if self.passes[link] {
                self.last_sent[link] = now;
                self.record(&frame.bytes);
                self.guest.nic(link).send(&frame.bytes);
            }
        }
        while let Some(event) = self.lacp.next_event() {
            if let LacpEvent::MarkerResponse { transaction, .. } = event {
                self.marker = Some(transaction);
            }
        }
        std::thread::sleep(Duration::from_millis(1));
    }

    /// A host behind the bond: answers ARP and echo requests for 10.9.0.2.
    fn answer(&mut self, link: usize, frame: &[u8]) {
        let (ethernet, payload) = EthernetHeader::parse(frame).unwrap();
        let mut reply = frame.to_vec();
        match ethernet.ethertype() {
            EtherType::ARP if payload[7] == 1 && payload[24..28] == [10, 9, 0, 2] => {
                reply[21] = 2;
                reply[32..42].copy_from_slice(&frame[22..32]);
                reply[22..28].copy_from_slice(&OURS.0);
                reply[28..32].copy_from_slice(&[10, 9, 0, 2]);
            }
            EtherType::IPV4 if payload[9] == 1 && payload[20] == 8 => {
                let port = &self.lacp.ports()[link];
                if self.lacp.collects(port) {
                    self.data[link] += 1;
                } else {
                    self.stray += 1;
                }
                reply[26..30].copy_from_slice(&frame[30..34]);
                reply[30..34].copy_from_slice(&frame[26..30]);
                reply[34] = 0;
                // The type went from 8 to 0: RFC 1624.
                let sum = u32::from(u16::from_be_bytes([frame[36], frame[37]])) + 0x0800;
                reply[36..38].copy_from_slice(&((sum & 0xffff) as u16 + (sum >> 16) as u16).to_be_bytes());
            }
            _ => return,
        }
        reply[..6].copy_from_slice(&frame[6..12]);
        reply[6..12].copy_from_slice(&OURS.0);
        let out = (0..2).find(|&l| self.lacp.distributes(&self.lacp.ports()[l]) && self.passes[l]);
        if let Some(out) = out {
            self.guest.nic(out).send(&reply);
        }
    }

    fn command(&mut self, command: &str) -> String {
        self.guest.start(command).unwrap();
        loop {
            if let Some(output) = self.guest.finished().unwrap_or_else(|e| panic!("{command}: {e}")) {
                return output;
            }
            self.turn();
        }
    }

    fn run(&mut self, span: Duration) {
        let until = self.now() + span;
        while self.now() < until {
            self.turn();
        }
    }

    fn until(&mut self, what: &str, limit: Duration, mut done: impl FnMut(&Self) -> bool) -> Duration {
        let start = self.now();
        while !done(self) {
            assert!(self.now() - start < limit, "{what}: not within {limit:?}\n{}", self.lacp.info());
            self.turn();
        }
        self.now() - start
    }

    /// Both ends of the link are in sync and use it.
    fn is_healthy(&self, link: usize) -> bool {
        let port = &self.lacp.ports()[link];
        let heard = self.heard[link];
        [port.actor().state().bits(), port.partner().state().bits(), heard.state, heard.of_us] == [self.healthy; 4]
            && self.lacp.distributes(port)
    }

    fn both_healthy(&self) -> bool {
        self.is_healthy(0) && self.is_healthy(1)
    }

    fn ping(&mut self) {
        let before = self.data.iter().sum::<usize>();
        let output = self.command("ping -c 3 -i 0.2 -W 2 10.9.0.2");
        assert!(output.contains("3 packets received"), "{output}");
        assert!(self.data.iter().sum::<usize>() >= before + 3 && self.stray == 0);
    }
}

fn bench(second_nic: &str, config: LacpConfig) -> Option<Bench> {
    let files = GuestFiles::find()?;
    let nic = |n: u8| [0x52, 0x54, 0, 0x12, 0x34, 0x56 + n];
    let builder = GuestBuilder::new(files).module("igb", "").module("virtio_pci", "").module("virtio_net", "");
    let builder = builder.module("bonding", "max_bonds=0").nic("igb", nic(0)).nic(second_nic, nic(1));
    let guest = builder.boot().unwrap();
    let record = std::env::var_os("NETCORE_WRITE_FIXTURES").map(|_| {
        CaptureWriter::new(Vec::new(), Format::Pcap(netcore_drivers::pcap::Precision::Nanos), LinkType::ETHERNET)
            .unwrap()
    });
    let mut bench = Bench {
        guest,
        lacp: system(Instant::ZERO, config),
        start: std::time::Instant::now(),
        healthy: 0x3f,
        passes: [true; 2],
        heard: [Heard::default(); 2],
        last_sent: [Instant::ZERO; 2],
        data: [0; 2],
        stray: 0,
        marker: None,
        record,
    };
    let b = "/sys/class/net/bond0/bonding";
    for line in [
        "echo +bond0 > /sys/class/net/bonding_masters".to_string(),
        format!(
            "echo 802.3ad > {b}/mode && echo fast > {b}/lacp_rate && echo 100 > {b}/miimon && echo 1000 > {b}/ad_actor_sys_prio"
        ),
        format!("for i in eth0 eth1; do ip link set $i down; echo +$i > {b}/slaves; done"),
        "ip link set bond0 up && ip addr add 10.9.0.1/24 dev bond0".to_string(),
    ] {
        bench.command(&line);
    }
    Some(bench)
}

/// The value behind a label in what the guest prints, each time it is there.
fn values<'a>(text: &'a str, label: &'a str) -> Vec<&'a str> {
    text.lines().filter_map(|line| line.trim().strip_prefix(label)).map(str::trim).collect()
}

const fn secs(s: u64) -> Duration {
    Duration::from_secs(s)
}

#[test]
fn a_linux_bond_and_this_system_agree_and_recover_in_time() {
    let Some(mut bench) = bench("igb", fast()) else { return };

    // Start: both ends in sync, one aggregator, two ports.
    let took = bench.until("start", secs(20), Bench::both_healthy);
    println!("in sync {took:?} after the guest's bond went up");
    let active = bench.lacp.active_aggregator().unwrap();
    assert_eq!(active.ports, 2);
    let proc = bench.command("cat /proc/net/bonding/bond0");
    assert_eq!(values(&proc, "Number of ports:"), ["2"]);
    assert_eq!(values(&proc, "Partner Mac Address:"), [OURS.to_string()]);
    assert_eq!(values(&proc, "port state:"), ["63"; 4]);
    assert_eq!(values(&proc, "Actor Key:"), ["9"]);
    // What we print has the labels that Linux prints.
    let labels = |text: &str| text.lines().map(|l| l.split(':').next().unwrap().to_string()).collect::<Vec<_>>();
    let [info, port] = [bench.lacp.info().to_string(), bench.lacp.port_info(&bench.lacp.ports()[0]).to_string()];
    for ours in [info, port] {
        let (ours, theirs) = (labels(&ours), labels(&proc));
        assert!(theirs.windows(ours.len()).any(|w| *w == *ours), "{ours:#?}");
    }
    let system = values(&proc, "System MAC address:")[0].to_string();
    assert_eq!(active.partner_system.to_string(), system);
    bench.ping();
    if let Some(writer) = bench.record.take() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/linux_bond.pcap");
        std::fs::create_dir_all(concat!(env!("CARGO_MANIFEST_DIR"), "/testdata")).unwrap();
        std::fs::write(path, writer.finish().unwrap()).unwrap();
    }

    // One link goes silent, carrier stays: traffic stops on it in 3 s; the other goes on.
    bench.passes[0] = false;
    let cut = bench.now();
    bench.until("expired", secs(6), |b| b.heard[0].state & LacpState::EXPIRED.bits() != 0);
    let (silent, theirs) = (bench.now() - bench.last_sent[0], bench.heard[0].state);
    println!("Linux says {theirs:#04x} {silent:?} after the last LACPDU");
    assert!((secs(3)..=Duration::from_millis(4200)).contains(&silent), "{silent:?}");
    assert_eq!(theirs & 0x30, 0, "neither collecting nor distributing");
    bench.until("our port expires", secs(2), |b| !b.lacp.distributes(&b.lacp.ports()[0]));
    assert!(bench.is_healthy(1));
    bench.ping();
    println!("cut for {:?}", bench.now() - cut);

    // It is heard again.
    bench.passes[0] = true;
    let took = bench.until("back", secs(40), Bench::both_healthy);
    println!("back after {took:?}");

    // Silence on both until the partner is given up: 3 s more.
    bench.passes = [false; 2];
    while values(&bench.command("cat /proc/net/bonding/bond0"), "system mac address: 00:00:00:00:00:00").len() < 2 {
        assert!(bench.now() - bench.last_sent[0] < secs(9), "Linux never gives the partner up");
    }
    let silent = bench.now() - bench.last_sent[0];
    println!("Linux gives the partner up {silent:?} after the last LACPDU");
    assert!((secs(6)..=Duration::from_millis(7600)).contains(&silent), "{silent:?}");

    // The partner restarts.
    bench.passes = [true; 2];
    bench.lacp = self::system(bench.now(), fast());
    let took = bench.until("restart", secs(10), Bench::both_healthy);
    println!("after a restart of the partner that was given up, in sync in {took:?}");
    bench.run(secs(1));
    bench.lacp = self::system(bench.now(), fast());
    bench.heard = [Heard::default(); 2];
    let took = bench.until("restart", secs(10), Bench::both_healthy);
    println!("after a restart of the partner in use, in sync in {took:?}");
    assert!(took <= secs(5));
    bench.ping();

    // A partner without ticks, and with independent control.
    let apart = LacpConfig { coupled_control: false, timing: Timing::EventDriven, ..fast() };
    bench.lacp = self::system(bench.now(), apart);
    bench.heard = [Heard::default(); 2];
    let took = bench.until("independent", secs(10), Bench::both_healthy);
    println!("with independent control, event driven, in sync in {took:?}");
    assert!((0..2).all(|i| bench.lacp.ports()[i].mux_state() == MuxState::Distributing) && took <= secs(5));
    bench.ping();
    let transaction = bench.lacp.send_marker(1).unwrap();
    let took = bench.until("marker", secs(1), |b| b.marker == Some(transaction));
    println!("Linux answered a marker in {took:?}");

    // A port that leaves says so.
    let now = bench.now();
    bench.lacp.remove_port(2, now).unwrap();
    let took = bench.until("goodbye", secs(1), |b| b.heard[1].state & 0x30 == 0);
    println!("Linux stopped {took:?} after a port had left");
    let now = bench.now();
    bench.lacp.add_port(&PortConfig::new(port_address(2)), LinkState::up(1000), now).unwrap();
    let took = bench.until("return", secs(10), Bench::both_healthy);
    println!("the port came back, in sync in {took:?}");

    // The rate that the guest shall send at.
    let now = bench.now();
    bench.lacp.set_lacp_rate(LacpRate::Slow, now);
    bench.run(secs(2));
    let before = bench.heard[0].count;
    bench.run(secs(6));
    assert!(bench.heard[0].count - before <= 1, "every 30 s now, heard {} in 6 s", bench.heard[0].count - before);
    let now = bench.now();
    bench.lacp.set_lacp_rate(LacpRate::Fast, now);
    bench.run(secs(1));
    let before = bench.heard[0].count;
    bench.run(secs(5));
    assert!(
        (4..=7).contains(&(bench.heard[0].count - before)),
        "every second, heard {} in 5 s",
        bench.heard[0].count - before
    );
    assert!(bench.both_healthy());

    // One cable pulled and plugged.
    bench.guest.set_link(1, false).unwrap();
    let now = bench.now();
    bench.lacp.set_link(2, LinkState::DOWN, now).unwrap();
    bench.run(secs(1));
    let proc = bench.command("cat /proc/net/bonding/bond0");
    assert_eq!(values(&proc, "Number of ports:"), ["1"], "{proc}");
    assert_eq!(bench.lacp.active_aggregator().unwrap().ports, 1);
    bench.ping();
    bench.guest.set_link(1, true).unwrap();
    let now = bench.now();
    bench.lacp.set_link(2, LinkState::up(1000), now).unwrap();
    bench.heard[1] = Heard::default();
    let took = bench.until("plugged", secs(20), Bench::both_healthy);
    println!("after the cable was plugged, in sync in {took:?}");
    bench.ping();
    let proc = bench.command("cat /proc/net/bonding/bond0");
    assert_eq!(values(&proc, "Number of ports:"), ["2"], "{proc}");

    // Both ends slow.
    bench.command(
        "ip link set bond0 down && echo slow > /sys/class/net/bond0/bonding/lacp_rate && ip link set bond0 up",
    );
    bench.lacp = self::system(bench.now(), LacpConfig::new(OURS));
    (bench.healthy, bench.heard) = (0x3d, [Heard::default(); 2]);
    let took = bench.until("slow", secs(40), Bench::both_healthy);
    println!("both slow, in sync in {took:?}");
    bench.ping();
    assert_eq!(bench.stray, 0, "the guest never sends where nobody takes it in");
}

#[test]
fn a_linux_bond_that_chose_another_link_is_followed() {
    let mine = |ad_actor_sys_prio| LacpConfig { ad_select: AdSelect::Prio, ad_actor_sys_prio, ..fast() };
    // A second kind of link: another key, another aggregator.
    let Some(mut bench) = bench("virtio-net-pci,speed=10000,duplex=full", mine(1)) else { return };
    for (priority, patience) in [(1, secs(10)), (65535, secs(5))] {
        bench.lacp = system(bench.now(), mine(priority));
        bench.heard = [Heard::default(); 2];
        bench.run(secs(1));
        bench.until("one link", secs(40), |b| b.is_healthy(0) != b.is_healthy(1));
        bench.run(secs(1));
        let (used, other) = if bench.is_healthy(0) { (0, 1) } else { (1, 0) };
        // Now this end wants the other link; Linux keeps the one it has.
        let now = bench.now();
        bench.lacp.set_port_priority(used as u16 + 1, 1, now).unwrap();
        bench.lacp.set_port_priority(other as u16 + 1, 1000, now).unwrap();
        bench.run(secs(3));
        assert!(!bench.is_healthy(0) && !bench.is_healthy(1));
        assert_eq!((bench.heard[used].state & 8, bench.heard[other].state & 8), (8, 0), "Linux wants what it wanted");
        let took = bench.until("followed", secs(20), |b| b.is_healthy(used)) + secs(3);
        println!("this end followed Linux after {took:?}, with priority {priority}");
        assert!(took >= patience && took <= patience + secs(4), "{took:?}");
        bench.ping();
    }
}
