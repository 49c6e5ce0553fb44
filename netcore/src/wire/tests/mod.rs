mod control;
mod extension;
mod tunnels;

use super::*;
use alloc::vec::Vec;

#[test]
fn ipv4_header_is_built_with_a_right_checksum_and_read_back() {
    use zerocopy::IntoBytes;
    let a = "198.51.100.1".parse().unwrap();
    let b = "203.0.113.9".parse().unwrap();
    let header = Ipv4Header::new(a, b, Protocol::UDP, 60, 7, 64, true);
    let (parsed, options, rest) = Ipv4Header::parse(header.as_bytes()).unwrap();
    assert_eq!((parsed.source(), parsed.destination(), parsed.id(), parsed.df()), (a, b, 7, true));
    assert!(options.as_bytes().is_empty() && rest.is_empty());
    assert!(crate::checksum::sum(header.as_bytes()).is_valid());
}

#[test]
fn ipv4_options_end_at_a_length_that_makes_no_sense() {
    let mut bytes = [0u8; 32];
    bytes[0] = 0x48;
    bytes[20..32].copy_from_slice(&[148, 4, 0, 0, 1, 7, 3, 9, 68, 1, 0, 0]);
    let (_, mut options, _) = Ipv4Header::parse(&bytes).unwrap();
    assert_eq!(options.next(), Some(Ok(Ipv4Option { kind: 148, data: &[0, 0] })));
    assert_eq!(options.next(), Some(Ok(Ipv4Option { kind: 7, data: &[9] })));
    assert!(matches!(options.next(), Some(Err(WireError::Field { field: "length", value: 1, .. }))));
    assert_eq!(options.next(), None);
}

#[test]
fn headers_say_what_is_wrong_and_what_is_allowed() {
    assert_eq!(
        Ipv4Header::parse(&[0x45; 10]).unwrap_err(),
        WireError::Truncated { header: "IPv4", len: 10, needed: 20 }
    );
    let mut bytes = [0x44; 60];
    assert!(matches!(Ipv4Header::parse(&bytes), Err(WireError::Field { field: "header length", value: 4, .. })));
    bytes[0] = 0x65;
    assert!(matches!(Ipv4Header::parse(&bytes), Err(WireError::Field { field: "version", value: 6, .. })));
    assert!(Ipv6Header::parse(&[0x45; 40]).is_err());
    assert!(TcpHeader::parse(&[0x40; 60]).is_err());
    assert!(VxlanHeader::parse(&[0; 8]).is_err());
    let gpe = [0x0c, 0, 0, 3, 0, 0, 1, 0];
    assert!(VxlanHeader::parse(&gpe).is_err(), "VXLAN-GPE is not VXLAN");
}

#[test]
fn tcp_options_of_a_syn() {
    let options = TcpOptions::new(&[2, 4, 5, 0xb4, 4, 2, 8, 10, 0, 0, 0, 9, 0, 0, 0, 0, 1, 3, 3, 7]);
    let all: Vec<_> = options.map(Result::unwrap).collect();
    assert_eq!(
        all,
        [
            TcpOption::Mss(1460),
            TcpOption::SackPermitted,
            TcpOption::Timestamps { value: 9, echo: 0 },
            TcpOption::WindowScale(7)
        ]
    );
    let sack =
        TcpOptions::new(&[1, 1, 5, 18, 0, 0, 0, 1, 0, 0, 0, 16, 0, 0, 1, 0, 0, 0, 16, 0]).next().unwrap().unwrap();
    let blocks: Vec<_> = sack.sack_blocks().collect();
    assert_eq!(blocks, [SackBlock { left: 1, right: 16 }, SackBlock { left: 256, right: 4096 }]);
    assert!(TcpOptions::new(&[8, 12, 0]).next().unwrap().is_err());
}
