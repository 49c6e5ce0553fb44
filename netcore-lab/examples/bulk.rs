//! One bulk flow over a long fat path: rate per second, and what simulating costs.

use netcore::{Instant, Rate};
use netcore_lab::engine::Lab;
use netcore_lab::host::{Application, Bulk, Host};
use netcore_lab::net::{Link, LinkConfig};
use netcore_lab::nic::NicConfig;
use netcore_lab::topology::{Side, mac, pair, path};
use netcore_tcp::{Config, Profile};
use std::time::Duration;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let name = std::env::args().nth(1).unwrap_or_else(|| "linux-current".into());
    let rtt_us: u64 = std::env::args().nth(2).map_or(Ok(18_920), |text| text.parse())?;
    let buffer: Option<u64> = std::env::args().nth(3).map(|text| text.parse()).transpose()?;
    let hystart = std::env::args().nth(4).unwrap_or_else(|| "1".into());
    let phase: u64 = std::env::args().nth(5).map_or(Ok(0), |text| text.parse())?;
    let mut profile = Profile::by_name(&name)?;
    profile.congestion.set("hystart", &hystart)?;
    profile.timestamps = false;
    let env = |name: &str, default: u64| std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default);
    profile.congestion = profile.congestion.with_hz(env("HZ", 1000) as u32)?;
    profile.rmem.default = env("RMEM", 349_520);
    profile.rmem.max = 100_000_000;
    profile.wmem.max = 134_217_728;
    let mut config = Config::new(profile);
    if let Some(buffer) = buffer.filter(|b| *b > 0) {
        config.sndbuf = Some(2 * buffer);
        config.rcvbuf = Some(2 * buffer);
    }
    let mut lab = Lab::new(phase, 200_000)?;
    let rate = Rate::from_bits_per_sec(10_000_000_000);
    let nic = |host| {
        let mut nic = NicConfig::new("eth0", mac(host, 0), rate);
        nic.mtu = 9000;
        nic.receive_ring = 4096;
        if let Ok(us) = std::env::var("ITR") {
            nic.moderation.interval = Duration::from_micros(us.parse().expect("ITR"));
        }
        nic.moderation.transmit_delay = Duration::from_micros(100);
        nic.receive_truesize = Some(9256);
        nic
    };
    let jitter = Duration::from_micros(env("JITTER", 0));
    let link =
        LinkConfig { rate: Some(rate), delay: Duration::from_micros(rtt_us / 2), jitter, ..LinkConfig::default() };
    let qdisc = netcore::Fifo::new(netcore::FifoLimit::Packets(env("QLEN", 1000) as usize));
    let left = Side { gro: None, qdisc: Some(Box::new(qdisc)), byte_queue_limits: false, ..Side::new(nic(1)) };
    let hosts = pair(&mut lab, left, Side { gro: None, ..Side::new(nic(2)) }, link)?;
    let path = path(1, 2, 0, 9000);
    let bulk = Bulk { bytes: Some(8 << 30), ..Bulk::default() };
    let start = Instant::from_micros(400_000_000 + phase);
    let receiver = lab.get_mut::<Host>(hosts.right).ok_or("host")?;
    let sink = receiver.listen(config.clone(), path.reversed(), 2, Application::Sink)?;
    let sender = lab.get_mut::<Host>(hosts.left).ok_or("host")?;
    sender.connect(config, path, 1, start, Application::Bulk(bulk))?;
    let began = std::time::Instant::now();
    let mut last = 0;
    if let Ok(rounds) = std::env::var("ROUNDS") {
        for round in 1..=rounds.parse::<u32>()? {
            lab.run_until(start + Duration::from_micros(rtt_us * u64::from(round) + 1000));
            let r = lab.get::<Host>(hosts.right).and_then(|h| h.flow(sink)).and_then(|f| f.endpoint()).ok_or("flow")?;
            let s = lab.get::<Host>(hosts.left).and_then(|h| h.flows()[0].endpoint()).ok_or("flow")?;
            let (i, ri) = (s.info(), r.info());
            println!(
                "{round:3} cwnd {:6} ss {:?} out {:6} rwnd {:9} sndbuf {:9} | rcvbuf {} rcv_ssthresh {} space {} rtt {:?} acks {} unsent {}",
                i.cwnd,
                i.ssthresh,
                i.unacked,
                i.snd_wnd / 8960,
                i.sndbuf,
                ri.rcvbuf,
                ri.rcv_ssthresh / 8960,
                ri.rcv_space / 8960,
                ri.rcv_rtt_us,
                r.counters().pure_acks_sent,
                i.notsent
            );
        }
    }
    for second in 1..=env("SECONDS", 15) {
        lab.run_until(start + Duration::from_secs(second));
        let flow = lab.get::<Host>(hosts.right).and_then(|h| h.flow(sink)).and_then(|f| f.endpoint()).ok_or("flow")?;
        let bytes = flow.info().bytes_received;
        let sender = lab.get::<Host>(hosts.left).and_then(|h| h.flows()[0].endpoint()).ok_or("flow")?;
        let info = sender.info();
        println!(
            "{second:3} s {:9.2} Mbit/s  cwnd {} ssthresh {:?} rtt {:?} rwnd {} sndbuf {} retrans {} {:?}",
            (bytes - last) as f64 * 8.0 / 1e6,
            info.cwnd,
            info.ssthresh,
            info.rtt_us,
            info.snd_wnd,
            info.sndbuf,
            sender.counters().retrans_segs,
            info.ca_state,
        );
        if bytes == last && second > 2 {
            break;
        }
        last = bytes;
    }
    let took = began.elapsed();
    if std::env::var_os("VERBOSE").is_some() {
        for id in [hosts.left, hosts.right] {
            let host = lab.get::<Host>(id).ok_or("host")?;
            let mut statistics = netcore::Statistics::new();
            host.statistics(&mut statistics);
            println!("{} {:?}", host.name(), host.counters());
            for counter in statistics.counters().iter().filter(|counter| counter.value > 0) {
                println!("  {:<40} {}", counter.name, counter.value);
            }
        }
        println!("{:?}", lab.get::<Link>(hosts.link).map(|l| (l.counters(0), l.counters(1))));
    }
    let frames = lab.get::<Link>(hosts.link).map_or(0, |l| l.counters(0).delivered + l.counters(1).delivered);
    println!(
        "{frames} frames, {} events in {:.2} s: {:.0} ns per frame",
        lab.served(),
        took.as_secs_f64(),
        took.as_nanos() as f64 / frames.max(1) as f64
    );
    Ok(())
}
