//! Scenarios as a whole: determinism, conservation, captures.

mod common;
mod components;
mod conservation;
mod determinism;
mod moderation;
mod wireshark;
