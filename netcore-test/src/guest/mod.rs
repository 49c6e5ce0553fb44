//! Small Linux guests: a kernel of Debian, a handful of its modules, busybox, NICs that are sockets of the test.
//!
//! `cargo xtask guest` puts kernel and busybox into `target/guest` (or where `NETCORE_GUEST` says). A guest runs under
//! QEMU's emulator, boots in some seconds, and is told what to do by shell commands over its serial line.

mod initramfs;
mod nic;

pub use nic::GuestNic;

use crate::skip;
use initramfs::Initramfs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// What a guest is made of.
#[derive(Clone, Debug)]
pub struct GuestFiles {
    root: PathBuf,
}

impl GuestFiles {
    /// Where the files are, or would be.
    pub fn folder() -> PathBuf {
        std::env::var_os("NETCORE_GUEST").map_or_else(|| crate::workspace().join("target/guest"), PathBuf::from)
    }

    /// The files, if there are any and QEMU is installed. `None`, after [`skip`] with the kind `qemu`, if not.
    ///
    /// # Panics
    /// If something is missing although `NETCORE_REQUIRE` lists `qemu`.
    pub fn find() -> Option<Self> {
        let root = Self::folder();
        let there = ["vmlinux", "modules", "busybox"].iter().all(|part| root.join(part).exists());
        if !there {
            skip("qemu", &format!("no guest kernel in {}: cargo xtask guest gets one", root.display()));
            return None;
        }
        let version = Command::new("qemu-system-x86_64").arg("--version").stdout(Stdio::null()).status();
        if !version.is_ok_and(|status| status.success()) {
            skip("qemu", "qemu-system-x86_64 is not installed: apt-get install qemu-system-x86");
            return None;
        }
        Some(Self { root })
    }
}

/// A guest to be started.
#[derive(Clone, Debug)]
pub struct GuestBuilder {
    files: GuestFiles,
    modules: Vec<(String, String)>,
    extra: Vec<(PathBuf, String)>,
    nics: Vec<(String, [u8; 6])>,
    memory: u32,
    iommu: bool,
}

impl GuestBuilder {
    /// A guest with 256 MiB and without NICs.
    pub fn new(files: GuestFiles) -> Self {
        Self { files, modules: Vec::new(), extra: Vec::new(), nics: Vec::new(), memory: 256, iommu: false }
    }

    /// Loads a kernel module (and what it needs) with these parameters.
    #[must_use]
    pub fn module(mut self, name: &str, parameters: &str) -> Self {
        self.modules.push((name.into(), parameters.into()));
        self
    }

    /// Puts a file into the guest.
    #[must_use]
    pub fn file(mut self, host: &Path, guest: &str) -> Self {
        self.extra.push((host.into(), guest.into()));
        self
    }

    /// Adds a NIC: QEMU's name of its model (`igb`, `e1000`, `virtio-net-pci`), and its address.
    #[must_use]
    pub fn nic(mut self, model: &str, mac: [u8; 6]) -> Self {
        self.nics.push((model.into(), mac));
        self
    }

    /// Puts an IOMMU (VT-d) between the NICs and memory.
    #[must_use]
    pub fn iommu(mut self) -> Self {
        self.iommu = true;
        self
    }

    /// Sets the memory, MiB.
    #[must_use]
    pub fn memory(mut self, mib: u32) -> Self {
        self.memory = mib;
        self
    }

