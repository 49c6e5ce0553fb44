//! Slow protocols (IEEE 802.3 annex 57A): what goes to 01:80:c2:00:00:02 with EtherType 0x8809, at most ten frames a second.

use super::WireError;
use crate::driver::MacAddress;

/// Which slow protocol a frame carries: the byte behind the Ethernet header.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum SlowProtocol {
    /// 1: Link Aggregation Control Protocol, see [`Lacpdu`](super::Lacpdu).
    Lacp,
    /// 2: the marker protocol of link aggregation, see [`Marker`](super::Marker).
    Marker,
    /// 3: operation, administration and maintenance (IEEE 802.3 clause 57).
    Oam,
    /// 10: organization specific (ESMC of synchronous Ethernet is one).
    OrganizationSpecific,
    /// Any other.
    Other(u8),
}

impl SlowProtocol {
    /// Where all of them go; bridges never forward it.
    pub const ADDRESS: MacAddress = MacAddress([0x01, 0x80, 0xc2, 0x00, 0x00, 0x02]);

    /// The protocol of what follows an Ethernet header with [`EtherType::SLOW`](super::EtherType::SLOW).
    ///
    /// # Errors
    /// [`WireError::Truncated`] if there is no byte.
    pub fn of(payload: &[u8]) -> Result<Self, WireError> {
        let subtype = *payload.first().ok_or(WireError::Truncated { header: "slow protocol", len: 0, needed: 1 })?;
        Ok(match subtype {
            1 => Self::Lacp,
            2 => Self::Marker,
            3 => Self::Oam,
            10 => Self::OrganizationSpecific,
            other => Self::Other(other),
        })
    }

    /// The subtype byte.
    pub const fn subtype(self) -> u8 {
        match self {
            Self::Lacp => 1,
            Self::Marker => 2,
            Self::Oam => 3,
            Self::OrganizationSpecific => 10,
            Self::Other(other) => other,
        }
    }
}
