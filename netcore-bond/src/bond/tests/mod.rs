mod exam;
mod fake;
mod membership;
mod monitors;
mod policies;
mod property;

use super::*;
use fake::{Fake, Handle, pool};
use netcore::{Driver as _, Packet};
use std::vec;

/// A bond over fake drivers, and the test's clock.
struct Bench {
    bond: Bond<Fake>,
    nics: Vec<Handle>,
    now: Instant,
    cache: PoolCache,
}

impl Bench {
    /// Started, with `n` members `m0`, `m1`, …; polled until all links are known.
    fn new(options: &str, n: u8) -> Self {
        let bond = Bond::new("bond0", options.parse().unwrap(), pool(), 1);
        let mut bench = Self { bond, nics: Vec::new(), now: Instant::from_secs(1), cache: pool() };
        bench.bond.start(bench.now).unwrap();
        for _ in 0..n {
            bench.add();
        }
        bench.run(1);
        bench
    }

    fn add(&mut self) {
        let n = self.nics.len() as u8;
        let nic = Handle::new(n);
        self.bond.add_member(&std::format!("m{n}"), nic.driver(), self.now).map_err(|e| e.error).unwrap();
        self.nics.push(nic);
    }

    /// Lets milliseconds pass, and everything that is due in them happen in its time.
    fn run(&mut self, ms: u64) {
        let end = self.now + Duration::from_millis(ms);
        while let Some(at) = self.bond.poll_at().filter(|at| *at <= end) {
            self.now = self.now.max(at);
            self.bond.poll(self.now).unwrap();
        }
        self.now = end;
        self.bond.poll(end).unwrap();
    }

    fn frame(&mut self, last: u8) -> Packet {
        self.cache.copy_from_slice(&udp(last)).unwrap()
    }

    /// Sends packets that differ in the last byte of the destination; says how many were taken.
    fn send(&mut self, n: u8) -> usize {
        let mut burst = Burst::new();
        (0..n).for_each(|i| burst.push(self.frame(i)));
        self.bond.transmit(0, &mut burst, self.now).unwrap()
    }

    fn sent(&self) -> Vec<usize> {
        self.nics.iter().map(Handle::sent).collect()
    }

    fn clear(&mut self) {
        self.nics.iter().for_each(|nic| {
            nic.get().sent.clear();
            nic.get().control.clear();
        });
    }

    fn receive(&mut self) -> Vec<Vec<u8>> {
        let mut burst = Burst::new();
        self.bond.receive(0, &mut burst, 1000, self.now).unwrap();
        burst.iter().map(Packet::to_vec).collect()
    }

    fn events(&mut self) -> Vec<BondEvent> {
        core::iter::from_fn(|| self.bond.next_event()).collect()
    }
}

/// A UDP frame to 10.0.0.2 and 02:00:00:00:00:`last`.
fn udp(last: u8) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, last, 2, 0, 0, 0, 0xff, 0, 8, 0];
    frame.extend([0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 7, last, 7, 8, 0, 26, 0, 0]);
    frame.extend([0; 18]);
    frame
}
