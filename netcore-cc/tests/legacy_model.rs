//! CUBIC before Linux 4.0, written down a second time from its rules with wide arithmetic and loops, beside the crate's.

use netcore::congestion::{CaState, SendState};
use netcore::{Instant, congestion::Clock};
use netcore_cc::window::{CubicLegacy, CubicParameters, LegacyRules, WindowAdjustment, cube_root};
use netcore_cc::{DelayMin, DelayUnit};
use proptest::prelude::*;

const BETA: u64 = 717;

#[derive(Debug)]
struct Model {
    rules: LegacyRules,
    hz: u64,
    last_max: u64,
    loss_cwnd: u64,
    last_cwnd: u64,
    last_time: u32,
    epoch: u32,
    origin: u64,
    k: u64,
    ack_cnt: u64,
    tcp_cwnd: u64,
    cnt: u64,
    ratio: u64,
}

impl Model {
    fn new(rules: LegacyRules, hz: u32) -> Self {
        Self {
            rules,
            hz: hz.into(),
            last_max: 0,
            loss_cwnd: 0,
            last_cwnd: 0,
            last_time: 0,
            epoch: 0,
            origin: 0,
            k: 0,
            ack_cnt: 0,
            tcp_cwnd: 0,
            cnt: 0,
            ratio: 32,
        }
    }

    fn timeout(&mut self) {
        let kept = if self.rules.undo_to_loss_cwnd { self.loss_cwnd } else { 0 };
        *self = Self { loss_cwnd: kept, ..Self::new(self.rules, self.hz as u32) };
    }

    /// The estimate of packets per ACK: a sixteenth goes, the new ones come.
    fn packets_acked(&mut self, packets: u64) {
        let sum = self.ratio - self.ratio / 16 + packets;
        self.ratio = if self.rules.limit_ack_ratio { sum.min(512) } else { sum % 65_536 };
    }

    fn discards(&self, jiffies: u32) -> bool {
        if self.rules.samples_without_epoch && self.epoch == 0 {
            return false;
        }
        // A signed difference of 32-bit counters.
        let passed = u64::from(jiffies.wrapping_sub(self.epoch));
        passed >= 1 << 31 || passed < self.hz
    }

    fn reduce(&mut self, cwnd: u64) -> u64 {
        self.last_max = if cwnd < self.last_max { cwnd * (1024 + BETA) / 2048 } else { cwnd };
        self.loss_cwnd = cwnd;
        self.epoch = 0;
        (cwnd * BETA / 1024).max(2)
    }

    fn update(&mut self, cwnd: u64, jiffies: u32, ahead: u32, delay_min: u64) {
        self.ack_cnt += 1;
        let since = u64::from(jiffies.wrapping_sub(self.last_time));
        if self.last_cwnd == cwnd && (since >= 1 << 31 || since <= self.hz / 32) {
            return;
        }
        self.last_cwnd = cwnd;
        self.last_time = jiffies;
        if self.epoch == 0 {
            self.epoch = jiffies;
            self.ack_cnt = 1;
            self.tcp_cwnd = cwnd;
            let room = self.last_max.saturating_sub(cwnd);
            self.k = if room == 0 { 0 } else { cube_root((1 << 40) / 410 * room).into() };
            self.origin = cwnd.max(self.last_max);
        }
        let ticks = u64::from(jiffies.wrapping_add(ahead).wrapping_sub(self.epoch));
        let t = if self.rules.wide_time { ticks * 1024 / self.hz } else { ticks * 1024 % (1 << 32) / self.hz };
        let away = u128::from(t.abs_diff(self.k));
        let delta = ((410 * away * away * away) >> 40).min(u128::from(u32::MAX)) as u64;
        let target =
            if t < self.k { self.origin.saturating_sub(delta) } else { (self.origin + delta).min(u64::from(u32::MAX)) };
        let mut cnt = if target > cwnd { cwnd / (target - cwnd) } else { 100 * cwnd };
        if let Some(most) = self.rules.max_increment
            && delay_min > 0
            && t >= self.k
        {
            cnt = cnt.max(cwnd * self.hz * 8 / (10 * u64::from(most) * delay_min));
        }
        if let Some(fixed) = self.rules.lossless_cnt
            && self.loss_cwnd == 0
        {
            cnt = fixed.into();
        }
        if let Some(cap) = self.rules.lossless_cnt_cap
            && self.last_max == 0
        {
            cnt = cnt.min(cap.into());
        }
        let step = (cwnd * 15 / 8).max(1);
        while self.ack_cnt > step {
            self.ack_cnt -= step;
            self.tcp_cwnd += 1;
        }
        if self.tcp_cwnd > cwnd {
            cnt = cnt.min(cwnd / (self.tcp_cwnd - cwnd));
        }
        self.cnt = (cnt * 16 / self.ratio.max(1)).max(1);
    }
}

#[derive(Clone, Debug)]
enum Step {
    Acks { count: u32, gap_us: u64, packets: u32, open: bool },
    Loss,
    Timeout,
    Undo,
    Grow(u32),
}

fn step() -> impl Strategy<Value = Step> {
    let gap = prop_oneof![8 => 0_u64..3_000, 3 => 0_u64..200_000, 1 => 0_u64..20_000_000_000];
    let packets = prop_oneof![6 => 1_u32..3, 1 => 0_u32..70, 1 => 0_u32..70_000];
    prop_oneof![
        20 => (1_u32..80, gap, packets, prop::bool::weighted(0.9))
            .prop_map(|(count, gap_us, packets, open)| Step::Acks { count, gap_us, packets, open }),
        3 => Just(Step::Loss),
        1 => Just(Step::Timeout),
        1 => Just(Step::Undo),
        1 => (1_u32..200).prop_map(Step::Grow),
    ]
}

