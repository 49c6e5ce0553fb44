//! What was handed to the layers below and has not left the device: the charge of TCP small queues.

use alloc::collections::VecDeque;

#[derive(Clone, Copy, Debug)]
struct Handed {
    /// First position of its payload; equal to `end` for a pure ACK.
    start: u64,
    end: u64,
    truesize: u32,
}

/// Packets below, oldest first. Qdisc and ring keep a flow's order, so completions come in this order.
#[derive(Debug, Default)]
pub(crate) struct Below {
    packets: VecDeque<Handed>,
    charged: u64,
}

impl Below {
    /// Memory charged (`sk_wmem_alloc`), bytes.
    pub(crate) const fn charged(&self) -> u64 {
        self.charged
    }

    pub(crate) fn hand(&mut self, start: u64, end: u64, truesize: u32) {
        self.packets.push_back(Handed { start, end, truesize });
        self.charged += u64::from(truesize);
    }

    /// A packet of `truesize` has left.
    pub(crate) fn complete(&mut self, truesize: u32) {
        // Order is kept below, except where a qdisc dropped one: then look for the size.
        let at = self.packets.iter().position(|p| p.truesize == truesize).unwrap_or(0);
        if let Some(packet) = self.packets.remove(at) {
            self.charged -= u64::from(packet.truesize);
        }
    }

    /// Whether a packet with the byte at `position` still waits (`skb_still_in_host_queue`).
    pub(crate) fn holds(&self, position: u64) -> bool {
        self.packets.iter().any(|p| p.start <= position && position < p.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn completions_release_in_order_and_drops_by_size() {
        let mut b = Below::default();
        b.hand(0, 10, 100);
        b.hand(10, 20, 200);
        b.hand(20, 20, 2);
        assert_eq!(b.charged(), 302);
        b.complete(200);
        assert!(b.holds(5) && !b.holds(15));
        b.complete(100);
        b.complete(2);
        assert_eq!(b.charged(), 0);
        b.complete(50);
        assert_eq!(b.charged(), 0, "an unknown completion releases nothing");
    }
}