    /// Starts the guest and waits until it takes commands.
    ///
    /// # Errors
    /// What went wrong, for people.
    pub fn boot(self) -> Result<Guest, String> {
        static COUNT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let serial = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("netcore-guest-{}-{serial}", std::process::id()));
        std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        let mut image = Initramfs::new(&self.files.root)?;
        for (name, parameters) in &self.modules {
            image.module(name, parameters)?;
        }
        for (host, guest) in &self.extra {
            let bytes = std::fs::read(host).map_err(|e| format!("{}: {e}", host.display()))?;
            image.file(guest, 0o755, bytes);
        }
        let initrd = folder.join("initramfs");
        std::fs::write(&initrd, image.finish()).map_err(|e| format!("{}: {e}", initrd.display()))?;
        let mut qemu = Command::new("qemu-system-x86_64");
        qemu.args(["-M", "q35", "-accel", "tcg", "-m", &self.memory.to_string(), "-nodefaults", "-display", "none"]);
        let iommu = if self.iommu { " intel_iommu=on" } else { "" };
        qemu.args(["-serial", "stdio", "-no-reboot", "-append", &format!("console=ttyS0 quiet panic=-1{iommu}")]);
        if self.iommu {
            // It must come before the devices that are behind it.
            qemu.args(["-device", "intel-iommu,intremap=on,caching-mode=on"]);
        }
        qemu.arg("-kernel").arg(self.files.root.join("vmlinux")).arg("-initrd").arg(&initrd);
        qemu.arg("-qmp").arg(format!("unix:{}/qmp,server=on,wait=off", folder.display()));
        let mut nics = Vec::new();
        for (i, (model, mac)) in self.nics.iter().enumerate() {
            nics.push(GuestNic::new(&folder, i)?);
            let mac = mac.map(|b| format!("{b:02x}")).join(":");
            let (dir, slot) = (folder.display(), 1 + 2 * i);
            qemu.arg("-netdev").arg(format!(
                "dgram,id=n{i},local.type=unix,local.path={dir}/guest{i},remote.type=unix,remote.path={dir}/test{i}"
            ));
            // igb makes its virtual functions at higher slots of the same bus.
            qemu.arg("-device").arg(format!("{model},addr={slot:#x},netdev=n{i},mac={mac}"));
        }
        qemu.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = qemu.spawn().map_err(|e| format!("qemu-system-x86_64: {e}"))?;
        let (Some(stdin), Some(stdout), Some(stderr)) = (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err("QEMU has no pipes".into());
        };
        let (sender, lines) = channel();
        for stream in [Box::new(stdout) as Box<dyn Read + Send>, Box::new(stderr)] {
            let sender = sender.clone();
            std::thread::spawn(move || {
                for line in BufReader::new(stream).split(b'\n').map_while(Result::ok) {
                    let line = String::from_utf8_lossy(&line).trim_end_matches('\r').to_string();
                    if sender.send(line).is_err() {
                        return;
                    }
                }
            });
        }
        let mut guest = Guest { child, stdin, lines, output: String::new(), nics, folder, qmp: None };
        let deadline = Instant::now() + Duration::from_secs(120);
        while Instant::now() < deadline {
            match guest.lines.recv_timeout(Duration::from_secs(1)) {
                Ok(line) if line == READY => return Ok(guest),
                Ok(line) => guest.output += &format!("{line}\n"),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        Err(format!("the guest did not come up; it said:\n{}", guest.output))
    }
}

const READY: &str = "GUEST-READY";
const DONE: &str = "GUEST-DONE ";

/// A guest that runs. It ends when this is dropped.
#[derive(Debug)]
pub struct Guest {
    child: Child,
    stdin: ChildStdin,
    lines: Receiver<String>,
    output: String,
    nics: Vec<GuestNic>,
    folder: PathBuf,
    qmp: Option<BufReader<UnixStream>>,
}

impl Guest {
    /// Starts a shell command, one line. [`Guest::finished`] gives what it said.
    ///
    /// # Errors
    /// If the guest is gone.
    pub fn start(&mut self, command: &str) -> Result<(), String> {
        self.output.clear();
        writeln!(self.stdin, "{command}").and_then(|()| self.stdin.flush()).map_err(|e| format!("guest: {e}"))
    }

    /// Output of the command that was started, once it ended; does not wait.
    ///
    /// # Errors
    /// If the guest is gone, or the command failed.
    pub fn finished(&mut self) -> Result<Option<String>, String> {
        loop {
            match self.lines.recv_timeout(Duration::ZERO) {
                Ok(line) => {
                    if let Some(code) = line.strip_prefix(DONE) {
                        let output = std::mem::take(&mut self.output);
                        return if code == "0" {
                            Ok(Some(output))
                        } else {
                            Err(format!("exit code {code}:\n{output}"))
                        };
                    }
                    self.output += &format!("{line}\n");
                }
                Err(RecvTimeoutError::Timeout) => return Ok(None),
                Err(RecvTimeoutError::Disconnected) => return Err(format!("the guest is gone:\n{}", self.output)),
            }
        }
    }

    /// Runs a shell command and waits for it.
    ///
    /// # Errors
    /// If the guest is gone, the command failed, or took longer than `limit`.
    pub fn run(&mut self, command: &str, limit: Duration) -> Result<String, String> {
        self.start(command)?;
        let deadline = Instant::now() + limit;
        while Instant::now() < deadline {
            if let Some(output) = self.finished()? {
                return Ok(output);
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        Err(format!("{command}: not within {limit:?}:\n{}", self.output))
    }

    /// A NIC's other end.
    pub fn nic(&self, index: usize) -> &GuestNic {
        &self.nics[index]
    }

    /// Pulls or plugs the cable of a NIC.
    ///
    /// # Errors
    /// If QEMU's monitor cannot be reached.
    pub fn set_link(&mut self, index: usize, up: bool) -> Result<(), String> {
        self.monitor(&format!(r#"{{"execute":"set_link","arguments":{{"name":"n{index}","up":{up}}}}}"#))
    }

    fn monitor(&mut self, command: &str) -> Result<(), String> {
        let error = |e: std::io::Error| format!("QEMU's monitor: {e}");
        if self.qmp.is_none() {
            let stream = UnixStream::connect(self.folder.join("qmp")).map_err(error)?;
            stream.set_read_timeout(Some(Duration::from_secs(10))).map_err(error)?;
            let mut qmp = BufReader::new(stream);
            qmp.read_line(&mut String::new()).map_err(error)?;
            self.qmp = Some(qmp);
            self.monitor(r#"{"execute":"qmp_capabilities"}"#)?;
        }
        let Some(qmp) = &mut self.qmp else { return Err("no monitor".into()) };
        writeln!(qmp.get_mut(), "{command}").map_err(error)?;
        loop {
            let mut line = String::new();
            if qmp.read_line(&mut line).map_err(error)? == 0 || line.contains("\"error\"") {
                return Err(format!("QEMU's monitor: {line}"));
            }
            if line.contains("\"return\"") {
                return Ok(());
            }
        }
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
