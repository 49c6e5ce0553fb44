//! A driver under the test's control.

use netcore::{
    Burst, Capabilities, Completions, Driver, DriverError, Features, Instant, LinkState, MacAddress, PacketPool,
    PoolCache, PoolConfig, Statistics,
};
use std::sync::{Arc, Mutex, MutexGuard};
use std::vec::Vec;

pub(super) struct State {
    pub(super) capabilities: Capabilities,
    pub(super) link: LinkState,
    pub(super) sent: Vec<Vec<u8>>,
    pub(super) control: Vec<Vec<u8>>,
    pub(super) incoming: Vec<Vec<u8>>,
    pub(super) multicast: Vec<MacAddress>,
    pub(super) promiscuous: bool,
    pub(super) started: bool,
    /// Packets that the ring has room for.
    pub(super) room: usize,
    /// What it does not take.
    pub(super) fixed_mac: bool,
    pub(super) largest_mtu: usize,
}

#[derive(Clone)]
pub(super) struct Handle(Arc<Mutex<State>>);

impl Handle {
    pub(super) fn new(n: u8) -> Self {
        let mut capabilities = Capabilities::default();
        capabilities.mac = MacAddress([2, 0, 0, 0, 0xff, n]);
        (capabilities.max_mtu, capabilities.supported) = (9000, Features::SCATTER_GATHER);
        Self(Arc::new(Mutex::new(State {
            capabilities,
            link: LinkState::up(1000),
            sent: Vec::new(),
            control: Vec::new(),
            incoming: Vec::new(),
            multicast: Vec::new(),
            promiscuous: false,
            started: false,
            room: usize::MAX,
            fixed_mac: false,
            largest_mtu: 9000,
        })))
    }

    pub(super) fn get(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    pub(super) fn driver(&self) -> Fake {
        Fake { capabilities: self.get().capabilities.clone(), state: self.clone(), cache: pool() }
    }

    pub(super) fn sent(&self) -> usize {
        self.get().sent.len()
    }

    pub(super) fn up(&self, up: bool) {
        self.get().link = if up { LinkState::up(1000) } else { LinkState::DOWN };
    }
}

pub(super) fn pool() -> PoolCache {
    PacketPool::new(PoolConfig::with_buffers(2048)).unwrap().cache()
}

pub(super) struct Fake {
    capabilities: Capabilities,
    state: Handle,
    cache: PoolCache,
}

impl Driver for Fake {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn link(&self) -> LinkState {
        self.state.get().link
    }

    fn transmit(&mut self, _: u16, burst: &mut Burst, _: Instant) -> Result<usize, DriverError> {
        let mut n = 0;
        let mut state = self.state.get();
        while state.room > 0
            && let Some(packet) = burst.pop()
        {
            assert!(state.link.up, "a frame is sent on a link that is down");
            state.room -= 1;
            state.sent.push(packet.to_vec());
            self.cache.put(packet);
            n += 1;
        }
        Ok(n)
    }

    fn receive(&mut self, _: u16, burst: &mut Burst, budget: usize, _: Instant) -> Result<usize, DriverError> {
        let mut state = self.state.get();
        let n = budget.min(state.incoming.len());
        for frame in state.incoming.drain(..n) {
            burst.push(self.cache.copy_from_slice(&frame).unwrap());
        }
        Ok(n)
    }

    fn reclaim(&mut self, _: u16, _: &mut Completions, _: Instant) -> Result<usize, DriverError> {
        Ok(0)
    }

    fn statistics(&self, statistics: &mut Statistics) {
        statistics.add("tx_packets", self.state.sent() as u64);
    }

    fn start(&mut self, _: Instant) -> Result<(), DriverError> {
        self.state.get().started = true;
        Ok(())
    }

    fn stop(&mut self, _: Instant) -> Result<(), DriverError> {
        self.state.get().started = false;
        Ok(())
    }

    fn set_mac(&mut self, mac: MacAddress) -> Result<(), DriverError> {
        if self.state.get().fixed_mac {
            return Err(DriverError::Unsupported { what: "station address" });
        }
        self.capabilities.mac = mac;
        self.state.get().capabilities.mac = mac;
        Ok(())
    }

    fn set_mtu(&mut self, mtu: usize) -> Result<(), DriverError> {
        if mtu > self.state.get().largest_mtu {
            return Err(DriverError::OutOfRange { what: "MTU", value: mtu as u64, allowed: "less".into() });
        }
        self.capabilities.mtu = mtu;
        self.state.get().capabilities.mtu = mtu;
        Ok(())
    }

    fn set_multicast(&mut self, groups: &[MacAddress]) -> Result<(), DriverError> {
        self.state.get().multicast = groups.to_vec();
        Ok(())
    }

    fn set_promiscuous(&mut self, on: bool) -> Result<(), DriverError> {
        self.state.get().promiscuous = on;
        Ok(())
    }

    fn transmit_control(&mut self, burst: &mut Burst, _: Instant) -> Result<usize, DriverError> {
        let mut n = 0;
        while let Some(packet) = burst.pop() {
            self.state.get().control.push(packet.to_vec());
            n += 1;
        }
        Ok(n)
    }
}
