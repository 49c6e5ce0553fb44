//! PHY management registers of IEEE 802.3 clause 22, and what autonegotiation resolves to.

use super::settings::{Advertise, FlowControl};
use netcore::LinkState;
use netcore::driver::Duplex;

/// Register 0, control.
pub mod bmcr {
    /// Register number.
    pub const REGISTER: u8 = 0;
    /// Reset; clears itself.
    pub const RESET: u16 = 1 << 15;
    /// Loop back.
    pub const LOOPBACK: u16 = 1 << 14;
    /// Speed bit 0: 100 Mbit/s.
    pub const SPEED_100: u16 = 1 << 13;
    /// Negotiate.
    pub const AUTONEGOTIATE: u16 = 1 << 12;
    /// Power down.
    pub const POWER_DOWN: u16 = 1 << 11;
    /// Negotiate again; clears itself.
    pub const RESTART: u16 = 1 << 9;
    /// Full duplex.
    pub const FULL_DUPLEX: u16 = 1 << 8;
    /// Speed bit 1: 1000 Mbit/s.
    pub const SPEED_1000: u16 = 1 << 6;
}

/// Register 1, status.
pub mod bmsr {
    /// Register number.
    pub const REGISTER: u8 = 1;
    /// Negotiation has finished.
    pub const COMPLETE: u16 = 1 << 5;
    /// The PHY can negotiate.
    pub const CAPABLE: u16 = 1 << 3;
    /// Link; latched low, so read it twice.
    pub const LINK: u16 = 1 << 2;
}

/// Registers 4 and 5, what is offered and what the partner offers.
pub mod anar {
    /// Register number of the own offer.
    pub const REGISTER: u8 = 4;
    /// Register number of the partner's offer.
    pub const PARTNER: u8 = 5;
    /// IEEE 802.3 selector.
    pub const SELECTOR: u16 = 1;
    /// 10 Mbit/s half duplex.
    pub const HALF_10: u16 = 1 << 5;
    /// 10 Mbit/s full duplex.
    pub const FULL_10: u16 = 1 << 6;
    /// 100 Mbit/s half duplex.
    pub const HALF_100: u16 = 1 << 7;
    /// 100 Mbit/s full duplex.
    pub const FULL_100: u16 = 1 << 8;
    /// Symmetric pause.
    pub const PAUSE: u16 = 1 << 10;
    /// Asymmetric pause.
    pub const ASYMMETRIC: u16 = 1 << 11;
    /// The partner has seen our offer.
    pub const ACKNOWLEDGE: u16 = 1 << 14;
}

/// Registers 9 and 10, 1000BASE-T.
pub mod gigabit {
    /// Register number of the own offer.
    pub const REGISTER: u8 = 9;
    /// Register number of the status.
    pub const STATUS: u8 = 10;
    /// Offer 1000 Mbit/s full duplex.
    pub const FULL: u16 = 1 << 9;
    /// The partner offers 1000 Mbit/s full duplex.
    pub const PARTNER_FULL: u16 = 1 << 11;
}

/// Registers 2 and 3, identity.
pub mod identity {
    /// Register number of the upper half.
    pub const HIGH: u8 = 2;
    /// Register number of the lower half.
    pub const LOW: u8 = 3;
}

/// Register 4 for this offer.
pub const fn advertisement(advertise: Advertise, flow_control: FlowControl) -> u16 {
    let mut value = anar::SELECTOR | pause_bits(flow_control);
    if advertise.half_10 {
        value |= anar::HALF_10;
    }
    if advertise.full_10 {
        value |= anar::FULL_10;
    }
    if advertise.half_100 {
        value |= anar::HALF_100;
    }
    if advertise.full_100 {
        value |= anar::FULL_100;
    }
    value
}

/// The pause bits that ask for `flow_control` (IEEE 802.3 table 28B-2). "Receive only" offers both bits, and what is
/// resolved is cut down afterwards.
pub const fn pause_bits(flow_control: FlowControl) -> u16 {
    match flow_control {
        FlowControl::None => 0,
        FlowControl::Transmit => anar::ASYMMETRIC,
        FlowControl::Receive | FlowControl::Full => anar::PAUSE | anar::ASYMMETRIC,
    }
}

/// What both offers of pause resolve to (IEEE 802.3 table 28B-3), cut down to what was asked for.
pub const fn resolve_pause(wanted: FlowControl, local: u16, partner: u16) -> FlowControl {
    let (lp, la) = (local & anar::PAUSE != 0, local & anar::ASYMMETRIC != 0);
    let (pp, pa) = (partner & anar::PAUSE != 0, partner & anar::ASYMMETRIC != 0);
    if lp && pp {
        // Both symmetric; if only reception was wanted, both bits were offered for want of another way to say it.
        return match wanted {
            FlowControl::Receive => FlowControl::Receive,
            _ => FlowControl::Full,
        };
    }
    if !lp && la && pp && pa {
        return FlowControl::Transmit;
    }
    if lp && la && !pp && pa {
        return FlowControl::Receive;
    }
    FlowControl::None
}

/// What both offers of speed resolve to: the best that both have (IEEE 802.3 28B.3). `None` if there is none.
pub const fn resolve_speed(local: u16, partner: u16, gigabit_both: bool) -> Option<LinkState> {
    if gigabit_both {
        return Some(LinkState::up(1000));
    }
    let both = local & partner;
    let (speed, duplex) = if both & anar::FULL_100 != 0 {
        (100, Duplex::Full)
    } else if both & anar::HALF_100 != 0 {
        (100, Duplex::Half)
    } else if both & anar::FULL_10 != 0 {
        (10, Duplex::Full)
    } else if both & anar::HALF_10 != 0 {
        (10, Duplex::Half)
    } else {
        return None;
    };
    Some(LinkState { up: true, speed_mbps: Some(speed), duplex })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pause_resolves_as_table_28b_3_says() {
        let (p, a) = (anar::PAUSE, anar::ASYMMETRIC);
        for (local, partner, result) in [
            (p, p, FlowControl::Full),
            (p | a, p, FlowControl::Full),
            (p, p | a, FlowControl::Full),
            (a, p | a, FlowControl::Transmit),
            (p | a, a, FlowControl::Receive),
            (a, a, FlowControl::None),
            (a, p, FlowControl::None),
            (p, a, FlowControl::None),
            (0, p | a, FlowControl::None),
            (p | a, 0, FlowControl::None),
        ] {
            assert_eq!(resolve_pause(FlowControl::Full, local, partner), result, "{local:#x} {partner:#x}");
        }
        assert_eq!(resolve_pause(FlowControl::Receive, p | a, p), FlowControl::Receive);
    }

    #[test]
    fn the_best_common_speed_wins() {
        let all = advertisement(Advertise::default(), FlowControl::Full);
        assert_eq!(all, 0x0de1);
        assert_eq!(resolve_speed(all, all, true), Some(LinkState::up(1000)));
        assert_eq!(resolve_speed(all, all, false), Some(LinkState::up(100)));
        let half = resolve_speed(all, anar::HALF_100 | anar::FULL_10, false).unwrap();
        assert_eq!((half.speed_mbps, half.duplex), (Some(100), Duplex::Half));
        assert_eq!(resolve_speed(all, 0, false), None);
    }
}
