//! The bench: time, wires, memory.

use super::e82546gb::E82546Gb;
use super::*;
use crate::bus::{Bus, pci};
use core::time::Duration;
use netcore::{Instant, MacAddress};

#[test]
fn a_region_that_was_dropped_cannot_be_reached() {
    let memory = Memory::new();
    let region = memory.allocate(100).unwrap();
    let iova = region.iova_of(0, 100).unwrap();
    assert_eq!(memory.write(iova, &[7; 16]), Ok(()));
    let mut bytes = [0; 16];
    assert_eq!(memory.read(iova, &mut bytes), Ok(()));
    assert_eq!(bytes, [7; 16]);
    assert!(memory.write(iova + 4090, &[1; 16]).is_err(), "over the end");
    drop(region);
    assert_eq!(memory.mapped(), 0);
    assert_eq!(memory.read(iova, &mut bytes), Err(DmaFault { iova, len: 16 }));
}

#[test]
fn blocks_of_up_to_64_kib_cross_no_64_kib_boundary() {
    let memory = Memory::new();
    let regions: Vec<_> = [4096, 60_000, 8192, 65_536, 36_864].map(|len| memory.allocate(len).unwrap()).into();
    for region in &regions {
        let iova = region.iova_of(0, region.len()).unwrap();
        assert_eq!(iova >> 16, (iova + region.len() as u64 - 1) >> 16);
    }
}

#[test]
fn timers_fire_in_order_of_time_then_of_arming() {
    let mut timers = Timers::new();
    timers.arm(Instant::from_nanos(5), 'b');
    timers.arm(Instant::from_nanos(5), 'c');
    timers.arm(Instant::from_nanos(3), 'a');
    assert_eq!(timers.next(), Some(Instant::from_nanos(3)));
    assert_eq!(timers.pop(Instant::from_nanos(2)), None);
    let fired: Vec<char> = core::iter::from_fn(|| timers.pop(Instant::from_nanos(9))).collect();
    assert_eq!(fired, ['a', 'b', 'c']);
}

#[test]
fn a_pulled_device_reads_as_all_ones() {
    let bench = Bench::new();
    let (port, mut bus) = bench.add(Box::new(E82546Gb::new()), MacAddress([2, 0, 0, 0, 0, 1]));
    let csr = bus.map_bar(0).unwrap();
    assert_eq!(csr.read(8), u32::MAX, "memory space is off after power on");
    pci::enable(&mut bus).unwrap();
    assert_ne!(csr.read(8), u32::MAX);
    bench.faults(port, |faults| faults.removed = true);
    assert_eq!((csr.read(8), bus.config_read(0)), (u32::MAX, Ok(u32::MAX)));
    assert_eq!(pci::identify(&mut bus), Err(crate::NicError::Removed));
}

#[test]
fn the_clock_goes_on_by_what_is_slept() {
    let bench = Bench::new();
    let (_, mut bus) = bench.add(Box::new(E82546Gb::new()), MacAddress([2, 0, 0, 0, 0, 1]));
    bus.sleep(Duration::from_millis(3));
    assert_eq!(bench.now(), Instant::from_millis(3));
}
