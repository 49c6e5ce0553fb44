//! LACPDUs of any bytes, and two systems whose frames are lost, doubled, damaged and forged.

use netcore::wire::{LacpState, Lacpdu, Marker, SlowProtocol};
use netcore::{Instant, LinkState, MacAddress};
use netcore_bond::lacp::{AdSelect, Lacp, LacpConfig, LacpRate, MuxState, PortConfig, Timing};
use std::time::Duration;

/// The parsers of LACPDU and Marker PDU take any bytes; what they accept is written again as it was.
pub fn lacpdu(data: &[u8]) {
    let subtype = SlowProtocol::of(data).map(SlowProtocol::subtype).ok();
    assert_eq!(subtype, data.first().copied());
    if let Ok((pdu, rest)) = Lacpdu::parse(data) {
        assert!(rest.len() + Lacpdu::LEN == data.len() && subtype == Some(1));
        assert!(pdu.tlvs().count() <= 26);
        let again = Lacpdu::new(*pdu.actor(), *pdu.partner(), pdu.collector_max_delay()).frame(MacAddress([2; 6]));
        let (read, _) = Lacpdu::parse(&again[14..]).expect("what is written is read");
        assert_eq!((read.actor(), read.partner()), (pdu.actor(), pdu.partner()));
    }
    if let Ok((marker, rest)) = Marker::parse(data) {
        assert!(rest.len() + Marker::LEN == data.len() && subtype == Some(2));
        let response = marker.response().frame(MacAddress([2; 6]));
        let changed = data[..Marker::LEN].iter().zip(&response[14..]).filter(|(a, b)| a != b).count();
        assert!(changed <= 1, "a response is the request with another type");
    }
}

struct Pair {
    now: Instant,
    ends: [Lacp; 2],
    /// Where a frame goes: end, port, bytes.
    flight: Vec<(usize, u16, Vec<u8>)>,
}

/// Operations of two bytes each, after one for the settings: time goes on, frames in flight arrive, are lost, doubled or
/// damaged, links fail, options change, and frames of any bytes come in. No data goes where the partner is not in sync.
pub fn lacp(data: &[u8]) {
    let Some((&settings, mut ops)) = data.split_first() else { return };
    let bit = |n: usize| settings >> n & 1 != 0;
    let ends = [0, 1].map(|end| {
        let config = LacpConfig {
            timing: if bit(end) { Timing::EventDriven } else { Timing::default() },
            lacp_rate: if bit(2 + end) { LacpRate::Fast } else { LacpRate::Slow },
            coupled_control: bit(4 + end),
            ad_select: if bit(6) { AdSelect::Bandwidth } else { AdSelect::Stable },
            lacp_active: end == 0 || bit(7),
            ..LacpConfig::new(MacAddress([2, 0, 0, 0, end as u8, 0]))
        };
        let mut lacp = Lacp::new(config).expect("the settings are valid");
        for port in 1..=2 {
            let port = PortConfig::new(MacAddress([2, 0, 0, 0, end as u8, port]));
            lacp.add_port(&port, LinkState::up(1000), Instant::ZERO).expect("few ports");
        }
        lacp.open(Instant::ZERO);
        lacp
    });
    let mut pair = Pair { now: Instant::ZERO, ends, flight: Vec::new() };
    while let [op, argument, rest @ ..] = ops {
        ops = rest;
        let (end, port) = (usize::from(argument & 1), u16::from(argument >> 1 & 1) + 1);
        match op % 10 {
            0 => pair.pass(u64::from(*argument) * 20, true),
            1 => pair.pass(u64::from(*argument) * 20, false),
            2 => {
                pair.flight.pop();
            }
            3 => pair.flight.extend(pair.flight.last().cloned()),
            4 => {
                if let Some((_, _, frame)) = pair.flight.last_mut() {
                    let at = 14 + usize::from(*argument) % (frame.len() - 14);
                    frame[at] ^= op / 10 + 1;
                }
            }
            5 => {
                let link = if argument & 4 != 0 { LinkState::up(1000) } else { LinkState::DOWN };
                pair.ends[end].set_link(port, link, pair.now).expect("the port is there");
            }
            6 => pair.ends[end].set_lacp_active(argument & 4 != 0, pair.now),
            7 => {
                let rate = if argument & 4 != 0 { LacpRate::Fast } else { LacpRate::Slow };
                pair.ends[end].set_lacp_rate(rate, pair.now);
            }
            8 => {
                let length = usize::from(*op).min(ops.len());
                let (bytes, rest) = ops.split_at(length);
                ops = rest;
                let frame = [&SlowProtocol::ADDRESS.0[..], &[2; 6], &[0x88, 9], bytes].concat();
                let _ = pair.ends[end].handle(port, &frame, pair.now);
            }
            _ => {
                let _ = pair.ends[end].send_marker(port);
            }
        }
        pair.fetch();
    }
}

impl Pair {
    fn pass(&mut self, ms: u64, deliver: bool) {
        let until = self.now + Duration::from_millis(ms);
        if deliver {
            for (end, port, frame) in std::mem::take(&mut self.flight) {
                let _ = self.ends[end].handle(port, &frame, self.now);
                self.fetch();
            }
        }
        while let Some(at) = self.ends.iter().filter_map(Lacp::poll_at).min().filter(|&at| at <= until) {
            self.now = at.max(self.now);
            self.ends.iter_mut().for_each(|end| end.poll(self.now));
            self.fetch();
        }
        self.now = until;
    }

    fn fetch(&mut self) {
        for end in 0..2 {
            while let Some(frame) = self.ends[end].next_frame() {
                if self.flight.len() < 16 {
                    self.flight.push((1 - end, frame.port, frame.bytes.to_vec()));
                }
            }
            while self.ends[end].next_event().is_some() {}
            self.check(end);
        }
    }

    fn check(&self, end: usize) {
        let lacp = &self.ends[end];
        for port in lacp.ports().iter().filter(|port| lacp.distributes(port)) {
            let alone = port.partner().system() == MacAddress::default();
            let in_use = matches!(port.mux_state(), MuxState::CollectingDistributing | MuxState::Distributing);
            assert!(port.link().up && (alone || in_use));
            assert!(alone || port.partner().state().contains(LacpState::SYNCHRONIZATION));
        }
    }
}
