//! What the caller takes out: frames to send and events.

use super::port::Told;
use super::{Lacp, Port};
use alloc::collections::VecDeque;
use netcore::wire::{Lacpdu, Marker};

/// Marker PDUs and responses of one port that may wait to be sent. Slow protocols may send ten frames a second.
pub(super) const MARKERS_WAITING: usize = 8;

/// What a frame to send is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum FrameKind {
    /// A LACPDU.
    Lacpdu,
    /// A Marker PDU.
    Marker,
    /// An answer to a Marker PDU.
    MarkerResponse,
}

/// A frame to send, untagged and with the priority of control traffic (Linux: `TC_PRIO_CONTROL`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ControlFrame {
    /// Port to send it on.
    pub port: u16,
    /// What it is.
    pub kind: FrameKind,
    /// The whole frame, without frame check sequence.
    pub bytes: [u8; Lacpdu::FRAME_LEN],
}

const _: () = assert!(Lacpdu::FRAME_LEN == Marker::FRAME_LEN);

/// Something that changed. Events tell the difference between what the caller was last told and what is: what changed and
/// changed back meanwhile is not told, and nothing piles up if nobody asks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum LacpEvent {
    /// Whether data may be taken from, and sent to, a port.
    Port {
        /// The port.
        port: u16,
        /// Frames that come in are to be taken.
        collecting: bool,
        /// Frames may be sent.
        distributing: bool,
    },
    /// A port belongs to another aggregator.
    PortAggregator {
        /// The port.
        port: u16,
        /// Identifier of the aggregator; `None` between two.
        aggregator: Option<u16>,
    },
    /// Another aggregator is the active one.
    ActiveAggregator {
        /// Its identifier; `None` if no port has a link.
        aggregator: Option<u16>,
    },
    /// The bond has, or has not, enough links.
    Carrier {
        /// It has.
        up: bool,
    },
    /// The partner has taken all frames that were sent before the Marker PDU.
    MarkerResponse {
        /// The port.
        port: u16,
        /// Number of the request.
        transaction: u32,
    },
    /// A port hears what this system sent: two ports are connected to each other, or a switch floods LACPDUs.
    Loopback {
        /// The port.
        port: u16,
    },
}

/// Frames that wait to be taken by the caller.
#[derive(Clone, Debug, Default)]
pub(super) struct Outbox {
    frames: VecDeque<ControlFrame>,
}

impl Outbox {
    pub(super) fn reserve(&mut self, ports: usize) {
        self.frames.reserve(ports * (1 + MARKERS_WAITING));
    }

    /// A LACPDU takes the place of one that was not fetched: only the newest is true.
    pub(super) fn lacpdu(&mut self, port: &Port) {
        let bytes = port.lacpdu().frame(port.address);
        let frame = ControlFrame { port: port.number(), kind: FrameKind::Lacpdu, bytes };
        match self.frames.iter_mut().find(|f| f.kind == FrameKind::Lacpdu && f.port == frame.port) {
            Some(stale) => *stale = frame,
            None => self.frames.push_back(frame),
        }
    }

    /// False if too many wait.
    pub(super) fn marker(&mut self, port: &Port, marker: &Marker) -> bool {
        let number = port.number();
        let waiting = self.frames.iter().filter(|f| f.kind != FrameKind::Lacpdu && f.port == number).count();
        let fits = waiting < MARKERS_WAITING;
        if fits {
            let kind = if marker.is_response() { FrameKind::MarkerResponse } else { FrameKind::Marker };
            self.frames.push_back(ControlFrame { port: number, kind, bytes: marker.frame(port.address) });
        }
        fits
    }

    pub(super) fn pop(&mut self) -> Option<ControlFrame> {
        self.frames.pop_front()
    }

    pub(super) fn clear(&mut self) {
        self.frames.clear();
    }

    pub(super) fn forget(&mut self, port: u16) {
        self.frames.retain(|f| f.port != port);
    }
}

impl Lacp {
    /// The next frame to send. Ask until there is none after every call that takes the time.
    pub fn next_frame(&mut self) -> Option<ControlFrame> {
        let frame = self.outbox.pop()?;
        // The port may have been removed; its last words are still to be said.
        if let Some(port) = self.ports.iter_mut().find(|p| p.number() == frame.port) {
            let counter = match frame.kind {
                FrameKind::Lacpdu => &mut port.statistics.lacpdu_tx,
                FrameKind::Marker => &mut port.statistics.marker_tx,
                FrameKind::MarkerResponse => &mut port.statistics.marker_resp_tx,
            };
            *counter += 1;
        } else {
            self.departed.lacpdu_tx += 1;
        }
        Some(frame)
    }

    /// The next difference between what the caller was told and what is.
    pub fn next_event(&mut self) -> Option<LacpEvent> {
        for index in 0..self.ports.len() {
            if let Some(event) = self.port_event(index) {
                return Some(event);
            }
        }
        let aggregator = self.active_aggregator().map(|a| a.aggregator_id);
        if aggregator != self.told_aggregator {
            self.told_aggregator = aggregator;
            return Some(LacpEvent::ActiveAggregator { aggregator });
        }
        let up = self.carrier();
        if up != self.told_carrier {
            self.told_carrier = up;
            return Some(LacpEvent::Carrier { up });
        }
        None
    }

    fn port_event(&mut self, index: usize) -> Option<LacpEvent> {
        let now = self.port_told(index);
        let port = &mut self.ports[index];
        let (number, told) = (port.number(), &mut port.told);
        if (told.collecting, told.distributing) != (now.collecting, now.distributing) {
            (told.collecting, told.distributing) = (now.collecting, now.distributing);
            let (collecting, distributing) = (now.collecting, now.distributing);
            return Some(LacpEvent::Port { port: number, collecting, distributing });
        }
        if told.aggregator != now.aggregator {
            told.aggregator = now.aggregator;
            return Some(LacpEvent::PortAggregator { port: number, aggregator: now.aggregator });
        }
        if let Some(transaction) = told.response.take() {
            return Some(LacpEvent::MarkerResponse { port: number, transaction });
        }
        core::mem::take(&mut told.loopback).then_some(LacpEvent::Loopback { port: number })
    }

    fn port_told(&self, index: usize) -> Told {
        let port = &self.ports[index];
        let aggregator = port.aggregator.map(|a| self.aggregators[a].id);
        Told { collecting: self.collects(port), distributing: self.distributes(port), aggregator, ..port.told }
    }
}
