//! `netcore nic`: Intel NICs driven from user space.

mod bind;
mod device;
mod info;
mod list;
mod selftest;
mod traffic;

use clap::Subcommand;
use std::path::PathBuf;
use std::process::ExitCode;

/// Drive an Intel NIC: list, information, counters, self test, traffic
#[derive(clap::Args)]
#[command(after_help = "A DEVICE is one of
  0000:01:00.0     a PCI address: through VFIO if it is bound to vfio-pci, through sysfs if it has no driver
  model:82576      a register-level model in this process (82546gb, 82576, 82599), whose line is looped back
  qemu:igb         QEMU's emulation (e1000, e1000-82545em, e1000e, igb), without a guest, its line looped back

Examples:
  netcore nic list
  netcore nic bind 0000:01:00.0
  netcore nic selftest model:82576
  netcore nic capture 0000:01:00.0 --out frames.pcapng --seconds 10")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Intel NICs of this machine, and which of them netcore can drive
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Part, address, link and features of a NIC
    Info {
        /// The device
        device: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Counters of a NIC, as `ethtool -S` has them
    Stats {
        /// The device
        device: String,
        /// How long to receive before
        #[arg(long, default_value_t = 1.0)]
        seconds: f64,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Test registers, NVM, and frames through the loop in the PHY
    Selftest {
        /// The device
        device: String,
    },
    /// Send frames as fast as they go, or at a rate
    Pktgen {
        /// The device
        device: String,
        /// Number of frames
        #[arg(long, default_value_t = 100_000)]
        count: u64,
        /// Bytes in each frame, 60 to 9018 less FCS
        #[arg(long, default_value_t = 60)]
        size: usize,
        /// Destination address
        #[arg(long, default_value = "ff:ff:ff:ff:ff:ff")]
        destination: netcore::MacAddress,
        /// Frames per second; as fast as they go if not given
        #[arg(long)]
        rate: Option<u64>,
    },
    /// Send every frame back to where it came from
    Loopback {
        /// The device
        device: String,
        /// How long
        #[arg(long, default_value_t = 10.0)]
        seconds: f64,
        /// Sleep until the device interrupts, instead of polling
        #[arg(long)]
        interrupts: Option<traffic::Interrupts>,
    },
    /// Receive everything into a pcapng file
    Capture {
        /// The device
        device: String,
        /// The file
        #[arg(long)]
        out: PathBuf,
        /// How long
        #[arg(long, default_value_t = 10.0)]
        seconds: f64,
        /// How many frames at most
        #[arg(long)]
        count: Option<u64>,
    },
    /// Give a NIC to vfio-pci, away from the kernel's driver; says what it will do and asks
    Bind {
        /// PCI address
        address: String,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
    /// Give a NIC back to the kernel's driver; says what it will do and asks
    Unbind {
        /// PCI address
        address: String,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
}

pub(super) fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    match arguments.action {
        Action::List { json } => list::run(json),
        Action::Info { device, json } => info::run(&device, json),
        Action::Stats { device, seconds, json } => info::statistics(&device, seconds, json),
        Action::Selftest { device } => selftest::run(&device),
        Action::Pktgen { device, count, size, destination, rate } => {
            traffic::generate(&device, count, size, destination, rate)
        }
        Action::Loopback { device, seconds, interrupts } => traffic::reflect(&device, seconds, interrupts),
        Action::Capture { device, out, seconds, count } => traffic::capture(&device, &out, seconds, count),
        Action::Bind { address, yes } => bind::bind(&address, yes),
        Action::Unbind { address, yes } => bind::unbind(&address, yes),
    }
}
