//! A host of a scenario: cards, their ports, a bond over them.

use super::build::Plan;
use super::error::{ScenarioError, Source};
use super::schema::{GroChoice, HostTable};
use crate::engine::Lab;
use crate::host::{Cost, Host, Interface};
use crate::nic::{Moderation, Nic, NicConfig};
use crate::topology::{TopologyError, mac};
use netcore::{Driver, Instant, Port, Qdisc, Rate};
use netcore_bond::Bond;
use netcore_bond::options::Options;
use netcore_offload::{Gro, GroConfig, SoftwareSegmenter};
use netcore_qdisc::{Fq, FqOptions};
use toml::Spanned;

/// Most cards of a host: the last byte of their station addresses.
const MAX_CARDS: usize = 32;

/// Host `index` of the plan, its cards connected to nothing.
pub(super) fn assemble(plan: &Plan<'_>, index: usize, lab: &mut Lab) -> Result<Host, ScenarioError> {
    let (name, spanned) = plan.hosts[index];
    let table = spanned.get_ref();
    check(name, spanned, plan.source)?;
    let rates: Vec<Rate> = plan.links_of(index).map(|link| table.rate.unwrap_or(link.rate).0).collect();
    if rates.len() > MAX_CARDS {
        let what = format!("host {name} has {} links", rates.len());
        return Err(plan.source.at(spanned, what, format!("up to {MAX_CARDS}")));
    }
    let mut interfaces = Vec::new();
    let mut ports: Vec<Box<dyn Driver>> = Vec::new();
    for (card, rate) in rates.into_iter().enumerate() {
        let config = nic(&format!("eth{card}"), (index as u8 + 1, card as u8), rate, table);
        let (nic, driver) = Nic::shared(config, lab.pool().cache());
        let mut port = Port::builder(driver, lab.pool().cache())
            .segmenter(Box::new(SoftwareSegmenter::new()))
            .byte_queue_limits(table.byte_queue_limits);
        if let Some(words) = &table.qdisc {
            port = port.qdisc(qdisc(words, table.mtu, plan.source)?);
        }
        ports.push(Box::new(port.build()));
        let gro = match table.gro {
            GroChoice::Off => None,
            GroChoice::Linux40 => Some(GroConfig::linux_4_0()),
            GroChoice::LinuxCurrent => Some(GroConfig::linux_current()),
        };
        let mut interface = Interface::new(nic);
        if let Some(config) = gro {
            interface = interface.with_offload(Box::new(Gro::new(config).map_err(TopologyError::from)?));
        }
        interfaces.push(interface);
    }
    let c = table.cost;
    let cost = Cost {
        poll_ns: c.poll_ns,
        wire_ns: c.wire_ns,
        delivered_ns: c.delivered_ns,
        byte_ps: c.byte_ps,
        sent_ns: c.sent_ns,
        sent_byte_ps: c.sent_byte_ps,
        call_ns: c.call_ns,
        copy_byte_ps: c.copy_byte_ps,
    };
    Ok(match &table.bond {
        Some(words) => Host::bonded(name, bond(words, ports, lab, plan.source)?, interfaces, cost),
        // The plan saw to it that there is one link.
        None => Host::new(name, ports.remove(0), interfaces, cost),
    })
}

fn check(name: &str, spanned: &Spanned<HostTable>, source: &Source) -> Result<(), ScenarioError> {
    let table = spanned.get_ref();
    for (what, value, range) in [
        ("mtu", usize::from(table.mtu), 576..=9216),
        ("tx_ring", table.tx_ring, 32..=65_536),
        ("rx_ring", table.rx_ring, 8..=65_536),
        ("budget", table.budget, 1..=4096),
        ("tso_max_size", table.tso_max_size, 4096..=65_536),
    ] {
        if !range.contains(&value) {
            let allowed = format!("{} to {}", range.start(), range.end());
            return Err(source.at(spanned, format!("{what} of host {name} is {value}"), allowed));
        }
    }
    Ok(())
}

fn nic(name: &str, (host, card): (u8, u8), rate: Rate, table: &HostTable) -> NicConfig {
    let mut nic = NicConfig::new(name, mac(host, card), rate);
    nic.mtu = usize::from(table.mtu);
    nic.transmit_ring = table.tx_ring;
    nic.receive_ring = table.rx_ring;
    nic.budget = table.budget;
    nic.tso = table.tso;
    nic.tso_max_size = table.tso_max_size;
    nic.checksums = table.checksums;
    nic.moderation = Moderation {
        interval: table.interrupt_interval.0,
        latency: table.interrupt_latency.0,
        receive_delay: table.interrupt_receive_delay.0,
        ..Moderation::default()
    };
    nic
}

/// A bond over the ports; with the address of the first, as in Linux.
fn bond(
    words: &Spanned<String>,
    ports: Vec<Box<dyn Driver>>,
    lab: &mut Lab,
    source: &Source,
) -> Result<Bond, ScenarioError> {
    let options: Options =
        words.get_ref().parse().map_err(|error| source.at(words, format!("bond: {error}"), "what the message says"))?;
    let seed = lab.derive_seed();
    let mut bond = Bond::new("bond0", options, lab.pool().cache(), seed);
    bond.set_segmenter(Box::new(SoftwareSegmenter::new()));
    for (card, port) in ports.into_iter().enumerate() {
        bond.add_member(&format!("eth{card}"), port, Instant::ZERO)
            .map_err(|refused| source.at(words, format!("bond: {}", refused.error), "what the message says"))?;
    }
    Ok(bond)
}

/// A qdisc from the words of a `tc` command.
fn qdisc(words: &Spanned<String>, mtu: u16, source: &Source) -> Result<Box<dyn Qdisc>, ScenarioError> {
    let mut split = words.get_ref().split_whitespace();
    let name = split.next().unwrap_or_default();
    let options: Vec<_> = split.collect();
    let made = if name == "fq" {
        // Quanta follow the MTU.
        let options = FqOptions::for_mtu(u32::from(mtu)).with_words(&options);
        Some(options.and_then(Fq::new).map(|fq| Box::new(fq) as _))
    } else {
        netcore_qdisc::by_name(name, &options)
    };
    let made = made.ok_or_else(|| {
        let known = "fq, fq_codel, tbf, pfifo_fast, pfifo, bfifo";
        source.at(words, format!("there is no qdisc \"{name}\""), known)
    })?;
    made.map_err(|error| source.at(words, format!("qdisc {name}: {error}"), "what the message says"))
}
