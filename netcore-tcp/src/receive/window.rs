//! The window we advertise (`tcp_select_window`).

use crate::endpoint::Endpoint;
use crate::profile::WindowShare;

impl Endpoint {
    /// Window bytes that `space` bytes of buffer stand for (`tcp_win_from_space`).
    pub(crate) fn window_from_space(&self, space: u64) -> u64 {
        match self.config.profile.window_share {
            WindowShare::Scale(scale) => space - (space >> scale.min(31)),
            WindowShare::Measured => (space * u64::from(self.rcv.scaling_ratio)) >> 8,
        }
    }

    /// Bytes of buffer that a window needs (`tcp_space_from_win`).
    pub(crate) fn space_from_window(&self, window: u64) -> u64 {
        match self.config.profile.window_share {
            WindowShare::Scale(1) => window * 2,
            WindowShare::Scale(scale) => {
                let part = (1_u64 << scale.min(31)) - 1;
                (window << scale.min(31)) / part.max(1)
            }
            WindowShare::Measured => (window << 8) / u64::from(self.rcv.scaling_ratio.max(1)),
        }
    }

    /// Window that the whole buffer stands for (`tcp_full_space`).
    pub(crate) fn full_space(&self) -> u64 {
        self.window_from_space(self.rcv.rcvbuf)
    }

    /// Window that the free part of the buffer stands for (`tcp_space`).
    fn free_space(&self) -> u64 {
        self.window_from_space(self.rcv.rcvbuf.saturating_sub(self.rcv.rmem + self.rcv.ofo.memory()))
    }

    /// Scale and first window of a SYN (`tcp_select_initial_window`).
    pub(crate) fn select_initial_window(&mut self) {
        let p = self.config.profile;
        let clamp = self.rcv.window_clamp;
        let space = self.full_space().min(clamp);
        self.rcv.wscale = 0;
        if p.window_scaling {
            let mut largest = if self.rcv.rcvbuf_locked { self.rcv.rcvbuf } else { self.rcv.rcvbuf.max(p.rmem.max) };
            largest = largest.min(clamp);
            while largest > 65_535 && self.rcv.wscale < 14 {
                largest >>= 1;
                self.rcv.wscale += 1;
            }
        }
        let mss = u64::from(self.rcv.advmss);
        // Slow start of the peer needs no more at first; what it sends shows whether packets are worth their memory.
        let segments = if !p.congestion.initial_window_10 {
            match mss {
                4381.. => 2,
                1461.. => 3,
                _ => 4,
            }
        } else if p.is_rack() {
            65_536_u64.div_ceil(mss).max(10)
        } else {
            10
        };
        self.rcv.wnd = space.min(segments * mss).min(65_535);
        self.rcv.ssthresh = self.rcv.wnd;
        self.rcv.window_clamp = clamp.min(65_535 << self.rcv.wscale);
    }

    /// The window now (`__tcp_select_window`).
    pub(crate) fn desired_window(&mut self) -> u64 {
        let allowed = self.full_space();
        let full = self.rcv.window_clamp.min(allowed);
        let mut free = self.free_space();
        let mss = u64::from(self.rcv.ack.rcv_mss).min(full);
        if mss == 0 {
            return 0;
        }
        let unit = 1_u64 << self.rcv.wscale;
        if free < full >> 1 {
            self.rcv.ack.quick = 0;
            free &= !(unit - 1);
            if free < allowed >> 4 || free < mss {
                return 0;
            }
        }
        free = free.min(self.rcv.ssthresh);
        if self.rcv.wscale > 0 {
            return free.next_multiple_of(unit);
        }
        let window = self.rcv.wnd;
        if window + mss <= free || window > free {
            free - free % mss
        } else if mss == full && free > window + (full >> 1) {
            free
        } else {
            window
        }
    }

    /// Chooses the window of the segment about to be sent, and returns the header field.
    pub(crate) fn select_window(&mut self) -> u16 {
        let old = self.rcv.wnd;
        let left = self.rcv.window_left();
        let mut new = self.desired_window();
        if new < left {
            // A window once offered is never taken back.
            if new == 0 {
                self.counters.want_zero_window_adv += 1;
            }
            new = left.next_multiple_of(1 << self.rcv.wscale);
        }
        let new = new.min(65_535 << self.rcv.wscale);
        self.rcv.wnd = new;
        self.rcv.wup = self.rcv.nxt;
        let field = (new >> self.rcv.wscale) as u16;
        if field == 0 {
            if old != 0 {
                self.counters.to_zero_window_adv += 1;
            }
        } else if old == 0 {
            self.counters.from_zero_window_adv += 1;
        }
        field
    }

    /// An arrival of `len` payload bytes in `truesize` bytes of memory opens the window (`tcp_grow_window`).
    pub(crate) fn grow_window(&mut self, len: u64, truesize: u64) {
        let legacy = matches!(self.config.profile.receive_tuning, crate::profile::ReceiveTuning::Twice);
        let limit = if legacy { self.rcv.window_clamp } else { self.rcv.window_clamp.min(self.free_space()) };
        if self.rcv.ssthresh >= limit || (legacy && self.rcv.ssthresh >= self.free_space()) {
            return;
        }
        let growth = if self.window_from_space(truesize) <= len {
            2 * u64::from(self.rcv.advmss)
        } else {
            self.slow_growth(len, truesize)
        };
        if growth > 0 {
            let growth = if legacy { growth } else { growth.max(2 * len) };
            self.rcv.ssthresh = (self.rcv.ssthresh + growth).min(limit);
            self.rcv.ack.quick |= 1;
        }
    }

    /// Packets that waste memory open the window only while it is small (`__tcp_grow_window`).
    fn slow_growth(&self, len: u64, truesize: u64) -> u64 {
        let mut truesize = self.window_from_space(truesize) >> 1;
        let mut window = self.window_from_space(self.config.profile.rmem.max) >> 1;
        while self.rcv.ssthresh <= window {
            if truesize <= len {
                return 2 * u64::from(self.rcv.ack.rcv_mss);
            }
            truesize >>= 1;
            window >>= 1;
        }
        0
    }
}
