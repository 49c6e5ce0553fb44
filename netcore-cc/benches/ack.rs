//! What one ACK costs, beside the CUBIC of quinn-proto and s2n-quic-core on the same stream of ACKs.
//!
//! `cargo bench -p netcore-cc`. With `TABLE=<batches>` the cases take turns batch by batch and a table gives the least and
//! the median cost of each, which neighbours on the machine hardly move. With `COUNT=<name>` the named case runs once, for
//! callgrind.

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use netcore::congestion::{AckEvent, AckSample};
use netcore::{CongestionOps, Instant, SendState};
use netcore_cc::{Builtin, Profile};
use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

/// ACKs in one iteration. A millisecond of them: below the 40 that an ACK train needs to end slow start.
const BATCH: u64 = 1024;
/// Window at which slow start is looked at, segments.
const SLOW_START: u32 = 2000;
/// 10 Gbit/s of 1448 bytes.
const GAP_NS: u64 = 1_158;
const RTT_US: u32 = 80_000;

trait Subject {
    fn ack(&mut self);
    fn restart(&mut self) {}
}

/// Ours, by the enum or through a trait object.
struct Ours<C: CongestionOps + ?Sized> {
    state: SendState,
    now: u64,
    ops: Box<C>,
    first: (SendState, Builtin, u64),
    reset: fn(&mut C, &Builtin),
}

fn ours(avoidance: bool, hystart: bool) -> (SendState, Builtin, u64) {
    let mut profile = Profile::linux_current();
    if !hystart {
        profile.set("hystart", "0").unwrap();
    }
    let mut state = SendState::new(10, 1448);
    profile.prepare(&mut state);
    state.clock.jiffies_at_zero = 1000;
    let mut ops = profile.build();
    let mut now = 1_000_000_000;
    ops.init(&mut state, Instant::from_nanos(now));
    state.is_cwnd_limited = true;
    state.snd_nxt = 1 << 30;
    if avoidance {
        state.cwnd = 70_000;
        let ssthresh = ops.ssthresh(&mut state, Instant::from_nanos(now));
        state.ssthresh = Some(ssthresh);
        state.cwnd = ssthresh;
        now += 1_000;
        // Into the epoch, past its start.
        for _ in 0..2_000 {
            now += GAP_NS;
            state.snd_una += 1448;
            state.snd_nxt += 1448;
            let sample = AckSample { pkts_acked: 1, rtt_us: Some(RTT_US), in_flight: 0 };
            let event = AckEvent { sample, acked: 1, may_raise: true, ..AckEvent::default() };
            ops.on_ack(&mut state, &event, Instant::from_nanos(now));
        }
    } else {
        state.cwnd = SLOW_START;
    }
    (state, ops, now)
}

impl<C: CongestionOps + ?Sized> Subject for Ours<C> {
    #[inline(always)]
    fn ack(&mut self) {
        self.now += GAP_NS;
        self.state.snd_una = self.state.snd_una.wrapping_add(1448);
        self.state.snd_nxt = self.state.snd_nxt.wrapping_add(1448);
        let sample = AckSample { pkts_acked: 1, rtt_us: Some(black_box(RTT_US)), in_flight: 0 };
        let event = AckEvent { sample, acked: 1, may_raise: true, ..AckEvent::default() };
        self.ops.on_ack(&mut self.state, &event, Instant::from_nanos(self.now));
        black_box(self.state.cwnd);
    }
    fn restart(&mut self) {
        (self.state, self.now) = (self.first.0, self.first.2);
        (self.reset)(&mut self.ops, &self.first.1);
    }
}

struct Quinn {
    controller: Box<dyn quinn_proto::congestion::Controller>,
    first: Box<dyn quinn_proto::congestion::Controller>,
    now: std::time::Instant,
    rtt: quinn_proto::RttEstimator,
}

