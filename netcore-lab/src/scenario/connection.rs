//! Configuration of a connection from a flow's table.

use super::error::{ScenarioError, Source};
use super::schema::{Algorithm, FlowTable, HostTable, PacingChoice};
use super::sysctl;
use crate::host::{Application, Bulk};
use netcore::Instant;
use netcore::congestion::PacingStatus;
use netcore_tcp::{Config, Profile};
use toml::{Spanned, Value};

/// Configuration of the sender (`receiver` false) or receiver of a flow.
pub(super) fn config(
    flow: &Spanned<FlowTable>,
    host: &HostTable,
    receiver: bool,
    source: &Source,
) -> Result<Config, ScenarioError> {
    let table = flow.get_ref();
    let name = table.receiver_profile.as_ref().filter(|_| receiver).unwrap_or(&table.profile);
    let mut profile = Profile::by_name(name.get_ref()).map_err(|_| {
        let known: Vec<_> = Profile::all().iter().map(|profile| profile.name).collect();
        source.at(name, format!("there is no profile \"{}\"", name.get_ref()), known.join(", "))
    })?;
    if let Some(algorithm) = table.congestion {
        profile.congestion = profile.congestion.with_algorithm(match algorithm {
            Algorithm::Cubic => netcore_cc::Algorithm::Cubic,
            Algorithm::Reno => netcore_cc::Algorithm::Reno,
            Algorithm::Rfc9438 => netcore_cc::Algorithm::Rfc9438,
        });
    }
    for (name, value) in &table.tcp_cubic {
        let text = match value.get_ref() {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        profile
            .congestion
            .set(name.get_ref(), &text)
            .map_err(|error| source.at(value, error.to_string(), "what the message says"))?;
    }
    for (name, value) in &table.sysctl {
        sysctl::set(&mut profile, name.get_ref(), value.get_ref())
            .map_err(|(what, allowed)| source.at(value, what, allowed))?;
    }
    if let Some(hz) = table.hz {
        profile.congestion =
            profile.congestion.with_hz(hz).map_err(|error| source.at(flow, error.to_string(), "1 to 1000000"))?;
        if profile.name != "linux-current" {
            // The timestamp clock was the jiffy clock.
            profile.timestamp_hz = hz;
        }
    }
    let mut config = Config::new(profile);
    // The kernel takes twice what the application asks for.
    config.sndbuf = table.sndbuf.map(|size| size.0.saturating_mul(2));
    config.rcvbuf = table.rcvbuf.map(|size| size.0.saturating_mul(2));
    config.nodelay = table.nodelay;
    config.pacing = match table.pacing {
        PacingChoice::None => PacingStatus::None,
        PacingChoice::Internal => PacingStatus::Needed,
        PacingChoice::Fq => PacingStatus::Fq,
    };
    config.max_pacing_rate = table.max_pacing_rate.map(|speed| speed.0);
    config.gso_max_size = config.gso_max_size.min(host.tso_max_size as u32);
    config.validate().map_err(|error| source.at(flow, error.to_string(), "what the message says"))?;
    Ok(config)
}

/// What sends and what receives; `end` is the end of the run.
pub(super) fn applications(table: &FlowTable, end: Instant) -> (Application, Application) {
    let bulk = Bulk {
        bytes: table.bytes.map(|size| size.0),
        write_size: table.write_size.0.max(1),
        write_time: table.write_time.0,
        stop: table.stop.map(|stop| Instant::ZERO + stop.0).filter(|stop| *stop < end),
        close: true,
    };
    if table.both_ways {
        return (Application::Both(bulk), Application::Both(bulk));
    }
    let sink = match table.read_rate {
        Some(speed) => Application::SlowSink { rate: speed.0.bytes_per_sec() },
        None => Application::Sink,
    };
    (Application::Bulk(bulk), sink)
}
