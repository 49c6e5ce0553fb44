//! [`Endpoint`]: one connection.

use crate::config::Config;
use crate::counters::Counters;
use crate::error::{ConfigError, ConnectionError, Discard};
use crate::info::TcpInfo;
use crate::path::Path;
use crate::receive::Receiver;
use crate::recovery::Recovery;
use crate::rtt::RttEstimator;
use crate::segment::{FrameTemplate, Incoming};
use crate::send::Sender;
use crate::state::State;
use crate::timers::{Pending, Timers};
use alloc::boxed::Box;
use netcore::congestion::{CongestionOps, SendState};
use netcore::{Instant, Packet, PoolCache};

/// One TCP connection.
///
/// After every call that may have changed something ([`Endpoint::handle`], [`Endpoint::poll`], the write and read
/// functions, [`Endpoint::completed`]) call [`Endpoint::poll_transmit`] until it returns `None`, then sleep until
/// [`Endpoint::poll_at`].
///
/// ```
/// use netcore::{Instant, MacAddress, PacketPool, PoolConfig};
/// use netcore_tcp::{Config, Endpoint, LinkAddress, Path};
///
/// let pool = PacketPool::new(PoolConfig::with_buffers(64))?;
/// let mut cache = pool.cache();
/// let link = LinkAddress { local: MacAddress([2; 6]), remote: MacAddress([4; 6]), vlan: None };
/// let path = Path::new(link, "10.0.0.1:40000".parse()?, "10.0.0.2:80".parse()?);
/// let now = Instant::ZERO;
/// let mut client = Endpoint::connect(Config::default(), path, 1, now)?;
/// let mut server = Endpoint::listen(Config::default(), path.reversed(), 2)?;
/// client.write(b"hello", &mut cache);
/// for _ in 0..4 {
///     while let Some(frame) = client.poll_transmit(&mut cache, now) {
///         server.handle(frame, &mut cache, now)?;
///     }
///     while let Some(frame) = server.poll_transmit(&mut cache, now) {
///         client.handle(frame, &mut cache, now)?;
///     }
/// }
/// let mut text = [0; 5];
/// assert_eq!(server.read(&mut text, &mut cache, now), 5);
/// assert_eq!(&text, b"hello");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Endpoint {
    pub(crate) config: Config,
    pub(crate) path: Path,
    pub(crate) frame: FrameTemplate,
    pub(crate) state: State,
    pub(crate) error: Option<ConnectionError>,
    pub(crate) snd: Sender,
    pub(crate) rcv: Receiver,
    pub(crate) rec: Recovery,
    pub(crate) rtt: RttEstimator,
    pub(crate) timers: Timers,
    pub(crate) counters: Counters,
    pub(crate) cc: Box<dyn CongestionOps>,
    /// Whether `cc` wants per-packet events and rate samples: user-supplied algorithms do, built-in ones do not.
    pub(crate) cc_custom: bool,
    pub(crate) cs: SendState,
    pub(crate) seed: u64,
}

impl Endpoint {
    /// Opens a connection: the first [`Endpoint::poll_transmit`] gives the SYN. `seed` picks the initial sequence number
    /// and everything else that is random.
    ///
    /// # Errors
    /// [`ConfigError`] if `config` or `path` is out of range.
    pub fn connect(config: Config, path: Path, seed: u64, now: Instant) -> Result<Self, ConfigError> {
        let mut endpoint = Self::new(config, path, seed)?;
        endpoint.start_connect(now);
        Ok(endpoint)
    }

    /// Waits for the connection request of the path's remote address.
    ///
    /// # Errors
    /// As [`Endpoint::connect`].
    pub fn listen(config: Config, path: Path, seed: u64) -> Result<Self, ConfigError> {
        let mut endpoint = Self::new(config, path, seed)?;
        endpoint.state = State::Listen;
        Ok(endpoint)
    }

