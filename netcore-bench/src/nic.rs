//! Descriptor rings in plain memory, without a device: what receiving, transmitting and forwarding cost per packet. The
//! device's part, writing descriptors back, is not timed.

use crate::workloads::{Batch, Workload};
use netcore::{Burst, Completions, Instant, PacketPool, PoolCache, PoolConfig};
use netcore_drivers::dma::{DmaBlock, plain_region, shared_blocks};
use netcore_drivers::e1000::{Legacy, Transmit};
use netcore_drivers::mmio::Mmio;
use netcore_drivers::ring::{Arenas, ReceiveBuffers, ReceiveRing, TransmitRing, ring_bytes};
use std::sync::Arc;

/// Packets of a batch.
const BURST: usize = 32;
/// Descriptors of each ring.
const COUNT: u16 = 512;
/// Bytes of a received frame.
const FRAME: u64 = 60;
const TAIL: u32 = 0x18;

/// A legacy receive descriptor that is done: EOP, TCP and IP checksums good, no tag.
const RECEIVED: u64 = FRAME | 0x63 << 32;
/// A transmit descriptor that is done.
const DONE: u64 = 1 << 32;

pub(crate) fn all() -> Vec<Workload> {
    vec![
        Workload { name: "e1000 rx, bursts of 32", budget: None, make: || Box::new(Rings::new(true, false)) },
        Workload { name: "e1000 tx, bursts of 32", budget: None, make: || Box::new(Rings::new(false, true)) },
        Workload { name: "e1000 forward, bursts of 32", budget: None, make: || Box::new(Rings::new(true, true)) },
    ]
}

struct Rings {
    receives: bool,
    transmits: bool,
    receive: ReceiveRing<Legacy>,
    transmit: TransmitRing<Transmit>,
    /// The rings as the device sees them, and how far it is.
    device: (DmaBlock, DmaBlock),
    at: (u16, u16),
    cache: PoolCache,
    burst: Burst,
    completions: Completions,
}

impl Rings {
    fn new(receives: bool, transmits: bool) -> Self {
        let config = PoolConfig::with_buffers(2048);
        let memory = plain_region(config.buffers * config.buffer_size).expect("memory");
        let pool = PacketPool::from_region(memory, config).expect("a pool");
        let mut arenas = Arenas::new();
        arenas.add(pool.clone());
        let (ring, transmit_device) = shared_blocks(ring_bytes(COUNT)).expect("memory");
        let headers = plain_region(TransmitRing::<Transmit>::header_bytes(COUNT)).expect("memory");
        let transmit = TransmitRing::new(
            Transmit::with_every_offload(),
            ring,
            headers,
            COUNT,
            Mmio::plain(4096),
            TAIL,
            pool.cache(),
            Arc::new(arenas),
            Arc::default(),
        );
        let (ring, receive_device) = shared_blocks(ring_bytes(COUNT)).expect("memory");
        let buffers = ReceiveBuffers { len: 2048, within_64k: false };
        let layout = Legacy::with_every_offload();
        let receive = ReceiveRing::new(layout, ring, COUNT, Mmio::plain(4096), TAIL, buffers, 0, Arc::default());
        let mut cache = pool.cache();
        let mut receive = receive.expect("a ring");
        receive.arm(&mut cache);
        Self {
            receives,
            transmits,
            receive,
            transmit: transmit.expect("a ring"),
            device: (transmit_device, receive_device),
            at: (0, 0),
            cache,
            burst: Burst::with_capacity(BURST),
            completions: Completions::new(),
        }
    }
}

impl Batch for Rings {
    fn prepare(&mut self) -> usize {
        for _ in 0..BURST {
            if self.receives {
                self.device.1.write_u64(usize::from(self.at.1) * 16 + 8, RECEIVED);
                self.at.1 = (self.at.1 + 1) % COUNT;
            } else {
                self.burst.push(self.cache.copy_from_slice(&[0x55; FRAME as usize]).expect("a buffer"));
            }
        }
        BURST
    }

    fn run(&mut self) {
        if self.receives {
            self.receive.receive(&mut self.burst, BURST, &mut self.cache, Instant::ZERO);
        }
        if self.transmits {
            // What the batch before sent is done by now.
            self.transmit.reclaim(&mut self.completions, &mut self.cache);
            self.transmit.transmit(&mut self.burst, false);
        }
    }

    fn finish(&mut self) {
        assert!(!self.transmits || self.burst.is_empty(), "the ring took the burst");
        self.cache.put_burst(&mut self.burst);
        self.completions.clear();
        if self.transmits {
            // The first packet ever has a descriptor more, its tail; after that one each.
            while self.at.0 != self.transmit.next() {
                let slot = usize::from(self.at.0) * 16 + 8;
                self.device.0.write_u64(slot, self.device.0.read_u64(slot) | DONE);
                self.at.0 = (self.at.0 + 1) % COUNT;
            }
        }
    }
}