impl Quinn {
    fn new(avoidance: bool) -> Self {
        use quinn_proto::congestion::{Controller, Cubic, CubicConfig};
        let durations = [Duration::from_micros(RTT_US.into()); 4];
        assert_eq!(size_of::<quinn_proto::RttEstimator>(), size_of_val(&durations));
        // SAFETY: the estimator has no public constructor. Its size is checked above; it holds durations only, which are
        // all equal here, so every order of fields gives a valid value.
        let rtt: quinn_proto::RttEstimator = unsafe { std::mem::transmute(durations) };
        let now = std::time::Instant::now();
        let mut config = CubicConfig::default();
        config.initial_window(u64::from(SLOW_START) * 1448);
        let mut controller: Box<dyn Controller> = Box::new(Cubic::new(Arc::new(config), now, 1448));
        if avoidance {
            for _ in 0..70_000 {
                controller.on_ack(now, now, 1448, false, &rtt);
            }
            controller.on_congestion_event(now, now, false, 1448);
        }
        Self { first: controller.clone_box(), controller, now, rtt }
    }
}

impl Subject for Quinn {
    #[inline(always)]
    fn ack(&mut self) {
        self.now += Duration::from_nanos(GAP_NS);
        let sent = self.now + Duration::from_secs(3600);
        self.controller.on_ack(self.now, sent, 1448, false, black_box(&self.rtt));
        self.controller.on_end_acks(self.now, 1 << 20, false, Some(1));
        black_box(self.controller.window());
    }
    fn restart(&mut self) {
        self.controller = self.first.clone_box();
    }
}

mod s2n {
    use super::{BATCH, Duration, GAP_NS, RTT_US, SLOW_START, Subject, black_box};
    use s2n_quic_core::event::builder;
    use s2n_quic_core::packet::number::PacketNumberSpace;
    use s2n_quic_core::random::testing::Generator;
    use s2n_quic_core::recovery::bandwidth::{Bandwidth, RateSample};
    use s2n_quic_core::recovery::congestion_controller::{CongestionController, Publisher};
    use s2n_quic_core::recovery::cubic::ApplicationSettings;
    use s2n_quic_core::recovery::{CubicCongestionController, RttEstimator};
    use s2n_quic_core::time::Timestamp;

    struct Silent;
    impl Publisher for Silent {
        fn on_slow_start_exited(&mut self, _: builder::SlowStartExitCause, _: u32) {}
        fn on_delivery_rate_sampled(&mut self, _: RateSample) {}
        fn on_pacing_rate_updated(&mut self, _: Bandwidth, _: u32, _: num_rational::Ratio<u64>) {}
        fn on_bbr_state_changed(&mut self, _: builder::BbrState) {}
    }

    fn time(ns: u64) -> Timestamp {
        // SAFETY: any duration is a valid timestamp of a clock that starts at zero.
        unsafe { Timestamp::from_duration(Duration::from_nanos(ns)) }
    }

    pub(super) struct S2n {
        controller: CubicCongestionController,
        first: CubicCongestionController,
        rtt: RttEstimator,
        random: Generator,
        now: u64,
    }

    impl S2n {
        pub(super) fn new(avoidance: bool) -> Self {
            let mut now = 1_000_000_000;
            let mut rtt = RttEstimator::new(Duration::from_micros(RTT_US.into()));
            let sample = Duration::from_micros(RTT_US.into());
            rtt.update_rtt(Duration::ZERO, sample, time(now), true, PacketNumberSpace::ApplicationData);
            let mut controller = CubicCongestionController::new(1448, ApplicationSettings::default());
            let mut random = Generator(1);
            let goal = if avoidance { 100_000_000 } else { SLOW_START * 1448 };
            fill(&mut controller, now, &rtt);
            while controller.congestion_window() < goal {
                controller.on_ack(time(now), 1448, (), &rtt, &mut random, time(now), &mut Silent);
                now += 100;
                fill(&mut controller, now, &rtt);
            }
            if avoidance {
                controller.on_packet_lost(1448, (), false, true, &mut random, time(now), &mut Silent);
                now += 1_000;
            }
            Self { first: controller.clone(), controller, rtt, random, now }
        }
    }

    fn fill(controller: &mut CubicCongestionController, now: u64, rtt: &RttEstimator) {
        while controller.bytes_in_flight() + 1448 <= controller.congestion_window() {
            controller.on_packet_sent(time(now), 1448, Some(false), rtt, &mut Silent);
        }
    }

