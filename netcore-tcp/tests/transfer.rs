//! Data gets through, at the rate of the path, in every era.

mod common;

use common::{Fate, Pair, path6};
use netcore_tcp::{Config, Profile, State};
use std::time::Duration;

#[test]
fn every_era_transfers_over_a_clean_path() {
    for profile in Profile::all() {
        let mut pair = Pair::profile(profile).rate(100_000_000);
        let got = pair.run(5_000_000, Duration::from_secs(20));
        assert_eq!(got, 5_000_000, "{}", profile.name);
        let c = pair.client.counters();
        assert_eq!((c.retrans_segs, c.timeouts), (0, 0), "{}: {:?}", profile.name, pair.client.info());
    }
}

#[test]
fn ipv6_and_no_options_transfer() {
    let mut bare = Profile::linux_current();
    bare.timestamps = false;
    bare.sack = false;
    bare.window_scaling = false;
    let config = Config::new(bare);
    let mut pair = Pair::with_path(config.clone(), config, path6()).rate(100_000_000);
    assert_eq!(pair.run(500_000, Duration::from_secs(20)), 500_000);
    let info = pair.client.info();
    assert!(!info.timestamps && !info.sack && info.wscale.is_none());
}

#[test]
fn every_era_repairs_random_loss() {
    for profile in Profile::all() {
        let mut pair = Pair::profile(profile).rate(100_000_000);
        let mut x = 1_u64;
        pair.judge = Box::new(move |_, _, _| {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            if (x >> 33).is_multiple_of(100) { Fate::Drop } else { Fate::Deliver }
        });
        let got = pair.run(2_000_000, Duration::from_secs(300));
        assert_eq!(got, 2_000_000, "{}: {:?} {:?}", profile.name, pair.client.info(), pair.client.counters());
    }
}

#[test]
fn closing_goes_through_all_states() {
    let mut pair = Pair::profile(Profile::linux_current());
    pair.run(10_000, Duration::from_secs(1));
    pair.client.close(&mut pair.cache);
    pair.run(0, Duration::from_millis(500));
    assert_eq!((pair.client.state(), pair.server.state()), (State::FinWait2, State::CloseWait));
    assert!(pair.server.is_finished());
    pair.server.close(&mut pair.cache);
    pair.run(0, Duration::from_millis(500));
    assert_eq!((pair.client.state(), pair.server.state()), (State::TimeWait, State::Closed));
    pair.run(0, Duration::from_secs(61));
    assert_eq!(pair.client.state(), State::Closed);
    assert_eq!((pair.client.error(), pair.server.error()), (None, None));
}
