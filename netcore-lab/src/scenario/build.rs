//! From a scenario to a lab.

use super::connection::{applications, config};
use super::error::{ScenarioError, Source};
use super::host::assemble;
use super::run::{CaptureRequest, Connection, Named, Span, World};
use super::schema::{DistributionChoice, Document, HostTable, LinkTable, RedTable, SwitchTable};
use super::{Scenario, units::Share};
use crate::capture::Tap;
use crate::engine::{ComponentId, Lab};
use crate::host::Host;
use crate::net::{Distribution, ETHERNET_OVERHEAD, Link, LinkConfig, PortGroup, Red, Switch, SwitchConfig};
use crate::topology::{TopologyError, mac};
use netcore::Instant;
use netcore_tcp::{LinkAddress, Path};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;
use toml::Spanned;

/// Most hosts: the last byte of their station addresses.
const MAX_HOSTS: usize = 254;

/// What a link's end is.
#[derive(Clone, Copy)]
enum Node {
    Host(usize),
    Switch(usize),
}

/// The scenario's names, resolved.
pub(super) struct Plan<'a> {
    pub(super) source: &'a Source,
    pub(super) hosts: Vec<(&'a str, &'a Spanned<HostTable>)>,
    switches: Vec<(&'a str, &'a Spanned<SwitchTable>)>,
    links: Vec<(String, &'a Spanned<LinkTable>)>,
    /// For each link, its ends and their ports there.
    ends: Vec<[(Node, u16); 2]>,
}

impl<'a> Plan<'a> {
    fn new(document: &'a Document, source: &'a Source) -> Result<Self, ScenarioError> {
        let hosts: Vec<_> = document.host.iter().map(|(name, table)| (name.as_str(), table)).collect();
        let switches: Vec<_> = document.switch.iter().map(|(name, table)| (name.as_str(), table)).collect();
        if hosts.len() > MAX_HOSTS {
            let what = format!("{} hosts", hosts.len());
            return Err(source.at(hosts[MAX_HOSTS].1, what, format!("up to {MAX_HOSTS}")));
        }
        if let Some((name, table)) = switches.iter().find(|(name, _)| document.host.contains_key(*name)) {
            return Err(source.at(table, format!("switch {name} has the name of a host"), "a name of its own"));
        }
        let mut plan = Self { source, hosts, switches, links: Vec::new(), ends: Vec::new() };
        let mut host_ports = vec![0u16; plan.hosts.len()];
        let mut switch_ports = vec![0u16; plan.switches.len()];
        for link in &document.link {
            let table = link.get_ref();
            let mut ends = Vec::with_capacity(2);
            for end in &table.between {
                let node = plan.node(end)?;
                let ports = match node {
                    Node::Host(index) => &mut host_ports[index],
                    Node::Switch(index) => &mut switch_ports[index],
                };
                ends.push((node, *ports));
                *ports += 1;
            }
            let [a, b] = [table.between[0].get_ref(), table.between[1].get_ref()];
            let name = table.name.clone().unwrap_or_else(|| format!("{a}-{b}"));
            if plan.links.iter().any(|(other, _)| *other == name) {
                let what = format!("a second link is called \"{name}\"");
                return Err(source.at(link, what, "a name of its own (key \"name\")"));
            }
            plan.links.push((name, link));
            plan.ends.push([ends[0], ends[1]]);
        }
        for ((name, table), ports) in plan.hosts.iter().zip(host_ports) {
            if ports == 0 || ports > 1 && table.get_ref().bond.is_none() {
                let allowed = "one link for each host, or several with a bond (key \"bond\")";
                return Err(source.at(table, format!("host {name} has {ports} links"), allowed));
            }
        }
        Ok(plan)
    }

    /// The host or switch of that name.
    fn node(&self, name: &Spanned<String>) -> Result<Node, ScenarioError> {
        let text = name.get_ref().as_str();
        let host = self.hosts.iter().position(|(other, _)| *other == text).map(Node::Host);
        let node = host.or_else(|| self.switches.iter().position(|(other, _)| *other == text).map(Node::Switch));
        node.ok_or_else(|| {
            let known: Vec<_> = self.hosts.iter().map(|h| h.0).chain(self.switches.iter().map(|s| s.0)).collect();
            self.source.at(name, format!("there is no host or switch \"{text}\""), known.join(", "))
        })
    }

    /// The host of that name.
    fn host(&self, name: &Spanned<String>) -> Result<usize, ScenarioError> {
        let text = name.get_ref().as_str();
        self.hosts.iter().position(|(other, _)| *other == text).ok_or_else(|| {
            let known: Vec<_> = self.hosts.iter().map(|h| h.0).collect();
            self.source.at(name, format!("there is no host \"{text}\""), known.join(", "))
        })
    }

