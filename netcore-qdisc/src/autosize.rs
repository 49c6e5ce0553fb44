//! TSO autosizing: how many segments go into one super-packet, so that packets of a slow flow leave often instead of in rare
//! large bursts. A part for any sender.
//!
//! There are two moments at which a size is decided: when data is put into packets ([`Autosize::build_segments`], Linux:
//! `tcp_xmit_size_goal`) and when a packet is sent ([`Autosize::send_segments`], Linux: `tcp_tso_segs`); the generations
//! differ in which of them looks at the pacing rate.
//!
//! | form | Linux | built | sent |
//! | --- | --- | --- | --- |
//! | [`Fixed`](AutosizeForm::Fixed) | up to 3.11 | 64 KB | as built |
//! | [`Build`](AutosizeForm::Build) | 3.12 (95bd09eb2750) | `rate / 2000` | as built |
//! | [`Send`](AutosizeForm::Send) | 4.0 (605ad7f184b6) | 64 KB | `rate >> 10` |
//! | [`SendRtt`](AutosizeForm::SendRtt) | 5.18 (65466904b015) | 64 KB | `(rate >> shift) + (64 KB >> (min_rtt >> 9))` |
//!
//! `rate` is the pacing rate in bytes per second, which is more than the flow's own rate by the [`PacingRatio`].

use core::time::Duration;
use netcore::Rate;

/// Which generation of Linux's autosizing.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub enum AutosizeForm {
    /// None: as large as the device takes (up to 3.11).
    Fixed,
    /// The size is decided when data is put into packets: one millisecond of data (3.12, 95bd09eb2750).
    Build,
    /// Packets are built large and cut when they are sent (4.0, 605ad7f184b6).
    Send,
    /// As [`Send`](Self::Send), larger for near peers (5.18).
    #[default]
    SendRtt,
}

impl AutosizeForm {
    /// All forms, oldest first.
    pub const ALL: [Self; 4] = [Self::Fixed, Self::Build, Self::Send, Self::SendRtt];

    /// The name in scenario files and tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fixed => "fixed",
            Self::Build => "3.12",
            Self::Send => "4.0",
            Self::SendRtt => "5.18",
        }
    }

    /// The form of that name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|form| form.name() == name)
    }
}

/// What is wrong with an [`Autosize`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AutosizeError {
    /// A value is out of its range.
    #[error("autosizing: {name} is {value}; allowed are {least} to {most}")]
    OutOfRange {
        /// The parameter.
        name: &'static str,
        /// What was given.
        value: u64,
        /// Least value allowed.
        least: u64,
        /// Largest value allowed.
        most: u64,
    },
}

/// Autosizing with its parameters. "Default" at a field is Linux's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Autosize {
    /// The generation.
    pub form: AutosizeForm,
    /// Largest super-packet of the device, bytes with all headers (`gso_max_size`). Default 65536, most 512 KiB (BIG TCP);
    /// 0: the device does not segment, every packet is one segment.
    pub gso_max_size: u32,
    /// Most segments of a super-packet of the device (`gso_max_segs`). Default 65535, 1 or more.
    pub gso_max_segs: u32,
    /// Fewest segments that a rate may bring a packet down to (`tcp_min_tso_segs`, or the congestion control's own). Default
    /// 2; 1 or more.
    pub min_tso_segs: u32,
    /// A packet holds `2^-pacing_shift` seconds of data at the pacing rate (`sk_pacing_shift`). Default 10: about 1 ms. Used
    /// by the sending forms; 0 to 63.
    pub pacing_shift: u8,
    /// How fast the bonus of near peers falls with the RTT: halved every `2^rtt_log` µs (`tcp_tso_rtt_log`). Default 9; 0 to 31.
    pub rtt_log: u8,
    /// Bytes to keep free for headers within `gso_max_size`. Default [`Autosize::MAX_TCP_HEADER`].
    pub headers: u32,
    /// `tcp_limit_output_bytes`: [`Fixed`](AutosizeForm::Fixed) and [`Build`](AutosizeForm::Build) keep packets below half of
    /// it, so that one can be in the ring and one in the qdisc. Default 131072; `None` leaves the rule out.
    pub limit_output_bytes: Option<u32>,
}

