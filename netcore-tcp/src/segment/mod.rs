//! Segments in and out: frames to header fields, header fields to frames.

mod emit;
mod parse;

pub(crate) use emit::{Emit, FrameTemplate, SynOptions};
pub use parse::{FourTuple, Incoming};
pub(crate) use parse::{MAX_SACK_BLOCKS, Parsed};
