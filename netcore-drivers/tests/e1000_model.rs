//! The driver test list on the model of the 82546GB.

mod list;

use list::model::ModelPeer;
use list::{Expect, MAC, Maker, Peer};
use netcore_drivers::Bus;
use netcore_drivers::e1000::E1000;
use netcore_drivers::model::e82546gb::E82546Gb;
use netcore_drivers::model::{Bench, Timing};

struct Model(Timing);

impl Maker for Model {
    type H = E1000;
    fn expect(&self) -> Expect {
        Expect { segments_ipv6: false, ..Expect::model("82546GB model") }
    }
    fn make(&self) -> (Box<dyn Bus>, Box<dyn Peer>) {
        let bench = Bench::new();
        let (port, bus) = bench.add(Box::new(E82546Gb::new()), MAC);
        bench.timing(port, self.0);
        (Box::new(bus), Box::new(ModelPeer { bench, port }))
    }
    fn probe(&self, bus: Box<dyn Bus>) -> E1000 {
        E1000::probe(bus).expect("the model is one of the family")
    }
}

#[test]
fn the_driver_test_list_passes_on_the_82546gb_model_in_virtual_time() {
    list::run(&Model(Timing::default()));
}

#[test]
fn the_driver_test_list_passes_on_the_82546gb_model_without_delays() {
    list::run(&Model(Timing::instant()));
}
