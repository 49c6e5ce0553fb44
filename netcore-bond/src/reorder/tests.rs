use super::*;
use core::time::Duration;

fn gigabit() -> Path {
    Path::new(Rate::from_bits_per_sec(1_000_000_000))
}

#[test]
fn an_order_is_measured_as_rfc_4737_and_the_senders_rules_have_it() {
    let mut order = Order::new();
    // 1 is overtaken by 2, 3 and 5, 4 by 5.
    for packet in [0, 2, 3, 5, 1, 4, 6, 6, 0] {
        order.arrived(packet);
    }
    let r = order.report();
    assert_eq!((r.packets, r.reordered, r.max_extent, r.total_extent), (7, 2, 3, 4));
    assert_eq!((r.extents[0], r.extents[2], r.duplicate_acks), (1, 1, 3));
    // Three SACKed above the hole; from 1 to 5 are five packets.
    assert_eq!((r.dupthresh, r.dupthresh_fack), (4, 5));
    assert_eq!(order.missing(), 0);
}

#[test]
fn equal_links_do_not_reorder() {
    for n in 1..8 {
        let report = analyse(&Links::new(core::iter::repeat_n(gigabit(), n)), &Stream::default());
        assert_eq!((report.packets, report.reordered, report.dupthresh), (10_000, 0, 1), "{n} links");
    }
}

#[test]
fn a_skew_displaces_by_as_many_packets_as_are_sent_in_its_time() {
    for skew in [4, 8, 13, 20, 40, 100] {
        let links = Links::new([gigabit(), gigabit().with_latency(Duration::from_micros(skew)), gigabit(), gigabit()]);
        let r = analyse(&links, &Stream::default());
        // 3.076 µs for each packet of the aggregate; those of the late link itself do not overtake.
        let spacing = skew * 1000 / 3076;
        let expected = spacing - spacing / 4;
        assert!(r.max_extent.abs_diff(expected) <= 1, "{skew} µs: {} for {expected}", r.max_extent);
        assert!(r.reordered.abs_diff(2500) < 30);
        assert!(r.dupthresh > r.max_extent && r.dupthresh_fack >= r.dupthresh);
    }
}

#[test]
fn units_of_many_segments_displace_by_whole_units() {
    let links = Links::new([gigabit(); 4]);
    let single = analyse(&links, &Stream::default()).max_extent;
    let large = analyse(&links, &Stream { unit: 44, ..Stream::default() }).max_extent;
    assert!(single == 0 && large > 60, "{single} {large}");
}

#[test]
fn turns_of_several_packets_reorder_fewer_of_them_farther() {
    let links = Links::new([gigabit(), gigabit().with_latency(Duration::from_micros(10))]);
    let one = analyse(&links, &Stream::default());
    let eight = analyse(&links, &Stream { packets_per_slave: 8, ..Stream::default() });
    assert!(eight.max_extent > one.max_extent);
    assert!(eight.total_extent > one.total_extent || eight.reordered < one.reordered);
}

#[test]
fn interrupts_reorder_by_batches() {
    let moderated = gigabit().with_moderation(Moderation { delay: Duration::from_micros(50), frames: 0 });
    let r = analyse(&Links::new([moderated; 4]), &Stream::default());
    assert!(r.max_extent >= 8, "{}", r.max_extent);
    let few = gigabit().with_moderation(Moderation { delay: Duration::from_micros(50), frames: 2 });
    assert!(analyse(&Links::new([few; 4]), &Stream::default()).max_extent < r.max_extent);
}

#[test]
fn a_slower_link_falls_behind_without_end() {
    let slow = Path::new(Rate::from_bits_per_sec(100_000_000));
    let r = analyse(&Links::new([gigabit(), slow]), &Stream { packets: 2000, ..Stream::default() });
    assert!(r.max_extent > 100 && r.extents[Order::EXTENTS - 1] > 0);
}
