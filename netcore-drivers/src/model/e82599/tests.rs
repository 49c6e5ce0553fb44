//! Each rule is broken on purpose, and a correct sequence breaks none.
