//! ACK traces: one row per ACK with the state that the kernel finds. The RTT of each ACK is not recorded; it is
//! computed from two successive smoothed RTTs, to within 15 µs. The phase of the tick counter is not known either.

use super::Outcome;
use super::table::{Row, Table};
use netcore::congestion::{AckEvent, AckSample, CaState};
use netcore::{CongestionOps, Instant, SendState};
use netcore_cc::Profile;

/// Segment size of the traces, bytes.
const MSS: u32 = 1448;

struct Ack {
    t_us: u64,
    snd_una: u32,
    snd_nxt: u32,
    cwnd: u32,
    ssthresh: Option<u32>,
    srtt_us: u32,
}

impl Ack {
    fn read(row: Row<'_>) -> anyhow::Result<Self> {
        Ok(Self {
            t_us: row.number("t_us")?,
            snd_una: row.number("snd_una")? as u32,
            snd_nxt: row.number("snd_nxt")? as u32,
            cwnd: row.u32("cwnd_pkts")?,
            ssthresh: row.ssthresh("ssthresh_pkts")?,
            srtt_us: row.u32("srtt_us")?,
        })
    }
}

pub(super) fn replay(table: &Table<'_>, profile: &Profile, outcome: &mut Outcome) -> anyhow::Result<()> {
    let mut ops = profile.build();
    let mut state = SendState::new(profile.initial_window(MSS), MSS);
    profile.prepare(&mut state);
    // A counter of 0 would be taken for "no epoch".
    state.clock.jiffies_at_zero = 1000;
    let mut pending: Option<Ack> = None;
    let mut in_recovery = false;
    let (mut reduced, mut ended) = (false, false);
    for row in table.rows() {
        match row.text("event")? {
            "state" => {
                let new = CaState::from_linux(row.u32("ca_state")?)
                    .ok_or_else(|| anyhow::anyhow!("line {}: ca_state, allowed are 0 to 4", row.line()))?;
                // The ACK before this row brought the change.
                if let Some(ack) = &pending {
                    let now = Instant::from_micros(ack.t_us);
                    if new >= CaState::Cwr && !in_recovery {
                        let ssthresh = ops.ssthresh(&mut state, now);
                        state.prior_cwnd = state.cwnd;
                        state.cwnd_cnt = 0;
                        state.ssthresh = Some(ssthresh);
                        in_recovery = true;
                        reduced = true;
                    }
                    ops.set_state(&mut state, new, now);
                }
                if new < CaState::Cwr {
                    // The end of a reduction puts the window on the threshold (`tcp_end_cwnd_reduction`).
                    if let (true, Some(ssthresh)) = (in_recovery, state.ssthresh) {
                        state.cwnd = ssthresh;
                    }
                    ended = in_recovery || state.ca_state == CaState::Disorder;
                    in_recovery = false;
                }
                state.ca_state = new;
            }
            "ack" => {
                let next = Ack::read(row)?;
                match pending.take() {
                    None => ops.init(&mut state, Instant::from_micros(next.t_us)),
                    Some(ack) => step(&mut ops, &mut state, &ack, &next, in_recovery, reduced, ended, row, outcome),
                }
                (reduced, ended) = (false, false);
                outcome.window(next.t_us, state.cwnd, state.ssthresh);
                pending = Some(next);
            }
            "retransmit" => {}
            other => anyhow::bail!("line {}: unknown event \"{other}\"", row.line()),
        }
    }
    Ok(())
}

/// Applies one ACK; `next` is what the kernel made of it.
#[expect(clippy::too_many_arguments, reason = "one step of one loop")]
fn step(
    ops: &mut impl CongestionOps,
    state: &mut SendState,
    ack: &Ack,
    next: &Ack,
    in_recovery: bool,
    reduced: bool,
    ended: bool,
    row: Row<'_>,
    outcome: &mut Outcome,
) {
    let now = Instant::from_micros(ack.t_us);
    outcome.events += 1;
    state.snd_nxt = ack.snd_nxt;
    state.snd_una = next.snd_una;
    // The ACK that ends recovery covers what was selectively acknowledged before; only the hole it fills is new.
    let covered = next.snd_una.wrapping_sub(ack.snd_una).div_ceil(MSS);
    let acked = if ended { covered.min(1) } else { covered };
    // srtt += (rtt - srtt) / 8, hence rtt = 8 × new - 7 × old.
    let rtt = (i64::from(next.srtt_us) * 8 - i64::from(ack.srtt_us) * 7).max(1);
    state.is_cwnd_limited = true;
    if acked > 0 {
        let before = state.ssthresh;
        let sample = AckSample { pkts_acked: acked, rtt_us: u32::try_from(rtt).ok(), in_flight: 0 };
        let event = AckEvent { sample, acked, may_raise: !in_recovery, ..AckEvent::default() };
        if !in_recovery {
            ops.on_ack(state, &event, now);
        }
        if before.is_none() && state.ssthresh.is_some() {
            outcome.thresholds.push((state.ssthresh.unwrap_or(0), next.ssthresh.unwrap_or(0)));
        }
    }
    if reduced {
        outcome.thresholds.push((state.ssthresh.unwrap_or(0), next.ssthresh.unwrap_or(0)));
    }
    if !in_recovery && (state.cwnd != next.cwnd || state.ssthresh != next.ssthresh) {
        outcome.mismatch(|| {
            format!(
                "line {}: window {}, threshold {}; kernel {}, {}",
                row.line(),
                state.cwnd,
                super::threshold(state.ssthresh),
                next.cwnd,
                super::threshold(next.ssthresh)
            )
        });
    }
    // One difference counts once: go on from the kernel's window, and where the kernel grew from its credit, which a step
    // has just used up. Recovery is not the algorithm's.
    if state.cwnd != next.cwnd {
        state.cwnd = next.cwnd;
        if next.cwnd > ack.cwnd {
            state.cwnd_cnt = 0;
        }
    }
    state.ssthresh = next.ssthresh;
}
