//! `cargo xtask guest`: gets what guests of the tests are made of, without installing anything: Debian's newest kernel that
//! apt knows, its modules, and busybox.

use crate::run::{Outcome, root};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Fills `target/guest`, or where `NETCORE_GUEST` says.
pub(crate) fn get() -> Outcome {
    let folder = std::env::var_os("NETCORE_GUEST").map_or_else(|| root().join("target/guest"), PathBuf::from);
    match fill(&folder) {
        Ok(kernel) => Outcome::Passed(format!("{kernel} in {}", folder.display())),
        Err(error) => Outcome::Failed(error),
    }
}

fn fill(folder: &Path) -> Result<String, String> {
    let io = |e: std::io::Error| format!("{}: {e}", folder.display());
    let packages = folder.join("packages");
    fs::create_dir_all(&packages).map_err(io)?;
    let kernel = newest_kernel()?;
    println!("{kernel}, busybox-static");
    output(Command::new("apt-get").args(["download", &kernel, "busybox-static"]).current_dir(&packages))?;
    let tree = folder.join("tree");
    let _ = fs::remove_dir_all(&tree);
    for package in fs::read_dir(&packages).map_err(io)?.flatten() {
        output(Command::new("dpkg").arg("-x").arg(package.path()).arg(&tree))?;
    }
    let boot = fs::read_dir(tree.join("boot")).map_err(io)?.flatten().map(|e| e.path());
    let image = boot.into_iter().find(|p| p.to_string_lossy().contains("vmlinuz")).ok_or("no kernel in the package")?;
    fs::write(folder.join("vmlinux"), vmlinux(&fs::read(image).map_err(io)?)?).map_err(io)?;
    let place = |candidates: &[&str], name: &str| {
        let found = candidates.iter().map(|c| tree.join(c)).find(|p| p.exists()).ok_or(format!("no {name}"))?;
        let to = folder.join(name);
        let _ = fs::remove_dir_all(&to);
        let _ = fs::remove_file(&to);
        fs::rename(found, to).map_err(io)
    };
    place(&["usr/lib/modules", "lib/modules"], "modules")?;
    place(&["usr/bin/busybox", "bin/busybox"], "busybox")?;
    fs::remove_dir_all(tree).map_err(io)?;
    fs::remove_dir_all(packages).map_err(io)?;
    Ok(kernel)
}

/// The kernel package that the newest `linux-image-amd64` stands for.
fn newest_kernel() -> Result<String, String> {
    let shown = output(Command::new("apt-cache").args(["show", "linux-image-amd64"]))?;
    let shown = String::from_utf8_lossy(&shown).into_owned();
    let kernels = shown.lines().filter_map(|line| line.strip_prefix("Depends: "));
    let kernels = kernels.filter_map(|depends| depends.split([' ', ',']).next());
    let version = |name: &str| -> Vec<u32> {
        name.split(|c: char| !c.is_ascii_digit()).filter_map(|part| part.parse().ok()).collect()
    };
    let newest = kernels.max_by_key(|name| version(name)).map(String::from);
    newest.ok_or("apt knows no linux-image-amd64: apt-get update".into())
}

/// The ELF file packed into a bzImage; booting that leaves out unpacking it in an emulator.
fn vmlinux(image: &[u8]) -> Result<Vec<u8>, String> {
    for (magic, tool) in [(&[0x28, 0xb5, 0x2f, 0xfd][..], "zstd"), (b"\xfd7zXZ\0", "xz")] {
        let starts = image.windows(magic.len()).enumerate().skip(0x4000).filter(|(_, w)| *w == magic);
        for (at, _) in starts {
            let mut unpack = Command::new(tool)
                .arg("-dc")
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn()
                .map_err(|e| format!("{tool}: {e}"))?;
            let (mut stdin, packed) = (unpack.stdin.take(), image[at..].to_vec());
            // What follows the packed kernel is no concern of the tool, so writing to it may fail.
            let writer = std::thread::spawn(move || stdin.as_mut().map(|s| std::io::Write::write_all(s, &packed)));
            let unpacked = unpack.wait_with_output().map_err(|e| format!("{tool}: {e}"))?.stdout;
            let _ = writer.join();
            if unpacked.starts_with(b"\x7fELF") {
                return Ok(unpacked);
            }
        }
    }
    Err("the kernel image is packed in a way that is not known here".into())
}

fn output(command: &mut Command) -> Result<Vec<u8>, String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.stderr(Stdio::inherit()).output().map_err(|e| format!("{program}: {e}"))?;
    if output.status.success() { Ok(output.stdout) } else { Err(format!("{program}: {}", output.status)) }
}
