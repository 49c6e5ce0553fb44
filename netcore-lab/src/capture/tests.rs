use super::*;
use crate::engine::Lab;
use netcore_drivers::pcap::CaptureReader;
use std::sync::{Arc, Mutex};

/// A file that the test can read while the tap owns it.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A device that is full after some bytes.
struct Full(usize);

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0 < bytes.len() {
            return Err(io::Error::other("disk full"));
        }
        self.0 -= bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Hands over frames that leave at the given times.
struct Source(Vec<u64>);

impl Component for Source {
    fn receive(&mut self, _: u16, packet: Packet, ctx: &mut Context<'_>) {
        ctx.cache.put(packet);
    }

    fn wake(&mut self, ctx: &mut Context<'_>) {
        for (index, at) in self.0.drain(..).enumerate() {
            let mut packet = ctx.cache.copy_from_slice(&[index as u8; 14]).unwrap();
            packet.append(ctx.cache.virtual_bytes(50).unwrap()).unwrap();
            packet.set_departure(Some(Instant::from_nanos(at)));
            ctx.send(0, packet);
        }
    }
}

fn capture(times: [&[u64]; 2]) -> Vec<u8> {
    let file = Shared::default();
    let mut lab = Lab::new(1, 64).unwrap();
    let ends = times.map(|times| lab.add(Source(times.to_vec())));
    let tap = lab.add(Tap::new(file.clone(), Format::Pcapng).unwrap());
    lab.connect((ends[0], 0), (tap, 0)).unwrap();
    lab.connect((tap, 1), (ends[1], 0)).unwrap();
    lab.run_until(Instant::from_secs(1));
    let records = lab.get_mut::<Tap>(tap).unwrap().finish().unwrap();
    assert_eq!(records, (times[0].len() + times[1].len()) as u64);
    assert_eq!(lab.unconnected(), 0);
    file.0.lock().unwrap().clone()
}

#[test]
fn records_are_in_order_of_departure_over_both_directions() {
    let bytes = capture([&[0, 300, 500], &[200, 400]]);
    let mut reader = CaptureReader::new(&bytes[..]).unwrap();
    let mut seen = Vec::new();
    while let Some(record) = reader.next().unwrap() {
        seen.push((record.timestamp.unwrap().as_nanos(), record.bytes[0]));
    }
    assert_eq!(seen, [(0, 0), (200, 0), (300, 1), (400, 1), (500, 2)]);
}

#[test]
fn virtual_payload_is_written_as_zeros() {
    let bytes = capture([&[7], &[]]);
    let mut reader = CaptureReader::new(&bytes[..]).unwrap();
    let record = reader.next().unwrap().unwrap();
    assert_eq!(record.bytes.len(), 64);
    assert!(record.bytes[14..].iter().all(|byte| *byte == 0));
}

#[test]
fn an_error_of_writing_is_reported_and_the_frames_pass() {
    let mut lab = Lab::new(1, 64).unwrap();
    let source = lab.add(Source(vec![0; 5]));
    let tap = lab.add(Tap::new(Full(150), Format::Pcapng).unwrap());
    let sink = lab.add(Source(Vec::new()));
    lab.connect((source, 0), (tap, 0)).unwrap();
    lab.connect((tap, 1), (sink, 0)).unwrap();
    lab.run_until(Instant::from_secs(1));
    let tap = lab.get_mut::<Tap>(tap).unwrap();
    assert_eq!(tap.finish().unwrap_err().to_string(), "disk full");
    assert_eq!((tap.records(), tap.missed()), (0, 5));
}
