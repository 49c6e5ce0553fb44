use super::*;
use crate::driver::MacAddress;
use crate::wire::{SlowProtocol, WireError};
use alloc::string::ToString;
use alloc::vec::Vec;
use zerocopy::IntoBytes;

fn port(n: u16) -> PortInformation {
    PortInformation::new(0x8000, MacAddress([2, 0, 0, 0, 0, n as u8]), 9, 255, n, LacpState::from_bits_retain(0x3d))
}

#[test]
fn lacpdu_is_written_and_read_back() {
    let pdu = Lacpdu::new(port(1), port(2), 0x1234);
    let frame = pdu.frame(MacAddress([2, 0, 0, 0, 0, 7]));
    assert_eq!(frame[..15], [1, 0x80, 0xc2, 0, 0, 2, 2, 0, 0, 0, 0, 7, 0x88, 9, 1]);
    let (read, rest) = Lacpdu::parse(&frame[14..]).unwrap();
    assert_eq!((read, rest.len(), read.version(), read.collector_max_delay()), (&pdu, 0, 1, 0x1234));
    assert_eq!((read.actor().port(), read.partner().port(), read.actor().key()), (1, 2, 9));
    assert_eq!(read.actor().state().to_string(), "**DCSG*A");
    assert_eq!(read.tlvs().count(), 0);
}

#[test]
fn any_version_is_accepted_and_version_2_tlvs_are_listed() {
    let mut bytes = [0; Lacpdu::LEN];
    bytes.copy_from_slice(Lacpdu::new(port(1), port(2), 0).as_bytes());
    bytes[1] = 2;
    bytes[58..64].copy_from_slice(&[4, 6, 0, 0x80, 0xc2, 1]);
    bytes[64..66].copy_from_slice(&[5, 20]);
    let (pdu, _) = Lacpdu::parse(&bytes).unwrap();
    let tlvs: Vec<_> = pdu.tlvs().map(|t| t.map(|t| (t.kind, t.value.len()))).collect();
    assert_eq!(tlvs, [Ok((4, 4)), Ok((5, 18))]);
    bytes[65] = 200;
    let (pdu, _) = Lacpdu::parse(&bytes).unwrap();
    let last = pdu.tlvs().last().unwrap();
    assert!(matches!(last, Err(WireError::Field { field: "TLV length", offset: 65, value: 200, .. })));
    // 43.4.12: the version is not validated, nor are TLV types.
    (bytes[1], bytes[2], bytes[22]) = (0, 99, 77);
    assert!(Lacpdu::parse(&bytes).is_ok());
}

#[test]
fn what_is_no_lacpdu_says_why() {
    let pdu = Lacpdu::new(port(1), port(2), 0);
    let mut bytes = [0; Lacpdu::LEN];
    bytes.copy_from_slice(pdu.as_bytes());
    assert_eq!(
        Lacpdu::parse(&bytes[..109]).unwrap_err(),
        WireError::Truncated { header: "LACPDU", len: 109, needed: 110 }
    );
    assert!(Lacpdu::parse(&[]).is_err());
    for (at, name) in [(0, "subtype"), (3, "actor information length"), (23, "partner information length"), (43, "")] {
        let good = core::mem::replace(&mut bytes[at], 7);
        let Err(WireError::Field { field, offset, value: 7, .. }) = Lacpdu::parse(&bytes) else { panic!("byte {at}") };
        assert!(offset == at && field.starts_with(name));
        bytes[at] = good;
    }
}

#[test]
fn marker_response_is_the_request_but_for_its_type() {
    let marker = Marker::new(MacAddress([2, 0, 0, 0, 0, 9]), 3, 0xdead_beef);
    let (request, response) = (marker.frame(MacAddress([9; 6])), marker.response().frame(MacAddress([9; 6])));
    let differing: Vec<_> = (0..request.len()).filter(|&i| request[i] != response[i]).collect();
    assert_eq!(differing, [16]);
    let (read, _) = Marker::parse(&response[14..]).unwrap();
    assert!(read.is_response() && !marker.is_response());
    assert_eq!((read.requester_port(), read.transaction()), (3, 0xdead_beef));
    let mut bad = response;
    bad[16] = 3;
    assert!(matches!(Marker::parse(&bad[14..]), Err(WireError::Field { field: "TLV type", offset: 2, .. })));
    bad = response;
    bad[17] = 22;
    assert!(Marker::parse(&bad[14..]).is_ok(), "a known misreading");
    bad[17] = 20;
    assert!(matches!(Marker::parse(&bad[14..]), Err(WireError::Field { field: "TLV length", offset: 3, .. })));
    assert!(Marker::parse(&response[14..100]).is_err() && Lacpdu::parse(&response[14..]).is_err());
}

#[test]
fn subtypes_are_told_apart() {
    for subtype in 0..=255u8 {
        assert_eq!(SlowProtocol::of(&[subtype]).unwrap().subtype(), subtype);
    }
    assert_eq!(SlowProtocol::of(&[10, 0, 0x19, 0xa7]), Ok(SlowProtocol::OrganizationSpecific));
    assert!(SlowProtocol::of(&[]).is_err());
}
