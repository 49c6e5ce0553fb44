//! Every capture at hand, cut at every length and damaged: no parser panics, and what a target asserts holds.
//!
//! Captures are those of the repository, and those beside it that are not part of it (`NETCORE_SHARED`, or `shared` beside the
//! clone), if they are there.

use netcore_drivers::pcap::CaptureReader;
use netcore_fuzz::{capture_reader, dissect, gro_any_bytes, wire, wire_control, wire_tunnels};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Numbers that look random, from a seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n.max(1) as u64) as usize
    }
}

fn captures() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let shared = match std::env::var_os("NETCORE_SHARED") {
        Some(shared) => PathBuf::from(shared),
        None => root.parent().unwrap().join("shared"),
    };
    let folders = ["netcore-lab/captures", "testdata"].map(|folder| root.join(folder));
    let beside = ["captures", "captures/lacp", "exams/pcaps"].map(|folder| shared.join(folder));
    let entries = folders.iter().chain(&beside).filter_map(|folder| std::fs::read_dir(folder).ok()).flatten().flatten();
    let mut files: Vec<_> = entries.map(|entry| entry.path()).filter(|path| is_capture(path)).collect();
    files.sort();
    if !shared.exists() {
        eprintln!("SKIP shared: {} captures of the repository alone", files.len());
    }
    files
}

fn is_capture(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "pcap" || extension == "pcapng")
}

/// Frames of all captures: of those that begin alike (headers of one flow), a few.
fn frames() -> Vec<Vec<u8>> {
    let mut seen = BTreeSet::new();
    let mut frames = Vec::new();
    for path in captures() {
        let bytes = std::fs::read(&path).unwrap();
        let Ok(mut reader) = CaptureReader::new(bytes.as_slice()) else { continue };
        while let Ok(Some(record)) = reader.next() {
            // Lengths, ids, sequence numbers and sums differ from frame to frame: the shape is what the first 24 bytes and the size say.
            let shape: Vec<u8> =
                record.bytes.iter().take(16).copied().chain([(record.bytes.len() / 64) as u8]).collect();
            if seen.insert((path.clone(), shape)) {
                frames.push(record.bytes.to_vec());
            }
        }
    }
    frames
}

fn all_parsers(bytes: &[u8]) {
    dissect(bytes);
    // What a header starts with is at these places in most frames; every parser sees every one.
    for at in [0, 14, 18, 22, 34, 38, 42, 54] {
        let bytes = bytes.get(at..).unwrap_or(&[]);
        wire(bytes);
        wire_control(bytes);
        wire_tunnels(bytes);
    }
}

#[test]
fn every_prefix_of_every_frame_is_parsed() {
    let frames = frames();
    assert!(!frames.is_empty());
    for frame in &frames {
        // Headers are at the front; behind them every length is like the next.
        for len in (0..frame.len().min(200)).chain([frame.len().saturating_sub(1), frame.len()]) {
            all_parsers(&frame[..len]);
        }
    }
}

#[test]
fn every_frame_is_parsed_with_any_byte_changed() {
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    for mut frame in frames() {
        for at in 0..frame.len().min(128) {
            let right = frame[at];
            for wrong in [!right, right.wrapping_add(1), dice.below(256) as u8, 0, 0xff] {
                frame[at] = wrong;
                dissect(&frame);
            }
            all_parsers(&frame);
            frame[at] = right;
        }
    }
}

#[test]
fn every_capture_is_read_to_its_end_or_its_damage() {
    let mut dice = Dice(0x2545_f491_4f6c_dd1d);
    let files = captures();
    assert!(!files.is_empty());
    for path in files {
        let mut bytes = std::fs::read(&path).unwrap();
        bytes.truncate(20_000);
        for len in (0..bytes.len().min(400)).chain((400..bytes.len()).step_by(997)) {
            capture_reader(&bytes[..len]);
        }
        for _ in 0..300 {
            let at = dice.below(bytes.len());
            let right = std::mem::replace(&mut bytes[at], dice.below(256) as u8);
            capture_reader(&bytes);
            bytes[at] = right;
        }
    }
}

#[test]
fn damaged_frames_go_through_receive_offload_and_segmentation() {
    let mut dice = Dice(0xda94_2042_e4dd_58b5);
    let frames = frames();
    for _ in 0..400 {
        // A burst of frames that follow each other in a capture, some of them damaged or cut.
        let start = dice.below(frames.len());
        let mut input = Vec::new();
        for frame in frames.iter().cycle().skip(start).take(1 + dice.below(12)) {
            let mut frame = frame[..frame.len().min(1500)].to_vec();
            match dice.below(4) {
                0 => {
                    let at = dice.below(frame.len().min(110));
                    if let Some(byte) = frame.get_mut(at) {
                        *byte = dice.below(256) as u8;
                    }
                }
                1 => frame.truncate(dice.below(frame.len() + 1)),
                _ => {}
            }
            input.extend((frame.len() as u16).to_be_bytes());
            input.extend(frame);
        }
        gro_any_bytes(&input);
    }
}
