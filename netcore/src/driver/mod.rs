//! [`Driver`]: bursts of owned packets in and out of hardware queues, and what is like them.
//!
//! A NIC, a TAP, a capture file, a bond of several drivers and a [`Port`](crate::Port) that adds a qdisc and receive
//! offload are all drivers, so they nest as network devices do in Linux.

mod capabilities;
mod statistics;

pub use capabilities::{Capabilities, ChecksumOffload, Duplex, Features, LinkState, MacAddress};
pub use statistics::{Completion, Completions, Counter, Statistics};

use crate::packet::Burst;
use crate::time::Instant;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

/// Descriptors that every transmit queue keeps free for control frames (LACP), so that data never blocks them.
pub const CONTROL_DESCRIPTORS: usize = 2;

/// Why a driver refused a call.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DriverError {
    /// There is no such queue.
    #[error("queue {queue} of {queues}")]
    NoSuchQueue {
        /// The queue asked for.
        queue: u16,
        /// Number of queues.
        queues: u16,
    },
    /// The queue was handed out by [`Driver::take_queue`].
    #[error("queue {queue} has been taken by another owner")]
    QueueTaken {
        /// The queue asked for.
        queue: u16,
    },
    /// The packet at the front of the burst asks for something the device cannot do; it is still at the front. A
    /// [`Port`](crate::Port) then does it in software.
    #[error("the device cannot transmit this packet: {reason}")]
    Refused {
        /// What it cannot do.
        reason: Refusal,
    },
    /// The device is gone: its registers read as all ones, its file reports no such device.
    #[error("device removed")]
    Removed,
    /// The device is not started, or was stopped.
    #[error("device is down")]
    Down,
    /// The device does not have this setting.
    #[error("{what} is not supported by this device")]
    Unsupported {
        /// Which setting.
        what: &'static str,
    },
    /// A setting is out of range.
    #[error("{what} {value} is outside {allowed}")]
    OutOfRange {
        /// Which setting.
        what: &'static str,
        /// What was asked for.
        value: u64,
        /// What is allowed.
        allowed: String,
    },
    /// The device did not do something within its time limit.
    #[error("{what} did not finish within {limit_us} µs")]
    Timeout {
        /// What was waited for.
        what: &'static str,
        /// The bound of the wait, microseconds.
        limit_us: u64,
    },
    /// The back end failed: a system call, a file, a bus.
    #[error("{what}: {message}")]
    Io {
        /// What was attempted.
        what: &'static str,
        /// What the system said.
        message: String,
    },
}

/// What a device cannot do for a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// It cannot cut this kind of super-packet, or not one of this size.
    #[error("segmentation of this kind or size")]
    Segmentation,
    /// It cannot fill in this checksum.
    #[error("the checksum requested")]
    Checksum,
    /// It cannot insert the VLAN tag.
    #[error("VLAN tag insertion")]
    Vlan,
    /// The packet has more segments than its descriptors can describe.
    #[error("so many segments")]
    Segments,
    /// The packet is longer than the device's maximum frame.
    #[error("a frame of {len} bytes, maximum {max}")]
    TooLong {
        /// Bytes in the frame.
        len: usize,
        /// Bytes allowed.
        max: usize,
    },
    /// The packet is shorter than a link header.
    #[error("a frame of {len} bytes, minimum {min}")]
    TooShort {
        /// Bytes in the frame.
        len: usize,
        /// Bytes needed.
        min: usize,
    },
}

/// A network device: bursts of owned packets in and out of queues.
///
/// Queue numbers run from 0 to [`Capabilities::transmit_queues`] or `receive_queues` less one. Nothing is lost
/// silently: a packet that was not accepted stays in the burst, and every packet dropped has a counter with ethtool's
/// name in [`Driver::statistics`].
pub trait Driver: Send {
    /// What the device can do, with the features that are switched on.
    fn capabilities(&self) -> &Capabilities;

    /// The link as last seen; changes are noticed in [`Driver::poll`].
    fn link(&self) -> LinkState;

    /// Takes packets from the front of `burst` into transmit queue `queue` for as long as they fit, and says how many.
    /// The rest stays in the burst, in order.
    ///
    /// # Errors
    /// An error concerns the packet now at the front, or the device; packets before it were accepted.
    fn transmit(&mut self, queue: u16, burst: &mut Burst, now: Instant) -> Result<usize, DriverError>;

