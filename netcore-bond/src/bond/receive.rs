//! What members receive (Linux: `bond_handle_frame`, `bond_should_deliver_exact_match`).

use super::Bond;
use crate::lacp::Handled;
use crate::options::Mode;
use netcore::wire::SlowProtocol;
use netcore::{Burst, Driver, DriverError, Instant, Packet};

/// True for addresses that bridges never forward, 01:80:c2:00:00:00 to :0f.
fn is_link_local(frame: &[u8]) -> bool {
    matches!(frame, [0x01, 0x80, 0xc2, 0, 0, last, ..] if last & 0xf0 == 0)
}

impl<D: Driver> Bond<D> {
    /// One poll of one member's receive queue, as a host does that serves the interrupts of its devices one by one (NAPI):
    /// adds what the bond delivers to `burst` and says how many packets the member's driver gave, those included that the
    /// bond consumed or dropped. Fewer than `budget` means that its queue is empty. What [`Driver::receive`] does for all
    /// members together; a caller uses one or the other.
    ///
    /// # Errors
    /// [`DriverError::NoSuchQueue`] if there is no member with the number `member` ([`MemberInfo::id`](super::MemberInfo))
    /// or it has no such queue; what its driver says.
    pub fn receive_member(
        &mut self,
        member: u16,
        queue: u16,
        burst: &mut Burst,
        budget: usize,
        now: Instant,
    ) -> Result<usize, DriverError> {
        let Some(index) = self.index_of(member) else {
            return Err(DriverError::NoSuchQueue { queue, queues: 0 });
        };
        let queues = self.members[index].driver.capabilities().receive_queues;
        if queue >= queues {
            return Err(DriverError::NoSuchQueue { queue, queues });
        }
        let result = self.receive_from(index, queue, burst, budget, now);
        self.lacp_output(now);
        result
    }

    fn receive_from(
        &mut self,
        index: usize,
        queue: u16,
        burst: &mut Burst,
        budget: usize,
        now: Instant,
    ) -> Result<usize, DriverError> {
        let mut received = core::mem::take(&mut self.received);
        let result = self.members[index].driver.receive(queue, &mut received, budget, now);
        while let Some(packet) = received.pop() {
            if let Some(packet) = self.accept(index, packet, now) {
                burst.push(packet);
            }
        }
        self.received = received;
        result
    }

    /// Adds what members received in their queue `queue` to `burst`, up to `budget` packets, and says how many.
    pub(super) fn receive_all(
        &mut self,
        queue: u16,
        burst: &mut Burst,
        budget: usize,
        now: Instant,
    ) -> Result<usize, DriverError> {
        let mut total = 0;
        let mut error = None;
        for index in 0..self.members.len() {
            // Consumed and dropped frames count against the budget of their member only.
            let budget = budget - total;
            if budget == 0 {
                break;
            }
            if queue >= self.members[index].driver.capabilities().receive_queues {
                continue;
            }
            let before = burst.len();
            if let Err(e) = self.receive_from(index, queue, burst, budget, now) {
                error = error.or(Some(e));
            }
            total += burst.len() - before;
        }
        self.lacp_output(now);
        // One member that is gone does not silence the others.
        match error {
            Some(error) if total == 0 && self.members.iter().all(|m| !m.is_up()) => Err(error),
            _ => Ok(total),
        }
    }

    /// A packet that a member received: consumed, dropped and counted, or given on.
    fn accept(&mut self, index: usize, mut packet: Packet, now: Instant) -> Option<Packet> {
        let head = packet.head();
        if let (Some(lacp), Some(port)) = (&mut self.lacp, self.members[index].port)
            && head.first_chunk() == Some(&SlowProtocol::ADDRESS.0)
        {
            let handled = match packet.is_linear() {
                true => lacp.handle(port, head, now),
                false => lacp.handle(port, &packet.to_vec(), now),
            };
            if !matches!(handled, Ok(Handled::Pass)) {
                self.cache.put(packet);
                return None;
            }
        }
        if self.options.arp_interval > 0 {
            let mut frame = [0; 64];
            let n = packet.len().min(frame.len());
            if packet.copy_to(0, &mut frame[..n]).is_ok() {
                self.heard(index, &frame[..n], now);
            }
        }
        let head = packet.head();
        let alb = self.mode() == Mode::BalanceAlb;
        if alb && head.get(12..14) == Some(&[0x08, 0x06]) {
            let frame = packet.to_vec();
            self.arp_received(&frame);
        }
        let head = packet.head();
        let m = &mut self.members[index];
        // A unicast frame to an inactive member of a balance-alb bond is meant for it: ARP sent it there.
        let unicast = head.first().is_some_and(|first| first & 1 == 0);
        // What is still in the ring of a link that was given up is old.
        let dead = !m.is_up() && m.link == super::MemberLink::Down;
        if (dead || m.inactive && !(alb && unicast)) && !is_link_local(head) {
            m.counters.rx_nohandler += 1;
            self.cache.put(packet);
            return None;
        }
        m.counters.rx_packets += 1;
        m.counters.rx_bytes += packet.len() as u64;
        // The layers above know the bond's address alone.
        if alb && m.address != self.mac && head.first_chunk() == Some(&m.address.0) {
            let mac = self.mac;
            let ready = packet.is_head_writable() || packet.make_writable(6, &mut self.cache).is_ok();
            if ready && let Ok(Some(destination)) = packet.head_mut().map(|head| head.first_chunk_mut()) {
                *destination = mac.0;
            }
        }
        Some(packet)
    }
}
