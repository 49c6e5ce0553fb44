//! The tests of the list.

pub mod basic;
pub mod filter;
pub mod life;
pub mod offload;
