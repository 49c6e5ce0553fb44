//! Segmentation by the running kernel: a large frame goes into one TAP, a bridge forwards it to another that announces no
//! offload at all, so the kernel must cut it and fill in every checksum.

use super::{fence, ip, is_fence, sys, sysctl};
use std::io::{Error, Result};
use std::os::fd::OwnedFd;

/// Bytes of `virtio_net_hdr_v1_hash_tunnel`.
pub const HEADER: usize = 24;

pub struct KernelGso {
    from: OwnedFd,
    to: OwnedFd,
    fence: u64,
}

impl KernelGso {
    pub fn new() -> Result<Self> {
        // Checksums, TSO of both IP versions with ECN, UDP of both, UDP tunnels with and without checksum.
        const OFFLOADS: libc::c_ulong = 1 | 2 | 4 | 8 | 0x20 | 0x40 | 0x80 | 0x100;
        sys::enter_namespace()?;
        ip("link add ncbr0 type bridge forward_delay 0 stp_state 0 mcast_snooping 0")?;
        for tables in ["iptables", "ip6tables", "arptables"] {
            let _ = sysctl(&format!("net/bridge/bridge-nf-call-{tables}"), "0");
        }
        ip("link set ncbr0 addrgenmode none mtu 65521 up")?;
        let open = |name: &str, header: usize, offload| -> Result<OwnedFd> {
            let fd = sys::open_tap(name, libc::IFF_NO_PI, header as i32, Some(offload))?;
            ip(&format!("link set {name} addrgenmode none mtu 65521 txqlen 200000 master ncbr0 up"))?;
            Ok(fd)
        };
        let (from, to) = (open("ncgso0", HEADER, OFFLOADS)?, open("ncgso1", 10, 0)?);
        let mut kernel = Self { from, to, fence: 0 };
        // Until the bridge forwards.
        kernel.segment(None)?;
        Ok(kernel)
    }

    /// The wire frames of a frame with its virtio header.
    pub fn segment(&mut self, frame: Option<&[u8]>) -> Result<Vec<Vec<u8>>> {
        if let Some(frame) = frame {
            sys::write(&self.from, frame)?;
        }
        let mut out = Vec::new();
        let mut buffer = vec![0; 1 << 17];
        for _ in 0..200 {
            self.fence += 1;
            sys::write(&self.from, &[&[0; HEADER][..], &fence(self.fence)].concat())?;
            while sys::readable(&self.to, 50) {
                let n = sys::read(&self.to, &mut buffer)?;
                let bytes = &buffer[10..n];
                if is_fence(bytes) {
                    if bytes.get(14..22) == Some(&self.fence.to_be_bytes()) {
                        return Ok(out);
                    }
                } else if bytes.get(..2) != Some(&[0x33, 0x33]) {
                    // The bridge itself speaks to the multicast groups of IPv6.
                    out.push(bytes.to_vec());
                }
            }
        }
        Err(Error::other("the bridge does not forward"))
    }
}
