//! Starting and ending QEMU.

use super::QtestBus;
use super::memory::Memory;
use super::protocol::Connection;
use crate::error::NicError;
use netcore::MacAddress;
use rustix::io::{FdFlags, fcntl_setfd};
use std::format;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::string::String;
use std::sync::Arc;
use std::time::{Duration, Instant as Clock};
use std::vec::Vec;

/// Memory of the machine.
const MEMORY_MIB: usize = 64;
/// Size of the firmware.
const FIRMWARE: usize = 64 << 10;
/// Bound of the time that QEMU takes to start.
const START_LIMIT: Duration = Duration::from_secs(20);

/// A NIC to be emulated.
#[derive(Clone, Copy, Debug)]
pub struct EmulatedNic {
    /// QEMU's name of the device ("e1000", "e1000-82545em", "e1000e", "igb").
    pub model: &'static str,
    /// Its station address.
    pub mac: MacAddress,
}

/// A machine without a guest, and its NICs.
pub struct Machine {
    child: Child,
    folder: PathBuf,
    connection: Arc<Connection>,
    memory: Memory,
    monitor: BufReader<UnixStream>,
    lines: Vec<UnixDatagram>,
}

fn failed(what: &'static str) -> impl Fn(std::io::Error) -> NicError {
    move |error| NicError::Io { what, message: format!("{error}") }
}

/// A folder that is there when this returns and was not before.
fn fresh_folder() -> Result<PathBuf, NicError> {
    let base = std::env::temp_dir();
    for n in 0..10_000u32 {
        let folder = base.join(format!("netcore-qtest-{}-{n}", std::process::id()));
        match std::fs::create_dir(&folder) {
            Ok(()) => return Ok(folder),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(failed("folder for sockets")(error)),
        }
    }
    Err(NicError::Io { what: "folder for sockets", message: "all names are taken".into() })
}

