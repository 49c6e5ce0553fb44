//! What the user wrote and the peer has not acknowledged.

use alloc::collections::VecDeque;
use netcore::{Packet, PacketError, PoolCache};

enum Chunk {
    /// Bytes that exist only as a length.
    Virtual(u64),
    Bytes(Packet),
}

impl Chunk {
    fn len(&self) -> u64 {
        match self {
            Self::Virtual(len) => *len,
            Self::Bytes(packet) => packet.len() as u64,
        }
    }
}

/// Bytes of the stream from `start` to `end`, in chunks that are shared with the frames made of them.
#[derive(Default)]
pub(crate) struct SendBuffer {
    chunks: VecDeque<(u64, Chunk)>,
    start: u64,
    end: u64,
}

impl core::fmt::Debug for SendBuffer {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("SendBuffer").field("start", &self.start).field("end", &self.end).finish_non_exhaustive()
    }
}

impl SendBuffer {
    /// Nothing yet; the first byte will be at `position`.
    pub(crate) const fn at(position: u64) -> Self {
        Self { chunks: VecDeque::new(), start: position, end: position }
    }

    /// Position behind the last byte.
    pub(crate) const fn end(&self) -> u64 {
        self.end
    }

    /// Bytes held.
    pub(crate) const fn len(&self) -> u64 {
        self.end - self.start
    }

    /// Appends `len` virtual bytes.
    pub(crate) fn push_virtual(&mut self, len: u64) {
        if len == 0 {
            return;
        }
        if let Some((_, Chunk::Virtual(last))) = self.chunks.back_mut() {
            *last += len;
        } else {
            self.chunks.push_back((self.end, Chunk::Virtual(len)));
        }
        self.end += len;
    }

    /// Appends a packet's bytes without copying them.
    pub(crate) fn push_packet(&mut self, packet: Packet) {
        let len = packet.len() as u64;
        if len > 0 {
            self.chunks.push_back((self.end, Chunk::Bytes(packet)));
            self.end += len;
        }
    }

    /// Copies as much of `bytes` as buffers can be had for and says how much.
    pub(crate) fn push_bytes(&mut self, bytes: &[u8], cache: &mut PoolCache) -> usize {
        let mut rest = bytes;
        if let Some((_, Chunk::Bytes(last))) = self.chunks.back_mut() {
            let room = last.tailroom().min(rest.len());
            if room > 0
                && let Ok(area) = last.put(room)
            {
                area.copy_from_slice(&rest[..room]);
                rest = &rest[room..];
                self.end += room as u64;
            }
        }
        while !rest.is_empty() {
            let Ok(mut packet) = cache.get() else { break };
            let room = packet.tailroom().min(rest.len());
            match packet.put(room) {
                Ok(area) if room > 0 => area.copy_from_slice(&rest[..room]),
                _ => {
                    cache.put(packet);
                    break;
                }
            }
            rest = &rest[room..];
            self.push_packet(packet);
        }
        bytes.len() - rest.len()
    }

    /// A packet of the `len` bytes from `position` on, sharing them.
    pub(crate) fn payload(&self, position: u64, len: usize, cache: &mut PoolCache) -> Result<Packet, PacketError> {
        let mut index = match self.chunks.len() {
            1 => 0,
            _ => self.chunks.partition_point(|(start, _)| *start <= position).saturating_sub(1),
        };
        let mut whole: Option<Packet> = None;
        let (mut at, mut left) = (position, len);
        while left > 0 {
            let Some((start, chunk)) = self.chunks.get(index) else { break };
            let offset = at - start;
            let take = (chunk.len() - offset).min(left as u64) as usize;
            let piece = match chunk {
                Chunk::Virtual(_) => cache.virtual_bytes(take),
                Chunk::Bytes(packet) => packet.window(offset as usize, take, cache),
            };
            match (piece, &mut whole) {
                (Ok(piece), None) => whole = Some(piece),
                (Ok(piece), Some(whole)) => whole.append(piece)?,
                (Err(error), _) => {
                    if let Some(whole) = whole {
                        cache.put(whole);
                    }
                    return Err(error);
                }
            }
            at += take as u64;
            left -= take;
            index += 1;
        }
        match whole {
            Some(whole) if left == 0 => Ok(whole),
            _ => Err(PacketError::OutOfRange {
                offset: position as usize,
                end: (position + len as u64) as usize,
                len: self.len() as usize,
            }),
        }
    }

    /// Forgets everything before `position`.
    pub(crate) fn release(&mut self, position: u64, cache: &mut PoolCache) {
        let position = position.min(self.end);
        while let Some((start, chunk)) = self.chunks.front_mut() {
            let end = *start + chunk.len();
            if end > position {
                if let Chunk::Virtual(len) = chunk
                    && position > *start
                {
                    *len = end - position;
                    *start = position;
                }
                break;
            }
            if let Some((_, Chunk::Bytes(packet))) = self.chunks.pop_front() {
                cache.put(packet);
            }
        }
        self.start = self.start.max(position);
    }
}
