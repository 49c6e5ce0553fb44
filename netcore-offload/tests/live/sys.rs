//! System calls that the standard library does not have.

use std::ffi::CString;
use std::io::{Error, Result};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// A system call's answer.
fn check(result: libc::c_int) -> Result<libc::c_int> {
    if result < 0 { Err(Error::last_os_error()) } else { Ok(result) }
}

/// Moves this thread into new network and mount namespaces, which vanish with it, and mounts their sysfs.
pub fn enter_namespace() -> Result<()> {
    let root = CString::new("/")?;
    let (sysfs, sys) = (CString::new("sysfs")?, CString::new("/sys")?);
    // SAFETY: unshare changes this thread's namespaces only.
    check(unsafe { libc::unshare(libc::CLONE_NEWNS | libc::CLONE_NEWNET) })?;
    let private = libc::MS_REC | libc::MS_PRIVATE;
    // SAFETY: all strings end with a zero byte and live through the calls; the mounts are in this thread's namespace.
    unsafe {
        check(libc::mount(sysfs.as_ptr(), root.as_ptr(), std::ptr::null(), private, std::ptr::null()))?;
        check(libc::mount(sysfs.as_ptr(), sys.as_ptr(), sysfs.as_ptr(), 0, std::ptr::null()))?;
    }
    Ok(())
}

/// Puts a thread (0 is the caller) on one processor under real-time scheduling.
pub fn pin(thread: libc::pid_t, processor: usize, priority: libc::c_int) -> Result<()> {
    // SAFETY: all zeros is an empty set, and both structures live through the calls.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(processor, &mut set);
        check(libc::sched_setaffinity(thread, size_of::<libc::cpu_set_t>(), &set))?;
        let parameter = libc::sched_param { sched_priority: priority };
        check(libc::sched_setscheduler(thread, libc::SCHED_FIFO, &parameter))?;
    }
    Ok(())
}

/// A processor this thread may run on.
pub fn a_processor() -> Result<usize> {
    // SAFETY: all zeros is an empty set, which the call fills.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        check(libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set))?;
        let last = (0..1024).rev().find(|cpu| libc::CPU_ISSET(*cpu, &set));
        last.ok_or_else(|| Error::other("no processor"))
    }
}

/// A TAP device: frames written to it are received by the kernel, frames the kernel sends to it are read from it.
pub fn open_tap(
    name: &str,
    flags: libc::c_int,
    header: libc::c_int,
    offload: Option<libc::c_ulong>,
) -> Result<OwnedFd> {
    const TUNSETIFF: libc::c_ulong = 0x4004_54ca;
    const TUNSETVNETHDRSZ: libc::c_ulong = 0x4004_54d8;
    const TUNSETOFFLOAD: libc::c_ulong = 0x4004_54d0;
    let file = std::fs::OpenOptions::new().read(true).write(true).open("/dev/net/tun")?;
    let fd = OwnedFd::from(file);
    let mut request = [0u8; 40];
    request[..name.len()].copy_from_slice(name.as_bytes());
    let all = libc::IFF_TAP | libc::IFF_NO_PI | libc::IFF_VNET_HDR | flags;
    request[16..18].copy_from_slice(&(all as u16).to_ne_bytes());
    // SAFETY: the first ioctl takes an ifreq of 40 bytes, the second a pointer to an int, the third a number.
    unsafe {
        check(libc::ioctl(fd.as_raw_fd(), TUNSETIFF as _, request.as_mut_ptr()))?;
        check(libc::ioctl(fd.as_raw_fd(), TUNSETVNETHDRSZ as _, &raw const header))?;
        if let Some(offload) = offload {
            check(libc::ioctl(fd.as_raw_fd(), TUNSETOFFLOAD as _, offload))?;
        }
    }
    Ok(fd)
}

/// Waits until there is something to read, at most for this long.
pub fn readable(fd: &OwnedFd, milliseconds: libc::c_int) -> bool {
    let mut poll = libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: one structure, which lives through the call.
    unsafe { libc::poll(&mut poll, 1, milliseconds) > 0 }
}

pub fn read(fd: &OwnedFd, buffer: &mut [u8]) -> Result<usize> {
    // SAFETY: the kernel writes at most `len` bytes into the buffer.
    let n = unsafe { libc::read(fd.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len()) };
    if n < 0 { Err(Error::last_os_error()) } else { Ok(n as usize) }
}

pub fn write(fd: &OwnedFd, bytes: &[u8]) -> Result<()> {
    // SAFETY: the kernel reads `len` bytes of the slice.
    let n = unsafe { libc::write(fd.as_raw_fd(), bytes.as_ptr().cast(), bytes.len()) };
    if n as usize == bytes.len() { Ok(()) } else { Err(Error::last_os_error()) }
}