    fn new(config: Config, path: Path, seed: u64) -> Result<Self, ConfigError> {
        config.validate()?;
        path.validate()?;
        let p = config.profile;
        let cc: Box<dyn CongestionOps> = Box::new(p.congestion.build());
        let mixed = mix(seed);
        let initial = mixed as u32;
        let frame = FrameTemplate::new(&path, config.tos, config.checksum_offload, (mixed >> 32) as u16);
        let mut cs = SendState::new(1, 536);
        p.congestion.prepare(&mut cs);
        cs.reordering = p.reordering;
        cs.pacing_status = config.pacing;
        cs.max_pacing_rate = config.max_pacing_rate;
        cs.gso_max_size = config.gso_max_size;
        Ok(Self {
            snd: Sender::new(&config, initial),
            rcv: Receiver::new(&config, &path),
            rec: Recovery::new(&p),
            rtt: RttEstimator::new(p.initial_rto_us),
            timers: Timers::default(),
            counters: Counters::default(),
            state: State::Closed,
            error: None,
            cc,
            cc_custom: false,
            cs,
            frame,
            path,
            seed: mixed,
            config,
        })
    }

    /// Uses another congestion control. To be called before the connection is established; the algorithm then also gets
    /// rate samples and per-packet events.
    pub fn set_congestion(&mut self, cc: Box<dyn CongestionOps>) {
        self.cc = cc;
        self.cc_custom = true;
    }

    /// Takes a frame.
    ///
    /// # Errors
    /// [`Discard`] says why it was dropped; the frame is counted and its buffers go back to `cache`.
    pub fn handle(&mut self, packet: Packet, cache: &mut PoolCache, now: Instant) -> Result<(), Discard> {
        match Incoming::parse(&packet) {
            Ok(incoming) => self.handle_parsed(incoming, packet, cache, now),
            Err(discard) => {
                self.counters.in_errs += 1;
                if discard == Discard::Checksum {
                    self.counters.in_csum_errors += 1;
                }
                cache.put(packet);
                Err(discard)
            }
        }
    }

    /// Takes a frame whose headers were read already, for instance to find its connection.
    ///
    /// # Errors
    /// [`Discard::OtherConnection`].
    pub fn handle_parsed(
        &mut self,
        incoming: Incoming,
        packet: Packet,
        cache: &mut PoolCache,
        now: Instant,
    ) -> Result<(), Discard> {
        if incoming.tuple.local != self.path.local || incoming.tuple.remote != self.path.remote {
            cache.put(packet);
            return Err(Discard::OtherConnection);
        }
        self.counters.in_segs += u64::from(incoming.seg.segments);
        if incoming.seg.ecn == 3 {
            self.counters.in_ce_pkts += 1;
        }
        self.segment_arrives(&incoming.seg, packet, cache, now);
        Ok(())
    }

    /// When [`Endpoint::poll`] has something to do; `None` if only a frame or the user can change anything.
    pub fn poll_at(&self) -> Option<Instant> {
        self.timers.earliest()
    }

    /// Runs the timers that are due.
    pub fn poll(&mut self, now: Instant) {
        let due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        if due(self.timers.time_wait) {
            self.timers.stop_all();
            self.state = State::Closed;
        }
        if due(self.timers.delayed_ack) {
            self.timers.delayed_ack = None;
            self.delayed_ack_timer(now);
        }
        if due(self.timers.compressed_ack) {
            self.timers.compressed_ack = None;
            self.compressed_ack_timer();
        }
        if due(self.timers.pacing) {
            self.timers.pacing = None;
        }
        if due(self.timers.defer) {
            self.timers.defer = None;
            self.snd.defer_expired = true;
        }
        if let Some((pending, at)) = self.timers.retransmit
            && at <= now
        {
            self.timers.retransmit = None;
            match pending {
                Pending::Retransmit => self.retransmit_timer(now),
                Pending::Probe0 => self.probe_timer(now),
                Pending::LossProbe => self.loss_probe_timer(now),
                Pending::Reorder => self.reorder_timer(now),
            }
        }
        if due(self.timers.keep_alive) {
            self.timers.keep_alive = None;
            self.keep_alive_timer(now);
        }
    }

    /// The connection's state.
    pub const fn state(&self) -> State {
        self.state
    }

    /// Why the connection ended, if not by an orderly close.
    pub const fn error(&self) -> Option<ConnectionError> {
        self.error
    }

    /// The connection's path.
    pub const fn path(&self) -> &Path {
        &self.path
    }

