//! Every call that a running kernel made into its CUBIC, replayed: the state before, the call, the state after.

use flate2::read::GzDecoder;
use netcore::congestion::{AckFlags, AckSample, CaState, CwndEvent, PacingStatus};
use netcore::{CongestionOps, Instant, Rate, SendState};
use netcore_cc::{Builtin, Profile};
use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader};

fn ssthresh(value: u64) -> Option<u32> {
    (value != 2_147_483_647).then_some(value as u32)
}

/// Replays one trace; gives the number of calls and of differing fields.
fn replay(file: &str) -> (usize, Vec<String>) {
    let path = format!("{}/testdata/{file}", env!("CARGO_MANIFEST_DIR"));
    let mut lines = BufReader::new(GzDecoder::new(File::open(path).unwrap())).lines().map(Result::unwrap);
    let names: Vec<String> = lines.next().unwrap().split(',').map(str::to_owned).collect();
    let index: HashMap<&str, usize> = names.iter().enumerate().map(|(i, name)| (name.as_str(), i)).collect();
    let mut cubic = Profile::linux_current().build();
    let mut state = SendState::default();
    let (mut calls, mut differing) = (0, Vec::new());
    for line in lines {
        let cells: Vec<&str> = line.split(',').collect();
        let text = |name: &str| cells[index[name]];
        let number = |name: &str| text(name).parse::<u64>().unwrap_or_else(|_| panic!("{name} in {line}"));
        let now = Instant::from_micros(number("t_us"));
        state.clock = state.clock.synchronised(now, number("jiffies") as u32);
        state.cwnd = number("cwnd_before") as u32;
        state.cwnd_cnt = number("cwnd_cnt_before") as u32;
        state.ssthresh = ssthresh(number("ssthresh_before"));
        state.prior_cwnd = number("prior_cwnd") as u32;
        state.packets_out = number("packets_out") as u32;
        state.snd_una = number("snd_una") as u32;
        state.snd_nxt = number("snd_nxt") as u32;
        state.is_cwnd_limited = number("cwnd_limited") != 0;
        state.max_packets_out = number("max_packets_out") as u32;
        state.ca_state = CaState::from_linux(number("ca_state") as u32).unwrap();
        state.pacing_rate = Some(Rate::from_bytes_per_sec(number("pacing_rate")));
        state.pacing_status = if number("pacing_status") == 0 { PacingStatus::None } else { PacingStatus::Fq };
        state.gso_max_size = number("gso_max_size") as u32;
        state.last_sent = now;
        let mut ret = 0;
        match text("event") {
            "init" => cubic.init(&mut state, now),
            "acked" => {
                let rtt_us = text("rtt_us").parse::<i64>().unwrap();
                let sample = AckSample {
                    pkts_acked: number("acked") as u32,
                    rtt_us: u32::try_from(rtt_us).ok(),
                    in_flight: number("in_flight_bytes") as u32,
                };
                cubic.pkts_acked(&mut state, &sample, now);
            }
            "in_ack_event" => {
                cubic.in_ack_event(&mut state, AckFlags::from_bits_retain(number("arg") as u32), now);
            }
            "cong_avoid" => cubic.cong_avoid(&mut state, number("acked") as u32, now),
            "recalc_ssthresh" => ret = cubic.ssthresh(&mut state, now),
            "set_state" => cubic.set_state(&mut state, CaState::from_linux(number("arg") as u32).unwrap(), now),
            "cwnd_event" => cubic.cwnd_event(&mut state, CwndEvent::from_linux(number("arg") as u32).unwrap(), now),
            other => panic!("unknown event {other}"),
        }
        let Builtin::Cubic(ours) = &cubic else { unreachable!() };
        let (w, h) = (&ours.window.fields(), &ours.slow_start.fields());
        let all: [(&str, u32); 20] = [
            ("ret", ret),
            ("cwnd_after", state.cwnd),
            ("cwnd_cnt_after", state.cwnd_cnt),
            ("ssthresh_after", state.ssthresh.unwrap_or(2_147_483_647)),
            ("cnt", w.cnt),
            ("last_max_cwnd", w.last_max_cwnd),
            ("last_cwnd", w.last_cwnd),
            ("last_time", w.last_time),
            ("origin_point", w.origin_point),
            ("K", w.k),
            ("delay_min", ours.delay_min().value),
            ("epoch_start", w.epoch_start),
            ("ack_cnt", w.ack_cnt),
            ("tcp_cwnd", w.tcp_cwnd),
            ("sample_cnt", h.sample_cnt.into()),
            ("found", h.found.into()),
            ("round_start", h.round_start),
            ("end_seq", h.end_seq),
            ("last_ack", h.last_ack),
            ("curr_rtt", h.curr_rtt),
        ];
        calls += 1;
        for (name, value) in all {
            if u64::from(value) != number(name) {
                differing.push(format!("call {calls} {}: {name} {value}, kernel {}", text("event"), number(name)));
            }
        }
    }
    (calls, differing)
}

#[test]
fn small_windows_in_the_reno_friendly_region_equal_the_kernels_in_every_field() {
    let (calls, differing) = replay("cubic_calls_5mbit_20ms.csv.gz");
    assert_eq!(calls, 10_704);
    assert!(differing.is_empty(), "{} differences, first {:#?}", differing.len(), &differing[..differing.len().min(5)]);
}

#[test]
fn a_fast_path_with_hystart_equals_the_kernels_in_every_field() {
    let (calls, differing) = replay("cubic_calls_100mbit_40ms.csv.gz");
    assert_eq!(calls, 60_000);
    assert!(differing.is_empty(), "{} differences, first {:#?}", differing.len(), &differing[..differing.len().min(5)]);
}
