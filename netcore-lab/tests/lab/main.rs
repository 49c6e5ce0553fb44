//! Scenarios as a whole: determinism, conservation, captures.

mod common;
mod conservation;
mod determinism;
mod wireshark;
