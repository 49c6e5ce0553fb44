//! A frame through embassy-net's driver interface, out of the model of an 82546GB and back.

use core::task::{Context, Waker};
use embassy_net_driver::{Driver as _, HardwareAddress, LinkState, RxToken as _, TxToken as _};
use netcore::{Driver, MacAddress, PoolConfig};
use netcore_adapters::embassy::EmbassyDriver;
use netcore_drivers::e1000::E1000;
use netcore_drivers::model::e82546gb::E82546Gb;
use netcore_drivers::model::{Bench, Frame};
use netcore_drivers::nic::{Nic, NicConfig, packet_pool};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::Wake;
use std::time::Duration;

#[derive(Default)]
struct Count(AtomicU32);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn frames_go_both_ways_and_the_task_is_woken_when_told() {
    let mac = MacAddress([2, 0, 0, 0, 0, 1]);
    let bench = Bench::new();
    let (port, mut bus) = bench.add(Box::new(E82546Gb::new()), mac);
    let pool = packet_pool(&mut bus, PoolConfig::with_buffers(1024)).expect("memory");
    let hardware = E1000::probe(Box::new(bus)).expect("an 82546GB");
    let mut nic = Nic::new(hardware, NicConfig::new(pool.clone())).expect("within limits");
    nic.start(bench.now()).expect("start");
    let clock = bench.clone();
    let mut driver = EmbassyDriver::new(nic, pool.cache(), move || clock.now()).with_interrupts();
    let count = Arc::new(Count::default());
    let waker = Waker::from(count.clone());
    let mut context = Context::from_waker(&waker);
    assert_eq!(driver.hardware_address(), HardwareAddress::Ethernet(mac.0));
    assert!(driver.link_state(&mut context) == LinkState::Down);
    bench.advance(Duration::from_secs(3));
    assert!(driver.receive(&mut context).is_none());
    assert!(driver.link_state(&mut context) == LinkState::Up);
    assert_eq!(count.0.load(Ordering::Relaxed), 0, "the task sleeps");
    driver.wake();
    assert_eq!(count.0.load(Ordering::Relaxed), 1);

    let token = driver.transmit(&mut context).expect("room");
    token.consume(100, |frame| {
        frame[..6].fill(0xff);
        frame[6..12].copy_from_slice(&mac.0);
        frame[12..14].copy_from_slice(&[0x88, 0xb5]);
        frame[14..].fill(7);
    });
    bench.advance(Duration::from_micros(10));
    let sent = bench.take_sent(port).remove(0).bytes;
    assert_eq!((sent.len(), sent[50]), (100, 7));
    bench.inject(port, Frame::new(sent.clone()));
    bench.advance(Duration::from_micros(10));
    let (received, _) = driver.receive(&mut context).expect("a frame");
    received.consume(|frame| assert_eq!(frame, sent));
    assert_eq!(driver.capabilities().max_transmission_unit, 1514);
    assert!(driver.driver().link().up);
}
