//! Segmentation inside a tunnel by parts that know no tunnels: the offsets technique.
//!
//! Hardware takes everything from the outer IP header to the inner transport header for one long IP header. It counts length and
//! identification up in the outer header, and sequence number, flags and checksum in the inner transport header. What lies
//! between is the same in every segment, so every segment must have the same length, and the inner IPv4 identification stands
//! still, which only datagrams that are never fragmented may have (RFC 6864 section 4.1).

use crate::nic::offload::Layers;
use crate::ring::HEADER_ROOM;
use netcore::Refusal;
use netcore::checksum::{self, Sum};

/// IPv4: more fragments may not be made of it.
const DONT_FRAGMENT: u8 = 0x40;

fn put(header: &mut [u8], at: usize, value: u16) {
    header[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

/// Addresses of an IP header.
fn addresses(header: &[u8], network: usize, version: u8) -> Sum {
    checksum::sum(if version == 4 { &header[network + 12..network + 20] } else { &header[network + 8..network + 40] })
}

/// Finishes headers that [`segmentation_headers`](crate::nic::offload::segmentation_headers) has prepared for segments of
/// `size` bytes: the inner IP header is made final, the outer UDP header, too, and the outer IPv4 checksum field takes away
/// what hardware will sum too much. `outer_checksum`: the outer UDP header has a checksum.
///
/// # Errors
/// [`Refusal::Segmentation`] if the inner identification may not stand still, or a length does not fit.
pub(super) fn finish(
    header: &mut [u8; HEADER_ROOM],
    layers: &Layers,
    size: u16,
    outer_checksum: bool,
) -> Result<(), Refusal> {
    let (outer, network) = (usize::from(layers.outer_network), usize::from(layers.network));
    let transport = usize::from(layers.transport);
    let udp = outer + if layers.outer_version == 4 { usize::from(header[outer] & 0xf) * 4 } else { 40 };
    let end = layers.header_len() + usize::from(size);
    if udp + 8 > network || end - udp > 0xffff {
        return Err(Refusal::Segmentation);
    }
    let l4 = (end - transport) as u16;
    if layers.version == 4 {
        if header[network + 6] & DONT_FRAGMENT == 0 {
            return Err(Refusal::Segmentation);
        }
        put(header, network + 2, (end - network) as u16);
        put(header, network + 10, 0);
        let sum = checksum::sum(&header[network..transport]).finish();
        put(header, network + 10, sum);
    } else {
        put(header, network + 4, (end - network - 40) as u16);
    }
    let udp_len = (end - udp) as u16;
    put(header, udp + 4, udp_len);
    put(header, udp + 6, 0);
    if outer_checksum {
        // With the inner checksum right, everything from the inner transport header on sums up to the complement of the
        // inner pseudo-header: the same for every segment (RFC 7348 needs no more; Linux calls it local checksum offload).
        let inner = addresses(header, network, layers.version).plus_word(6).plus_word(l4).fold();
        let sum = addresses(header, outer, layers.outer_version)
            .plus_word(17)
            .plus_word(udp_len)
            .plus(checksum::sum(&header[udp..transport]))
            .plus_at(Sum::from_word(!inner), transport - udp);
        put(header, udp + 6, sum.finish_udp());
    }
    if layers.outer_version == 4 {
        put(header, outer + 2, 0);
        // Hardware sums to the inner transport header, and what the field holds.
        let rest = checksum::sum(&header[udp..transport]);
        put(header, outer + 10, rest.finish());
    } else {
        put(header, outer + 4, 0);
    }
    Ok(())
}
