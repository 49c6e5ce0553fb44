//! What the tests of the lab share.

use netcore_drivers::pcap::Format;
use netcore_lab::scenario::{CaptureRequest, Scenario};
use std::io::Write;
use std::sync::{Arc, Mutex};

/// A scenario of the repository with settings changed.
pub(crate) fn scenario(name: &str, settings: &[&str]) -> Scenario {
    let file = netcore_test::workspace().join(format!("netcore-lab/scenarios/{name}.toml"));
    Scenario::parse_with(&std::fs::read_to_string(file).unwrap(), settings).unwrap()
}

/// A file in memory that the test reads after the run.
#[derive(Clone, Default)]
pub(crate) struct Shared(Arc<Mutex<Vec<u8>>>);

impl Shared {
    /// A capture of `link` into this file.
    pub(crate) fn request(&self, link: &str) -> CaptureRequest {
        CaptureRequest { link: link.into(), end: None, format: Format::Pcapng, out: Box::new(self.clone()) }
    }

    /// The same at the end of `host`.
    pub(crate) fn request_at(&self, link: &str, host: &str) -> CaptureRequest {
        CaptureRequest { end: Some(host.into()), ..self.request(link) }
    }

    /// What was written.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.0.lock().unwrap().clone()
    }
}

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
