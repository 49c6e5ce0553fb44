//! What a scenario file says: the tables and their keys.

use super::units::{Share, Size, Speed, Time};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;
use toml::Spanned;

/// A scenario file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Document {
    /// One line that says what it is.
    #[serde(default)]
    pub title: String,
    /// Feeds everything random.
    #[serde(default = "one")]
    pub seed: u64,
    /// How long it runs.
    pub duration: Spanned<Time>,
    /// Interval of the table.
    #[serde(default = "second")]
    pub interval: Spanned<Time>,
    /// Interval of the curves (CSV, plots).
    #[serde(default = "tenth")]
    pub sample: Spanned<Time>,
    /// Packets with real headers that may exist at a time.
    #[serde(default = "packets")]
    pub packets: Spanned<usize>,
    /// Hosts by name.
    #[serde(default)]
    pub host: BTreeMap<String, Spanned<HostTable>>,
    /// Switches by name.
    #[serde(default)]
    pub switch: BTreeMap<String, Spanned<SwitchTable>>,
    /// Links.
    #[serde(default)]
    pub link: Vec<Spanned<LinkTable>>,
    /// Connections.
    #[serde(default)]
    pub flow: Vec<Spanned<FlowTable>>,
}

fn one() -> u64 {
    1
}

fn unspanned<T>(value: T) -> Spanned<T> {
    Spanned::new(0..0, value)
}

fn second() -> Spanned<Time> {
    unspanned(Time(Duration::from_secs(1)))
}

fn tenth() -> Spanned<Time> {
    unspanned(Time(Duration::from_millis(100)))
}

fn packets() -> Spanned<usize> {
    unspanned(100_000)
}

const fn yes() -> bool {
    true
}

/// A host.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostTable {
    /// Its IP address; 10.0.0.1, 10.0.0.2, … in order of names if not given.
    pub address: Option<IpAddr>,
    /// Bytes of an IP packet.
    #[serde(default = "ethernet_mtu")]
    pub mtu: u16,
    /// Rate of its card, if it is not the link's.
    pub rate: Option<Speed>,
    /// Descriptors of the transmit ring.
    #[serde(default = "ring")]
    pub tx_ring: usize,
    /// Descriptors of the receive ring.
    #[serde(default = "ring")]
    pub rx_ring: usize,
    /// Packets per poll.
    #[serde(default = "budget")]
    pub budget: usize,
    /// Segmentation in the card.
    #[serde(default = "yes")]
    pub tso: bool,
    /// Largest super-packet, bytes.
    #[serde(default = "tso_max_size")]
    pub tso_max_size: usize,
    /// Checksums in the card.
    #[serde(default = "yes")]
    pub checksums: bool,
    /// Least time between two interrupts.
    #[serde(default)]
    pub interrupt_interval: Time,
    /// Time from event to handler.
    #[serde(default)]
    pub interrupt_latency: Time,
    /// A receive interrupt waits for silence of this length.
    #[serde(default)]
    pub interrupt_receive_delay: Time,
    /// Receive offload.
    #[serde(default)]
    pub gro: GroChoice,
    /// Qdisc in the words of `tc`, such as `"pfifo limit 1000"`.
    pub qdisc: Option<Spanned<String>>,
    /// Bond over all its cards, in the words of `ip link add … type bond`, such as `"mode balance-rr miimon 100"`.
    pub bond: Option<Spanned<String>>,
    /// Byte queue limits.
    #[serde(default = "yes")]
    pub byte_queue_limits: bool,
    /// What receiving costs.
    #[serde(default)]
    pub cost: CostTable,
}

const fn ethernet_mtu() -> u16 {
    1500
}

const fn ring() -> usize {
    256
}

const fn budget() -> usize {
    64
}

const fn tso_max_size() -> usize {
    65_536
}

/// Receive offload of a host.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
pub enum GroChoice {
    /// None.
    #[serde(rename = "off")]
    Off,
    /// Rules of Linux 4.0.
    #[serde(rename = "linux-4.0")]
    Linux40,
    /// Rules of Linux today.
    #[default]
    #[serde(rename = "linux-current")]
    LinuxCurrent,
}

/// Cost of receiving.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CostTable {
    /// Per poll, ns.
    pub poll_ns: u64,
    /// Per packet on the wire, ns.
    pub wire_ns: u64,
    /// Per packet delivered, ns.
    pub delivered_ns: u64,
    /// Per byte received, ps.
    pub byte_ps: u64,
    /// Per packet sent, ns.
    pub sent_ns: u64,
    /// Per byte sent, ps.
    pub sent_byte_ps: u64,
    /// Per read or write, ns.
    pub call_ns: u64,
    /// Per byte read or written, ps.
    pub copy_byte_ps: u64,
}

/// A switch. It has one port for each link that names it, in the order of the links.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SwitchTable {
    /// Buffer of each port.
    #[serde(default = "port_buffer")]
    pub buffer: Size,
    /// Time through it.
    #[serde(default)]
    pub latency: Time,
    /// Random early detection at each port.
    pub red: Option<RedTable>,
    /// Names of links that form one group, and how frames are spread over them.
    #[serde(default)]
    pub group: Vec<GroupTable>,
}

const fn port_buffer() -> Size {
    Size(512 * 1024)
}

