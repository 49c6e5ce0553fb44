//! tbf: a token bucket, with a second one for the peak rate (Linux: `net/sched/sch_tbf.c`).

mod options;

pub use options::TbfOptions;

use crate::wire::wire_len;
use alloc::boxed::Box;
use alloc::string::String;
use netcore::{
    Burst, Dequeue, DropReason, Drops, Features, Instant, Packet, PacketQueue, PoolCache, Qdisc, QdiscError,
    QdiscStatistics, Rate, Segmenter,
};

const NAME: &str = "tbf";

/// Shapes everything to one rate.
///
/// Tokens are time, as in Linux: a packet costs what it takes at the rate, and up to `burst` worth of time can be saved. The
/// queue below is a `bfifo` of `limit` bytes.
pub struct Tbf {
    options: TbfOptions,
    bucket: Bucket,
    peak: Option<Bucket>,
    /// When tokens were last counted, nanoseconds; `None` before the first packet.
    counted: Option<u64>,
    now: u64,
    queue: PacketQueue,
    backlog: usize,
    statistics: QdiscStatistics,
    segmenter: Option<(Box<dyn Segmenter>, PoolCache, Features)>,
    pieces: Burst,
}

/// Tokens in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    rate: Rate,
    size: i64,
    tokens: i64,
}

impl Bucket {
    fn new(rate: Rate, bytes: u32) -> Self {
        let size = Self::cost(rate, u64::from(bytes));
        Self { rate, size, tokens: size }
    }

    fn cost(rate: Rate, bytes: u64) -> i64 {
        rate.nanos_for(bytes).map_or(i64::MAX / 4, |ns| ns.min(i64::MAX as u64 / 4) as i64)
    }

    /// Tokens left after `elapsed` nanoseconds and a packet of `bytes`.
    fn after(&self, elapsed: i64, bytes: u64) -> i64 {
        self.tokens.saturating_add(elapsed).min(self.size) - Self::cost(self.rate, bytes)
    }
}

impl core::fmt::Debug for Tbf {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Tbf").field("options", &self.options).field("len", &self.queue.len()).finish_non_exhaustive()
    }
}

impl Tbf {
    /// A full bucket.
    ///
    /// # Errors
    /// [`QdiscError::InvalidValue`] if an option is out of range.
    pub fn new(options: TbfOptions) -> Result<Self, QdiscError> {
        options.validate()?;
        let (bucket, peak) = buckets(&options);
        Ok(Self {
            options,
            bucket,
            peak,
            counted: None,
            now: 0,
            queue: PacketQueue::new(),
            backlog: 0,
            statistics: QdiscStatistics::default(),
            segmenter: None,
            pieces: Burst::new(),
        })
    }

    /// From the words of a `tc` command: `rate 10mbit burst 32kb latency 50ms`.
    ///
    /// # Errors
    /// [`QdiscError`].
    pub fn from_words(words: &[&str]) -> Result<Self, QdiscError> {
        Self::new(TbfOptions::from_words(words)?)
    }

    /// Cuts super-packets that are longer than the bucket into pieces that are not, for a device with `features` (Linux:
    /// `tbf_segment`). Without it they are dropped as too long.
    pub fn with_segmenter(mut self, segmenter: Box<dyn Segmenter>, cache: PoolCache, features: Features) -> Self {
        self.segmenter = Some((segmenter, cache, features - Features::TSO));
        self
    }

    /// The options.
    pub fn config(&self) -> &TbfOptions {
        &self.options
    }

    /// Replaces all options; packets stay, the bucket is full again.
    ///
    /// # Errors
    /// [`QdiscError::InvalidValue`]; nothing was changed.
    pub fn set_config(&mut self, options: TbfOptions, drops: &mut Drops) -> Result<(), QdiscError> {
        options.validate()?;
        self.options = options;
        (self.bucket, self.peak) = buckets(&options);
        // Linux leaves what is queued above the new limit; nothing longer than the new bucket may stay, though, or it
        // would wait for ever.
        let most = options.max_size();
        let mut queue = core::mem::take(&mut self.queue);
        while let Some(packet) = queue.pop_front() {
            let len = self.len_of(&packet);
            if len > most {
                self.backlog -= len as usize;
                self.statistics.drops += 1;
                drops.push(packet, DropReason::TooLong);
            } else {
                self.queue.push_back(packet);
            }
        }
        Ok(())
    }

