//! Port keys: ports of one system can aggregate if their keys are equal.

use netcore::LinkState;
use netcore::driver::Duplex;

/// The key that Linux gives a port: bit 0 full duplex, bits 1 to 5 speed code, bits 6 to 15 the user's part. A link that
/// is down, or of unknown speed, has speed code 0.
///
/// ```
/// use netcore::LinkState;
/// assert_eq!(netcore_bond::lacp::port_key(LinkState::up(1000), 0), 9);
/// assert_eq!(netcore_bond::lacp::port_key(LinkState::up(10_000), 3), 3 << 6 | 15);
/// ```
pub const fn port_key(link: LinkState, user: u16) -> u16 {
    let user = user << 6;
    if !link.up {
        return user;
    }
    let duplex = match link.duplex {
        Duplex::Full => 1,
        Duplex::Half => 0,
    };
    user | speed_code(link.speed_mbps) << 1 | duplex
}

/// Linux's number of a speed (`enum ad_link_speed_type`), 0 if it has none.
const fn speed_code(mbps: Option<u32>) -> u16 {
    match mbps {
        Some(1) => 1,
        Some(10) => 2,
        Some(100) => 3,
        Some(1_000) => 4,
        Some(2_500) => 5,
        Some(5_000) => 6,
        Some(10_000) => 7,
        Some(14_000) => 8,
        Some(20_000) => 9,
        Some(25_000) => 10,
        Some(40_000) => 11,
        Some(50_000) => 12,
        Some(56_000) => 13,
        Some(100_000) => 14,
        Some(200_000) => 15,
        Some(400_000) => 16,
        Some(800_000) => 17,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_of_a_half_duplex_or_dead_link_has_no_duplex_bit() {
        let half = LinkState { duplex: Duplex::Half, ..LinkState::up(100) };
        assert_eq!(port_key(half, 0), 6);
        assert_eq!(port_key(LinkState::DOWN, 5), 5 << 6);
        assert_eq!(port_key(LinkState { speed_mbps: None, ..LinkState::up(0) }, 0), 1);
        assert_eq!(port_key(LinkState::up(800_000), 1023), 0xffc0 | 17 << 1 | 1);
    }
}
