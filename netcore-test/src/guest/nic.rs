//! The test's end of a guest's cable.

use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};

/// Frames to and from a NIC of a guest, one datagram each.
#[derive(Debug)]
pub struct GuestNic {
    socket: UnixDatagram,
    guest: PathBuf,
}

impl GuestNic {
    pub(super) fn new(folder: &Path, index: usize) -> Result<Self, String> {
        let path = folder.join(format!("test{index}"));
        let socket = UnixDatagram::bind(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        socket.set_nonblocking(true).map_err(|e| format!("{}: {e}", path.display()))?;
        Ok(Self { socket, guest: folder.join(format!("guest{index}")) })
    }

    /// Sends a frame to the guest. False if it cannot take one now.
    pub fn send(&self, frame: &[u8]) -> bool {
        self.socket.send_to(frame, &self.guest).is_ok()
    }

    /// Takes a frame that the guest sent, if there is one, and says how long it is.
    pub fn receive(&self, frame: &mut [u8]) -> Option<usize> {
        self.socket.recv(frame).ok()
    }
}
