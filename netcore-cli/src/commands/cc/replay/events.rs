//! Event files: a connection in segments and µs, with the window expected after each event.

use super::Outcome;
use anyhow::Context;
use netcore::congestion::{AckEvent, AckSample, CaState, CwndEvent};
use netcore::{CongestionOps, Instant, SendState};
use netcore_cc::Profile;
use serde_json::Value;

fn number(event: &Value, name: &str) -> anyhow::Result<u32> {
    let value = event.get(name).with_context(|| format!("\"{name}\" is missing in {event}"))?;
    value
        .as_u64()
        .and_then(|value| u32::try_from(value).ok())
        .with_context(|| format!("\"{name}\": {value} is not a whole number from 0 to 4294967295"))
}

/// Compares with `observed_linux_6_18` where there is one, else with `expect`; a key in both must hold in the former.
fn compare(outcome: &mut Outcome, index: usize, event: &Value, state: &SendState) -> anyhow::Result<()> {
    let expected = |name: &str| {
        ["observed_linux_6_18", "expect"].iter().find_map(|source| event.get(source).and_then(|it| it.get(name)))
    };
    let mut wrong = None;
    for name in ["cwnd", "cwnd_after"] {
        if let Some(value) = expected(name) {
            let value = value.as_u64().with_context(|| format!("{name}: {value}"))?;
            if u64::from(state.cwnd) != value {
                wrong = Some(format!("event {index}: window {}, expected {value}", state.cwnd));
            }
        }
    }
    if let Some(value) = expected("ssthresh") {
        let value = match value {
            Value::Null => None,
            Value::String(text) if text == "inf" => None,
            _ => Some(value.as_u64().with_context(|| format!("ssthresh: {value}"))?),
        };
        if state.ssthresh.map(u64::from) != value {
            wrong = Some(format!(
                "event {index}: threshold {}, expected {}",
                super::threshold(state.ssthresh),
                super::threshold(value)
            ));
        }
    }
    if let Some(wrong) = wrong {
        outcome.mismatch(|| wrong);
    }
    Ok(())
}

pub(super) fn replay(text: &str, profile: &Profile, outcome: &mut Outcome) -> anyhow::Result<()> {
    let file: Value = serde_json::from_str(text).context("not valid JSON")?;
    let parameters = file.get("params").cloned().unwrap_or(Value::Null);
    let mss = number(&parameters, "mss").unwrap_or(1448);
    let mut state =
        SendState::new(number(&parameters, "initial_cwnd").unwrap_or_else(|_| profile.initial_window(mss)), mss);
    profile.prepare(&mut state);
    state.clock.jiffies_at_zero = 1000;
    let mut ops = profile.build();
    let events = file.get("events").and_then(Value::as_array).context("no list \"events\"")?;
    for (index, event) in events.iter().enumerate() {
        let t_us = event.get("t_us").and_then(Value::as_u64).with_context(|| format!("event {index}: no \"t_us\""))?;
        let now = Instant::from_micros(t_us);
        let kind = event.get("ev").and_then(Value::as_str).with_context(|| format!("event {index}: no \"ev\""))?;
        match kind {
            "established" => {
                if event.get("cwnd").is_some() {
                    state.cwnd = number(event, "cwnd")?.max(1);
                }
                ops.init(&mut state, now);
            }
            "send" => {
                let segments = number(event, "segs")?;
                if state.packets_out == 0 {
                    ops.cwnd_event(&mut state, CwndEvent::TxStart, now);
                }
                state.packets_out = state.packets_out.saturating_add(segments);
                state.snd_nxt = state.snd_nxt.wrapping_add(segments.wrapping_mul(mss));
                state.last_sent = now;
            }
            "ack" => ack(&mut ops, &mut state, event, now)?,
            "rto" => {
                let ssthresh = ops.ssthresh(&mut state, now);
                state.prior_cwnd = state.cwnd;
                ops.set_state(&mut state, CaState::Loss, now);
                state.ca_state = CaState::Loss;
                ops.cwnd_event(&mut state, CwndEvent::Loss, now);
                state.ssthresh = Some(ssthresh);
                state.cwnd = 1;
                state.cwnd_cnt = 0;
            }
            "tail_loss_probe" => {}
            other => anyhow::bail!("event {index}: unknown kind \"{other}\""),
        }
        compare(outcome, index, event, &state)?;
        outcome.events += 1;
        outcome.window(t_us, state.cwnd, state.ssthresh);
    }
    Ok(())
}

fn ack(ops: &mut impl CongestionOps, state: &mut SendState, event: &Value, now: Instant) -> anyhow::Result<()> {
    let mss = state.mss;
    let acked = number(event, "acked")?;
    state.snd_una = number(event, "snd_una")?.wrapping_mul(mss);
    state.snd_nxt = number(event, "snd_nxt")?.wrapping_mul(mss);
    state.prior_in_flight = number(event, "prior_in_flight").unwrap_or(0);
    state.packets_out = (state.snd_nxt.wrapping_sub(state.snd_una)) / mss;
    state.is_cwnd_limited = event.get("cwnd_limited").and_then(Value::as_bool).unwrap_or(true);
    // A null is an ACK without a sample (Karn).
    let rtt_us = event.get("rtt_us").and_then(Value::as_u64).map(|us| us.min(u64::from(u32::MAX)) as u32);
    let sample = AckSample { pkts_acked: acked, rtt_us, in_flight: 0 };
    ops.on_ack(state, &AckEvent { sample, acked, may_raise: true, ..AckEvent::default() }, now);
    state.ca_state = CaState::Open;
    Ok(())
}