    impl Subject for S2n {
        #[inline(always)]
        fn ack(&mut self) {
            self.now += GAP_NS;
            let later = time(self.now + 80_000_000);
            self.controller.on_ack(
                time(self.now),
                1448,
                (),
                black_box(&self.rtt),
                &mut self.random,
                later,
                &mut Silent,
            );
            black_box(self.controller.congestion_window());
        }
        fn restart(&mut self) {
            self.controller = self.first.clone();
            // Enough in flight for a batch of ACKs.
            while self.controller.bytes_in_flight() < (BATCH as u32 + 1) * 1448 {
                self.controller.on_packet_sent(time(self.now), 1448, Some(false), &self.rtt, &mut Silent);
            }
        }
    }
}

fn by_enum(avoidance: bool, hystart: bool) -> Ours<Builtin> {
    let (state, ops, now) = ours(avoidance, hystart);
    Ours { state, now, ops: Box::new(ops), first: (state, ops, now), reset: |ops, first| *ops = *first }
}

fn by_object(avoidance: bool) -> Ours<dyn CongestionOps> {
    let (state, ops, now) = ours(avoidance, true);
    // The algorithm itself runs on: a batch changes next to nothing of it.
    Ours { state, now, ops: Box::new(ops), first: (state, ops, now), reset: |_, _| {} }
}

/// A subject's name, and what runs it; the argument says whether to restart it first.
type Case = (&'static str, Box<dyn FnMut(bool)>);

fn cases() -> Vec<Case> {
    fn case(name: &'static str, mut subject: impl Subject + 'static) -> (&'static str, Box<dyn FnMut(bool)>) {
        let run = move |restart: bool| {
            if restart {
                subject.restart();
            } else {
                for _ in 0..BATCH {
                    subject.ack();
                }
            }
        };
        (name, Box::new(run))
    }
    vec![
        case("avoidance/netcore", by_enum(true, true)),
        case("avoidance/netcore-dyn", by_object(true)),
        case("avoidance/quinn-proto", Quinn::new(true)),
        case("avoidance/s2n-quic", s2n::S2n::new(true)),
        case("slow-start/netcore-hystart", by_enum(false, true)),
        case("slow-start/netcore", by_enum(false, false)),
        case("slow-start/quinn-proto", Quinn::new(false)),
        case("slow-start/s2n-quic", s2n::S2n::new(false)),
    ]
}

fn bench(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("ack");
    group.throughput(criterion::Throughput::Elements(BATCH));
    for (name, mut run) in cases() {
        group.bench_function(BenchmarkId::from_parameter(name), |bencher| {
            bencher.iter_custom(|iterations| {
                let mut spent = Duration::ZERO;
                for _ in 0..iterations {
                    run(true);
                    let start = std::time::Instant::now();
                    run(false);
                    spent += start.elapsed();
                }
                spent
            });
        });
    }
    group.finish();
}

/// Least and median cost per ACK of each case, the cases taking turns.
fn table(batches: usize) {
    let mut all = cases();
    let mut spent = vec![Vec::with_capacity(batches); all.len()];
    for _ in 0..batches {
        for ((_, run), spent) in all.iter_mut().zip(&mut spent) {
            run(true);
            let start = std::time::Instant::now();
            run(false);
            spent.push(start.elapsed().as_nanos() as f64 / BATCH as f64);
        }
    }
    println!("{:32} {:>9} {:>9}", "ns per ACK", "least", "median");
    for ((name, _), spent) in all.iter().zip(&mut spent) {
        spent.sort_by(f64::total_cmp);
        println!("{name:32} {:9.2} {:9.2}", spent[0], spent[spent.len() / 2]);
    }
}

/// Runs one case for an instruction counter; twice the batches minus once the batches is the net cost.
fn count(criterion: &mut Criterion) {
    let number = |name: &str| std::env::var(name).ok().and_then(|it| it.parse().ok());
    if let Some(batches) = number("TABLE") {
        return table(batches);
    }
    let Ok(wanted) = std::env::var("COUNT") else { return bench(criterion) };
    let batches = number("BATCHES").unwrap_or(100);
    let mut all = cases();
    let (_, run) = all.iter_mut().find(|(name, _)| *name == wanted).expect("a known case");
    for _ in 0..batches {
        run(true);
        if std::env::var_os("EMPTY").is_none() {
            run(false);
        }
    }
}

criterion_group!(benches, count);
criterion_main!(benches);