    fn len_of(&self, packet: &Packet) -> u32 {
        wire_len(packet)
    }

    fn push(&mut self, packet: Packet, drops: &mut Drops) {
        let len = self.len_of(&packet);
        if self.backlog + len as usize > self.options.limit as usize {
            self.statistics.drops += 1;
            drops.push(packet, DropReason::OverLimit);
            return;
        }
        self.backlog += len as usize;
        self.queue.push_back(packet);
    }

    /// Cuts a super-packet that is too long; what cannot be cut is dropped.
    fn push_cut(&mut self, packet: Packet, drops: &mut Drops) {
        let too_long = |tbf: &mut Self, packet, drops: &mut Drops| {
            tbf.statistics.drops += 1;
            drops.push(packet, DropReason::TooLong);
        };
        if !packet.is_super() {
            return too_long(self, packet, drops);
        }
        let Some((segmenter, cache, features)) = &mut self.segmenter else {
            return too_long(self, packet, drops);
        };
        let mut pieces = core::mem::take(&mut self.pieces);
        if let Err(failed) = segmenter.segment(packet, *features, cache, &mut pieces) {
            too_long(self, failed.packet, drops);
        }
        while let Some(piece) = pieces.pop() {
            if self.len_of(&piece) > self.options.max_size() {
                too_long(self, piece, drops);
            } else {
                self.push(piece, drops);
            }
        }
        self.pieces = pieces;
    }
}

fn buckets(options: &TbfOptions) -> (Bucket, Option<Bucket>) {
    let peak = options.peakrate.map(|rate| Bucket::new(rate, options.mtu));
    (Bucket::new(options.rate, options.burst), peak)
}

impl Qdisc for Tbf {
    fn enqueue(&mut self, packet: Packet, now: Instant, drops: &mut Drops) {
        self.now = self.now.max(now.as_nanos());
        self.counted.get_or_insert(self.now);
        if self.len_of(&packet) > self.options.max_size() {
            return self.push_cut(packet, drops);
        }
        self.push(packet, drops);
    }

    fn dequeue(&mut self, now: Instant, _drops: &mut Drops) -> Dequeue {
        self.now = self.now.max(now.as_nanos());
        let Some(packet) = self.queue.front() else { return Dequeue::Empty };
        let len = wire_len(packet);
        let charged = self.options.charged(len);
        let elapsed = self.now - self.counted.unwrap_or(self.now);
        let elapsed = elapsed.min(i64::MAX as u64 / 4) as i64;
        let tokens = self.bucket.after(elapsed, charged);
        let peak = self.peak.map(|peak| peak.after(elapsed, charged));
        let short = tokens.min(peak.unwrap_or(0));
        if short < 0 {
            self.statistics.overlimits += 1;
            return Dequeue::Throttled(Instant::from_nanos(self.now.saturating_add(short.unsigned_abs())));
        }
        self.bucket.tokens = tokens;
        if let (Some(bucket), Some(tokens)) = (&mut self.peak, peak) {
            bucket.tokens = tokens;
        }
        self.counted = Some(self.now);
        let Some(packet) = self.queue.pop_front() else { return Dequeue::Empty };
        self.backlog -= len as usize;
        self.statistics.bytes += u64::from(len);
        self.statistics.packets += packet.wire_packets() as u64;
        Dequeue::Packet(packet)
    }

    fn len(&self) -> usize {
        self.queue.len()
    }

    fn backlog(&self) -> usize {
        self.backlog
    }

    fn statistics(&self) -> QdiscStatistics {
        let mut statistics = self.statistics;
        statistics.qlen = self.queue.len() as u64;
        statistics.backlog = self.backlog as u64;
        statistics
    }

    fn name(&self) -> &'static str {
        NAME
    }

    fn reset(&mut self, drops: &mut Drops) {
        while let Some(packet) = self.queue.pop_front() {
            self.statistics.drops += 1;
            drops.push(packet, DropReason::Reset);
        }
        self.backlog = 0;
        self.counted = None;
        (self.bucket, self.peak) = buckets(&self.options);
    }

    /// Options in `tc` syntax; as with `tc`, `rate`, `burst` and one of `limit` and `latency` are needed.
    fn change(&mut self, options: &[&str], _now: Instant, drops: &mut Drops) -> Result<(), QdiscError> {
        self.set_config(TbfOptions::from_words(options)?, drops)
    }

    fn options(&self) -> String {
        self.options.to_words()
    }
}
