//! What an endpoint does besides recovery: acknowledging, waiting, probing, opening, ending.

mod common;

use common::{Fate, Pair, path};
use netcore::{Instant, PacketPool, PoolConfig};
use netcore_tcp::config::KeepAlive;
use netcore_tcp::{Config, ConfigError, ConnectionError, Discard, Endpoint, Profile, State};
use std::time::Duration;

#[test]
fn bulk_data_is_acknowledged_every_second_segment() {
    let mut pair = Pair::profile(Profile::linux_current()).rate(10_000_000);
    pair.run(2_000_000, Duration::from_secs(30));
    let data = pair.client.counters().orig_data_sent;
    let acks = pair.server.counters().pure_acks_sent;
    assert!(acks * 2 <= data + 200 && acks * 3 >= data, "{acks} ACKs for {data} segments");
}

#[test]
fn a_lone_segment_is_acknowledged_after_forty_milliseconds() {
    // A small window, so that it soon grows no more: while it grows, everything is acknowledged at once.
    let mut config = Config::new(Profile::linux_current());
    config.rcvbuf = Some(20_000);
    let mut pair = Pair::new(config.clone(), config);
    // Past the quick ACKs of the start.
    pair.run(100_000, Duration::from_secs(2));
    for _ in 0..20 {
        pair.client.write_virtual(1448);
        pair.run(0, Duration::from_millis(100));
    }
    let before = pair.server.counters();
    let sent = pair.now;
    pair.client.write_virtual(1448);
    let end = sent + Duration::from_secs(1);
    while pair.step(end) && pair.server.counters().delayed_acks == before.delayed_acks {}
    let waited = pair.now.duration_since(sent);
    // 10 ms on the way, then the delay.
    assert!((45..=60).contains(&waited.as_millis()), "{waited:?}");
}

#[test]
fn nagle_holds_the_second_small_write_and_nodelay_does_not() {
    for (nodelay, segments) in [(false, 2), (true, 4)] {
        let mut config = Config::new(Profile::linux_current());
        config.nodelay = nodelay;
        let mut pair = Pair::new(config.clone(), config);
        pair.run(0, Duration::from_millis(200));
        let before = pair.client.counters().orig_data_sent;
        for _ in 0..4 {
            pair.client.write_virtual(100);
            pair.pump();
        }
        pair.run(0, Duration::from_millis(500));
        assert_eq!(pair.client.counters().orig_data_sent - before, segments, "nodelay {nodelay}");
        assert_eq!(pair.server.info().bytes_received, 400);
    }
}

#[test]
fn cork_holds_partial_segments_until_it_is_taken_off() {
    let mut config = Config::new(Profile::linux_current());
    config.cork = true;
    let mut pair = Pair::new(config.clone(), config);
    pair.run(0, Duration::from_millis(200));
    pair.client.write_virtual(1000);
    pair.run(0, Duration::from_millis(100));
    assert_eq!(pair.server.info().bytes_received, 0);
    pair.client.write_virtual(1000);
    pair.run(0, Duration::from_millis(100));
    assert_eq!(pair.server.info().bytes_received, 1448);
    pair.client.set_cork(false);
    pair.run(0, Duration::from_millis(100));
    assert_eq!(pair.server.info().bytes_received, 2000);
}

#[test]
fn a_closed_window_is_probed_until_the_reader_comes_back() {
    let mut pair = Pair::profile(Profile::linux_current()).rate(100_000_000);
    pair.server_reads = false;
    pair.run(50_000_000, Duration::from_secs(20));
    let stalled = pair.server.info();
    assert!(stalled.bytes_received < 50_000_000);
    let c = pair.client.counters();
    assert!(c.win_probe > 2, "{c:?}");
    assert_eq!((c.timeouts, pair.client.state()), (0, State::Established));
    pair.server_reads = true;
    pair.server.discard(u64::MAX, &mut pair.cache, pair.now);
    let begun = pair.server.info().bytes_received;
    pair.run(2_000_000, Duration::from_secs(5));
    assert!(pair.server.info().bytes_received > begun, "the window update went out");
}

#[test]
fn a_lost_window_update_does_not_stall_for_ever() {
    let mut pair = Pair::profile(Profile::linux_current()).rate(100_000_000);
    pair.server_reads = false;
    pair.run(10_000_000, Duration::from_secs(5));
    pair.judge = Box::new(|from_client, _, _| if from_client { Fate::Deliver } else { Fate::Drop });
    pair.server.discard(u64::MAX, &mut pair.cache, pair.now);
    pair.server_reads = true;
    pair.run(0, Duration::from_millis(100));
    pair.judge = Box::new(|_, _, _| Fate::Deliver);
    let before = pair.server.info().bytes_received;
    pair.run(0, Duration::from_secs(20));
    assert!(pair.server.info().bytes_received > before);
}