/// What autosizing needs to know of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FlowView {
    /// Payload bytes of a full segment. 0 is taken as 1.
    pub mss: u32,
    /// Pacing rate; `None`: unlimited, as it is until an RTT was measured.
    pub pacing_rate: Option<Rate>,
    /// Least RTT seen; `None` if there was no sample.
    pub min_rtt: Option<Duration>,
    /// Largest window that the peer has offered, bytes; 0 if unknown.
    pub max_window: u32,
}

impl Autosize {
    /// Linux's `MAX_TCP_HEADER` with tunnels and wireless configured: 128 + 128 + 48, aligned to a cache line.
    pub const MAX_TCP_HEADER: u32 = 320;

    /// netcore's default: [`Send`](AutosizeForm::Send) with 1/32 of Linux's time per packet.
    ///
    /// A device ring is a FIFO, so flows share it in proportion to what each has in it. With Linux's small queues that is two
    /// or three packets, whatever their size, and the size follows the pacing rate in whole segments: a flow with 5 segments
    /// per packet gets 5/3 of what one with 3 gets, and keeps it. With `pacing_shift` 15 all flows below 760 Mbit/s send
    /// packets of [`min_tso_segs`](Autosize::min_tso_segs), so they get equal shares; above 17 Gbit/s packets are as large as
    /// Linux's. The bonus for near hosts is left out because it is as large for a slow flow. The cost is packets per second
    /// between these rates.
    pub const fn netcore() -> Self {
        Self { form: AutosizeForm::Send, pacing_shift: 15, ..Self::linux() }
    }

    /// Linux 6.18.
    pub const fn linux() -> Self {
        Self {
            form: AutosizeForm::SendRtt,
            gso_max_size: 65536,
            gso_max_segs: 65535,
            min_tso_segs: 2,
            pacing_shift: 10,
            rtt_log: 9,
            headers: Self::MAX_TCP_HEADER,
            limit_output_bytes: Some(131_072),
        }
    }

    /// A generation with that generation's defaults.
    pub const fn of(form: AutosizeForm) -> Self {
        Self { form, ..Self::linux() }
    }

    /// Checks ranges.
    ///
    /// # Errors
    /// [`AutosizeError::OutOfRange`].
    pub fn validate(&self) -> Result<(), AutosizeError> {
        let range = |name, value: u32, least, most| {
            let value = u64::from(value);
            if (least..=most).contains(&value) {
                Ok(())
            } else {
                Err(AutosizeError::OutOfRange { name, value, least, most })
            }
        };
        range("gso_max_size", self.gso_max_size, 0, 8 * 65_536)?;
        range("gso_max_segs", self.gso_max_segs, 1, 65_535)?;
        range("min_tso_segs", self.min_tso_segs, 1, 65_535)?;
        range("pacing_shift", u32::from(self.pacing_shift), 0, 63)?;
        range("rtt_log", u32::from(self.rtt_log), 0, 31)?;
        Ok(())
    }

    /// Largest payload of a super-packet (Linux: `sk_gso_max_size` since 5.18, `- 1 - MAX_TCP_HEADER` before).
    const fn most_bytes(&self) -> u64 {
        self.gso_max_size.saturating_sub(1 + self.headers) as u64
    }

    /// Segments of a packet that is being built, 1 or more (Linux: `tcp_xmit_size_goal`, in segments).
    pub fn build_segments(&self, flow: &FlowView) -> u32 {
        if self.gso_max_size == 0 {
            return 1;
        }
        let mss = u64::from(flow.mss.max(1));
        let mut bytes = self.most_bytes();
        let old = matches!(self.form, AutosizeForm::Fixed | AutosizeForm::Build);
        if self.form == AutosizeForm::Build
            && let Some(rate) = flow.pacing_rate
        {
            bytes = bytes.min((rate.bytes_per_sec() / 2000).max(u64::from(self.min_tso_segs) * mss));
        }
        if old && let Some(limit) = self.limit_output_bytes {
            bytes = bytes.min(u64::from(limit / 2));
        }
        bytes = bytes.min(half_window(flow.max_window));
        self.segments(bytes, mss, 1)
    }