fn rules() -> impl Strategy<Value = LegacyRules> {
    let repaired = LegacyRules { samples_without_epoch: true, wide_time: true, ..LegacyRules::linux_3_6() };
    let eras = [LegacyRules::linux_2_6_23(), LegacyRules::linux_2_6_35(), LegacyRules::linux_3_6(), repaired];
    prop::sample::select(eras.to_vec())
}

fn agree(cubic: &CubicLegacy, model: &Model, what: &str) {
    let f = cubic.fields();
    let ours = [
        f.last_max_cwnd,
        f.last_cwnd,
        f.origin_point,
        f.k,
        f.ack_cnt,
        f.tcp_cwnd,
        f.cnt,
        cubic.delayed_ack(),
        cubic.loss_cwnd(),
    ]
    .map(u64::from);
    let m = model;
    let theirs = [m.last_max, m.last_cwnd, m.origin, m.k, m.ack_cnt, m.tcp_cwnd, m.cnt, m.ratio, m.loss_cwnd];
    assert_eq!((ours, f.last_time, f.epoch_start), (theirs, m.last_time, m.epoch), "{what}");
    assert_eq!(cubic.w_max().map_or(0, u64::from), m.last_max);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn every_field_is_the_models_after_every_event(
        rules in rules(),
        hz in prop::sample::select(vec![100_u32, 250, 1000]),
        at_zero in prop_oneof![Just(1000_u32), any::<u32>()],
        window in prop_oneof![3 => 2_u32..60, 1 => 2_u32..3_000],
        delay in prop_oneof![Just(0_u32), 1_u32..400],
        steps in prop::collection::vec(step(), 1..80),
    ) {
        let clock = Clock::new(hz).unwrap().with_jiffies_at_zero(at_zero);
        let mut s = SendState::new(window, 1448);
        s.clock = clock;
        let delay_min = DelayMin { unit: DelayUnit::Jiffies8, value: delay };
        let mut cubic = CubicLegacy::new(rules, CubicParameters::default());
        let mut model = Model::new(rules, hz);
        let mut now = Instant::from_secs(1);
        assert_eq!(cubic.name(), "cubic");
        for step in steps {
            match step {
                Step::Acks { count, gap_us, packets, open } => {
                    for _ in 0..count {
                        now = now.plus_nanos(gap_us * 1000);
                        s.ca_state = if open { CaState::Open } else { CaState::Disorder };
                        cubic.packets_acked(&s, packets);
                        if open {
                            model.packets_acked(packets.into());
                        }
                        let jiffies = clock.jiffies(now);
                        assert_eq!(cubic.discards_rtt(&s, now), model.discards(jiffies));
                        let (cwnd, credit) = (s.cwnd, s.cwnd_cnt);
                        cubic.avoid(&mut s, packets, &delay_min, now);
                        model.update(cwnd.into(), jiffies, delay >> 3, delay.into());
                        let steps = u64::from(credit) >= model.cnt;
                        let expected = if steps { (cwnd + 1, 0) } else { (cwnd, credit + 1) };
                        assert_eq!((s.cwnd, s.cwnd_cnt), expected);
                        agree(&cubic, &model, "ack");
                    }
                }
                Step::Loss => {
                    let ssthresh = cubic.ssthresh(&s, now);
                    assert_eq!(u64::from(ssthresh), model.reduce(s.cwnd.into()));
                    (s.cwnd, s.cwnd_cnt) = (ssthresh, 0);
                }
                Step::Timeout => {
                    cubic.reset();
                    model.timeout();
                    s.cwnd = 1;
                }
                Step::Undo => {
                    let before = if rules.undo_to_loss_cwnd { model.loss_cwnd } else { model.last_max };
                    assert_eq!(u64::from(cubic.undo_cwnd(&s)), before.max(s.cwnd.into()));
                }
                Step::Grow(segments) => s.cwnd += segments,
            }
            agree(&cubic, &model, "event");
        }
    }
}

#[test]
fn what_each_era_had() {
    let [a, b, c] = [LegacyRules::linux_2_6_23(), LegacyRules::linux_2_6_35(), LegacyRules::linux_3_6()];
    assert_eq!((a.max_increment, a.lossless_cnt, a.lossless_cnt_cap), (Some(16), Some(50), None));
    assert_eq!((b.max_increment, b.lossless_cnt, b.lossless_cnt_cap), (None, None, None));
    assert_eq!((c.max_increment, c.lossless_cnt, c.lossless_cnt_cap), (None, None, Some(20)));
    assert_eq!([a, b, c].map(|it| it.limit_ack_ratio), [false, false, true]);
    assert_eq!([a, b, c].map(|it| it.undo_to_loss_cwnd), [false, false, true]);
    assert_eq!([a, b, c].map(|it| it.samples_without_epoch || it.wide_time), [false; 3]);
}

/// Not Linux: asked to, an undo restores the whole epoch.
#[test]
fn undo_restores_the_epoch_if_asked_to() {
    for restore in [false, true] {
        let parameters = CubicParameters { restore_epoch_on_undo: restore, ..CubicParameters::default() };
        let mut cubic = CubicLegacy::new(LegacyRules::linux_3_6(), parameters);
        let mut s = SendState::new(100, 1448);
        cubic.avoid(&mut s, 1, &DelayMin { unit: DelayUnit::Millis8, value: 320 }, Instant::from_secs(4));
        let before = cubic.fields();
        s.cwnd = cubic.ssthresh(&s, Instant::from_secs(5));
        assert_eq!(cubic.undo_cwnd(&s), 100);
        assert_eq!(cubic.fields() == before, restore);
    }
}
