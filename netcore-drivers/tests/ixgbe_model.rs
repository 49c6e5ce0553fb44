//! The driver test list on the model of the 82599.

mod list;

use list::model::ModelPeer;
use list::{Expect, MAC, Maker, Peer};
use netcore_drivers::Bus;
use netcore_drivers::bus::InterruptMode;
use netcore_drivers::ixgbe::Ixgbe;
use netcore_drivers::model::e82599::E82599;
use netcore_drivers::model::{Bench, Timing};

struct Model {
    timing: Timing,
    backplane: bool,
}

impl Maker for Model {
    type H = Ixgbe;
    fn expect(&self) -> Expect {
        Expect {
            queues: 16,
            // The packet buffer has 512 KiB.
            overrun_frames: 700,
            udp_errors: false,
            interrupts: &[InterruptMode::Intx, InterruptMode::Msi, InterruptMode::MsiX],
            ..Expect::model("82599 model")
        }
    }
    fn make(&self) -> (Box<dyn Bus>, Box<dyn Peer>) {
        let bench = Bench::new();
        let device = if self.backplane { E82599::new().backplane() } else { E82599::new() };
        let (port, bus) = bench.add(Box::new(device), MAC);
        bench.timing(port, self.timing);
        (Box::new(bus), Box::new(ModelPeer { bench, port }))
    }
    fn probe(&self, bus: Box<dyn Bus>) -> Ixgbe {
        Ixgbe::probe(bus).expect("the model is one of the family")
    }
}

#[test]
fn the_driver_test_list_passes_on_the_82599_model_in_virtual_time() {
    list::run(&Model { timing: Timing::default(), backplane: false });
}

#[test]
fn the_driver_test_list_passes_on_the_82599_model_without_delays() {
    list::run(&Model { timing: Timing::instant(), backplane: false });
}

#[test]
fn the_driver_test_list_passes_on_a_backplane_port_of_the_82599_model() {
    list::run(&Model { timing: Timing::instant(), backplane: true });
}

#[test]
fn sctp_datagrams_tunnels_and_more_hash_types_work_on_the_82599_model() {
    list::cases::advanced::run(&Model { timing: Timing::instant(), backplane: false });
}
