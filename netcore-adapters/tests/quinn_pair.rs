//! Two real quinn-proto endpoints over a lossy link in virtual time, with our congestion control at the sender.

use bytes::BytesMut;
use netcore::CongestionOps;
use netcore_adapters::quinn::{Factory, QuinnController};
use netcore_cc::Profile;
use quinn_proto::{
    ClientConfig, Connection, ConnectionHandle, DatagramEvent, Dir, Endpoint, EndpointConfig, Event, ServerConfig,
    StreamEvent, StreamId, TransportConfig,
};
use std::collections::VecDeque;
use std::net::{Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

const SIZE: usize = 3_000_000;

/// One direction: a rate, a queue that drops at its tail, a delay.
struct Link {
    byte_ns: u64,
    queue: usize,
    delay: Duration,
    free: Instant,
    flight: VecDeque<(Instant, Vec<u8>)>,
    dropped: usize,
}

impl Link {
    fn new(mbit: u64, queue: usize, now: Instant) -> Self {
        let delay = Duration::from_millis(20);
        Self { byte_ns: 8_000 / mbit, queue, delay, free: now, flight: VecDeque::new(), dropped: 0 }
    }

    fn send(&mut self, now: Instant, data: Vec<u8>) {
        let waiting = self.flight.iter().filter(|(at, _)| *at > now + self.delay).count();
        if waiting >= self.queue {
            self.dropped += 1;
            return;
        }
        self.free = self.free.max(now) + Duration::from_nanos(self.byte_ns * data.len() as u64);
        self.flight.push_back((self.free + self.delay, data));
    }
}

struct Side {
    endpoint: Endpoint,
    connection: Option<(ConnectionHandle, Connection)>,
    peer: SocketAddr,
}

impl Side {
    fn receive(&mut self, now: Instant, data: &[u8], out: &mut Link) {
        let mut reply = Vec::new();
        match self.endpoint.handle(now, self.peer, None, None, BytesMut::from(data), &mut reply) {
            Some(DatagramEvent::NewConnection(incoming)) => {
                self.connection = Some(self.endpoint.accept(incoming, now, &mut reply, None).ok().unwrap());
            }
            Some(DatagramEvent::ConnectionEvent(_, event)) => {
                self.connection.as_mut().unwrap().1.handle_event(event);
            }
            Some(DatagramEvent::Response(_)) => out.send(now, reply),
            None => {}
        }
    }

    fn drive(&mut self, now: Instant, out: &mut Link) -> Vec<Event> {
        let mut events = Vec::new();
        let Some((handle, connection)) = &mut self.connection else { return events };
        if connection.poll_timeout().is_some_and(|at| at <= now) {
            connection.handle_timeout(now);
        }
        while let Some(event) = connection.poll_endpoint_events() {
            if let Some(event) = self.endpoint.handle_event(*handle, event) {
                connection.handle_event(event);
            }
        }
        let mut buffer = Vec::new();
        while connection.poll_transmit(now, 1, &mut buffer).is_some() {
            out.send(now, std::mem::take(&mut buffer));
        }
        events.extend(std::iter::from_fn(|| connection.poll()));
        events
    }

    fn connection(&mut self) -> &mut Connection {
        &mut self.connection.as_mut().unwrap().1
    }
}

struct Outcome {
    received: Vec<u8>,
    dropped: usize,
    took: Duration,
    largest_window: u64,
    controller: QuinnController,
}

fn transfer(profile: Profile, mbit: u64, queue: usize) -> Outcome {
    let certificate = rcgen::generate_simple_self_signed(vec!["localhost".into()]).unwrap();
    let der = certificate.cert.der().clone();
    let key = rustls::pki_types::PrivateKeyDer::Pkcs8(certificate.signing_key.serialize_der().into());
    let mut roots = rustls::RootCertStore::empty();
    roots.add(der.clone()).unwrap();
    let server_config = ServerConfig::with_single_cert(vec![der], key).unwrap();
    let mut client_config = ClientConfig::with_root_certificates(Arc::new(roots)).unwrap();
    let mut transport = TransportConfig::default();
    transport.congestion_controller_factory(Arc::new(Factory::new(profile)));
    client_config.transport_config(Arc::new(transport));

    let start = Instant::now();
    let address = |port| SocketAddr::new(Ipv6Addr::LOCALHOST.into(), port);
    let config = Arc::new(EndpointConfig::default());
    let mut server = Side {
        endpoint: Endpoint::new(config.clone(), Some(Arc::new(server_config)), true, None),
        connection: None,
        peer: address(1),
    };
    let mut client = Side { endpoint: Endpoint::new(config, None, true, None), connection: None, peer: address(2) };
    client.connection = Some(client.endpoint.connect(start, client_config, address(2), "localhost").unwrap());

    let (mut up, mut down) = (Link::new(mbit, queue, start), Link::new(1000, 1000, start));
    let data: Vec<u8> = (0..SIZE).map(|index| (index % 251) as u8).collect();
    let (mut sent, mut stream, mut from): (usize, Option<StreamId>, Option<StreamId>) = (0, None, None);
    let (mut received, mut largest_window) = (Vec::new(), 0);
    let mut now = start;
    while received.len() < SIZE {
        assert!(now < start + Duration::from_secs(120), "{} of {SIZE} bytes after 120 s", received.len());
        for event in client.drive(now, &mut up) {
            if matches!(event, Event::Connected) {
                stream = client.connection().streams().open(Dir::Uni);
            }
        }
        if let Some(id) = stream {
            while sent < SIZE {
                let Ok(written) = client.connection().send_stream(id).write(&data[sent..]) else { break };
                sent += written;
            }
            client.drive(now, &mut up);
        }
        for event in server.drive(now, &mut down) {
            if matches!(event, Event::Stream(StreamEvent::Opened { dir: Dir::Uni })) {
                from = server.connection().streams().accept(Dir::Uni);
            }
        }
        if let Some(id) = from {
            let mut receiving = server.connection().recv_stream(id);
            let mut chunks = receiving.read(true).unwrap();
            while let Ok(Some(chunk)) = chunks.next(usize::MAX) {
                received.extend_from_slice(&chunk.bytes);
            }
            let _ = chunks.finalize();
            server.drive(now, &mut down);
        }
        largest_window = largest_window.max(client.connection().congestion_state().window());
        let next = [
            up.flight.front().map(|(at, _)| *at),
            down.flight.front().map(|(at, _)| *at),
            client.connection().poll_timeout(),
            server.connection.as_mut().and_then(|(_, connection)| connection.poll_timeout()),
        ];
        now = next.into_iter().flatten().min().unwrap().max(now + Duration::from_nanos(1));
        while up.flight.front().is_some_and(|(at, _)| *at <= now) {
            let (_, datagram) = up.flight.pop_front().unwrap();
            server.receive(now, &datagram, &mut down);
        }
        while down.flight.front().is_some_and(|(at, _)| *at <= now) {
            let (_, datagram) = down.flight.pop_front().unwrap();
            client.receive(now, &datagram, &mut up);
        }
    }
    let controller = client.connection().congestion_state().clone_box().into_any();
    Outcome {
        received,
        dropped: up.dropped,
        took: now - start,
        largest_window,
        controller: *controller.downcast::<QuinnController>().unwrap(),
    }
}

#[test]
fn a_transfer_over_a_short_queue_arrives_whole_and_is_reduced() {
    for profile in [Profile::linux_current(), Profile::linux_2_6_35(), Profile::rfc9438()] {
        let outcome = transfer(profile, 20, 40);
        assert!(outcome.received.iter().enumerate().all(|(index, byte)| *byte == (index % 251) as u8));
        let state = outcome.controller.state();
        println!(
            "{}: {:?}, {} dropped, largest window {}, threshold {:?}",
            profile.name, outcome.took, outcome.dropped, outcome.largest_window, state.ssthresh
        );
        assert!(state.ssthresh.is_some() && state.cwnd >= 2);
        // 3 MB at 20 Mbit/s are 1.2 s.
        assert!(outcome.took > Duration::from_millis(1_200) && outcome.took < Duration::from_secs(6));
    }
}

#[test]
fn hystart_leaves_slow_start_and_loses_less_than_without() {
    let with = transfer(Profile::linux_current(), 20, 60);
    let mut without = Profile::linux_current();
    without.set("hystart", "0").unwrap();
    let without = transfer(without, 20, 60);
    println!("dropped with {} without {}", with.dropped, without.dropped);
    let counters = with.controller.algorithm().info(with.controller.state()).hystart;
    assert_eq!(counters.delay_detect + counters.train_detect, 1);
    assert!(with.dropped < without.dropped);
}
