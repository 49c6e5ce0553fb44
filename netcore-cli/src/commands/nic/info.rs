//! `netcore nic info` and `netcore nic stats`.

use super::super::print;
use super::device;
use netcore::driver::{Duplex, LinkState};
use netcore::{Burst, Features, GsoKind, Statistics};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::ExitCode;
use std::time::Duration;

/// Features by the words of `ethtool -k`.
const WORDS: &[(&str, Features)] = &[
    ("rx-checksumming", Features::RX_CHECKSUM),
    ("tx-checksum-ip-generic", Features::TX_CHECKSUM_GENERIC),
    ("tx-checksum-ipv4", Features::TX_CHECKSUM_IPV4),
    ("tx-checksum-ipv6", Features::TX_CHECKSUM_IPV6),
    ("tx-checksum-sctp", Features::TX_CHECKSUM_SCTP),
    ("scatter-gather", Features::SCATTER_GATHER),
    ("rx-vlan-offload", Features::RX_VLAN),
    ("tx-vlan-offload", Features::TX_VLAN),
    ("rx-vlan-filter", Features::RX_VLAN_FILTER),
    ("receive-hashing", Features::RX_HASH),
    ("large-receive-offload", Features::LRO),
    ("rx-all", Features::RX_ALL),
];

/// Kinds of segmentation by the words of `ethtool -k`.
const SEGMENTATION: &[(&str, GsoKind)] = &[
    ("tx-tcp-segmentation", GsoKind::TCPV4),
    ("tx-tcp6-segmentation", GsoKind::TCPV6),
    ("tx-udp-segmentation", GsoKind::UDP_L4),
    ("tx-udp_tnl-segmentation", GsoKind::UDP_TUNNEL),
    ("tx-udp_tnl-csum-segmentation", GsoKind::UDP_TUNNEL_CSUM),
];

#[derive(Serialize)]
struct Info {
    driver: &'static str,
    part: &'static str,
    mac: String,
    permanent_mac: String,
    nvm: String,
    link: Option<Link>,
    mtu: usize,
    max_mtu: usize,
    transmit_queues: u16,
    receive_queues: u16,
    features: BTreeMap<&'static str, &'static str>,
}

#[derive(Serialize)]
struct Link {
    speed_mbps: Option<u32>,
    duplex: &'static str,
}

fn link(state: LinkState) -> Option<Link> {
    let duplex = if state.duplex == Duplex::Full { "full" } else { "half" };
    state.up.then_some(Link { speed_mbps: state.speed_mbps, duplex })
}

/// "on", "off", or what ethtool adds where nothing can be switched.
fn word(supported: bool, on: bool) -> &'static str {
    match (supported, on) {
        (true, true) => "on",
        (true, false) => "off",
        (false, _) => "off [fixed]",
    }
}

pub(super) fn run(name: &str, json: bool) -> anyhow::Result<ExitCode> {
    let mut opened = device::device(name, 1500)?;
    let nvm = match opened.nic.test_nvm() {
        Ok(()) => "checksum right".to_owned(),
        Err(error) => error.to_string(),
    };
    opened.up(Duration::from_secs(5))?;
    let (nic, limits) = (&opened.nic, opened.nic.limits());
    let c = nic.capabilities();
    let mut features: BTreeMap<_, _> =
        WORDS.iter().map(|(name, f)| (*name, word(c.supported.contains(*f), c.features.contains(*f)))).collect();
    features.extend(SEGMENTATION.iter().map(|(name, k)| (*name, word(limits.gso.contains(*k), c.gso.contains(*k)))));
    let info = Info {
        driver: limits.driver,
        part: limits.part,
        mac: c.mac.to_string(),
        permanent_mac: nic.permanent_mac().to_string(),
        nvm,
        link: link(nic.link()),
        mtu: c.mtu,
        max_mtu: c.max_mtu,
        transmit_queues: limits.transmit_queues,
        receive_queues: limits.receive_queues,
        features,
    };
    let text = if json { format!("{}\n", serde_json::to_string_pretty(&info)?) } else { for_people(&info)? };
    print(&text)?;
    opened.down()?;
    Ok(ExitCode::SUCCESS)
}

fn for_people(info: &Info) -> anyhow::Result<String> {
    let mut text = String::new();
    let link = match &info.link {
        Some(Link { speed_mbps: Some(speed), duplex }) => format!("up, {speed} Mb/s, {duplex} duplex"),
        Some(Link { speed_mbps: None, .. }) => "up".into(),
        None => "down".into(),
    };
    writeln!(text, "driver: {}\npart: {}\naddress: {}", info.driver, info.part, info.mac)?;
    writeln!(text, "permanent address: {}\nNVM: {}\nlink: {link}", info.permanent_mac, info.nvm)?;
    writeln!(text, "MTU: {} (68 to {})", info.mtu, info.max_mtu)?;
    writeln!(text, "queues: {} transmit, {} receive", info.transmit_queues, info.receive_queues)?;
    for (name, value) in &info.features {
        writeln!(text, "{name}: {value}")?;
    }
    Ok(text)
}

pub(super) fn statistics(name: &str, seconds: f64, json: bool) -> anyhow::Result<ExitCode> {
    let mut opened = device::device(name, 1500)?;
    opened.up(Duration::from_secs(5))?;
    let end = opened.now() + Duration::try_from_secs_f64(seconds)?;
    let mut burst = Burst::new();
    while opened.now() < end {
        if opened.receive(&mut burst)? == 0 {
            opened.idle();
        }
        opened.cache.put_burst(&mut burst);
    }
    let mut statistics = Statistics::new();
    opened.nic.statistics(&mut statistics);
    opened.down()?;
    if json {
        let map: BTreeMap<_, _> = statistics.counters().iter().map(|c| (c.name.clone(), c.value)).collect();
        print(&format!("{}\n", serde_json::to_string_pretty(&map)?))?;
    } else {
        print(&format!("NIC statistics:\n{statistics}"))?;
    }
    Ok(ExitCode::SUCCESS)
}
