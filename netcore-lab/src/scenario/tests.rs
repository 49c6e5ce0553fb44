use super::*;

const TWO: &str = r#"title = "two hosts"
duration = "2 s"
[host.a]
[host.b]
[[link]]
between = ["a", "b"]
rate = "100 Mbit/s"
delay = "1 ms"
queue = "64 KiB"
[[flow]]
from = "a"
to = "b"
"#;

fn error(text: &str) -> String {
    Scenario::parse(text).and_then(|scenario| scenario.build(Vec::new())).map(|_| ()).unwrap_err().to_string()
}

#[test]
fn a_flow_fills_the_link() {
    let outcome = Scenario::parse(TWO).unwrap().run(&mut |_| ()).unwrap();
    // 1448 of 1538 bytes on the wire are payload.
    let second = outcome.flows[0].intervals[1].mbits_per_sec();
    assert!((93.0..94.2).contains(&second), "{second}");
    assert_eq!(outcome.flows[0].error, None);
}

#[test]
fn a_wrong_value_names_its_line_and_what_is_allowed() {
    let text = error(&TWO.replace("\"100 Mbit/s\"", "\"fast\""));
    assert!(text.contains("line 7") && text.contains("\"10gbit\""), "{text}");
    let text = error(&TWO.replace("queue =", "quue ="));
    assert!(text.contains("line 9") && text.contains("queue_packets"), "{text}");
    let text = error(&TWO.replace("[host.b]", "[host.b]\nmtu = 100"));
    assert!(text.contains("line 4: mtu of host b is 100; allowed: 576 to 9216"), "{text}");
}

#[test]
fn names_that_lead_nowhere_are_reported_with_those_there_are() {
    let text = error(&TWO.replace("to = \"b\"", "to = \"c\""));
    assert_eq!(text, "line 12: there is no host \"c\"; allowed: a, b");
    let text = error(&TWO.replace("[\"a\", \"b\"]", "[\"a\", \"d\"]"));
    assert_eq!(text, "line 6: there is no host or switch \"d\"; allowed: a, b");
    let text = error(&format!("{TWO}profile = \"linux-9\"\n"));
    assert!(text.contains("line 13: there is no profile \"linux-9\"; allowed: linux-2.6.23"), "{text}");
    let text = error(&format!("{TWO}sysctl = {{ tcp_magic = 1 }}\n"));
    assert!(text.contains("line 13") && text.contains("tcp_reordering"), "{text}");
    let text = error(&TWO.replace("[host.b]", "[host.b]\nqdisc = \"red\""));
    assert!(text.contains("line 5") && text.contains("pfifo"), "{text}");
}

#[test]
fn settings_reach_tables_by_name_index_and_star() {
    let changed = |setting: &str| Scenario::parse_with(TWO, &[setting]).unwrap().document;
    assert_eq!(changed("duration=5 s").duration.get_ref().0.as_secs(), 5);
    for key in ["link.0.delay", "link.a-b.delay", "link.*.delay"] {
        assert_eq!(changed(&format!("{key}=20ms")).link[0].get_ref().delay.0.as_millis(), 20);
    }
    assert_eq!(changed("host.*.mtu=9000").host["b"].get_ref().mtu, 9000);
    assert_eq!(changed("host.a.cost.wire_ns=700").host["a"].get_ref().cost.wire_ns, 700);
    assert_eq!(changed("flow.a-b.profile=linux-4.3").flow[0].get_ref().profile.get_ref(), "linux-4.3");
}

#[test]
fn wrong_settings_say_what_is_wrong() {
    let wrong = |setting: &str| Scenario::parse_with(TWO, &[setting]).unwrap_err().to_string();
    assert!(wrong("delay").contains("not key=value"));
    assert!(wrong("link.x.delay=1ms").contains("there is no \"x\""), "{}", wrong("link.x.delay=1ms"));
    assert!(wrong("link.0.dely=1ms").contains("dely"), "{}", wrong("link.0.dely=1ms"));
    assert!(wrong("duration=soon").contains("\"20ms\""), "{}", wrong("duration=soon"));
}

#[test]
fn a_capture_of_an_unknown_link_names_the_links() {
    let format = netcore_drivers::pcap::Format::Pcapng;
    let request = CaptureRequest { link: "x".into(), end: None, format, out: Box::new(Vec::new()) };
    let text = Scenario::parse(TWO).unwrap().build(vec![request]).unwrap_err().to_string();
    assert!(text.contains("a-b (ends a, b)"), "{text}");
}

#[test]
fn a_wrong_bond_is_reported_with_its_line() {
    let text = error(&TWO.replace("[host.a]", "[host.a]\nbond = \"mode balance-rrr\""));
    assert!(text.contains("line 4: bond: ") && text.contains("balance-rrr"), "{text}");
    let aggregate = TWO.replace("[host.a]", "[host.a]\nbond = \"mode 802.3ad\"");
    assert!(Scenario::parse(&aggregate).unwrap().build(Vec::new()).is_ok(), "its partner speaks LACP or is silent");
    let text = error(&format!("{TWO}[[link]]\nname = \"second\"\nbetween = [\"a\", \"b\"]\nrate = \"1gbit\"\n"));
    assert!(text.contains("host a has 2 links; allowed: one link for each host, or several with a bond"), "{text}");
}
