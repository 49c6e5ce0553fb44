//! The driver test list on QEMU's emulation of the 82576.

mod list;

use list::{Expect, Maker, Peer, qemu};
use netcore_drivers::Bus;
use netcore_drivers::bus::InterruptMode;
use netcore_drivers::igb::Igb;

struct Emulated;

impl Maker for Emulated {
    type H = Igb;
    fn expect(&self) -> Expect {
        Expect {
            // FIN and PSH are lost on every segment without a vnet header.
            last_segment_flags: false,
            queues: 16,
            pads_receive: true,
            interrupts: &[InterruptMode::Intx, InterruptMode::Msi, InterruptMode::MsiX],
            ..Expect::qemu("igb")
        }
    }
    fn make(&self) -> (Box<dyn Bus>, Box<dyn Peer>) {
        qemu::make("igb")
    }
    fn probe(&self, bus: Box<dyn Bus>) -> Igb {
        Igb::probe(bus).expect("an emulation of the family")
    }
}

#[test]
fn the_driver_test_list_passes_on_qemu_82576() {
    if qemu::available("igb") {
        list::run(&Emulated);
    }
}

#[test]
fn sctp_ipv6_and_hash_types_work_on_qemu_82576() {
    if qemu::available("igb") {
        use list::cases::advanced;
        advanced::sctp_and_udp_over_ipv6_are_filled_in(&Emulated);
        advanced::received_sctp_and_ipv6_are_judged(&Emulated);
        // It reports TCP over IPv6 by its addresses alone.
        advanced::the_hash_has_the_fields_that_were_chosen(&Emulated, false);
    }
}
