//! Caller memory as a segment.

use alloc::boxed::Box;

/// Bytes that a caller lent to a packet, shared by every window into them. Read-only: headers in front of caller memory
/// go into a pool buffer of their own.
pub(crate) struct External {
    pub(crate) owner: Box<dyn AsRef<[u8]> + Send + Sync>,
}
