use super::*;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicUsize, Ordering};

#[test]
fn a_full_ring_gives_the_value_back_and_a_batch_keeps_its_rest() {
    let (mut sender, mut receiver) = spsc::<u32>(3).unwrap();
    assert_eq!(sender.capacity(), 4);
    let mut batch: VecDeque<u32> = (0..6).collect();
    assert_eq!(sender.send_batch(&mut batch), 4);
    assert_eq!(batch, [4, 5]);
    assert_eq!(sender.send(9), Err(9));
    let mut got = Vec::new();
    assert_eq!(receiver.receive_batch(&mut got, 3), 3);
    assert_eq!((got, receiver.receive(), receiver.receive()), (Vec::from([0, 1, 2]), Some(3), None));

    let ring = Mpmc::<u32>::new(3).unwrap();
    let mut batch: VecDeque<u32> = (0..6).collect();
    assert_eq!(ring.send_batch(&mut batch), 4);
    assert_eq!((ring.send(9), batch.len()), (Err(9), 2));
    let mut got = Vec::new();
    assert_eq!(ring.receive_batch(&mut got, 9), 4);
    assert_eq!((got, ring.receive()), (Vec::from([0, 1, 2, 3]), None));
}

#[test]
fn capacities_that_make_no_ring_are_refused() {
    assert_eq!(spsc::<u8>(0).unwrap_err(), RingError(0));
    assert!(Mpmc::<u8>::new(usize::MAX).is_err());
    let ring = Mpmc::<u8>::new(1).unwrap();
    assert_eq!((ring.send(1), ring.send(2), ring.send(3)), (Ok(()), Ok(()), Err(3)));
}

/// Counts how often it is dropped.
#[derive(Debug)]
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn what_is_left_in_a_ring_is_dropped_once() {
    let count = Arc::new(AtomicUsize::new(0));
    let (mut sender, mut receiver) = spsc(4).unwrap();
    let ring = Mpmc::new(4).unwrap();
    for _ in 0..3 {
        sender.send(Counted(count.clone())).unwrap();
        ring.send(Counted(count.clone())).unwrap();
    }
    drop((receiver.receive(), ring.receive()));
    assert_eq!(count.load(Ordering::Relaxed), 2);
    drop((sender, receiver, ring));
    assert_eq!(count.load(Ordering::Relaxed), 6);
}

/// Panics at the second value.
struct Picky(usize);

impl Extend<Counted> for Picky {
    fn extend<I: IntoIterator<Item = Counted>>(&mut self, values: I) {
        for value in values {
            self.0 += 1;
            assert!(self.0 < 2, "enough");
            drop(value);
        }
    }
}

#[test]
fn a_receiver_that_panics_neither_doubles_a_value_nor_jams_the_ring() {
    use core::panic::AssertUnwindSafe;
    use std::panic::catch_unwind;
    let count = Arc::new(AtomicUsize::new(0));
    let (mut sender, mut receiver) = spsc(4).unwrap();
    let ring = Mpmc::new(4).unwrap();
    for _ in 0..4 {
        sender.send(Counted(count.clone())).unwrap();
        ring.send(Counted(count.clone())).unwrap();
    }
    assert!(catch_unwind(AssertUnwindSafe(|| receiver.receive_batch(&mut Picky(0), 4))).is_err());
    assert!(catch_unwind(AssertUnwindSafe(|| ring.receive_batch(&mut Picky(0), 4))).is_err());
    assert!(sender.send(Counted(count.clone())).is_ok() && ring.send(Counted(count.clone())).is_ok());
    drop((sender, receiver, ring));
    assert_eq!(count.load(Ordering::Relaxed), 10, "each value is dropped once");
}

#[test]
fn threads_lose_nothing_and_keep_the_order() {
    const N: u64 = 200_000;
    let (mut sender, mut receiver) = spsc::<u64>(64).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut next = 0;
            while next < N {
                let mut batch: VecDeque<u64> = (next..(next + 1 + next % 37).min(N)).collect();
                next += sender.send_batch(&mut batch) as u64;
                if !batch.is_empty() {
                    std::thread::yield_now();
                }
            }
        });
        let mut expected = 0;
        let mut got = Vec::new();
        while expected < N {
            if receiver.receive_batch(&mut got, 32) == 0 {
                std::thread::yield_now();
            }
            for value in got.drain(..) {
                assert_eq!(value, expected);
                expected += 1;
            }
        }
    });
}

#[test]
fn senders_and_receivers_share_a_ring() {
    const EACH: u64 = 30_000;
    let ring = Mpmc::<u64>::new(32).unwrap();
    let received = AtomicUsize::new(0);
    let total: u64 = std::thread::scope(|scope| {
        for sender in 0..2 {
            let ring = &ring;
            scope.spawn(move || {
                let mut batch: VecDeque<u64> = VecDeque::new();
                let mut next = 0;
                while next < EACH || !batch.is_empty() {
                    while batch.len() < 5 && next < EACH {
                        batch.push_back(sender * EACH + next);
                        next += 1;
                    }
                    if ring.send_batch(&mut batch) == 0 {
                        std::thread::yield_now();
                    }
                }
            });
        }
        let received = &received;
        let receivers: Vec<_> = (0..2)
            .map(|_| {
                let ring = &ring;
                scope.spawn(move || {
                    let (mut sum, mut got) = (0, Vec::new());
                    while received.load(Ordering::Relaxed) < 2 * EACH as usize {
                        let n = ring.receive_batch(&mut got, 7);
                        received.fetch_add(n, Ordering::Relaxed);
                        sum += got.drain(..).sum::<u64>();
                        if n == 0 {
                            std::thread::yield_now();
                        }
                    }
                    sum
                })
            })
            .collect();
        receivers.into_iter().map(|receiver| receiver.join().unwrap()).sum()
    });
    assert_eq!(total, (0..2 * EACH).sum());
}

#[test]
fn packets_cross_threads_in_bursts() {
    let pool = crate::PacketPool::new(crate::PoolConfig::with_buffers(32)).unwrap();
    let (mut sender, mut receiver) = spsc(8).unwrap();
    let mut cache = pool.cache();
    let mut burst: Burst = (0..10).map(|i| cache.copy_from_slice(&[i]).unwrap()).collect();
    assert_eq!((sender.send_batch(&mut burst), burst.len()), (8, 2));
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut got = Burst::new();
            receiver.receive_batch(&mut got, 8);
            let bytes: Vec<u8> = got.iter().map(|p| p.head()[0]).collect();
            assert_eq!(bytes, [0, 1, 2, 3, 4, 5, 6, 7]);
        });
    });
}
