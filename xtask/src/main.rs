//! `cargo xtask …`: the checks of this repository, one function each.
fn main() {}
