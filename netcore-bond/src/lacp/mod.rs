//! The Link Aggregation Control Protocol (IEEE 802.1AX clause 6.4) as Linux's bonding driver runs it.
