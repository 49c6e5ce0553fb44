//! The driver test list on QEMU's emulations of the family.

mod list;

use core::time::Duration;
use list::{Expect, Maker, Peer, qemu};
use netcore_drivers::Bus;
use netcore_drivers::bus::InterruptMode;
use netcore_drivers::e1000::{E1000, E1000e};

/// 82540EM and 82545EM.
struct Old(&'static str);

impl Maker for Old {
    type H = E1000;
    fn expect(&self) -> Expect {
        Expect {
            receive_checksum: false,
            segments_ipv6: false,
            empty_last_segment: true,
            interrupts: &[InterruptMode::Intx],
            // The emulation receives nothing for a second after a write to RCTL.
            deaf_after_start: Duration::from_millis(1100),
            ..Expect::qemu(self.0)
        }
    }
    fn make(&self) -> (Box<dyn Bus>, Box<dyn Peer>) {
        qemu::make(self.0)
    }
    fn probe(&self, bus: Box<dyn Bus>) -> E1000 {
        E1000::probe(bus).expect("an emulation of the family")
    }
}

/// 82574L.
struct New;

impl Maker for New {
    type H = E1000e;
    fn expect(&self) -> Expect {
        Expect {
            // FIN and PSH are lost on every segment without a vnet header.
            last_segment_flags: false,
            queues: 2,
            pads_receive: true,
            interrupts: &[InterruptMode::Intx, InterruptMode::Msi, InterruptMode::MsiX],
            ..Expect::qemu("e1000e")
        }
    }
    fn make(&self) -> (Box<dyn Bus>, Box<dyn Peer>) {
        qemu::make("e1000e")
    }
    fn probe(&self, bus: Box<dyn Bus>) -> E1000e {
        E1000e::probe(bus).expect("an emulation of the family")
    }
}

#[test]
fn the_driver_test_list_passes_on_qemu_82540em() {
    if qemu::available("e1000") {
        list::run(&Old("e1000"));
    }
}

#[test]
fn the_driver_test_list_passes_on_qemu_82545em() {
    if qemu::available("e1000-82545em") {
        list::run(&Old("e1000-82545em"));
    }
}

#[test]
fn the_driver_test_list_passes_on_qemu_82574l() {
    if qemu::available("e1000e") {
        list::run(&New);
    }
}
