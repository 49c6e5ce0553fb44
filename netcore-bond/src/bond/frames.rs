//! Frames that a bond sends of its own accord.

use alloc::vec::Vec;
use core::net::{Ipv4Addr, Ipv6Addr};
use netcore::wire::ArpOperation;
use netcore::{MacAddress, checksum};

/// Shortest Ethernet frame without frame check sequence.
const SHORTEST: usize = 60;

fn ethernet(destination: MacAddress, source: MacAddress, vlan: Option<u16>, ethertype: u16) -> Vec<u8> {
    let mut frame = Vec::with_capacity(SHORTEST + 32);
    frame.extend(destination.0);
    frame.extend(source.0);
    if let Some(tci) = vlan {
        frame.extend(0x8100_u16.to_be_bytes());
        frame.extend(tci.to_be_bytes());
    }
    frame.extend(ethertype.to_be_bytes());
    frame
}

fn padded(mut frame: Vec<u8>) -> Vec<u8> {
    if frame.len() < SHORTEST {
        frame.resize(SHORTEST, 0);
    }
    frame
}

/// The four addresses of an ARP packet.
pub(crate) struct Arp {
    pub(crate) operation: ArpOperation,
    pub(crate) sender: (MacAddress, Ipv4Addr),
    pub(crate) target: (MacAddress, Ipv4Addr),
}

/// An ARP packet in a frame from its sender.
pub(crate) fn arp(arp: &Arp, destination: MacAddress, vlan: Option<u16>) -> Vec<u8> {
    let mut frame = ethernet(destination, arp.sender.0, vlan, 0x0806);
    frame.extend([0, 1, 8, 0, 6, 4]);
    frame.extend(arp.operation.0.to_be_bytes());
    for (mac, ip) in [arp.sender, arp.target] {
        frame.extend(mac.0);
        frame.extend(ip.octets());
    }
    padded(frame)
}

/// An ARP request: who has `target`? A probe of the ARP monitor, and with both addresses the same a gratuitous ARP.
pub(crate) fn arp_request(mac: MacAddress, ip: Ipv4Addr, target: Ipv4Addr, vlan: Option<u16>) -> Vec<u8> {
    let request = Arp { operation: ArpOperation::REQUEST, sender: (mac, ip), target: (MacAddress([0; 6]), target) };
    arp(&request, MacAddress::BROADCAST, vlan)
}

/// An unsolicited neighbour advertisement to all nodes, with the override flag (RFC 4861 section 7.2.6; Linux:
/// `ndisc_send_unsol_na`).
pub(crate) fn neighbour_advertisement(mac: MacAddress, ip: Ipv6Addr, vlan: Option<u16>) -> Vec<u8> {
    let all_nodes = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
    let mut message = Vec::with_capacity(32);
    message.extend([136, 0, 0, 0, 0x20, 0, 0, 0]);
    message.extend(ip.octets());
    message.extend([2, 1]);
    message.extend(mac.0);
    let sum = checksum::Sum::pseudo_ipv6(&ip.octets(), &all_nodes.octets(), 58, message.len() as u32);
    let sum = sum.plus(checksum::sum(&message)).finish();
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    let mut frame = ethernet(MacAddress([0x33, 0x33, 0, 0, 0, 1]), mac, vlan, 0x86dd);
    frame.extend([0x60, 0, 0, 0, 0, message.len() as u8, 58, 255]);
    frame.extend(ip.octets());
    frame.extend(all_nodes.octets());
    frame.extend(message);
    frame
}

/// An IGMPv3 report that the host listens to `group` from any source (RFC 3376 section 4.2; Linux: `igmpv3_send_report`).
pub(crate) fn igmp_report(mac: MacAddress, source: Ipv4Addr, group: Ipv4Addr, vlan: Option<u16>) -> Vec<u8> {
    let mut message = [0x22, 0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0, 0];
    message[12..].copy_from_slice(&group.octets());
    let sum = checksum::sum(&message).finish();
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    // With the router alert option.
    let mut header = [0x46, 0xc0, 0, 40, 0, 0, 0x40, 0, 1, 2, 0, 0, 0, 0, 0, 0, 224, 0, 0, 22, 0x94, 4, 0, 0];
    header[12..16].copy_from_slice(&source.octets());
    let sum = checksum::sum(&header).finish();
    header[10..12].copy_from_slice(&sum.to_be_bytes());
    let mut frame = ethernet(MacAddress([1, 0, 0x5e, 0, 0, 22]), mac, vlan, 0x0800);
    frame.extend(header);
    frame.extend(message);
    padded(frame)
}

/// A frame from a station to itself, from which switches learn where it is (Linux: `alb_send_lp_vid`).
pub(crate) fn learning(mac: MacAddress, vlan: Option<u16>) -> Vec<u8> {
    padded(ethernet(mac, mac, vlan, 0x9000))
}