/// A packet socket that sees all frames a device delivers, each behind a virtio header, as long as it is not asked to
/// send.
pub fn packet_socket(device: &str, protocol: u16, virtio_header: bool) -> Result<OwnedFd> {
    const PACKET_VNET_HDR: libc::c_int = 15;
    const PACKET_IGNORE_OUTGOING: libc::c_int = 23;
    const SO_RCVBUFFORCE: libc::c_int = 33;
    let name = CString::new(device)?;
    let set = |fd: &OwnedFd, level, option, value: libc::c_int| {
        // SAFETY: the option's value is an int, which lives through the call.
        check(unsafe { libc::setsockopt(fd.as_raw_fd(), level, option, (&raw const value).cast(), 4) })
    };
    // SAFETY: no pointers; the descriptor is new and owned here.
    let fd = unsafe {
        let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK;
        OwnedFd::from_raw_fd(check(libc::socket(libc::AF_PACKET, kind, 0))?)
    };
    if virtio_header {
        set(&fd, libc::SOL_PACKET, PACKET_VNET_HDR, 1)?;
        set(&fd, libc::SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)?;
    }
    set(&fd, libc::SOL_SOCKET, SO_RCVBUFFORCE, 256 << 20)?;
    // SAFETY: all zeros is an address to be filled; the name ends with a zero byte; the address lives through the call.
    unsafe {
        let mut address: libc::sockaddr_ll = std::mem::zeroed();
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = protocol.to_be();
        address.sll_ifindex = libc::if_nametoindex(name.as_ptr()) as i32;
        let len = size_of::<libc::sockaddr_ll>() as u32;
        check(libc::bind(fd.as_raw_fd(), (&raw const address).cast(), len))?;
    }
    Ok(fd)
}

/// Sets `UDP_GRO` on a socket.
pub fn udp_gro(socket: &std::net::UdpSocket) -> Result<()> {
    let one: libc::c_int = 1;
    // SAFETY: the option's value is an int, which lives through the call.
    check(unsafe { libc::setsockopt(socket.as_raw_fd(), libc::IPPROTO_UDP, 104, (&raw const one).cast(), 4) }).map(drop)
}

/// A socket filter that writes length, segment size and number of segments of every packet into a queue.
pub struct SegmentRecorder {
    map: OwnedFd,
    _program: OwnedFd,
}

impl SegmentRecorder {
    pub fn attach(socket: &OwnedFd) -> Result<Self> {
        const SO_ATTACH_BPF: libc::c_int = 50;
        let map = bpf(0, &words(&[22, 0, 12, 1 << 16]))?;
        let mut code = Vec::new();
        let mut instruction = |op: u8, registers: u8, offset: i16, value: i32| {
            code.extend([op, registers]);
            code.extend(offset.to_le_bytes());
            code.extend(value.to_le_bytes());
        };
        // len, gso_size and gso_segs of struct __sk_buff, to the stack
        for (from, to) in [(0, -12), (176, -8), (164, -4)] {
            instruction(0x61, 0x12, from, 0);
            instruction(0x63, 0x2a, to, 0);
        }
        instruction(0x18, 0x11, 0, map.as_raw_fd()); // r1 = map
        instruction(0, 0, 0, 0);
        instruction(0xbf, 0xa2, 0, 0); // r2 = r10 - 12
        instruction(0x07, 0x02, 0, -12);
        instruction(0xb7, 0x03, 0, 2); // r3 = BPF_EXIST
        instruction(0x85, 0, 0, 87); // bpf_map_push_elem
        instruction(0xb4, 0x00, 0, -1); // the whole packet
        instruction(0x95, 0, 0, 0);
        let licence = c"MIT";
        let mut attributes = words(&[1, (code.len() / 8) as u32]);
        attributes.extend((code.as_ptr() as u64).to_ne_bytes());
        attributes.extend((licence.as_ptr() as u64).to_ne_bytes());
        let program = bpf(5, &attributes)?;
        let fd = program.as_raw_fd();
        // SAFETY: the option's value is an int, which lives through the call.
        check(unsafe {
            libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, SO_ATTACH_BPF, (&raw const fd).cast(), 4)
        })?;
        Ok(Self { map, _program: program })
    }

    /// Length, segment size and number of segments of the next packet.
    pub fn pop(&self) -> Option<[u32; 3]> {
        let mut value = [0u32; 3];
        let mut attributes = words(&[self.map.as_raw_fd() as u32, 0]);
        attributes.extend(0u64.to_ne_bytes());
        attributes.extend((value.as_mut_ptr() as u64).to_ne_bytes());
        attributes.resize(160, 0);
        // SAFETY: the kernel writes a value of 12 bytes, as the map was made with, to where the attributes point.
        let result = unsafe { libc::syscall(libc::SYS_bpf, 21, attributes.as_ptr(), 160) };
        (result >= 0).then_some(value)
    }
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

fn bpf(command: libc::c_int, attributes: &[u8]) -> Result<OwnedFd> {
    let mut all = attributes.to_vec();
    all.resize(160, 0);
    // SAFETY: the attributes hold what the two commands used here expect, and what they point to outlives the call; the
    // descriptor is new and owned here.
    unsafe { Ok(OwnedFd::from_raw_fd(check(libc::syscall(libc::SYS_bpf, command, all.as_ptr(), 160) as i32)?)) }
}
