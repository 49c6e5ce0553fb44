//! Flows: their keys, the receive-side-scaling hash, and the transmit hashes of bonding.

mod bonding;
mod dissector;
mod key;
mod toeplitz;

pub use bonding::{encap23_hash, encap34_hash, layer2_hash, layer23_hash, layer34_hash, vlan_srcmac_hash};
pub use key::FlowKey;
pub use toeplitz::{MICROSOFT_KEY, RssInput, Toeplitz};