    /// Most segments of a packet that is sent now, 1 or more (Linux: `tcp_tso_segs`). Packets of a form that decides when
    /// building are sent as they were built: the answer is then what the device takes.
    pub fn send_segments(&self, flow: &FlowView) -> u32 {
        if self.gso_max_size == 0 {
            return 1;
        }
        let mss = u64::from(flow.mss.max(1));
        let most = self.most_bytes();
        let by_rate = flow.pacing_rate.map_or(u64::MAX, |rate| rate.bytes_per_sec() >> self.pacing_shift.min(63));
        let bytes = match self.form {
            AutosizeForm::Fixed | AutosizeForm::Build => return self.segments(most, mss, 1),
            AutosizeForm::Send => by_rate.min(most),
            AutosizeForm::SendRtt => by_rate.saturating_add(self.near_bonus(flow.min_rtt, most)).min(most),
        };
        self.segments(bytes, mss, self.min_tso_segs)
    }

    /// What a near peer adds: the largest packet, halved for every `2^rtt_log` µs of RTT.
    fn near_bonus(&self, min_rtt: Option<Duration>, most: u64) -> u64 {
        let Some(rtt) = min_rtt else { return 0 };
        let halvings = rtt.as_micros() >> self.rtt_log.min(31);
        if halvings < 32 { most >> halvings } else { 0 }
    }

    fn segments(&self, bytes: u64, mss: u64, least: u32) -> u32 {
        let segments = (bytes / mss).min(u64::from(u32::MAX)) as u32;
        segments.max(least).min(self.gso_max_segs).max(1)
    }
}

impl Default for Autosize {
    /// [`Autosize::netcore`].
    fn default() -> Self {
        Self::netcore()
    }
}

/// A packet takes at most half of the largest window that the peer ever offered, unless that is tiny
/// (Linux: `tcp_bound_to_half_wnd`).
fn half_window(max_window: u32) -> u64 {
    const TCP_MSS_DEFAULT: u32 = 536;
    match max_window {
        0 => u64::MAX,
        window if window > TCP_MSS_DEFAULT => u64::from(window >> 1),
        window => u64::from(window),
    }
}

/// By how much the pacing rate exceeds `cwnd × mss / srtt` (Linux: `tcp_update_pacing_rate`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PacingRatio {
    /// Percent while the window is below half the slow-start threshold (`tcp_pacing_ss_ratio`).
    pub slow_start: u32,
    /// Percent otherwise (`tcp_pacing_ca_ratio`).
    pub avoidance: u32,
}

impl PacingRatio {
    /// 3.12 to 4.2: twice the rate, always.
    pub const TWICE: Self = Self { slow_start: 200, avoidance: 200 };
    /// 4.3 and later (43e122b014c9): 200 % and 120 %.
    pub const LINUX: Self = Self { slow_start: 200, avoidance: 120 };

    /// The pacing rate. `cwnd` is the larger of window and packets in flight, in segments; `ssthresh` in segments; `srtt` the
    /// smoothed RTT, `None` or zero before the first sample, when there is no rate yet; `most` is `SO_MAX_PACING_RATE`.
    pub fn rate(self, mss: u32, cwnd: u32, ssthresh: u32, srtt: Option<Duration>, most: Option<Rate>) -> Option<Rate> {
        let nanos = srtt.map_or(0, |srtt| srtt.as_nanos());
        if nanos == 0 {
            return most;
        }
        let percent = if cwnd < ssthresh / 2 { self.slow_start } else { self.avoidance };
        let scaled = u128::from(mss) * u128::from(cwnd) * u128::from(percent) * 10_000_000;
        let rate = Rate::from_bytes_per_sec((scaled / nanos).min(u128::from(u64::MAX)) as u64);
        Some(most.map_or(rate, |most| rate.min(most)))
    }
}

