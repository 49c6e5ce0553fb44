//! The driver test list on the model of the 82576.

mod list;

use list::model::ModelPeer;
use list::{Expect, MAC, Maker, Peer};
use netcore_drivers::Bus;
use netcore_drivers::bus::InterruptMode;
use netcore_drivers::igb::Igb;
use netcore_drivers::model::e82576::E82576;
use netcore_drivers::model::{Bench, Timing};

struct Model {
    timing: Timing,
    serdes: bool,
}

impl Maker for Model {
    type H = Igb;
    fn expect(&self) -> Expect {
        Expect {
            queues: 16,
            interrupts: &[InterruptMode::Intx, InterruptMode::Msi, InterruptMode::MsiX],
            ..Expect::model("82576 model")
        }
    }
    fn make(&self) -> (Box<dyn Bus>, Box<dyn Peer>) {
        let bench = Bench::new();
        let device = if self.serdes { E82576::new().serdes() } else { E82576::new() };
        let (port, bus) = bench.add(Box::new(device), MAC);
        bench.timing(port, self.timing);
        (Box::new(bus), Box::new(ModelPeer { bench, port }))
    }
    fn probe(&self, bus: Box<dyn Bus>) -> Igb {
        Igb::probe(bus).expect("the model is one of the family")
    }
}

#[test]
fn the_driver_test_list_passes_on_the_82576_model_in_virtual_time() {
    list::run(&Model { timing: Timing::default(), serdes: false });
}

#[test]
fn the_driver_test_list_passes_on_the_82576_model_without_delays() {
    list::run(&Model { timing: Timing::instant(), serdes: false });
}

#[test]
fn the_driver_test_list_passes_on_a_serdes_port_of_the_82576_model() {
    list::run(&Model { timing: Timing::instant(), serdes: true });
}

#[test]
fn sctp_datagrams_tunnels_and_more_hash_types_work_on_the_82576_model() {
    list::cases::advanced::run(&Model { timing: Timing::instant(), serdes: false });
}
