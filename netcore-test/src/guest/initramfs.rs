//! The guest's first file system: busybox, kernel modules, and an init that obeys the serial line.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const INIT: &str = r#"#!/bin/busybox sh
export PATH=/bin:/sbin:/usr/sbin
/bin/busybox mount -t proc p /proc
/bin/busybox mount -t sysfs s /sys
/bin/busybox mount -t devtmpfs d /dev
/bin/busybox --install -s /bin
while read -r name parameters; do insmod /modules/$name.ko $parameters || echo "module $name does not load"; done < /modules.list
stty -echo
echo GUEST-READY
while read -r line; do eval "$line" 2>&1; echo "GUEST-DONE $?"; done
poweroff -f
"#;

/// A file system being packed (cpio, `newc`).
pub(super) struct Initramfs {
    found: Vec<(String, PathBuf)>,
    loaded: BTreeSet<String>,
    list: String,
    files: Vec<(String, u32, Vec<u8>)>,
}

impl Initramfs {
    pub(super) fn new(root: &Path) -> Result<Self, String> {
        let busybox = root.join("busybox");
        let bytes = std::fs::read(&busybox).map_err(|e| format!("{}: {e}", busybox.display()))?;
        let mut found = Vec::new();
        find_modules(&root.join("modules"), &mut found)?;
        let files = vec![("init".into(), 0o755, INIT.into()), ("bin/busybox".into(), 0o755, bytes)];
        Ok(Self { found, loaded: BTreeSet::new(), list: String::new(), files })
    }

    /// Adds a module after those it depends on. One that is not there is built into the kernel.
    pub(super) fn module(&mut self, name: &str, parameters: &str) -> Result<(), String> {
        let name = name.replace('-', "_");
        let Some((_, path)) = self.found.iter().find(|(n, _)| *n == name) else { return Ok(()) };
        if !self.loaded.insert(name.clone()) {
            return Ok(());
        }
        let bytes = unpacked(path)?;
        for needed in depends(&bytes) {
            self.module(&needed, "")?;
        }
        self.list += &format!("{name} {parameters}\n");
        self.file(&format!("modules/{name}.ko"), 0o644, bytes);
        Ok(())
    }

    pub(super) fn file(&mut self, path: &str, mode: u32, bytes: Vec<u8>) {
        self.files.push((path.trim_start_matches('/').into(), mode, bytes));
    }

    pub(super) fn finish(mut self) -> Vec<u8> {
        let list = std::mem::take(&mut self.list).into_bytes();
        self.file("modules.list", 0o644, list);
        let mut folders: BTreeSet<String> = ["proc", "sys", "dev", "tmp"].map(String::from).into();
        for (path, _, _) in &self.files {
            let parents = path.match_indices('/').map(|(at, _)| path[..at].to_string());
            folders.extend(parents);
        }
        let mut out = Vec::new();
        for folder in &folders {
            entry(&mut out, folder, 0o040_755, 0, &[]);
        }
        entry(&mut out, "dev/console", 0o020_600, 5 << 8 | 1, &[]);
        for (path, mode, bytes) in &self.files {
            entry(&mut out, path, 0o100_000 | mode, 0, bytes);
        }
        entry(&mut out, "TRAILER!!!", 0, 0, &[]);
        out
    }
}

/// One cpio entry; `device` is major << 8 | minor.
fn entry(out: &mut Vec<u8>, path: &str, mode: u32, device: u32, bytes: &[u8]) {
    let inode = out.len() as u32 + 1;
    let fields =
        [inode, mode, 0, 0, 1, 0, bytes.len() as u32, 0, 0, device >> 8, device & 0xff, path.len() as u32 + 1, 0];
    out.extend(b"070701");
    for field in fields {
        out.extend(format!("{field:08X}").bytes());
    }
    for part in [path.as_bytes(), &[0]] {
        out.extend(part);
    }
    out.resize(out.len().next_multiple_of(4), 0);
    out.extend(bytes);
    out.resize(out.len().next_multiple_of(4), 0);
}

fn find_modules(folder: &Path, found: &mut Vec<(String, PathBuf)>) -> Result<(), String> {
    let entries = std::fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    for path in entries.flatten().map(|entry| entry.path()) {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() {
            find_modules(&path, found)?;
        } else if let Some((stem, "" | ".xz" | ".zst")) = name.split_once(".ko") {
            found.push((stem.replace('-', "_"), path));
        }
    }
    Ok(())
}

fn unpacked(path: &Path) -> Result<Vec<u8>, String> {
    let tool = match path.extension().and_then(|e| e.to_str()) {
        Some("xz") => "xz",
        Some("zst") => "zstd",
        _ => return std::fs::read(path).map_err(|e| format!("{}: {e}", path.display())),
    };
    let output = Command::new(tool).arg("-dc").arg(path).stderr(Stdio::null()).output();
    let output = output.map_err(|e| format!("{tool}: {e}"))?;
    if output.status.success() { Ok(output.stdout) } else { Err(format!("{tool} cannot unpack {}", path.display())) }
}

/// What the module says in its `.modinfo` that it needs.
fn depends(module: &[u8]) -> Vec<String> {
    const KEY: &[u8] = b"\0depends=";
    let Some(at) = module.windows(KEY.len()).position(|w| w == KEY) else { return Vec::new() };
    let value = module[at + KEY.len()..].split(|&b| b == 0).next().unwrap_or_default();
    String::from_utf8_lossy(value).split(',').filter(|n| !n.is_empty()).map(String::from).collect()
}
