//! Queued packets in one slab, and the queue of a flow over it: a list in order of departure, beside it a heap for packets
//! whose departure times went backwards (Linux: `flow_queue_add`, `fq_peek`).

use alloc::vec::Vec;
use netcore::Packet;

pub(crate) const NIL: u32 = u32::MAX;

/// A queued packet.
#[derive(Debug)]
pub(crate) struct Node {
    packet: Option<Packet>,
    /// When it may leave (Linux: `fq_skb_cb.time_to_send`).
    pub(crate) time: u64,
    /// Next in the list, or next sibling in the heap.
    next: u32,
    /// First child in the heap.
    child: u32,
    /// Order of arrival among packets of the heap.
    arrival: u32,
    /// Bytes on the wire.
    pub(crate) len: u32,
    pub(crate) band: u8,
    /// Whether the packet had a departure time of its own.
    pub(crate) stamped: bool,
}

/// What a packet enters a queue with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entering {
    pub(crate) time: u64,
    pub(crate) len: u32,
    pub(crate) band: u8,
    pub(crate) stamped: bool,
}

/// The packets of one flow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FlowQueue {
    head: u32,
    tail: u32,
    /// Root of the heap.
    late: u32,
}

impl FlowQueue {
    pub(crate) const fn new() -> Self {
        Self { head: NIL, tail: NIL, late: NIL }
    }
}

/// The slab.
#[derive(Debug)]
pub(crate) struct Packets {
    nodes: Vec<Node>,
    free: u32,
    arrivals: u32,
}

impl Packets {
    pub(crate) const fn new() -> Self {
        Self { nodes: Vec::new(), free: NIL, arrivals: 0 }
    }

    #[inline]
    pub(crate) fn node(&self, index: u32) -> &Node {
        &self.nodes[index as usize]
    }

    /// The packet of a node.
    pub(crate) fn packet(&self, index: u32) -> Option<&Packet> {
        self.node(index).packet.as_ref()
    }

    /// Takes out all packets and forgets the nodes.
    pub(crate) fn clear(&mut self) -> impl Iterator<Item = Packet> + '_ {
        self.free = NIL;
        self.nodes.drain(..).filter_map(|node| node.packet)
    }

    /// Adds a packet: behind the others unless it may leave before the last of them.
    pub(crate) fn push(&mut self, queue: &mut FlowQueue, packet: Packet, entering: Entering) {
        let index = self.take(packet, entering);
        if queue.head == NIL {
            queue.head = index;
            queue.tail = index;
        } else if entering.time >= self.nodes[queue.tail as usize].time {
            self.nodes[queue.tail as usize].next = index;
            queue.tail = index;
        } else {
            self.nodes[index as usize].arrival = self.arrivals;
            self.arrivals = self.arrivals.wrapping_add(1);
            queue.late = self.merge(queue.late, index);
        }
    }

    /// The packet that leaves next; the list's if both have the same time.
    #[inline]
    pub(crate) fn peek(&self, queue: &FlowQueue) -> Option<u32> {
        match (queue.head, queue.late) {
            (NIL, NIL) => None,
            (head, NIL) => Some(head),
            (NIL, late) => Some(late),
            (head, late) if self.node(late).time < self.node(head).time => Some(late),
            (head, _) => Some(head),
        }
    }

    /// Takes out the packet that [`Packets::peek`] gave, and what it entered with.
    pub(crate) fn pop(&mut self, queue: &mut FlowQueue, index: u32) -> Option<(Packet, Entering)> {
        if index == queue.head {
            queue.head = self.nodes[index as usize].next;
        } else {
            let children = self.nodes[index as usize].child;
            queue.late = self.merge_siblings(children);
        }
        let node = &mut self.nodes[index as usize];
        let entering = Entering { time: node.time, len: node.len, band: node.band, stamped: node.stamped };
        let packet = node.packet.take();
        node.next = self.free;
        self.free = index;
        packet.map(|packet| (packet, entering))
    }

    fn take(&mut self, packet: Packet, entering: Entering) -> u32 {
        let Entering { time, len, band, stamped } = entering;
        let node = Node { packet: Some(packet), time, next: NIL, child: NIL, arrival: 0, len, band, stamped };
        let index = self.free;
        if index == NIL {
            self.nodes.push(node);
            return (self.nodes.len() - 1) as u32;
        }
        self.free = self.nodes[index as usize].next;
        self.nodes[index as usize] = node;
        index
    }

    /// Whether `a` leaves before `b`. Arrivals wrap; two packets of a flow are never 2³¹ arrivals apart.
    fn before(&self, a: u32, b: u32) -> bool {
        let (a, b) = (self.node(a), self.node(b));
        a.time < b.time || (a.time == b.time && (a.arrival.wrapping_sub(b.arrival) as i32) < 0)
    }

    /// One heap of two (pairing heap).
    fn merge(&mut self, a: u32, b: u32) -> u32 {
        if a == NIL || b == NIL {
            return if a == NIL { b } else { a };
        }
        let (top, under) = if self.before(a, b) { (a, b) } else { (b, a) };
        self.nodes[under as usize].next = self.nodes[top as usize].child;
        self.nodes[top as usize].child = under;
        self.nodes[top as usize].next = NIL;
        top
    }

    /// One heap of a list of siblings: in pairs from left to right, then from right to left.
    fn merge_siblings(&mut self, first: u32) -> u32 {
        let (mut rest, mut pairs) = (first, NIL);
        while rest != NIL {
            let a = rest;
            let b = self.nodes[a as usize].next;
            rest = if b == NIL { NIL } else { self.nodes[b as usize].next };
            self.nodes[a as usize].next = NIL;
            if b != NIL {
                self.nodes[b as usize].next = NIL;
            }
            let pair = self.merge(a, b);
            self.nodes[pair as usize].next = pairs;
            pairs = pair;
        }
        let mut heap = NIL;
        while pairs != NIL {
            let next = self.nodes[pairs as usize].next;
            self.nodes[pairs as usize].next = NIL;
            heap = self.merge(heap, pairs);
            pairs = next;
        }
        heap
    }
}
