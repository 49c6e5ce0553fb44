//! `netcore nic` in a guest: an 82574L and an 82576 through VFIO behind an emulated VT-d, and through sysfs without one.

use netcore_test::guest::{Guest, GuestBuilder, GuestFiles};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

const MAC: [u8; 6] = [0x52, 0x54, 0, 0x12, 0x34, 0x56];
const PEER: [u8; 6] = [0x52, 0x54, 0, 0xaa, 0xbb, 0xcc];
/// Where the first NIC of a guest is.
const DEVICE: &str = "0000:00:01.0";

/// The command, without debug information so that it fits the guest's memory.
fn stripped(folder: &Path) -> PathBuf {
    let command = Path::new(env!("CARGO_BIN_EXE_netcore"));
    let small = folder.join("netcore");
    match Command::new("strip").arg("-o").arg(&small).arg(command).status() {
        Ok(status) if status.success() => small,
        _ => command.into(),
    }
}

/// The libraries that the command is linked with, by the linker's own account.
fn libraries(command: &Path) -> Vec<PathBuf> {
    let output = Command::new("ldd").arg(command).output().expect("ldd is part of the C library");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.split_whitespace().filter(|word| word.starts_with('/')).map(PathBuf::from).collect()
}

fn boot(nic: &'static str, iommu: bool) -> Option<Guest> {
    let files = GuestFiles::find()?;
    let folder = tempfile::tempdir().expect("a folder");
    let command = stripped(folder.path());
    let mut builder = GuestBuilder::new(files).memory(1024).file(&command, "/bin/netcore").nic(nic, MAC);
    if iommu {
        builder = builder.iommu().module("vfio_iommu_type1", "").module("vfio-pci", "");
    }
    for library in libraries(&command) {
        let path = library.to_str().expect("UTF-8").to_owned();
        builder = builder.file(&library, &path);
    }
    Some(builder.boot().unwrap_or_else(|error| panic!("{error}")))
}

fn run(guest: &mut Guest, command: &str, limit: u64) -> String {
    guest.run(command, Duration::from_secs(limit)).unwrap_or_else(|error| panic!("{command}: {error}"))
}

fn frame(len: usize, number: u32) -> Vec<u8> {
    let mut frame = [MAC, PEER].concat();
    frame.extend([0x88, 0xb5]);
    frame.extend(number.to_be_bytes());
    frame.extend((frame.len()..len).map(|at| (at as u32).wrapping_mul(3).wrapping_add(number) as u8));
    frame
}

#[test]
fn an_82574l_behind_an_iommu_passes_its_self_test_and_returns_every_frame() {
    exchange("e1000e", 10_000, 10);
}

#[test]
#[ignore = "takes a minute"]
fn an_82574l_behind_an_iommu_returns_a_hundred_thousand_frames() {
    exchange("e1000e", 100_000, 45);
}

#[test]
fn an_82576_behind_an_iommu_passes_its_self_test_and_returns_every_frame() {
    exchange("igb", 10_000, 10);
}

#[test]
#[ignore = "takes a minute"]
fn an_82576_behind_an_iommu_returns_a_hundred_thousand_frames() {
    exchange("igb", 100_000, 45);
}

#[test]
fn an_82574l_without_iommu_passes_its_self_test_through_sysfs() {
    let Some(mut guest) = boot("e1000e", false) else { return };
    let refused = guest.run(&format!("netcore nic bind {DEVICE} --yes"), Duration::from_secs(60));
    assert!(refused.is_err_and(|said| said.contains("vfio-pci") || said.contains("IOMMU")));
    run(&mut guest, "echo 64 > /proc/sys/vm/nr_hugepages", 10);
    let tested = run(&mut guest, &format!("netcore nic selftest {DEVICE}"), 120);
    assert!(tested.contains("loopback   pass") && !tested.contains("FAIL"), "{tested}");
    let sent = run(&mut guest, &format!("netcore nic pktgen {DEVICE} --count 1000 --size 300"), 60);
    assert!(sent.starts_with("1000 frames of 300 bytes"), "{sent}");
    let mut buffer = vec![0; 4096];
    let seen = std::iter::from_fn(|| guest.nic(0).receive(&mut buffer)).filter(|len| *len == 300).count();
    assert!(seen > 0, "frames left the guest");
}

