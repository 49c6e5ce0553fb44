//! Whatever a network does to the frames, the stream arrives intact or the connection ends with an error; it never hangs.

mod common;

use common::{Fate, Pair};
use netcore_tcp::{Profile, State};
use proptest::prelude::*;
use std::time::Duration;

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        12 => Just(Fate::Deliver),
        2 => Just(Fate::Drop),
        2 => (0..30_000_000_u64).prop_map(Fate::Delay),
        1 => Just(Fate::Duplicate),
        1 => Just(Fate::Corrupt),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn the_stream_arrives_intact_or_the_connection_errs(
        era in 0..5_usize,
        fates in prop::collection::vec(fate(), 1..200),
        seed in any::<u64>(),
    ) {
        let profile = Profile::all()[era];
        let mut pair = Pair::profile(profile).rate(50_000_000);
        pair.server_reads = false;
        let mut i = seed as usize % fates.len();
        pair.judge = Box::new(move |_, _, _| {
            i = (i + 1) % fates.len();
            fates[i].clone()
        });
        let text: Vec<u8> = (0..60_000_u64).map(|i| (i.wrapping_mul(seed | 1) >> 13) as u8).collect();
        let (mut written, mut got) = (0, Vec::new());
        let end = pair.now + Duration::from_secs(7200);
        let mut closed = false;
        loop {
            written += pair.client.write(&text[written..], &mut pair.cache);
            if written == text.len() && !closed {
                closed = true;
                pair.client.close(&mut pair.cache);
            }
            let before = pair.now;
            if !pair.step(end) {
                break;
            }
            prop_assert!(pair.now >= before);
            let mut part = [0; 8192];
            loop {
                let n = pair.server.read(&mut part, &mut pair.cache, pair.now);
                got.extend_from_slice(&part[..n]);
                if n == 0 {
                    break;
                }
            }
            if pair.server.is_finished() || pair.client.error().is_some() {
                break;
            }
        }
        prop_assert!(got.len() <= text.len());
        prop_assert!(got[..] == text[..got.len()], "{}: bytes differ", profile.name);
        let failed = pair.client.error().is_some() || pair.server.error().is_some();
        prop_assert!(
            got.len() == text.len() || failed,
            "{}: hung with {} of {} bytes, client {:?} {:?}, server {:?}, poll_at {:?}",
            profile.name, got.len(), text.len(), pair.client.state(), pair.client.info(), pair.server.state(), pair.client.poll_at()
        );
        if !failed {
            prop_assert!(pair.server.state() != State::Listen);
        }
    }
}
