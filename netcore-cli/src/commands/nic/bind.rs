//! `netcore nic bind` and `unbind`: which kernel driver a device has.

use super::super::print;
use anyhow::{Context, bail};
use std::io::{BufRead, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const VFIO: &str = "vfio-pci";

fn folder(address: &str) -> anyhow::Result<PathBuf> {
    // The address becomes part of a path.
    if !address.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b':' || byte == b'.') {
        bail!("{address:?} is no PCI address; they look like 0000:01:00.0");
    }
    let folder = Path::new("/sys/bus/pci/devices").join(address);
    if !folder.exists() {
        bail!("there is no PCI device {address}; netcore nic list shows those there are");
    }
    Ok(folder)
}

fn driver(folder: &Path) -> Option<String> {
    let target = std::fs::read_link(folder.join("driver")).ok()?;
    Some(target.file_name()?.to_string_lossy().into_owned())
}

fn interface(folder: &Path) -> Option<String> {
    let entry = std::fs::read_dir(folder.join("net")).ok()?.next()?.ok()?;
    Some(entry.file_name().to_string_lossy().into_owned())
}

fn write(path: &Path, value: &str) -> anyhow::Result<()> {
    std::fs::write(path, value).with_context(|| format!("writing {value:?} to {}", path.display()))
}

/// Says what will be done, and asks.
fn agreed(steps: &[String], yes: bool) -> anyhow::Result<bool> {
    print(&format!("This will\n{}", steps.iter().map(|step| format!("  - {step}\n")).collect::<String>()))?;
    if yes {
        return Ok(true);
    }
    if !std::io::stdin().is_terminal() {
        bail!("not done: nobody there to agree; --yes does it without asking");
    }
    print("Go on? [y/N] ")?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// Moves a device to another driver: `wanted`, or whichever the kernel has for it.
fn rebind(address: &str, folder: &Path, wanted: &str) -> anyhow::Result<()> {
    // A line feed alone clears the override.
    write(&folder.join("driver_override"), if wanted.is_empty() { "\n" } else { wanted })?;
    if driver(folder).is_some() {
        write(&folder.join("driver/unbind"), address)?;
    }
    write(Path::new("/sys/bus/pci/drivers_probe"), address)
}

pub(super) fn bind(address: &str, yes: bool) -> anyhow::Result<ExitCode> {
    let folder = folder(address)?;
    let before = driver(&folder);
    if before.as_deref() == Some(VFIO) {
        print(&format!("{address} is bound to {VFIO} already\n"))?;
        return Ok(ExitCode::SUCCESS);
    }
    if !Path::new("/sys/bus/pci/drivers").join(VFIO).exists() {
        bail!("the kernel has no driver {VFIO}; modprobe {VFIO} loads it");
    }
    if !folder.join("iommu_group").exists() {
        bail!("{address} is behind no IOMMU; it can only be driven through sysfs, once it has no driver");
    }
    let mut steps = Vec::new();
    if let Some(interface) = interface(&folder) {
        steps.push(format!("take the interface {interface} away from the kernel: connections through it end"));
    }
    if let Some(driver) = &before {
        steps.push(format!("unbind {address} from {driver}"));
    }
    let group = std::fs::read_dir(folder.join("iommu_group/devices"))?;
    let others: Vec<String> = group
        .filter_map(|entry| Some(entry.ok()?.file_name().to_string_lossy().into_owned()))
        .filter(|other| other != address)
        .collect();
    if !others.is_empty() {
        steps.push(format!("need {} unbound, too: of the same IOMMU group", others.join(", ")));
    }
    steps.push(format!("bind {address} to {VFIO} (netcore nic unbind {address} undoes it)"));
    if !agreed(&steps, yes)? {
        print("nothing done\n")?;
        return Ok(ExitCode::FAILURE);
    }
    rebind(address, &folder, VFIO)?;
    match driver(&folder) {
        Some(driver) if driver == VFIO => print(&format!("{address} is bound to {VFIO}\n"))?,
        now => bail!("{address} is bound to {}, not to {VFIO}", now.as_deref().unwrap_or("nothing")),
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) fn unbind(address: &str, yes: bool) -> anyhow::Result<ExitCode> {
    let folder = folder(address)?;
    let before = driver(&folder);
    if before.as_deref().is_some_and(|driver| driver != VFIO) {
        bail!("{address} is bound to {}, not to {VFIO}", before.unwrap_or_default());
    }
    let steps = [format!("take {address} from {VFIO}"), "let the kernel choose a driver for it".to_owned()];
    if !agreed(&steps, yes)? {
        print("nothing done\n")?;
        return Ok(ExitCode::FAILURE);
    }
    rebind(address, &folder, "")?;
    let now = driver(&folder).unwrap_or_else(|| "nothing".into());
    print(&format!("{address} is bound to {now}\n"))?;
    Ok(ExitCode::SUCCESS)
}
