//! The tests of the list.

pub mod advanced;
pub mod basic;
pub mod filter;
pub mod life;
pub mod offload;