    fn address(&self, host: usize) -> IpAddr {
        let given = self.hosts[host].1.get_ref().address;
        given.unwrap_or_else(|| IpAddr::V4(Ipv4Addr::new(10, 0, 0, host as u8 + 1)))
    }

    /// Links of host `index`, in the order of its cards.
    pub(super) fn links_of(&self, index: usize) -> impl Iterator<Item = &LinkTable> {
        self.links.iter().zip(&self.ends).filter_map(move |((_, link), ends)| {
            let here = ends.iter().any(|(node, _)| matches!(node, Node::Host(host) if *host == index));
            here.then_some(link.get_ref())
        })
    }

    fn switch(&self, index: usize) -> Result<SwitchConfig, ScenarioError> {
        let (name, spanned) = self.switches[index];
        let table = spanned.get_ref();
        let mut ports = Vec::new();
        let mut names = Vec::new();
        for ((link_name, link), ends) in self.links.iter().zip(&self.ends) {
            for (node, _) in ends {
                if matches!(node, Node::Switch(switch) if *switch == index) {
                    ports.push(link.get_ref().rate.0);
                    names.push(link_name.as_str());
                }
            }
        }
        if ports.is_empty() {
            return Err(self.source.at(spanned, format!("switch {name} has no link"), "one link or more"));
        }
        let mut groups = Vec::new();
        for group in &table.group {
            let mut members = Vec::new();
            for link in &group.links {
                let port = names.iter().position(|name| *name == link.get_ref().as_str()).ok_or_else(|| {
                    let what = format!("switch {name} has no link \"{}\"", link.get_ref());
                    self.source.at(link, what, names.join(", "))
                })?;
                members.push(port as u16);
            }
            let distribution = match group.distribution {
                DistributionChoice::Layer2 => Distribution::Layer2,
                DistributionChoice::Layer23 => Distribution::Layer23,
                DistributionChoice::Layer34 => Distribution::Layer34,
                DistributionChoice::RoundRobin => Distribution::RoundRobin,
            };
            groups.push(PortGroup { members, distribution, lacp: group.lacp });
        }
        let red = table.red.map(|red| self.red(spanned, red)).transpose()?;
        Ok(SwitchConfig { ports, buffer_bytes: table.buffer.0, latency: table.latency.0, red, groups })
    }

    fn red<T>(&self, at: &Spanned<T>, red: RedTable) -> Result<Red, ScenarioError> {
        if red.min >= red.max {
            return Err(self.source.at(at, format!("red.max is {}", red.max.0), format!("more than {}", red.min.0)));
        }
        if red.weight > 31 {
            return Err(self.source.at(at, format!("red.weight is {}", red.weight), "0 to 31"));
        }
        let probability = (red.probability.0 * 65_536.0) as u32;
        Ok(Red { min: red.min.0, max: red.max.0, probability, weight: red.weight, ecn: red.ecn })
    }

    fn link(&self, index: usize) -> Result<LinkConfig, ScenarioError> {
        let spanned = self.links[index].1;
        let table = spanned.get_ref();
        let Share(loss) = table.loss;
        let Share(errors) = table.bit_error_rate;
        Ok(LinkConfig {
            rate: Some(table.rate.0),
            delay: table.delay.0,
            jitter: table.jitter.0,
            wait: table.wait.0,
            reorder: table.reorder,
            loss: (loss * 4_294_967_296.0) as u32,
            bit_errors: (errors * 18_446_744_073_709_551_616.0) as u64,
            overhead: ETHERNET_OVERHEAD,
            limit_bytes: table.queue.map(|size| size.0),
            limit_packets: table.queue_packets,
            red: table.red.map(|red| self.red(spanned, red)).transpose()?,
        })
    }
}