#[test]
fn keep_alive_ends_a_silent_connection_and_keeps_a_living_one() {
    let keep_alive = KeepAlive { idle: Duration::from_secs(10), interval: Duration::from_secs(2), probes: 3 };
    let mut config = Config::new(Profile::linux_current());
    config.keep_alive = Some(keep_alive);
    let mut pair = Pair::new(config, Config::default());
    pair.run(1000, Duration::from_secs(60));
    assert_eq!(pair.client.state(), State::Established);
    assert!(pair.client.counters().keep_alive >= 4);
    pair.judge = Box::new(|_, _, _| Fate::Drop);
    pair.run(0, Duration::from_secs(60));
    assert_eq!(pair.client.error(), Some(ConnectionError::KeepAlive { probes: 3 }));
}

#[test]
fn a_lost_syn_is_sent_again_after_the_initial_timeout() {
    for (profile, ms) in [(Profile::linux_current(), 1000), (Profile::linux_2_6_35(), 3000)] {
        let mut pair = Pair::profile(profile);
        pair.judge = Box::new(|from_client, n, _| if from_client && n == 0 { Fate::Drop } else { Fate::Deliver });
        let begin = pair.now;
        let end = begin + Duration::from_secs(20);
        while pair.step(end) && pair.client.state() != State::Established {}
        let took = pair.now.duration_since(begin).as_millis();
        assert_eq!((took, pair.client.counters().syn_retrans), (ms + 20, 1), "{}", profile.name);
    }
}

#[test]
fn nobody_answering_ends_the_attempt() {
    let mut pair = Pair::profile(Profile::linux_current());
    pair.judge = Box::new(|_, _, _| Fate::Drop);
    pair.run(0, Duration::from_secs(1000));
    assert_eq!(pair.client.error(), Some(ConnectionError::TimedOut { retransmissions: 6 }));
}

#[test]
fn a_refused_connection_says_so() {
    let pool = PacketPool::new(PoolConfig::with_buffers(16)).expect("pool");
    let mut cache = pool.cache();
    let now = Instant::from_secs(1);
    let mut client = Endpoint::connect(Config::default(), path(), 1, now).expect("client");
    // A closed endpoint of the same addresses answers with a RST.
    let mut closed = Endpoint::listen(Config::default(), path().reversed(), 2).expect("server");
    closed.close(&mut cache);
    let syn = client.poll_transmit(&mut cache, now).expect("SYN");
    closed.handle(syn, &mut cache, now).expect("taken");
    let rst = closed.poll_transmit(&mut cache, now).expect("RST");
    client.handle(rst, &mut cache, now).expect("taken");
    assert_eq!((client.state(), client.error()), (State::Closed, Some(ConnectionError::Refused)));
}

#[test]
fn both_sides_may_open_at_once() {
    let pool = PacketPool::new(PoolConfig::with_buffers(64)).expect("pool");
    let mut cache = pool.cache();
    let now = Instant::from_secs(1);
    let mut a = Endpoint::connect(Config::default(), path(), 1, now).expect("a");
    let mut b = Endpoint::connect(Config::default(), path().reversed(), 2, now).expect("b");
    let (x, y) = (a.poll_transmit(&mut cache, now).expect("SYN"), b.poll_transmit(&mut cache, now).expect("SYN"));
    a.handle(y, &mut cache, now).expect("taken");
    b.handle(x, &mut cache, now).expect("taken");
    for _ in 0..4 {
        while let Some(frame) = a.poll_transmit(&mut cache, now) {
            b.handle(frame, &mut cache, now).expect("taken");
        }
        while let Some(frame) = b.poll_transmit(&mut cache, now) {
            a.handle(frame, &mut cache, now).expect("taken");
        }
    }
    assert_eq!((a.state(), b.state()), (State::Established, State::Established));
}

#[test]
fn both_sides_may_close_at_once() {
    let mut pair = Pair::profile(Profile::linux_current());
    pair.run(1000, Duration::from_secs(1));
    pair.client.close(&mut pair.cache);
    pair.server.close(&mut pair.cache);
    pair.run(0, Duration::from_millis(200));
    assert_eq!((pair.client.state(), pair.server.state()), (State::TimeWait, State::TimeWait));
}

#[test]
fn an_abort_resets_the_peer() {
    let mut pair = Pair::profile(Profile::linux_current());
    pair.run(1000, Duration::from_secs(1));
    pair.client.abort(&mut pair.cache);
    pair.run(0, Duration::from_millis(200));
    assert_eq!(pair.client.error(), Some(ConnectionError::Aborted));
    assert_eq!((pair.server.state(), pair.server.error()), (State::Closed, Some(ConnectionError::Reset)));
}