fn accept(listener: &UnixListener, child: &mut Child) -> Result<UnixStream, NicError> {
    listener.set_nonblocking(true).map_err(failed("socket"))?;
    let end = Clock::now() + START_LIMIT;
    loop {
        match listener.accept() {
            Ok((stream, _)) => {
                stream.set_nonblocking(false).map_err(failed("socket"))?;
                return Ok(stream);
            }
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(failed("socket")(error)),
        }
        if let Ok(Some(status)) = child.try_wait() {
            return Err(NicError::Io { what: "QEMU", message: format!("ended at once: {status}") });
        }
        if Clock::now() >= end {
            return Err(NicError::Timeout { what: "start of QEMU", limit_us: START_LIMIT.as_micros() as u64 });
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

impl Machine {
    /// Starts QEMU (`program`: "qemu-system-x86_64", or a path to it) with these NICs.
    ///
    /// # Errors
    /// [`NicError::Io`] if it does not start; [`NicError::Timeout`].
    pub fn start(program: impl AsRef<Path>, nics: &[EmulatedNic]) -> Result<Self, NicError> {
        let folder = fresh_folder()?;
        let result = Self::start_in(program.as_ref(), nics, folder.clone());
        if result.is_err() {
            let _ = std::fs::remove_dir_all(&folder);
        }
        result
    }

    fn start_in(program: &Path, nics: &[EmulatedNic], folder: PathBuf) -> Result<Self, NicError> {
        let (memory, memory_fd) = Memory::new(MEMORY_MIB << 20)?;
        // cli; hlt; jmp back: the processor stays parked.
        let mut firmware = vec![0; FIRMWARE];
        firmware[FIRMWARE - 16..FIRMWARE - 12].copy_from_slice(&[0xfa, 0xf4, 0xeb, 0xfd]);
        let firmware_path = folder.join("halt.bin");
        std::fs::write(&firmware_path, firmware).map_err(failed("firmware"))?;
        let qtest_path = folder.join("qtest");
        let monitor_path = folder.join("monitor");
        let qtest = UnixListener::bind(&qtest_path).map_err(failed("socket"))?;
        let monitor = UnixListener::bind(&monitor_path).map_err(failed("socket"))?;
        let mut command = Command::new(program);
        command
            .args(["-machine", "q35,memory-backend=m0", "-accel", "tcg", "-display", "none"])
            .args(["-nodefaults", "-no-user-config", "-qtest-log", "none"])
            .arg("-bios")
            .arg(&firmware_path)
            .arg("-m")
            .arg(format!("{MEMORY_MIB}M"))
            .arg("-object")
            .arg(format!(
                "memory-backend-file,id=m0,size={MEMORY_MIB}M,mem-path=/proc/self/fd/{},share=on",
                memory_fd.as_raw_fd()
            ))
            .arg("-qtest")
            .arg(format!("unix:{}", qtest_path.display()))
            .arg("-qmp")
            .arg(format!("unix:{}", monitor_path.display()));
        let mut lines = Vec::new();
        let mut far_ends = Vec::new();
        for (n, nic) in nics.iter().enumerate() {
            let (near, far) = UnixDatagram::pair().map_err(failed("line"))?;
            near.set_nonblocking(true).map_err(failed("line"))?;
            fcntl_setfd(&far, FdFlags::empty()).map_err(|error| failed("line")(error.into()))?;
            command
                .arg("-netdev")
                .arg(format!("dgram,id=n{n},local.type=fd,local.str={}", far.as_raw_fd()))
                .arg("-device")
                // Every other slot: igb's virtual functions take the numbers behind it.
                .arg(format!("{},id=nic{n},addr={:#x},netdev=n{n},mac={}", nic.model, slot(n), nic.mac));
            lines.push(near);
            far_ends.push(far);
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        // SAFETY: the closure makes one system call and touches no memory of the parent.
        unsafe {
            command.pre_exec(|| {
                // No QEMU outlives the thread that started it.
                rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
                Ok(())
            });
        }
        let mut child = command.spawn().map_err(failed("QEMU"))?;
        let started = accept(&qtest, &mut child).and_then(|qtest| Ok((qtest, accept(&monitor, &mut child)?)));
        let (qtest, monitor) = match started {
            Ok(streams) => streams,
            Err(error) => {
                let _ = child.kill();
                let output = child.wait_with_output();
                let text = output.map(|output| String::from_utf8_lossy(&output.stderr).trim().into());
                return Err(match text {
                    Ok(text) if !String::is_empty(&text) => NicError::Io { what: "QEMU", message: text },
                    _ => error,
                });
            }
        };
        let mut machine = Self {
            child,
            folder,
            connection: Arc::new(Connection::new(qtest)?),
            memory,
            monitor: BufReader::new(monitor),
            lines,
        };
        machine.execute("{\"execute\":\"qmp_capabilities\"}")?;
        Ok(machine)
    }

    /// The bus of NIC `n`. Taking it twice gives two that disturb each other.
    ///
    /// # Errors
    /// [`NicError::OutOfRange`] if there is no such NIC; [`NicError::Io`].
    pub fn bus(&self, n: usize) -> Result<QtestBus, NicError> {
        if n >= self.lines.len() {
            return Err(NicError::OutOfRange { what: "NIC", value: n as u64, allowed: "one of those started" });
        }
        QtestBus::new(self.connection.clone(), self.memory.clone(), slot(n))
    }

    /// The other end of NIC `n`'s line: a frame is a datagram. It does not block.
    pub fn line(&self, n: usize) -> Option<&UnixDatagram> {
        self.lines.get(n)
    }

    /// Pulls or plugs the cable of NIC `n`.
    ///
    /// # Errors
    /// [`NicError::Io`].
    pub fn set_link(&mut self, n: usize, up: bool) -> Result<(), NicError> {
        self.execute(&format!("{{\"execute\":\"set_link\",\"arguments\":{{\"name\":\"n{n}\",\"up\":{up}}}}}"))
    }

    /// Runs a command of the monitor; events that come in between are skipped.
    fn execute(&mut self, command: &str) -> Result<(), NicError> {
        let limit = Some(START_LIMIT);
        self.monitor.get_ref().set_read_timeout(limit).map_err(failed("monitor"))?;
        self.monitor.get_mut().write_all(format!("{command}\n").as_bytes()).map_err(failed("monitor"))?;
        loop {
            let mut line = String::new();
            if self.monitor.read_line(&mut line).map_err(failed("monitor"))? == 0 {
                return Err(NicError::Removed);
            }
            if line.contains("\"return\"") {
                return Ok(());
            }
            if line.contains("\"error\"") {
                return Err(NicError::Io { what: "monitor", message: line.trim().into() });
            }
        }
    }
}

/// Device number of NIC `n`.
const fn slot(n: usize) -> u8 {
    2 * n as u8 + 1
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl core::fmt::Debug for Machine {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Machine")
            .field("process", &self.child.id())
            .field("nics", &self.lines.len())
            .finish_non_exhaustive()
    }
}