/// The lab of a scenario.
pub(super) fn build(scenario: &Scenario, captures: Vec<CaptureRequest>) -> Result<World, ScenarioError> {
    let (document, source) = (&scenario.document, &scenario.source);
    let plan = Plan::new(document, source)?;
    let duration = document.duration.get_ref().0;
    for (what, value) in
        [("duration", &document.duration), ("interval", &document.interval), ("sample", &document.sample)]
    {
        let range = Duration::from_micros(1)..=Duration::from_secs(86_400);
        if !range.contains(&value.get_ref().0) {
            return Err(source.at(value, format!("{what} is {:?}", value.get_ref().0), "1 us to 24 hours"));
        }
    }
    if !(64..=10_000_000).contains(document.packets.get_ref()) {
        let what = format!("packets is {}", document.packets.get_ref());
        return Err(source.at(&document.packets, what, "64 to 10000000"));
    }
    let mut lab = Lab::new(document.seed, *document.packets.get_ref())?;

    let mut hosts = Vec::new();
    for index in 0..plan.hosts.len() {
        let mut host = assemble(&plan, index, &mut lab)?;
        host.sample_every(document.sample.get_ref().0);
        hosts.push(Named { name: plan.hosts[index].0.into(), id: lab.add(host) });
    }
    let mut switches = Vec::new();
    for index in 0..plan.switches.len() {
        let config = plan.switch(index)?;
        let seed = lab.derive_seed();
        switches.push(Named { name: plan.switches[index].0.into(), id: lab.add(Switch::new(config, seed)) });
    }
    let component = |node: Node| -> ComponentId {
        match node {
            Node::Host(index) => hosts[index].id,
            Node::Switch(index) => switches[index].id,
        }
    };
    let mut links = Vec::new();
    let mut taps = Vec::new();
    let mut captures: Vec<_> = captures.into_iter().map(Some).collect();
    for (index, (name, spanned)) in plan.links.iter().enumerate() {
        let config = plan.link(index)?;
        let seed = lab.derive_seed();
        let link = lab.add(Link::new(config, seed));
        let between = spanned.get_ref().between.each_ref().map(|end| end.get_ref().clone());
        for (side, name_of_end) in between.iter().enumerate() {
            let (node, port) = plan.ends[index][side];
            let mut outer = (component(node), port);
            for slot in &mut captures {
                let here = |request: &CaptureRequest| {
                    let end = request.end.as_ref().map_or(side == 0, |end| end == name_of_end);
                    request.link == *name && end
                };
                if let Some(request) = slot.take_if(|request| here(request)) {
                    let tap = lab.add(Tap::new(request.out, request.format)?);
                    lab.connect(outer, (tap, 0))?;
                    outer = (tap, 1);
                    taps.push(Named { name: request.link, id: tap });
                }
            }
            lab.connect(outer, (link, side as u16))?;
        }
        links.push(Span { name: name.clone(), id: link, ends: between });
    }
    if let Some(request) = captures.into_iter().flatten().next() {
        let setting = match request.end {
            Some(end) => format!("{}@{end}", request.link),
            None => request.link,
        };
        let known: Vec<_> = links.iter().map(|link| format!("{} (ends {})", link.name, link.ends.join(", "))).collect();
        return Err(ScenarioError::Key { setting, reason: format!("no such link; there are {}", known.join("; ")) });
    }

    let end = Instant::ZERO + duration;
    let mut flows = Vec::new();
    for spanned in &document.flow {
        let table = spanned.get_ref();
        let (from, to) = (plan.host(&table.from)?, plan.host(&table.to)?);
        if from == to {
            return Err(source.at(&table.to, "a flow from a host to itself", "two hosts"));
        }
        let name = table.name.clone().unwrap_or_else(|| format!("{}-{}", table.from.get_ref(), table.to.get_ref()));
        let mtu = plan.hosts[from].1.get_ref().mtu.min(plan.hosts[to].1.get_ref().mtu);
        for number in 0..table.count {
            let port = 40_000u16.checked_add(flows.len() as u16).filter(|_| flows.len() < 20_000);
            let port = port.ok_or_else(|| source.at(spanned, "too many flows", "up to 20000"))?;
            let link = LinkAddress { local: mac(from as u8 + 1, 0), remote: mac(to as u8 + 1, 0), vlan: None };
            let local = SocketAddr::new(plan.address(from), port);
            let path = Path::new(link, local, SocketAddr::new(plan.address(to), 5001)).with_mtu(mtu);
            path.validate().map_err(|error| source.at(spanned, error.to_string(), "what the message says"))?;
            let sender = config(spanned, plan.hosts[from].1.get_ref(), false, source)?;
            let receiver = config(spanned, plan.hosts[to].1.get_ref(), true, source)?;
            let (sends, takes) = applications(table, end);
            let start = Instant::ZERO + table.start.0 + table.stagger.0 * number;
            let seeds = [lab.derive_seed(), lab.derive_seed()];
            let profile = sender.profile.name;
            let missing = || {
                ScenarioError::Topology(TopologyError::Engine(crate::engine::EngineError::NoComponent {
                    component: 0,
                    count: 0,
                }))
            };
            let host = lab.get_mut::<Host>(hosts[to].id).ok_or_else(missing)?;
            let passive = host.listen(receiver, path.reversed(), seeds[1], takes).map_err(TopologyError::from)?;
            let host = lab.get_mut::<Host>(hosts[from].id).ok_or_else(missing)?;
            let active = host.connect(sender, path, seeds[0], start, sends).map_err(TopologyError::from)?;
            let name = if table.count > 1 { format!("{name}.{}", number + 1) } else { name.clone() };
            let both_ways = table.both_ways;
            flows.push(Connection { name, profile, from: (from, active), to: (to, passive), start, both_ways });
        }
    }
    Ok(World {
        lab,
        hosts,
        switches,
        links,
        taps,
        flows,
        title: document.title.clone(),
        seed: document.seed,
        duration,
        interval: document.interval.get_ref().0,
    })
}
