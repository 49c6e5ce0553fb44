//! Captured traffic, repeated.

use netcore::checksum::{update16, update32};
use netcore::dissect::{Dissection, TunnelPorts, dissect};
use netcore::wire::{Protocol, TcpFlags, TcpHeader};
use netcore_drivers::pcap::{CaptureError, CaptureReader};

/// One data segment of the flow, and where its fields are.
#[derive(Clone, Debug)]
struct Segment {
    frame: Vec<u8>,
    inner_network: usize,
    tcp: usize,
    outer_network: usize,
    payload: usize,
    payload_len: u32,
}

/// The data segments of one TCP flow, repeated without end: sequence numbers and IPv4 identifications go on where the
/// previous repetition stopped.
#[derive(Clone, Debug)]
pub struct RepeatedFlow {
    segments: Vec<Segment>,
    bytes: u32,
    next: usize,
    round: u32,
}

impl RepeatedFlow {
    /// The flow with the most payload in a capture; `ports` says which UDP ports carry VXLAN. Retransmissions are left out,
    /// so that the flow is in order.
    ///
    /// # Errors
    /// [`CaptureError`] if the bytes are no capture.
    pub fn from_capture(capture: &[u8], ports: &TunnelPorts) -> Result<Self, CaptureError> {
        let mut reader = CaptureReader::new(capture)?;
        let mut flows: Vec<(netcore::FlowKey, Vec<Segment>, u32)> = Vec::new();
        while let Some(record) = reader.next()? {
            let d = dissect(record.bytes, ports);
            let Some((key, segment, seq)) = data_segment(record.bytes, &d) else { continue };
            let position = flows.iter().position(|flow| flow.0 == key).unwrap_or_else(|| {
                flows.push((key, Vec::new(), seq));
                flows.len() - 1
            });
            let flow = &mut flows[position];
            if seq == flow.2 {
                flow.2 = seq.wrapping_add(segment.payload_len);
                flow.1.push(segment);
            }
        }
        let segments = flows
            .into_iter()
            .map(|flow| flow.1)
            .max_by_key(|segments| segments.iter().map(|s| u64::from(s.payload_len)).sum::<u64>())
            .unwrap_or_default();
        let bytes = segments.iter().fold(0u32, |sum, s| sum.wrapping_add(s.payload_len));
        Ok(Self { segments, bytes, next: 0, round: 0 })
    }

    /// Segments in one repetition.
    pub fn len(&self) -> usize {
        self.segments.len()
    }

    /// True if the capture had no data segment.
    pub fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// Bytes of the next frame.
    pub fn next_len(&self) -> usize {
        self.segments[self.next].frame.len()
    }

    /// Clears PSH in all segments.
    pub fn without_psh(mut self) -> Self {
        for segment in &mut self.segments {
            let at = segment.tcp + 12;
            let old = u16::from_be_bytes([segment.frame[at], segment.frame[at + 1]]);
            let new = old & !u16::from(TcpFlags::PSH.bits());
            let checksum = segment.tcp + TcpHeader::CHECKSUM;
            put(&mut segment.frame, at, new);
            let updated = update16(get(&segment.frame, checksum), old, new);
            put(&mut segment.frame, checksum, updated);
        }
        self
    }

    /// Keeps the segments of full size only, numbered anew without gaps.
    pub fn only_full(mut self) -> Self {
        let full = self.segments.iter().map(|s| s.payload_len).max().unwrap_or(0);
        self.segments.retain(|s| s.payload_len == full);
        let (mut seq, mut id) = (None, None);
        for segment in &mut self.segments {
            let frame = &mut segment.frame;
            let at = segment.tcp + 4;
            let old = u32::from_be_bytes([frame[at], frame[at + 1], frame[at + 2], frame[at + 3]]);
            let new = *seq.get_or_insert(old);
            frame[at..at + 4].copy_from_slice(&new.to_be_bytes());
            let checksum = segment.tcp + TcpHeader::CHECKSUM;
            let updated = update32(get(frame, checksum), old, new);
            put(frame, checksum, updated);
            seq = Some(new.wrapping_add(full));
            let at = segment.inner_network + 4;
            let old = get(frame, at);
            let new = *id.get_or_insert(old);
            put(frame, at, new);
            let checksum = update16(get(frame, segment.inner_network + 10), old, new);
            put(frame, segment.inner_network + 10, checksum);
            id = Some(new.wrapping_add(1));
        }
        self.bytes = full.wrapping_mul(self.segments.len() as u32);
        self
    }