    /// Adds up to `budget` received packets to the back of `burst` and says how many. Fewer than `budget` means that the
    /// queue is empty for now.
    ///
    /// # Errors
    /// [`DriverError::Removed`] and the like; packets already added stay in the burst.
    fn receive(&mut self, queue: u16, burst: &mut Burst, budget: usize, now: Instant) -> Result<usize, DriverError>;

    /// Collects transmitted packets: adds one entry per flow and packet to `completions` and returns the buffers to
    /// their pools. Byte queue limits and TCP small queues live on this.
    ///
    /// # Errors
    /// [`DriverError::Removed`] and the like.
    fn reclaim(&mut self, queue: u16, completions: &mut Completions, now: Instant) -> Result<usize, DriverError>;

    /// Writes all counters to `statistics`.
    fn statistics(&self, statistics: &mut Statistics);

    /// Does whatever is due: link checks, timers, protocol exchanges.
    ///
    /// # Errors
    /// [`DriverError::Removed`] and the like.
    fn poll(&mut self, now: Instant) -> Result<(), DriverError> {
        let _ = now;
        Ok(())
    }

    /// When [`Driver::poll`] has something to do next; `None` if nothing is due.
    fn poll_at(&self) -> Option<Instant> {
        None
    }

    /// Starts transmit and receive (`ip link set up`).
    ///
    /// # Errors
    /// Any; the device is then down.
    fn start(&mut self, now: Instant) -> Result<(), DriverError> {
        let _ = now;
        Ok(())
    }

    /// Stops transmit and receive. Packets in rings are released and counted.
    ///
    /// # Errors
    /// [`DriverError::Removed`] and the like; the buffers are released all the same.
    fn stop(&mut self, now: Instant) -> Result<(), DriverError> {
        let _ = now;
        Ok(())
    }

    /// Sets the station address.
    ///
    /// # Errors
    /// [`DriverError::Unsupported`] unless the device has such a setting.
    fn set_mac(&mut self, mac: MacAddress) -> Result<(), DriverError> {
        let _ = mac;
        Err(DriverError::Unsupported { what: "station address" })
    }

    /// Sets the maximum transmission unit: bytes after the link header.
    ///
    /// # Errors
    /// [`DriverError::Unsupported`], [`DriverError::OutOfRange`].
    fn set_mtu(&mut self, mtu: usize) -> Result<(), DriverError> {
        let _ = mtu;
        Err(DriverError::Unsupported { what: "MTU" })
    }

    /// Receives frames for these group addresses besides the station address and broadcast.
    ///
    /// # Errors
    /// [`DriverError::Unsupported`].
    fn set_multicast(&mut self, groups: &[MacAddress]) -> Result<(), DriverError> {
        let _ = groups;
        Err(DriverError::Unsupported { what: "multicast filter" })
    }

    /// Receives every frame, or only those that pass the filters.
    ///
    /// # Errors
    /// [`DriverError::Unsupported`].
    fn set_promiscuous(&mut self, on: bool) -> Result<(), DriverError> {
        let _ = on;
        Err(DriverError::Unsupported { what: "promiscuous mode" })
    }

    /// Receives only these VLAN ids; `None` receives all.
    ///
    /// # Errors
    /// [`DriverError::Unsupported`], [`DriverError::OutOfRange`] above 4094.
    fn set_vlan_filter(&mut self, vlans: Option<&[u16]>) -> Result<(), DriverError> {
        let _ = vlans;
        Err(DriverError::Unsupported { what: "VLAN filter" })
    }

    /// Switches offloads on and off; the set must be within [`Capabilities::supported`].
    ///
    /// # Errors
    /// [`DriverError::Unsupported`].
    fn set_features(&mut self, features: Features) -> Result<(), DriverError> {
        if features == self.capabilities().features {
            return Ok(());
        }
        Err(DriverError::Unsupported { what: "feature change" })
    }

    /// Sends one control frame (LACP) in the descriptors kept for that ([`CONTROL_DESCRIPTORS`]). The packet comes back in
    /// the burst if even those are in use.
    ///
    /// # Errors
    /// As [`Driver::transmit`].
    fn transmit_control(&mut self, burst: &mut Burst, now: Instant) -> Result<usize, DriverError> {
        self.transmit(0, burst, now)
    }