#[test]
fn an_idle_connection_restarts_from_the_initial_window() {
    let mut pair = Pair::profile(Profile::linux_current()).rate(100_000_000);
    pair.run(3_000_000, Duration::from_secs(5));
    let grown = pair.client.info().cwnd;
    assert!(grown > 40, "{grown}");
    pair.run(0, Duration::from_secs(30));
    pair.client.write_virtual(10_000);
    pair.pump();
    assert_eq!(pair.client.info().cwnd, 10);
}

#[test]
fn an_application_that_sends_little_does_not_grow_its_window() {
    let mut pair = Pair::profile(Profile::linux_current()).rate(100_000_000);
    pair.run(0, Duration::from_millis(100));
    for _ in 0..200 {
        pair.client.write_virtual(1448 * 4);
        pair.run(0, Duration::from_millis(25));
    }
    assert!(pair.client.info().cwnd <= 12, "{}", pair.client.info().cwnd);
}

#[test]
fn super_packets_are_sized_by_the_rate() {
    let mut pair = Pair::profile(Profile::linux_current()).rate(100_000_000);
    pair.segment = false;
    let sizes = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let seen = sizes.clone();
    pair.judge = Box::new(move |from_client, _, frame| {
        if from_client {
            seen.lock().expect("lock").push(frame.len());
        }
        Fate::Deliver
    });
    pair.run(5_000_000, Duration::from_secs(5));
    let sizes = sizes.lock().expect("lock");
    let largest = sizes.iter().copied().max().unwrap_or(0);
    // 12.5 MB/s × 1.2 / 1024 is 14.6 KB.
    assert!((12_000..40_000).contains(&largest), "{largest}");
}

#[test]
fn real_bytes_arrive_as_they_were_written() {
    let mut pair = Pair::profile(Profile::linux_current()).rate(100_000_000);
    pair.server_reads = false;
    pair.run(0, Duration::from_millis(100));
    let text: Vec<u8> = (0..100_000_u32).map(|i| (i * 7 + i / 251) as u8).collect();
    let (mut written, mut got) = (0, Vec::new());
    let end = pair.now + Duration::from_secs(10);
    while got.len() < text.len() {
        written += pair.client.write(&text[written..(written + 9000).min(text.len())], &mut pair.cache);
        if !pair.step(end) {
            break;
        }
        let mut part = [0; 4096];
        let n = pair.server.read(&mut part, &mut pair.cache, pair.now);
        got.extend_from_slice(&part[..n]);
    }
    assert_eq!(got.len(), text.len());
    assert!(got == text);
}

#[test]
fn caller_memory_is_sent_without_a_copy() {
    let mut pair = Pair::profile(Profile::linux_current());
    pair.run(0, Duration::from_millis(100));
    let packet = pair.cache.from_owner(vec![7_u8; 10_000]).expect("packet");
    pair.client.write_packet(packet).expect("accepted");
    pair.server_reads = false;
    pair.run(0, Duration::from_millis(100));
    let mut got = vec![0; 10_000];
    assert_eq!(pair.server.read(&mut got, &mut pair.cache, pair.now), 10_000);
    assert!(got.iter().all(|byte| *byte == 7));
}

#[test]
fn what_is_no_segment_of_the_connection_is_refused_with_a_reason() {
    let pool = PacketPool::new(PoolConfig::with_buffers(16)).expect("pool");
    let mut cache = pool.cache();
    let now = Instant::from_secs(1);
    let mut a = Endpoint::connect(Config::default(), path(), 1, now).expect("a");
    for len in 0..80 {
        let packet = cache.copy_from_slice(&vec![0x45; len]).expect("packet");
        assert!(a.handle(packet, &mut cache, now).is_err(), "{len}");
    }
    let other = path().reversed();
    let other = netcore_tcp::Path { local: "10.0.0.9:99".parse().expect("address"), ..other };
    let mut b = Endpoint::connect(Config::default(), other, 1, now).expect("b");
    let syn = b.poll_transmit(&mut cache, now).expect("SYN");
    assert_eq!(a.handle(syn, &mut cache, now), Err(Discard::OtherConnection));
    assert_eq!(a.counters().in_errs, 80);
}

#[test]
fn settings_out_of_range_are_refused_by_name() {
    let mut config = Config::default();
    config.profile.reordering = 0;
    let error = Endpoint::listen(config, path(), 1).map(|_| ()).unwrap_err();
    assert!(matches!(error, ConfigError::OutOfRange { name: "tcp_reordering", .. }), "{error}");
    let mixed = netcore_tcp::Path { remote: "[::1]:5".parse().expect("address"), ..path() };
    assert!(matches!(Endpoint::listen(Config::default(), mixed, 1), Err(ConfigError::MixedFamilies { .. })));
    assert!(Profile::by_name("linux-1.0").unwrap_err().to_string().contains("linux-2.6.35"));
}

#[test]
fn an_idle_connection_is_small() {
    let size = size_of::<Endpoint>();
    assert!(size <= 3072, "{size} bytes");
}