/// A port group.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupTable {
    /// Names of its links.
    pub links: Vec<Spanned<String>>,
    /// How frames are spread.
    pub distribution: DistributionChoice,
    /// LACP decides which links are used.
    #[serde(default)]
    pub lacp: bool,
}

/// How a group spreads frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
pub enum DistributionChoice {
    /// By MAC addresses.
    #[serde(rename = "layer2")]
    Layer2,
    /// By MAC and IP addresses.
    #[serde(rename = "layer2+3")]
    Layer23,
    /// By IP addresses and ports.
    #[serde(rename = "layer3+4")]
    Layer34,
    /// Frame by frame.
    #[serde(rename = "round-robin")]
    RoundRobin,
}

/// Random early detection.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RedTable {
    /// Average queue below which nothing happens.
    pub min: Size,
    /// Average queue from which everything is marked or dropped.
    pub max: Size,
    /// Probability at `max`.
    #[serde(default = "red_probability")]
    pub probability: Share,
    /// A new length counts 2^-weight.
    #[serde(default = "red_weight")]
    pub weight: u8,
    /// Mark instead of dropping.
    #[serde(default)]
    pub ecn: bool,
}

const fn red_probability() -> Share {
    Share(0.02)
}

const fn red_weight() -> u8 {
    9
}

/// A link.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkTable {
    /// Its name; `A-B` if not given.
    pub name: Option<String>,
    /// Its two ends.
    pub between: [Spanned<String>; 2],
    /// Rate.
    pub rate: Speed,
    /// Propagation delay, one way.
    #[serde(default)]
    pub delay: Time,
    /// Added to the delay, uniformly from 0.
    #[serde(default)]
    pub jitter: Time,
    /// Mean of an exponentially distributed wait that is added; frames keep their order.
    #[serde(default)]
    pub wait: Time,
    /// Jitter may reorder.
    #[serde(default)]
    pub reorder: bool,
    /// Frames lost.
    #[serde(default)]
    pub loss: Share,
    /// Bits in error.
    #[serde(default)]
    pub bit_error_rate: Share,
    /// Bytes that may wait in front of it.
    pub queue: Option<Size>,
    /// Frames that may wait in front of it.
    pub queue_packets: Option<u32>,
    /// Random early detection in front of it.
    pub red: Option<RedTable>,
}

/// A connection, or several alike.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlowTable {
    /// Its name; `FROM-TO` if not given.
    pub name: Option<String>,
    /// Who sends.
    pub from: Spanned<String>,
    /// Who receives.
    pub to: Spanned<String>,
    /// How many.
    #[serde(default = "one_flow")]
    pub count: u32,
    /// When the first opens.
    #[serde(default)]
    pub start: Time,
    /// Time between the openings.
    #[serde(default)]
    pub stagger: Time,
    /// When it stops writing; the end if not given.
    pub stop: Option<Time>,
    /// Bytes to send; unlimited if not given.
    pub bytes: Option<Size>,
    /// Bytes of one write.
    #[serde(default = "write_size")]
    pub write_size: Size,
    /// Time that one write takes.
    #[serde(default)]
    pub write_time: Time,
    /// Rate at which the receiver reads; at once if not given.
    pub read_rate: Option<Speed>,
    /// Both ends send.
    #[serde(default)]
    pub both_ways: bool,
    /// Era of the sender, and of the receiver unless `receiver_profile` says otherwise.
    #[serde(default = "profile")]
    pub profile: Spanned<String>,
    /// Era of the receiver.
    pub receiver_profile: Option<Spanned<String>>,
    /// Congestion control: `cubic`, `reno`, `rfc9438`.
    pub congestion: Option<Algorithm>,
    /// Module parameters of the congestion control, such as `hystart = 0`.
    #[serde(default)]
    pub tcp_cubic: BTreeMap<Spanned<String>, Spanned<toml::Value>>,
    /// Sysctls, such as `tcp_reordering = 127`.
    #[serde(default)]
    pub sysctl: BTreeMap<Spanned<String>, Spanned<toml::Value>>,
    /// Timer ticks per second.
    pub hz: Option<u32>,
    /// `SO_SNDBUF` as the application asks; the kernel takes twice that.
    pub sndbuf: Option<Size>,
    /// `SO_RCVBUF` as the application asks.
    pub rcvbuf: Option<Size>,
    /// `TCP_NODELAY`.
    #[serde(default)]
    pub nodelay: bool,
    /// Who paces.
    #[serde(default)]
    pub pacing: PacingChoice,
    /// `SO_MAX_PACING_RATE`.
    pub max_pacing_rate: Option<Speed>,
}

const fn one_flow() -> u32 {
    1
}

const fn write_size() -> Size {
    Size(131_072)
}

fn profile() -> Spanned<String> {
    unspanned("linux-current".into())
}

/// Congestion control of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Algorithm {
    /// CUBIC as the era's Linux computes it.
    Cubic,
    /// NewReno.
    Reno,
    /// CUBIC by RFC 9438.
    Rfc9438,
}

/// Who paces a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PacingChoice {
    /// Nobody.
    #[default]
    None,
    /// The endpoint.
    Internal,
    /// The fq qdisc.
    Fq,
}
