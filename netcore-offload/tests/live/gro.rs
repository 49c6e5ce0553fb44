//! Receive offload of the running kernel behind a TAP device.
//!
//! With `IFF_NAPI` the device queues each frame that is written and hands it to `napi_gro_receive` from a poll. The poll runs
//! in a kernel thread (`threaded`), on the writer's processor and below its real-time priority: so it cannot run before the
//! writer sleeps, and a whole burst of up to 64 frames is one poll.

use super::{fence, ip, is_fence, sys, sysctl};
use std::io::{Error, ErrorKind, Result};
use std::net::UdpSocket;
use std::os::fd::OwnedFd;
use std::time::Duration;

/// Bytes of the virtio header in front of each frame.
const HEADER: usize = 10;

/// A packet as the kernel delivered it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Delivered {
    pub bytes: Vec<u8>,
    pub size: u16,
    pub segments: u16,
}

pub struct KernelGro {
    tap: OwnedFd,
    capture: OwnedFd,
    recorder: sys::SegmentRecorder,
    fences: OwnedFd,
    fence: u64,
    buffer: Vec<u8>,
    _datagrams: UdpSocket,
}

impl KernelGro {
    /// A TAP in new namespaces, a VXLAN device of both IP versions on this port, and sockets with `UDP_GRO` on another.
    pub fn new(vxlan_port: u16, udp_port: u16) -> Result<Self> {
        const IFF_NAPI: libc::c_int = 0x10;
        sys::enter_namespace()?;
        ip("link set lo up")?;
        let name = "ncgro0";
        let tap = sys::open_tap(name, IFF_NAPI, HEADER as i32, None)?;
        let _ = sysctl(&format!("net/ipv6/conf/{name}/disable_ipv6"), "1");
        ip(&format!("link set {name} addrgenmode none mtu 65521 txqlen 10000"))?;
        ip(&format!("link add ncvx0 type vxlan external dstport {vxlan_port} udp6zerocsumrx"))?;
        ip("link set ncvx0 addrgenmode none up")?;
        ip(&format!("link set {name} up"))?;
        std::fs::write(format!("/sys/class/net/{name}/threaded"), "1")?;
        let processor = sys::a_processor()?;
        sys::pin(poll_thread(name)?, processor, 10)?;
        sys::pin(0, processor, 20)?;
        let fences = sys::packet_socket(name, super::FENCE, false)?;
        let capture = sys::packet_socket(name, libc::ETH_P_ALL as u16, true)?;
        let recorder = sys::SegmentRecorder::attach(&capture)?;
        // One socket for both IP versions.
        let datagrams = UdpSocket::bind(("::", udp_port))?;
        sys::udp_gro(&datagrams)?;
        let mut kernel =
            Self { tap, capture, recorder, fences, fence: 0, buffer: vec![0; 1 << 20], _datagrams: datagrams };
        kernel.poll(&[])?;
        Ok(kernel)
    }

    /// What the kernel delivers of one burst of at most 64 frames, in order.
    pub fn poll(&mut self, frames: &[Vec<u8>]) -> Result<Vec<Delivered>> {
        for frame in frames {
            self.write(frame)?;
        }
        // The poll runs now, and only now.
        std::thread::sleep(Duration::from_micros(20));
        self.fence += 1;
        self.write(&fence(self.fence))?;
        for _ in 0..100 {
            if sys::readable(&self.fences, 50) {
                let n = sys::read(&self.fences, &mut self.buffer)?;
                if self.buffer[..n].get(14..22) == Some(&self.fence.to_be_bytes()) {
                    return self.drain();
                }
            }
        }
        Err(Error::other("a fence frame was lost"))
    }

    fn write(&self, frame: &[u8]) -> Result<()> {
        sys::write(&self.tap, &[&[0; HEADER], frame].concat())
    }

    fn drain(&mut self) -> Result<Vec<Delivered>> {
        let mut all = Vec::new();
        loop {
            let n = match sys::read(&self.capture, &mut self.buffer) {
                Ok(n) => n,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(all),
                Err(error) => return Err(error),
            };
            let bytes = self.buffer[HEADER..n].to_vec();
            // What the filter recorded before the socket was bound is skipped.
            let recorded = std::iter::from_fn(|| self.recorder.pop()).find(|record| record[0] as usize == bytes.len());
            let Some([_, _, segments]) = recorded else { return Err(Error::other("the filter recorded nothing")) };
            let size = u16::from_le_bytes([self.buffer[4], self.buffer[5]]);
            if !is_fence(&bytes) {
                all.push(Delivered { bytes, size, segments: if size == 0 { 0 } else { segments as u16 } });
            }
        }
    }
}

/// The kernel thread that polls a device.
fn poll_thread(device: &str) -> Result<libc::pid_t> {
    let name = format!("napi/{device}-");
    let wanted = &name[..name.len().min(15)];
    for entry in std::fs::read_dir("/proc")? {
        let entry = entry?;
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        let comm = std::fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
        if comm.starts_with(wanted) {
            return Ok(pid);
        }
    }
    Err(Error::other(format!("no thread {wanted}")))
}