    /// Hands queue pair `queue` to another owner, for another thread. The driver keeps control of link, filters and
    /// statistics, and answers [`DriverError::QueueTaken`] for the queue until the handle is dropped or for good.
    ///
    /// # Errors
    /// [`DriverError::Unsupported`] if the device has one queue only or cannot share; [`DriverError::NoSuchQueue`];
    /// [`DriverError::QueueTaken`].
    fn take_queue(&mut self, queue: u16) -> Result<Box<dyn DriverQueue>, DriverError> {
        let _ = queue;
        Err(DriverError::Unsupported { what: "queue handles" })
    }

    /// Hands out all queue pairs, lowest number first.
    ///
    /// # Errors
    /// As [`Driver::take_queue`]; handles already taken are dropped then.
    fn split(&mut self) -> Result<Vec<Box<dyn DriverQueue>>, DriverError> {
        let c = self.capabilities();
        let queues = c.transmit_queues.min(c.receive_queues);
        (0..queues).map(|queue| self.take_queue(queue)).collect()
    }
}

/// One queue pair of a [`Driver`], owned by one poller. The methods are those of the driver for that queue.
pub trait DriverQueue: Send {
    /// See [`Driver::transmit`].
    ///
    /// # Errors
    /// As there.
    fn transmit(&mut self, burst: &mut Burst, now: Instant) -> Result<usize, DriverError>;

    /// See [`Driver::receive`].
    ///
    /// # Errors
    /// As there.
    fn receive(&mut self, burst: &mut Burst, budget: usize, now: Instant) -> Result<usize, DriverError>;

    /// See [`Driver::reclaim`].
    ///
    /// # Errors
    /// As there.
    fn reclaim(&mut self, completions: &mut Completions, now: Instant) -> Result<usize, DriverError>;
}

macro_rules! forward_driver {
    ($($kind:ty),*) => {$(
        impl<D: Driver + ?Sized> Driver for $kind {
            fn capabilities(&self) -> &Capabilities { (**self).capabilities() }
            fn link(&self) -> LinkState { (**self).link() }
            fn transmit(&mut self, queue: u16, burst: &mut Burst, now: Instant) -> Result<usize, DriverError> {
                (**self).transmit(queue, burst, now)
            }
            fn receive(&mut self, queue: u16, burst: &mut Burst, budget: usize, now: Instant) -> Result<usize, DriverError> {
                (**self).receive(queue, burst, budget, now)
            }
            fn reclaim(&mut self, queue: u16, completions: &mut Completions, now: Instant) -> Result<usize, DriverError> {
                (**self).reclaim(queue, completions, now)
            }
            fn statistics(&self, statistics: &mut Statistics) { (**self).statistics(statistics) }
            fn poll(&mut self, now: Instant) -> Result<(), DriverError> { (**self).poll(now) }
            fn poll_at(&self) -> Option<Instant> { (**self).poll_at() }
            fn start(&mut self, now: Instant) -> Result<(), DriverError> { (**self).start(now) }
            fn stop(&mut self, now: Instant) -> Result<(), DriverError> { (**self).stop(now) }
            fn set_mac(&mut self, mac: MacAddress) -> Result<(), DriverError> { (**self).set_mac(mac) }
            fn set_mtu(&mut self, mtu: usize) -> Result<(), DriverError> { (**self).set_mtu(mtu) }
            fn set_multicast(&mut self, groups: &[MacAddress]) -> Result<(), DriverError> {
                (**self).set_multicast(groups)
            }
            fn set_promiscuous(&mut self, on: bool) -> Result<(), DriverError> { (**self).set_promiscuous(on) }
            fn set_vlan_filter(&mut self, vlans: Option<&[u16]>) -> Result<(), DriverError> {
                (**self).set_vlan_filter(vlans)
            }
            fn set_features(&mut self, features: Features) -> Result<(), DriverError> {
                (**self).set_features(features)
            }
            fn transmit_control(&mut self, burst: &mut Burst, now: Instant) -> Result<usize, DriverError> {
                (**self).transmit_control(burst, now)
            }
            fn take_queue(&mut self, queue: u16) -> Result<Box<dyn DriverQueue>, DriverError> {
                (**self).take_queue(queue)
            }
            fn split(&mut self) -> Result<Vec<Box<dyn DriverQueue>>, DriverError> { (**self).split() }
        }
    )*};
}

forward_driver!(&mut D, Box<D>);
