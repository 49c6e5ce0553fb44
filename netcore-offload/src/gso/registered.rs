//! Segmentation of protocols that a user registered.

use super::{SoftwareSegmenter, add_header, set16};
use crate::gro::{get16, pseudo_sum, put16};
use crate::layout::MAX_HEADERS;
use netcore::checksum::sum;
use netcore::offload::{NotSegmented, SegmentError};
use netcore::{Burst, Gso, GsoKind, Packet, PoolCache};

impl SoftwareSegmenter {
    /// Cuts a super-packet whose headers end in a registered protocol; checksums of UDP are final.
    pub(super) fn cut_registered(
        &mut self,
        packet: Packet,
        gso: Gso,
        cache: &mut PoolCache,
        out: &mut Burst,
    ) -> Result<usize, NotSegmented> {
        let Ok((chain, _, _)) = self.protocols.walk(&packet) else {
            return Err(NotSegmented { packet, error: SegmentError::Kind { kind: gso.kind.bits() } });
        };
        let (outer, header_len, size) = (chain.outer, chain.payload, usize::from(gso.size));
        let max = usize::from(u16::MAX).saturating_sub(header_len - outer.network);
        if size == 0 || size > max {
            return Err(NotSegmented { packet, error: SegmentError::Size { size, max } });
        }
        if header_len > MAX_HEADERS {
            let allowed = "at most 512 bytes of headers";
            return Err(NotSegmented { packet, error: SegmentError::Headers { what: "headers", offset: 0, allowed } });
        }
        let mut template = [0; MAX_HEADERS];
        let header = &mut template[..header_len];
        header.copy_from_slice(&packet.head()[..header_len]);
        let first_id = get16(header, outer.network + 4);
        let count = (packet.len() - header_len).div_ceil(size).max(1);
        let mut metadata = packet.metadata();
        metadata.clear_gso();
        metadata.set_transmit_checksum(None);
        let mut cutter = self.prepare_payload(packet, header_len, size, count, cache)?;
        for index in 0..count {
            let Some(piece) = self.next_piece(&mut cutter, size, cache) else { break };
            let total = header_len + piece.len();
            for link in chain.links().iter().rev() {
                let own = &mut header[link.offset..link.offset + link.len];
                self.protocols.handler(link.handler).segment(own, total - link.offset, index as u16);
            }
            if let Some((udp, _)) = outer.udp {
                put16(header, udp + 4, (total - udp) as u16);
                if get16(header, udp + 6) != 0 {
                    put16(header, udp + 6, 0);
                    let pseudo = pseudo_sum(header, outer.network, outer.v6, 17, total - udp);
                    let bytes = sum(&header[udp..]).plus_at(piece.sum_from(0), header_len - udp);
                    put16(header, udp + 6, pseudo.plus(bytes).finish_udp());
                }
            }
            match outer.transport {
                Some(_) if outer.v6 => put16(header, outer.network + 4, (total - outer.network - 40) as u16),
                Some(_) => {
                    if !gso.kind.contains(GsoKind::TCP_FIXEDID) {
                        set16(header, outer.network + 4, first_id.wrapping_add(index as u16), outer.network + 10);
                    }
                    set16(header, outer.network + 2, (total - outer.network) as u16, outer.network + 10);
                }
                None => {}
            }
            let mut segment = add_header(header, piece, cache);
            segment.set_metadata(&metadata);
            out.push(segment);
        }
        self.counters.super_packets += 1;
        self.counters.segments += count as u64;
        Ok(count)
    }
}
