//! Opening a device by the name a user gives it.

use anyhow::{Context, bail};
use netcore::{Burst, Instant, MacAddress, PoolCache, PoolConfig};
use netcore_drivers::Bus;
use netcore_drivers::bus::qtest::{EmulatedNic, Machine};
use netcore_drivers::bus::sysfs::SysfsBus;
use netcore_drivers::bus::vfio::{Container, VfioBus};
use netcore_drivers::model::e82546gb::E82546Gb;
use netcore_drivers::model::e82576::E82576;
use netcore_drivers::model::e82599::E82599;
use netcore_drivers::model::{Bench, Device, Port};
use netcore_drivers::nic::{NicDevice, open, packet_pool};
use std::path::Path;
use std::time::Duration;

/// The address of devices that are not real.
const MAC: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);
/// Buffers of the receive pool.
const BUFFERS: usize = 4096;

/// Time, and what is at the other end of the line.
enum World {
    Real(std::time::Instant),
    /// A model, whose line leads back to it.
    Model(Bench, Port),
    /// QEMU, which runs as long as this lives, and whose line leads back to it.
    Emulated(std::time::Instant, Machine),
}

/// A device, up or down, and its clock.
pub(super) struct Opened {
    pub(super) nic: Box<dyn NicDevice>,
    pub(super) cache: PoolCache,
    world: World,
}

fn model(name: &str) -> anyhow::Result<Box<dyn Device>> {
    match name.to_ascii_lowercase().as_str() {
        "82546gb" => Ok(Box::new(E82546Gb::new())),
        "82576" => Ok(Box::new(E82576::new())),
        "82599" => Ok(Box::new(E82599::new())),
        _ => bail!("there is no model of {name}; there are models of 82546gb, 82576 and 82599"),
    }
}

/// Opens the device called `name`, which stays down; `mtu` bytes after the link header.
pub(super) fn device(name: &str, mtu: usize) -> anyhow::Result<Opened> {
    let (mut bus, world): (Box<dyn Bus>, World) = if let Some(part) = name.strip_prefix("model:") {
        let bench = Bench::new();
        let (port, bus) = bench.add(model(part)?, MAC);
        (Box::new(bus), World::Model(bench, port))
    } else if let Some(kind) = name.strip_prefix("qemu:") {
        let kind = ["e1000", "e1000-82545em", "e1000e", "igb"].into_iter().find(|known| *known == kind);
        let kind = kind.context("QEMU's NICs are e1000, e1000-82545em, e1000e and igb")?;
        let machine = Machine::start("qemu-system-x86_64", &[EmulatedNic { model: kind, mac: MAC }])
            .context("QEMU (Debian: apt-get install qemu-system-x86)")?;
        (Box::new(machine.bus(0)?), World::Emulated(std::time::Instant::now(), machine))
    } else {
        (pci_bus(name)?, World::Real(std::time::Instant::now()))
    };
    let pool = packet_pool(&mut *bus, PoolConfig::with_buffers(BUFFERS)).context("memory for packets")?;
    let cache = pool.cache();
    let nic = open(bus, pool, |config| config.mtu = mtu).with_context(|| name.to_owned())?;
    Ok(Opened { nic, cache, world })
}

/// The bus of a PCI device: VFIO if it is bound to that, sysfs if it is bound to nothing.
fn pci_bus(address: &str) -> anyhow::Result<Box<dyn Bus>> {
    let folder = Path::new("/sys/bus/pci/devices").join(address);
    if !folder.exists() {
        bail!("there is no PCI device {address}; netcore nic list shows those there are");
    }
    match std::fs::read_link(folder.join("driver")) {
        Ok(driver) if driver.ends_with("vfio-pci") => {
            let container = Container::new()?;
            Ok(Box::new(VfioBus::open(&container, address)?))
        }
        Ok(driver) => {
            let name = driver.file_name().unwrap_or_default().to_string_lossy().into_owned();
            bail!("{address} belongs to the kernel's driver {name}; netcore nic bind {address} takes it away")
        }
        Err(_) => Ok(Box::new(SysfsBus::open(address)?)),
    }
}

impl Opened {
    pub(super) fn now(&self) -> Instant {
        match &self.world {
            World::Real(start) | World::Emulated(start, _) => {
                Instant::from_nanos(u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX))
            }
            World::Model(bench, _) => bench.now(),
        }
    }

    /// Lets a moment pass when there was nothing to do; on models and emulations frames go round.
    pub(super) fn idle(&self) {
        match &self.world {
            World::Real(_) => std::thread::sleep(Duration::from_micros(20)),
            World::Emulated(_, machine) => {
                let mut frame = [0; 16 << 10];
                if let Some(line) = machine.line(0) {
                    while let Ok(len) = line.recv(&mut frame) {
                        // A full line loses the frame, as lines do.
                        let _ = line.send(&frame[..len]);
                    }
                }
                std::thread::sleep(Duration::from_micros(20));
            }
            World::Model(bench, port) => {
                bench.advance(Duration::from_micros(20));
                for frame in bench.take_sent(*port) {
                    bench.inject(*port, frame);
                }
            }
        }
    }

    /// Starts, and waits up to `limit` for the link.
    pub(super) fn up(&mut self, limit: Duration) -> anyhow::Result<bool> {
        self.nic.start(self.now()).context("start")?;
        let end = self.now() + limit;
        loop {
            self.nic.poll(self.now()).context("poll")?;
            if self.nic.link().up {
                return Ok(true);
            }
            if self.now() >= end {
                return Ok(false);
            }
            for _ in 0..50 {
                self.idle();
            }
        }
    }

    /// Starts, and fails if no link comes.
    pub(super) fn up_with_link(&mut self) -> anyhow::Result<()> {
        if !self.up(Duration::from_secs(10))? {
            bail!("no link within 10 s: is the cable in?");
        }
        Ok(())
    }

    /// Takes what was received, up to 64 frames.
    pub(super) fn receive(&mut self, burst: &mut Burst) -> anyhow::Result<usize> {
        let now = self.now();
        self.nic.poll(now)?;
        Ok(self.nic.receive(0, burst, 64, now)?)
    }

    pub(super) fn down(&mut self) -> anyhow::Result<()> {
        let now = self.now();
        self.nic.stop(now).context("stop")
    }
}