    /// The connection's configuration.
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// What was counted.
    pub fn counters(&self) -> Counters {
        let hystart = self.cc.info(&self.cs).hystart;
        Counters {
            hystart_train_detect: hystart.train_detect,
            hystart_train_cwnd: hystart.train_cwnd,
            hystart_delay_detect: hystart.delay_detect,
            hystart_delay_cwnd: hystart.delay_cwnd,
            delivered: self.cs.delivered,
            delivered_ce: self.cs.delivered_ce,
            ..self.counters
        }
    }

    /// The state shared with congestion control.
    pub const fn send_state(&self) -> &SendState {
        &self.cs
    }

    /// The reordering degree that a later connection to the same destination should start with
    /// ([`Config::reordering_metric`]); `None` if the era or sysctl does not keep it.
    pub fn reordering_metric(&self) -> Option<u32> {
        (self.config.profile.save_metrics && self.cs.reordering > self.config.profile.reordering)
            .then_some(self.cs.reordering)
    }

    /// A snapshot for diagnosis.
    pub fn info(&self) -> TcpInfo {
        TcpInfo {
            state: self.state,
            ca_state: self.cs.ca_state,
            congestion: self.cc.name(),
            cwnd: self.cs.cwnd,
            ssthresh: self.cs.ssthresh,
            rtt_us: (self.rtt.srtt_us8 != 0).then_some(self.rtt.srtt_us8 / 8),
            rttvar_us: self.rtt.rttvar_us4 / 4,
            min_rtt_us: self.rtt.min_rtt_us(),
            rto_us: self.rtt.backed_off(self.snd.backoff),
            backoff: self.snd.backoff,
            mss: self.cs.mss,
            rcv_mss: self.rcv.ack.rcv_mss,
            unacked: self.cs.packets_out,
            sacked: self.cs.sacked_out,
            lost: self.cs.lost_out,
            retrans: self.cs.retrans_out,
            in_flight: self.cs.in_flight(),
            reordering: self.cs.reordering,
            snd_wnd: self.snd.wnd,
            rcv_wnd: self.rcv.wnd,
            rcv_ssthresh: self.rcv.ssthresh,
            rcv_space: self.rcv.space.space,
            rcv_rtt_us: self.receive_rtt_us(),
            rcvbuf: self.rcv.rcvbuf,
            sndbuf: self.snd.sndbuf,
            notsent: self.snd.buffer.end().saturating_sub(self.snd.nxt),
            queued_below: self.snd.below.charged(),
            pacing_rate: self.cs.pacing_rate,
            bytes_acked: self.snd.bytes_acked,
            bytes_received: self.rcv.bytes_received,
            bytes_sent: self.snd.bytes_sent,
            bytes_retrans: self.snd.bytes_retrans,
            delivered: self.cs.delivered,
            app_limited: self.cs.app_limited,
            busy_us: self.snd.chrono.busy_us(),
            rwnd_limited_us: self.snd.chrono.rwnd_us(),
            sndbuf_limited_us: self.snd.chrono.sndbuf_us(),
            timestamps: self.rcv.timestamps,
            sack: self.rec.sack_ok,
            wscale: self.rcv.wscale_ok.then_some((self.snd.wscale, self.rcv.wscale)),
            ecn: self.rcv.ecn_ok,
        }
    }

    /// Ends the connection at once with a RST.
    pub fn abort(&mut self, cache: &mut PoolCache) {
        if self.state.is_synchronized() && self.state != State::TimeWait {
            self.snd.rst = Some(self.snd.space.wire(self.snd.nxt));
        }
        self.finish(Some(ConnectionError::Aborted), cache);
    }

    /// Enters CLOSED and lets go of everything that is queued for sending.
    pub(crate) fn finish(&mut self, error: Option<ConnectionError>, cache: &mut PoolCache) {
        self.state = State::Closed;
        if self.error.is_none() {
            self.error = error;
        }
        self.timers.stop_all();
        self.snd.queue.clear();
        let end = self.snd.buffer.end();
        self.snd.buffer.release(end, cache);
        self.snd.syn = false;
        self.rcv.ack.now = false;
    }
}

impl core::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Endpoint")
            .field("state", &self.state)
            .field("local", &self.path.local)
            .field("remote", &self.path.remote)
            .field("cwnd", &self.cs.cwnd)
            .finish_non_exhaustive()
    }
}

/// SplitMix64: turns a seed into well mixed bits.
pub(crate) const fn mix(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
