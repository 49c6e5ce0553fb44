//! `fq-tso-autosizing`.

mod run;

#[cfg(test)]
mod explore {
    use super::run::*;
    use netcore::Rate;
    use netcore_qdisc::FqRules;
    use netcore_tcp::Profile;
    use netcore_tcp::profile::{Autosizing, SmallQueues};
    use std::time::Duration;

    #[test]
    #[ignore]
    fn explore() {
        let env = |name: &str, default: u64| std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(default);
        let mut profile = Profile::linux_4_3();
        if env("OLD", 0) == 1 {
            profile.autosizing = Autosizing::First;
            profile.small_queues = SmallQueues::Floor;
        }
        if env("NEW", 0) == 1 {
            profile = Profile::linux_current();
        }
        if let Ok(shift) = std::env::var("SHIFT") {
            profile.autosizing = Autosizing::Refined;
            profile.pacing_shift = shift.parse().unwrap();
        }
        profile.skb_overhead = env("OVERHEAD", 1280) as u32;
        let case = Case {
            profile,
            queueing: if env("FIFO", 0) == 1 {
                Queueing::Fifo
            } else {
                Queueing::Fq(if env("NEW", 0) == 1 { FqRules::NETCORE } else { FqRules::LINUX_4_0 })
            },
            flows: env("FLOWS", 2) as u16,
            rate: Rate::from_bits_per_sec(100_000_000),
            tso: env("TSO", 1) == 1,
            gso_max_size: env("GSO", 65536) as u32,
            ring_limit: std::env::var("RING").ok().and_then(|v| v.parse().ok()),
            moderation: Duration::from_micros(env("MOD", 50)),
            delay: Duration::from_micros(env("DELAY", 20)),
            stagger: Duration::from_micros(env("STAGGER", 100)),
            seconds: env("SECS", 14),
        };
        let o = run(&case).unwrap();
        for s in 0..case.seconds as usize {
            let line: Vec<String> = o
                .flows
                .iter()
                .map(|f| format!("{:6.2} cwnd {:4} rtt {:6}", f[s].received, f[s].cwnd, f[s].srtt_us))
                .collect();
            println!("{s:2} {}", line.join(" | "));
        }
        println!(
            "{:?} jain {:.4} retrans {} pps {}",
            o.rates(4, case.seconds as usize),
            jain(&o.rates(4, case.seconds as usize)),
            o.retransmitted,
            o.packets_per_second
        );
    }
}
