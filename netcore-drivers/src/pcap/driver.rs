//! A capture file as a driver.

use super::{CaptureError, CaptureReader, CaptureWriter, Damage, Format, LinkType};
use netcore::driver::{
    Capabilities, Completion, Completions, Driver, DriverError, Features, LinkState, Refusal, Statistics,
};
use netcore::{Burst, Instant, PoolCache};
use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::Path;

type Input = CaptureReader<Box<dyn Read + Send>>;
type Output = CaptureWriter<Box<dyn Write + Send>>;

/// Receives the records of one capture file and transmits into another.
///
/// Received packets carry the record's time. Bytes of records that are not Ethernet are passed on as they are and counted
/// (`rx_non_ethernet`); records that were cut at capture are counted (`rx_truncated`). A damaged file ends like a whole one;
/// [`PcapFile::damage`] tells.
pub struct PcapFile {
    input: Option<Input>,
    output: Option<Output>,
    cache: PoolCache,
    capabilities: Capabilities,
    completions: Vec<Completion>,
    counters: Counters,
}

#[derive(Default)]
struct Counters {
    rx_packets: u64,
    rx_bytes: u64,
    rx_non_ethernet: u64,
    rx_truncated: u64,
    rx_no_buffer: u64,
    tx_packets: u64,
    tx_bytes: u64,
}

impl PcapFile {
    /// A driver without files; buffers for received packets come from `cache`.
    pub fn new(cache: PoolCache) -> Self {
        let features = Features::SCATTER_GATHER;
        let mut capabilities = Capabilities::default();
        capabilities.name = "pcap".into();
        capabilities.mtu = 65535;
        capabilities.max_mtu = 65535;
        capabilities.supported = features;
        capabilities.features = features;
        capabilities.max_segments = usize::MAX;
        Self { input: None, output: None, cache, capabilities, completions: Vec::new(), counters: Counters::default() }
    }

    /// Receives from a file.
    ///
    /// # Errors
    /// [`CaptureError`].
    pub fn open(self, path: &Path) -> Result<Self, CaptureError> {
        self.receive_from(BufReader::new(File::open(path)?))
    }

    /// Receives from any stream.
    ///
    /// # Errors
    /// [`CaptureError`].
    pub fn receive_from(mut self, input: impl Read + Send + 'static) -> Result<Self, CaptureError> {
        let input: Box<dyn Read + Send> = Box::new(input);
        self.input = Some(CaptureReader::new(input)?);
        Ok(self)
    }

    /// Transmits into a file; the format follows from the name.
    ///
    /// # Errors
    /// [`CaptureError::Io`].
    pub fn create(self, path: &Path) -> Result<Self, CaptureError> {
        self.transmit_to(BufWriter::new(File::create(path)?), Format::for_path(path))
    }

    /// Transmits into any stream.
    ///
    /// # Errors
    /// [`CaptureError::Io`].
    pub fn transmit_to(mut self, output: impl Write + Send + 'static, format: Format) -> Result<Self, CaptureError> {
        let output: Box<dyn Write + Send> = Box::new(output);
        self.output = Some(CaptureWriter::new(output, format, LinkType::ETHERNET)?);
        Ok(self)
    }

    /// What ended the input early.
    pub fn damage(&self) -> Option<&Damage> {
        self.input.as_ref()?.damage()
    }

    /// Flushes the output.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn flush(&mut self) -> std::io::Result<()> {
        self.output.as_mut().map_or(Ok(()), Output::flush)
    }
}

fn io_error(what: &'static str) -> impl Fn(std::io::Error) -> DriverError {
    move |error| DriverError::Io { what, message: error.to_string() }
}

impl Driver for PcapFile {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn link(&self) -> LinkState {
        LinkState { up: true, speed_mbps: None, ..LinkState::DOWN }
    }

    fn transmit(&mut self, queue: u16, burst: &mut Burst, now: Instant) -> Result<usize, DriverError> {
        if queue != 0 {
            return Err(DriverError::NoSuchQueue { queue, queues: 1 });
        }
        let Some(output) = &mut self.output else { return Err(DriverError::Down) };
        let mut sent = 0;
        while let Some(packet) = burst.front() {
            if packet.is_super() {
                return Err(DriverError::Refused { reason: Refusal::Segmentation });
            }
            if packet.transmit_checksum().is_some() {
                return Err(DriverError::Refused { reason: Refusal::Checksum });
            }
            if packet.vlan().is_some() {
                return Err(DriverError::Refused { reason: Refusal::Vlan });
            }
            output.write_packet(packet, Some(now)).map_err(io_error("write capture"))?;
            self.counters.tx_packets += 1;
            self.counters.tx_bytes += packet.len() as u64;
            self.completions.push(Completion {
                flow_id: packet.flow_id(),
                truesize: packet.truesize() as u32,
                bytes: packet.len() as u32,
            });
            if let Some(packet) = burst.pop() {
                self.cache.put(packet);
            }
            sent += 1;
        }
        Ok(sent)
    }

    fn receive(&mut self, queue: u16, burst: &mut Burst, budget: usize, _now: Instant) -> Result<usize, DriverError> {
        if queue != 0 {
            return Err(DriverError::NoSuchQueue { queue, queues: 1 });
        }
        let Some(input) = &mut self.input else { return Err(DriverError::Down) };
        let mut received = 0;
        while received < budget {
            let Some(record) = input.next().map_err(io_error("read capture"))? else { break };
            self.counters.rx_non_ethernet += u64::from(record.link_type != LinkType::ETHERNET);
            self.counters.rx_truncated += u64::from(record.is_cut());
            let mut packet = match self.cache.copy_chain(record.bytes) {
                Ok(packet) => packet,
                Err(error) => {
                    // The record cannot be put back into the stream.
                    self.counters.rx_no_buffer += 1;
                    return Err(DriverError::Io { what: "buffer for a record", message: error.to_string() });
                }
            };
            packet.set_timestamp(record.timestamp);
            self.counters.rx_packets += 1;
            self.counters.rx_bytes += packet.len() as u64;
            burst.push(packet);
            received += 1;
        }
        Ok(received)
    }

    fn reclaim(&mut self, _queue: u16, completions: &mut Completions, _now: Instant) -> Result<usize, DriverError> {
        let n = self.completions.len();
        for completion in self.completions.drain(..) {
            completions.push(completion);
        }
        Ok(n)
    }

    fn statistics(&self, statistics: &mut Statistics) {
        let c = &self.counters;
        for (name, value) in [
            ("rx_packets", c.rx_packets),
            ("rx_bytes", c.rx_bytes),
            ("tx_packets", c.tx_packets),
            ("tx_bytes", c.tx_bytes),
            ("rx_non_ethernet", c.rx_non_ethernet),
            ("rx_truncated", c.rx_truncated),
            ("rx_no_buffer", c.rx_no_buffer),
        ] {
            statistics.add(name, value);
        }
    }
}
