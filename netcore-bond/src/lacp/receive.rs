//! Frames in: LACPDUs to the receive machine, Marker PDUs to their responder (Linux: `bond_3ad_rx_indication`).

use super::{Lacp, LacpError, machine};
use netcore::Instant;
use netcore::wire::{EtherType, EthernetHeader, Lacpdu, Marker, SlowProtocol, WireError};

/// What became of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Handled {
    /// It is for others: not a slow protocol, one that is neither LACP nor marker, or the bond is closed.
    Pass,
    /// A LACPDU; it was taken in.
    Lacpdu,
    /// A LACPDU that this system sent itself; it was counted and dropped.
    Loopback,
    /// A request, which is answered.
    Marker,
    /// An answer, which [`LacpEvent::MarkerResponse`](super::LacpEvent::MarkerResponse) tells of.
    MarkerResponse,
}

impl Lacp {
    /// Takes in a frame that a port received, from its Ethernet header on. What is not [`Handled::Pass`] goes no further.
    ///
    /// # Errors
    /// [`LacpError::NoSuchPort`]; [`LacpError::Wire`] for a PDU that cannot be read, which goes no further either.
    pub fn handle(&mut self, port: u16, frame: &[u8], now: Instant) -> Result<Handled, LacpError> {
        let index = self.index(port)?;
        let Ok((ethernet, payload)) = EthernetHeader::parse(frame) else { return Ok(Handled::Pass) };
        if ethernet.ethertype() != EtherType::SLOW || !self.is_open() {
            return Ok(Handled::Pass);
        }
        let statistics = &mut self.ports[index].statistics;
        match SlowProtocol::of(payload) {
            Ok(SlowProtocol::Lacp) => {
                let (pdu, _) = Lacpdu::parse(payload).inspect_err(|_| statistics.lacpdu_illegal_rx += 1)?;
                statistics.lacpdu_rx += 1;
                Ok(self.lacpdu(index, pdu, now))
            }
            Ok(SlowProtocol::Marker) => {
                let marker = Marker::parse(payload).inspect_err(|error| match error {
                    WireError::Field { field: "TLV type", .. } => statistics.marker_unknown_rx += 1,
                    _ => statistics.lacpdu_illegal_rx += 1,
                });
                Ok(self.marker(index, marker?.0))
            }
            _ => {
                statistics.lacpdu_unknown_rx += 1;
                Ok(Handled::Pass)
            }
        }
    }

    fn lacpdu(&mut self, index: usize, pdu: &Lacpdu, now: Instant) -> Handled {
        let port = &mut self.ports[index];
        if pdu.actor().system() == port.actor.system {
            port.statistics.lacpdu_loopback += 1;
            port.told.loopback = true;
            return Handled::Loopback;
        }
        let clock = self.clock(now);
        if machine::receive(&mut self.ports[index], Some(pdu), clock) {
            self.ports[index].stop_serving_alone();
            // The partner's port was plugged over here from a port whose link is down (port_moved, clause 6.4.12).
            let (system, number) = (pdu.actor().system(), pdu.actor().port());
            for (i, other) in self.ports.iter_mut().enumerate() {
                other.moved |=
                    i != index && !other.enabled && (other.partner.system, other.partner.port) == (system, number);
            }
        }
        // Data stops at once if the partner no longer takes it, and not with the next tick.
        while machine::must_stop(&self.ports[index]) {
            let control = self.control(index);
            if !machine::mux(&mut self.ports[index], control, clock) {
                break;
            }
        }
        self.settle(now);
        Handled::Lacpdu
    }

    fn marker(&mut self, index: usize, marker: &Marker) -> Handled {
        let port = &mut self.ports[index];
        if marker.is_response() {
            port.statistics.marker_resp_rx += 1;
            if marker.requester_system() == port.actor.system && marker.requester_port() == port.actor.port {
                port.told.response = Some(marker.transaction());
            }
            return Handled::MarkerResponse;
        }
        port.statistics.marker_rx += 1;
        if !self.outbox.marker(port, &marker.response()) {
            port.statistics.marker_resp_dropped += 1;
        }
        Handled::Marker
    }

    /// Asks the partner to say when it has taken all frames sent so far on a port, so that flows can move to another without
    /// being reordered (IEEE 802.1AX clause 6.5). The answer, if one comes, is an event with the number given here.
    ///
    /// # Errors
    /// [`LacpError::NoSuchPort`]; [`LacpError::MarkersWaiting`] if those asked for before were not fetched.
    pub fn send_marker(&mut self, port: u16) -> Result<u32, LacpError> {
        let index = self.index(port)?;
        let port = &mut self.ports[index];
        let transaction = port.transaction.wrapping_add(1);
        let marker = Marker::new(port.actor.system, port.actor.port, transaction);
        if !self.outbox.marker(port, &marker) {
            return Err(LacpError::MarkersWaiting { port: port.number() });
        }
        port.transaction = transaction;
        Ok(transaction)
    }
}