#[test]
fn dma_outside_every_mapping_is_refused_and_shows_as_a_failed_test() {
    refused("e1000e");
}

#[test]
fn dma_of_an_82576_outside_every_mapping_is_refused_and_shows_as_a_failed_test() {
    refused("igb");
}

fn refused(nic: &'static str) {
    let Some(mut guest) = boot(nic, true) else { return };
    // Through sysfs the device is given physical addresses, which the IOMMU maps for nobody.
    run(&mut guest, "echo 64 > /proc/sys/vm/nr_hugepages", 10);
    let refused = guest.run(&format!("netcore nic selftest {DEVICE}"), Duration::from_secs(120));
    let said = refused.expect_err("the self test fails");
    assert!(said.contains("registers  pass") && said.contains("loopback   FAIL"), "{said}");
    let log = run(&mut guest, "dmesg | grep -i -m 3 'DMAR.*fault' || true", 10);
    assert!(log.contains("01.0"), "the fault names the device: {log}");
}

/// Sends `frames` frames of random sizes to a guest that sends them back, for `seconds`.
fn exchange(nic: &'static str, frames: u32, seconds: u64) {
    let Some(mut guest) = boot(nic, true) else { return };
    let bound = run(&mut guest, &format!("netcore nic bind {DEVICE} --yes"), 60);
    assert!(bound.contains("is bound to vfio-pci"), "{bound}");
    let tested = run(&mut guest, &format!("netcore nic selftest {DEVICE}"), 120);
    assert!(tested.contains("loopback   pass") && !tested.contains("FAIL"), "{tested}");
    guest
        .start(&format!("netcore nic loopback {DEVICE} --seconds {seconds} --interrupts msix"))
        .expect("the guest is there");
    let mut buffer = vec![0; 4096];
    let end = Instant::now() + Duration::from_secs(30);
    // The driver is up when the first frame comes back.
    loop {
        guest.nic(0).send(&frame(100, u32::MAX));
        std::thread::sleep(Duration::from_millis(50));
        if guest.nic(0).receive(&mut buffer).is_some() {
            break;
        }
        assert!(Instant::now() < end, "no frame came back: {:?}", guest.finished());
    }
    std::thread::sleep(Duration::from_millis(300));
    while guest.nic(0).receive(&mut buffer).is_some() {}
    // Fewer than the ring, so that none is lost.
    const WINDOW: u32 = 128;
    let (mut sent, mut returned) = (0, 0);
    let mut size = 12345u32;
    let mut expected = std::collections::VecDeque::new();
    let start = Instant::now();
    while returned < frames && start.elapsed() < Duration::from_secs(seconds - 5) {
        while sent < frames && sent - returned < WINDOW {
            size = size.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let len = 60 + (size >> 16) as usize % 1455;
            if !guest.nic(0).send(&frame(len, sent)) {
                break;
            }
            expected.push_back((len, sent));
            sent += 1;
        }
        match guest.nic(0).receive(&mut buffer) {
            // One of the frames that asked whether the driver is up: an 82576 in QEMU keeps them until it is.
            Some(18..) if buffer[14..18] == u32::MAX.to_be_bytes() => {}
            Some(len) => {
                let (wanted, number) = expected.pop_front().expect("one was sent");
                let mut back = frame(wanted, number);
                back[..12].rotate_left(6);
                assert!(buffer[..len] == back, "frame {number} of {wanted} bytes came back as {len}");
                returned += 1;
            }
            None => std::thread::sleep(Duration::from_micros(50)),
        }
    }
    let output = loop {
        if let Some(output) = guest.finished().unwrap_or_else(|error| panic!("{error}")) {
            break output;
        }
        std::thread::sleep(Duration::from_millis(100));
    };
    println!("{returned} frames in {:?}; the guest said {output}", start.elapsed());
    assert_eq!(returned, frames, "{output}");
    assert!(output.contains(" 0 dropped") && !output.contains(", 0 interrupts"), "{output}");
    // Nothing was blocked by the IOMMU.
    let log = run(&mut guest, "dmesg | grep -c DMAR.*fault || true", 10);
    assert_eq!(log.trim(), "0");
    let back = run(&mut guest, &format!("netcore nic unbind {DEVICE} --yes"), 60);
    assert!(back.contains("is bound to nothing"), "{back}");
}