    /// Writes the next frame into `frame`, which has [`RepeatedFlow::next_len`] bytes.
    pub fn write_next(&mut self, frame: &mut [u8]) {
        let segment = &self.segments[self.next];
        frame.copy_from_slice(&segment.frame);
        let ids = (self.segments.len() as u32).wrapping_mul(self.round) as u16;
        for network in [segment.outer_network, segment.inner_network] {
            let id = get(frame, network + 4);
            let new = id.wrapping_add(ids);
            put(frame, network + 4, new);
            let checksum = update16(get(frame, network + 10), id, new);
            put(frame, network + 10, checksum);
        }
        let at = segment.tcp + 4;
        let seq = u32::from_be_bytes([frame[at], frame[at + 1], frame[at + 2], frame[at + 3]]);
        let new = seq.wrapping_add(self.bytes.wrapping_mul(self.round));
        frame[at..at + 4].copy_from_slice(&new.to_be_bytes());
        let checksum = segment.tcp + TcpHeader::CHECKSUM;
        let updated = update32(get(frame, checksum), seq, new);
        put(frame, checksum, updated);
        self.next += 1;
        if self.next == self.segments.len() {
            self.next = 0;
            self.round = self.round.wrapping_add(1);
        }
    }

    /// Headers in front of the payload of the next frame, and the payload's length.
    pub fn next_payload(&self) -> (usize, u32) {
        let segment = &self.segments[self.next];
        (segment.payload, segment.payload_len)
    }
}

fn get(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn put(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

/// Flow, segment and sequence number of a frame that carries TCP payload over IPv4 in a tunnel over IPv4.
fn data_segment(frame: &[u8], d: &Dissection) -> Option<(netcore::FlowKey, Segment, u32)> {
    let (outer, inner) = (d.outer?, d.inner?);
    if inner.protocol != Protocol::TCP || inner.version != 4 || outer.version != 4 || d.payload_len() == 0 {
        return None;
    }
    let key = netcore::FlowKey::of(frame, d)?;
    let tcp = usize::from(inner.upper);
    let (header, _, _) = TcpHeader::parse(frame.get(tcp..)?).ok()?;
    let segment = Segment {
        frame: frame.to_vec(),
        inner_network: usize::from(inner.offset),
        outer_network: usize::from(outer.offset),
        tcp,
        payload: d.payload as usize,
        payload_len: d.payload_len() as u32,
    };
    Some((key, segment, header.seq()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use netcore::dissect::ChecksumVerdict;

    #[test]
    fn repetitions_go_on_in_sequence_with_right_checksums() {
        let capture = include_bytes!("../captures/gro_pair_wire.pcap");
        let ports = TunnelPorts::default();
        let mut flow = RepeatedFlow::from_capture(capture, &ports).unwrap();
        assert_eq!((flow.len(), flow.bytes), (718, 1_000_000));
        let mut expected = None;
        for _ in 0..3 * 718 {
            let mut frame = vec![0; flow.next_len()];
            flow.write_next(&mut frame);
            let d = dissect(&frame, &ports);
            let checks = d.inner_checksums(&frame, frame.len()).unwrap();
            assert_eq!(checks.upper, Some(ChecksumVerdict::Good));
            assert_eq!(checks.header, Some(ChecksumVerdict::Good));
            let (tcp, _, _) = TcpHeader::parse(&frame[usize::from(d.inner.unwrap().upper)..]).unwrap();
            assert!(expected.is_none_or(|seq| seq == tcp.seq()));
            expected = Some(tcp.seq().wrapping_add(d.payload_len() as u32));
        }
    }
}