impl Default for PacingRatio {
    fn default() -> Self {
        Self::LINUX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(rate_bits: u64, min_rtt_us: Option<u64>) -> FlowView {
        FlowView {
            mss: 1448,
            pacing_rate: Some(Rate::from_bits_per_sec(rate_bits)),
            min_rtt: min_rtt_us.map(Duration::from_micros),
            max_window: 0,
        }
    }

    #[test]
    fn sizes_at_the_fair_share_of_a_hundred_megabit_link() {
        // 47.1 Mbit/s each: 4 segments with the first form, 7 with the second at twice the rate, 4 at 1.2 times.
        let twice = flow(2 * 47_100_000, None);
        assert_eq!(Autosize::of(AutosizeForm::Build).build_segments(&twice), 4);
        assert_eq!(Autosize::of(AutosizeForm::Send).send_segments(&twice), 7);
        assert_eq!(Autosize::of(AutosizeForm::Send).send_segments(&flow(47_100_000 * 12 / 10, None)), 4);
    }

    #[test]
    fn the_sizes_that_real_kernels_chose_at_fixed_pacing_rates() {
        // SO_MAX_PACING_RATE 1.25 and 12.5 MB/s, RTT 25 ms, Linux 6.18: 2 and 8 segments.
        let modern = Autosize::linux();
        assert_eq!(modern.send_segments(&flow(10_000_000, Some(25_000))), 2);
        assert_eq!(modern.send_segments(&flow(100_000_000, Some(25_000))), 8);
    }

    #[test]
    fn near_peers_get_whole_super_packets() {
        let modern = Autosize::linux();
        assert_eq!(modern.send_segments(&flow(10_000_000, Some(511))), 45);
        // One halving: 32607 + 1220 bytes.
        assert_eq!(modern.send_segments(&flow(10_000_000, Some(512))), 23);
        assert_eq!(modern.send_segments(&flow(10_000_000, None)), 2);
        assert_eq!(Autosize::of(AutosizeForm::Send).send_segments(&flow(10_000_000, Some(100))), 2);
    }

    #[test]
    fn without_a_pacing_rate_packets_are_as_large_as_the_device_takes() {
        let view = FlowView { mss: 1448, ..FlowView::default() };
        for form in AutosizeForm::ALL {
            let sizes = Autosize::of(form);
            assert_eq!(sizes.build_segments(&view).min(sizes.send_segments(&view)), 45, "{form:?}");
        }
        let small = Autosize { gso_max_segs: 16, ..Autosize::linux() };
        assert_eq!(small.send_segments(&view), 16);
        let limited = Autosize { gso_max_size: 16384, ..Autosize::linux() };
        assert_eq!(limited.send_segments(&view), 11);
        let none = Autosize { gso_max_size: 0, ..Autosize::linux() };
        assert_eq!((none.build_segments(&view), none.send_segments(&view)), (1, 1));
    }

    #[test]
    fn a_packet_takes_at_most_half_of_the_largest_window() {
        let view = FlowView { mss: 1448, max_window: 29_200, ..FlowView::default() };
        assert_eq!(Autosize::linux().build_segments(&view), 10);
        let tiny = FlowView { mss: 1448, max_window: 500, ..FlowView::default() };
        assert_eq!(Autosize::linux().build_segments(&tiny), 1);
    }

    #[test]
    fn by_default_all_flows_below_760_megabits_send_packets_of_one_size() {
        let sizes = Autosize::default();
        for bits in [1_000_000, 40_000_000, 190_000_000, 759_000_000] {
            assert_eq!(sizes.send_segments(&flow(bits, Some(100))), 2, "{bits}");
        }
        assert_eq!(sizes.send_segments(&flow(1_200_000_000, Some(100))), 3);
        assert_eq!(sizes.send_segments(&flow(12_000_000_000, Some(100))), 31);
    }

    #[test]
    fn pacing_ratio_is_two_in_early_slow_start_and_one_point_two_later() {
        let srtt = Some(Duration::from_millis(10));
        let rate = |cwnd, ssthresh| PacingRatio::LINUX.rate(1000, cwnd, ssthresh, srtt, None).unwrap().bytes_per_sec();
        assert_eq!(rate(10, u32::MAX), 2_000_000);
        assert_eq!(rate(10, 21), 2_000_000 / 10 * 6);
        assert_eq!(rate(10, 22), 2_000_000);
        assert_eq!(rate(10, 5), 1_200_000);
        assert_eq!(PacingRatio::TWICE.rate(1000, 10, 5, srtt, None).unwrap().bytes_per_sec(), 2_000_000);
        assert_eq!(PacingRatio::LINUX.rate(1000, 10, 5, None, None), None);
        let most = Some(Rate::from_bytes_per_sec(1000));
        assert_eq!(PacingRatio::LINUX.rate(1000, 10, 5, srtt, most), most);
        assert!(PacingRatio::LINUX.rate(u32::MAX, u32::MAX, 0, Some(Duration::from_nanos(1)), None).is_some());
    }

    #[test]
    fn values_out_of_range_are_refused_with_the_range() {
        let wrong = Autosize { gso_max_segs: 0, ..Autosize::linux() };
        let error = AutosizeError::OutOfRange { name: "gso_max_segs", value: 0, least: 1, most: 65_535 };
        assert_eq!(wrong.validate(), Err(error));
        assert_eq!(Autosize::linux().validate(), Ok(()));
    }
}
