//! `netcore nic list`.

use super::super::print;
use netcore_drivers::nic::known_part;
use serde::Serialize;
use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;

/// A network controller of the machine.
#[derive(Serialize)]
struct Found {
    address: String,
    vendor: String,
    device: String,
    part: Option<&'static str>,
    /// The driver of this project that knows it.
    supported_by: Option<&'static str>,
    /// The kernel's driver it is bound to.
    driver: Option<String>,
    interface: Option<String>,
    iommu_group: Option<String>,
}

fn number(folder: &Path, file: &str) -> Option<u32> {
    let text = std::fs::read_to_string(folder.join(file)).ok()?;
    u32::from_str_radix(text.trim().trim_start_matches("0x"), 16).ok()
}

fn link(folder: &Path, name: &str) -> Option<String> {
    let target = std::fs::read_link(folder.join(name)).ok()?;
    Some(target.file_name()?.to_string_lossy().into_owned())
}

fn look(folder: &Path) -> Option<Found> {
    // Class 02: network controllers.
    if number(folder, "class")? >> 16 != 0x02 {
        return None;
    }
    let (vendor, device) = (number(folder, "vendor")? as u16, number(folder, "device")? as u16);
    let known = known_part(vendor, device);
    let interface = std::fs::read_dir(folder.join("net")).ok().and_then(|mut entries| entries.next()?.ok());
    Some(Found {
        address: folder.file_name()?.to_string_lossy().into_owned(),
        vendor: format!("{vendor:04x}"),
        device: format!("{device:04x}"),
        part: known.map(|known| known.part),
        supported_by: known.map(|known| known.driver),
        driver: link(folder, "driver"),
        interface: interface.map(|entry| entry.file_name().to_string_lossy().into_owned()),
        iommu_group: link(folder, "iommu_group"),
    })
}

pub(super) fn run(json: bool) -> anyhow::Result<ExitCode> {
    let mut found: Vec<Found> = match std::fs::read_dir("/sys/bus/pci/devices") {
        Ok(entries) => entries.filter_map(|entry| look(&entry.ok()?.path())).collect(),
        Err(_) => Vec::new(),
    };
    found.sort_by(|a, b| a.address.cmp(&b.address));
    if json {
        print(&format!("{}\n", serde_json::to_string_pretty(&found)?))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = String::new();
    if found.is_empty() {
        text.push_str("no PCI network controller in this machine (models: netcore nic info model:82576)\n");
    }
    for nic in &found {
        let part = nic.part.unwrap_or("not supported");
        let driver = nic.driver.as_deref().unwrap_or("no driver");
        let interface = nic.interface.as_deref().unwrap_or("-");
        let group = nic.iommu_group.as_deref().map_or("no IOMMU".into(), |group| format!("group {group}"));
        writeln!(
            text,
            "{}  {}:{}  {part:<14} {driver:<12} {interface:<10} {group}",
            nic.address, nic.vendor, nic.device
        )?;
    }
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}
