//! Packet buffers whose number follows the capture.

use netcore::packet::PacketError;
use netcore::{Packet, PacketPool, PoolCache, PoolConfig};

/// A pool that grows. What is in use stays in the pool it came from, which goes when its last packet does.
pub(super) struct Buffers {
    config: PoolConfig,
    pub(super) cache: PoolCache,
}

impl Buffers {
    pub(super) fn new(config: PoolConfig) -> anyhow::Result<Self> {
        Ok(Self { config, cache: PacketPool::new(config)?.cache() })
    }

    /// Twice as many buffers for what comes next.
    pub(super) fn grow(&mut self) -> anyhow::Result<()> {
        let PoolConfig { buffers, windows, .. } = self.config;
        self.config =
            PoolConfig { buffers: buffers.saturating_mul(2), windows: windows.saturating_mul(2), ..self.config };
        self.cache = PacketPool::new(self.config)?.cache();
        Ok(())
    }

    /// A packet with these bytes.
    pub(super) fn copy(&mut self, bytes: &[u8]) -> anyhow::Result<Packet> {
        loop {
            match self.cache.copy_chain(bytes) {
                Err(PacketError::Pool(_)) => self.grow()?,
                result => return Ok(result?),
            }
        }
    }
}
