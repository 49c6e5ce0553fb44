//! [`smoltcp::phy::Device`] of smoltcp 0.14 over any [`Driver`]: checksums and TCP segmentation are left to the device where
//! it does them.
//!
//! Over IPv4 only, that is: smoltcp 0.14 drops the super-packets that it makes over IPv6. It cannot ask a device for groups either: for IPv6, let the
//! solicited-node group of each address in with [`Driver::set_multicast`].
//!
//! smoltcp has no errors for devices: one that is down or gone is one without frames. A frame that the device refuses is
//! dropped and counted (`adapter_tx_refused`); around a driver that may refuse at run time put a [`Port`](netcore::Port).

use crate::frames::{Frames, with_bytes};
use core::num::NonZeroUsize;
use netcore::{Driver, Features, GsoKind, Packet, PoolCache, Statistics};
use smoltcp::phy::{Checksum, DeviceCapabilities, Medium, PacketMeta};
use smoltcp::time::Instant;

/// Longest super-packet that is asked for: what the length field of an IP header can say, and a link header.
const LARGEST: usize = 65535 + 14;

/// A driver as a device of smoltcp. Transmits and receives on queue 0.
#[derive(Debug)]
pub struct Device<D> {
    frames: Frames<D>,
}

impl<D: Driver> Device<D> {
    /// A device over `driver`, which must be started. Frames to be sent are built in buffers of `cache`.
    pub fn new(driver: D, cache: PoolCache) -> Self {
        Self { frames: Frames::new(driver, cache) }
    }

    /// The driver.
    pub fn driver(&self) -> &D {
        self.frames.driver()
    }

    /// The driver.
    pub fn driver_mut(&mut self) -> &mut D {
        self.frames.driver_mut()
    }

    /// The driver's counters, and those of the adapter.
    pub fn statistics(&self, statistics: &mut Statistics) {
        self.frames.statistics(statistics);
    }
}

fn now(timestamp: Instant) -> netcore::Instant {
    netcore::Instant::from_micros(u64::try_from(timestamp.total_micros()).unwrap_or(0))
}

impl<D: Driver> smoltcp::phy::Device for Device<D> {
    type RxToken<'a>
        = RxToken
    where
        D: 'a;
    type TxToken<'a>
        = TxToken<'a, D>
    where
        D: 'a;

    fn receive(&mut self, timestamp: Instant) -> Option<(RxToken, TxToken<'_, D>)> {
        let now = now(timestamp);
        let packet = self.frames.receive(now)?;
        Some((RxToken(packet), TxToken { frames: &mut self.frames, now, segment: None }))
    }

    fn transmit(&mut self, timestamp: Instant) -> Option<TxToken<'_, D>> {
        let now = now(timestamp);
        self.frames.can_send(now).then_some(TxToken { frames: &mut self.frames, now, segment: None })
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let c = self.frames.capabilities();
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ethernet;
        capabilities.max_transmission_unit = c.mtu + 14;
        let transport = match (self.frames.verifies_checksums(), self.frames.fills_checksums()) {
            (true, true) => Checksum::None,
            (true, false) => Checksum::Tx,
            (false, true) => Checksum::Rx,
            (false, false) => Checksum::Both,
        };
        capabilities.checksum.tcp = transport;
        capabilities.checksum.udp = transport;
        if c.features.contains(Features::TSO) && self.frames.fills_checksums() {
            let largest = NonZeroUsize::new(c.gso_max_size.min(LARGEST));
            if c.gso.contains(GsoKind::TCPV4) {
                capabilities.segmentation.tcpv4 = largest;
            }
            // Not over IPv6, whatever the device can do: smoltcp 0.14 makes the super-packet, and then drops it for being longer
            // than the MTU (`dispatch_ip` in `iface/interface/mod.rs`), so a connection stands still.
        }
        capabilities
    }
}

/// A received frame.
#[derive(Debug)]
pub struct RxToken(Packet);

impl smoltcp::phy::RxToken for RxToken {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, f: F) -> R {
        with_bytes(&self.0, f)
    }
}

/// Room for a frame to be sent.
#[derive(Debug)]
pub struct TxToken<'a, D> {
    frames: &'a mut Frames<D>,
    now: netcore::Instant,
    segment: Option<u16>,
}

impl<D: Driver> smoltcp::phy::TxToken for TxToken<'_, D> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, f: F) -> R {
        self.frames.send(len, self.segment, self.now, f)
    }

    fn set_meta(&mut self, meta: PacketMeta) {
        self.segment = meta.segmentation_offload_size.map(core::num::NonZeroU16::get);
    }
}
