//! Call traces: the state before each call is the trace's, the state after it must be the trace's too.

use super::Outcome;
use super::table::{Row, Table};
use anyhow::Context;
use netcore::congestion::{AckFlags, AckSample, CaState, CwndEvent, PacingStatus};
use netcore::{CongestionOps, Instant, Rate, SendState};
use netcore_cc::{Builtin, Profile};

const NONE: u32 = 2_147_483_647;

fn load(state: &mut SendState, row: Row<'_>, now: Instant) -> anyhow::Result<()> {
    state.clock = state.clock.synchronised(now, row.u32("jiffies")?);
    state.cwnd = row.u32("cwnd_before")?;
    state.cwnd_cnt = row.u32("cwnd_cnt_before")?;
    state.ssthresh = row.ssthresh("ssthresh_before")?;
    state.prior_cwnd = row.u32("prior_cwnd")?;
    state.packets_out = row.u32("packets_out")?;
    state.prior_in_flight = state.packets_out;
    state.snd_una = row.number("snd_una")? as u32;
    state.snd_nxt = row.number("snd_nxt")? as u32;
    state.srtt_us8 = row.u32("srtt_us")?.saturating_mul(8);
    state.mss = row.u32("mss")?;
    state.is_cwnd_limited = row.number("cwnd_limited")? != 0;
    state.max_packets_out = row.u32("max_packets_out")?;
    state.ca_state = ca_state(row, "ca_state")?;
    state.pacing_rate = Some(Rate::from_bytes_per_sec(row.number("pacing_rate")?));
    state.pacing_status = match row.number("pacing_status")? {
        0 => PacingStatus::None,
        1 => PacingStatus::Needed,
        _ => PacingStatus::Fq,
    };
    state.gso_max_size = row.u32("gso_max_size")?;
    Ok(())
}

fn ca_state(row: Row<'_>, column: &str) -> anyhow::Result<CaState> {
    CaState::from_linux(row.u32(column)?)
        .with_context(|| format!("line {}, column {column}: allowed are 0 to 4", row.line()))
}

/// The algorithm's fields under the trace's names.
fn fields(ops: &Builtin) -> Vec<(&'static str, u32)> {
    match ops {
        Builtin::Cubic(cubic) => {
            let (w, h) = (&cubic.window.fields(), &cubic.slow_start.fields());
            vec![
                ("cnt", w.cnt),
                ("last_max_cwnd", w.last_max_cwnd),
                ("last_cwnd", w.last_cwnd),
                ("last_time", w.last_time),
                ("origin_point", w.origin_point),
                ("K", w.k),
                ("delay_min", cubic.delay_min().value),
                ("epoch_start", w.epoch_start),
                ("ack_cnt", w.ack_cnt),
                ("tcp_cwnd", w.tcp_cwnd),
                ("sample_cnt", h.sample_cnt.into()),
                ("found", h.found.into()),
                ("round_start", h.round_start),
                ("end_seq", h.end_seq),
                ("last_ack", h.last_ack),
                ("curr_rtt", h.curr_rtt),
            ]
        }
        _ => Vec::new(),
    }
}

pub(super) fn replay(table: &Table<'_>, profile: &Profile, outcome: &mut Outcome) -> anyhow::Result<()> {
    let mut ops = profile.build();
    let mut state = SendState::default();
    profile.prepare(&mut state);
    let mut start = None;
    let mut last_sent = Instant::ZERO;
    for row in table.rows() {
        let t_us = row.number("t_us")?;
        let now = Instant::from_micros(t_us);
        load(&mut state, row, now)?;
        let start = *start.get_or_insert(t_us);
        // Without a column for it, the last transmission is the last call: there is traffic all the time.
        state.last_sent = last_sent;
        last_sent = now;
        let mut ret = 0;
        match row.text("event")? {
            "init" => ops.init(&mut state, now),
            "acked" => {
                let sample = AckSample {
                    pkts_acked: row.u32("acked")?,
                    rtt_us: row.optional("rtt_us"),
                    in_flight: row.optional("in_flight_bytes").unwrap_or(0),
                };
                ops.pkts_acked(&mut state, &sample, now);
            }
            "in_ack_event" => ops.in_ack_event(&mut state, AckFlags::from_bits_retain(row.u32("arg")?), now),
            "cong_avoid" => ops.cong_avoid(&mut state, row.u32("acked")?, now),
            "recalc_ssthresh" => ret = ops.ssthresh(&mut state, now),
            "set_state" => ops.set_state(&mut state, ca_state(row, "arg")?, now),
            "undo_cwnd" => ret = ops.undo_cwnd(&mut state, now),
            "cwnd_event" => {
                let event = CwndEvent::from_linux(row.u32("arg")?)
                    .with_context(|| format!("line {}: unknown window event", row.line()))?;
                ops.cwnd_event(&mut state, event, now);
            }
            other => anyhow::bail!("line {}: unknown event \"{other}\"", row.line()),
        }
        let mut all = vec![
            ("cwnd_after", state.cwnd),
            ("cwnd_cnt_after", state.cwnd_cnt),
            ("ssthresh_after", state.ssthresh.unwrap_or(NONE)),
            ("ret", ret),
        ];
        all.extend(fields(&ops));
        outcome.events += 1;
        for (name, ours) in all {
            let kernel = row.number(name)?;
            if u64::from(ours) != kernel {
                outcome.mismatch(|| format!("line {}: {name} {ours}, kernel {kernel}", row.line()));
                break;
            }
        }
        outcome.window(t_us - start.min(t_us), state.cwnd, state.ssthresh);
    }
    Ok(())
}
