//! The other end of an emulated device's line.

use super::{MAC, Peer};
use core::time::Duration;
use netcore::Instant;
use netcore_drivers::Bus;
use netcore_drivers::bus::qtest::{EmulatedNic, Machine};
use std::time::Instant as Clock;

/// QEMU's program.
pub const PROGRAM: &str = "qemu-system-x86_64";

pub struct QemuPeer {
    machine: Machine,
    start: Clock,
}

impl Peer for QemuPeer {
    fn send(&mut self, frame: &[u8]) {
        let line = self.machine.line(0).expect("one NIC");
        let end = Clock::now() + Duration::from_secs(2);
        while let Err(error) = line.send(frame) {
            assert!(error.kind() == std::io::ErrorKind::WouldBlock && Clock::now() < end, "line: {error}");
            std::thread::sleep(Duration::from_micros(50));
        }
    }
    fn take(&mut self) -> Vec<Vec<u8>> {
        let mut frames = Vec::new();
        let mut buffer = vec![0; 70_000];
        while let Ok(n) = self.machine.line(0).expect("one NIC").recv(&mut buffer) {
            frames.push(buffer[..n].to_vec());
        }
        frames
    }
    fn settle(&mut self, span: Duration) {
        std::thread::sleep(span);
    }
    fn now(&self) -> Instant {
        Instant::from_nanos(self.start.elapsed().as_nanos() as u64)
    }
    fn cable(&mut self, plugged: bool) {
        self.machine.set_link(0, plugged).expect("the monitor answers");
    }
    fn patience(&self) -> Duration {
        Duration::from_secs(5)
    }
}

/// True if QEMU is there and has the device; otherwise the test was skipped.
pub fn available(model: &str) -> bool {
    let output = std::process::Command::new(PROGRAM).args(["-device", "help"]).output();
    match output {
        Ok(output) if String::from_utf8_lossy(&output.stdout).contains(&format!("\"{model}\"")) => true,
        Ok(_) => {
            netcore_test::skip("qemu", &format!("this QEMU has no device {model}"));
            false
        }
        Err(_) => {
            netcore_test::skip("qemu", &format!("{PROGRAM} is not installed (Debian: qemu-system-x86)"));
            false
        }
    }
}

pub fn make(model: &'static str) -> (Box<dyn Bus>, Box<dyn Peer>) {
    let machine = Machine::start(PROGRAM, &[EmulatedNic { model, mac: MAC }]).expect("QEMU starts");
    let bus = machine.bus(0).expect("the NIC is there");
    (Box::new(bus), Box::new(QemuPeer { machine, start: Clock::now() }))
}
