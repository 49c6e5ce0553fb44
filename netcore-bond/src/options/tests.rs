use super::*;
use alloc::string::ToString;
use std::format;
use std::string::String as StdString;

/// What Linux 6.12 answered; see `oracle/`.
const RECORDED: &str = include_str!("../../testdata/bond_options.txt");

fn lines(kind: &str) -> impl Iterator<Item = (Mode, &'static str)> {
    let start = format!("{kind} ");
    RECORDED.lines().filter_map(move |line| {
        let (mode, rest) = line.strip_prefix(start.as_str())?.split_once(' ')?;
        Some((mode.parse().unwrap(), rest))
    })
}

#[test]
fn a_fresh_bond_reads_as_the_kernels_does() {
    let mut compared = 0;
    for (mode, rest) in lines("OPTION") {
        let (name, value) = rest.split_once('=').unwrap();
        if let Some(ours) = Options::new(mode).get(name) {
            assert_eq!(ours, value, "{mode} {name}");
            compared += 1;
        }
    }
    assert_eq!(compared, 7 * 29);
}

#[test]
fn a_fresh_bond_prints_as_ip_prints_it() {
    let mut compared = 0;
    for (mode, line) in lines("IP") {
        let (options, _) = line.strip_prefix("bond ").unwrap().split_once(" addrgenmode").unwrap();
        assert_eq!(Options::new(mode).to_string(), options);
        assert_eq!(options.parse::<Options>().unwrap_or_else(|e| panic!("{e}")).mode, mode);
        compared += 1;
    }
    assert_eq!(compared, 7);
}

#[test]
fn every_setting_is_accepted_or_refused_as_the_kernel_does_it() {
    let error = |name: &str| match name {
        "Invalid argument" => "EINVAL",
        "Permission denied" => "EACCES",
        "Operation not permitted" => "EPERM",
        "No such device" => "ENODEV",
        other => panic!("{other}"),
    };
    let mut current = Mode::BalanceRr;
    let mut options = Options::new(current);
    let mut compared = 0;
    for (mode, rest) in lines("SET") {
        if mode != current {
            (current, options) = (mode, Options::new(mode));
        }
        let (setting, answer) = rest.split_once(" -> ").unwrap();
        let (name, value) = setting.split_once(' ').unwrap();
        let (verdict, then) = answer.split_once(" =").unwrap();
        // `ad_select 3` came with 6.18; members are the bond's business.
        if matches!(name, "queue_id" | "slaves") || setting == "ad_select 3" {
            continue;
        }
        let result = options.set(name, value).map_err(|e| StdString::from(e.errno()));
        let expected = if verdict == "ok" { Ok(()) } else { Err(StdString::from(error(verdict))) };
        assert_eq!(result, expected, "{mode}: {setting}");
        // `primary` names a member that is not there: sysfs shows it only once it is.
        if !matches!(name, "primary" | "active_slave") {
            assert_eq!(options.get(name).unwrap(), then.trim_start(), "{mode}: {setting}");
        }
        compared += 1;
    }
    assert_eq!(compared, 7 * 76);
}

#[test]
fn options_that_need_a_bond_without_members_or_down_say_so() {
    let mut options = Options::new(Mode::Ieee8023ad);
    let up = BondState { up: true, has_members: false };
    let members = BondState { up: false, has_members: true };
    assert_eq!(options.set_in("mode", "0", members).unwrap_err().errno(), "ENOTEMPTY");
    assert_eq!(options.set_in("fail_over_mac", "1", members).unwrap_err().errno(), "ENOTEMPTY");
    assert_eq!(options.set_in("lacp_rate", "fast", up).unwrap_err().errno(), "EBUSY");
    assert_eq!(options.set_in("xmit_hash_policy", "layer3+4", up), Ok(()));
    assert_eq!(options.set("no_such", "1").unwrap_err().errno(), "ENOENT");
}

#[test]
fn ip_link_arguments_are_read_whatever_their_order() {
    let text = "lacp_rate fast miimon 50 updelay 120 arp_ip_target 10.0.0.1,10.0.0.2 mode 802.3ad";
    let options: Options = text.parse().unwrap();
    assert_eq!((options.miimon(), options.updelay(), options.arp_ip_targets().len()), (50, 100, 2));
    assert!("mode balance-rr lacp_rate fast".parse::<Options>().is_err());
    assert!("miimon".parse::<Options>().is_err());
}

#[test]
fn sixteen_arp_targets_and_no_more() {
    let mut options = Options::new(Mode::ActiveBackup);
    for n in 1..=16 {
        options.set("arp_ip_target", &format!("+10.0.0.{n}")).unwrap();
    }
    assert_eq!(options.set("arp_ip_target", "+10.0.0.17").unwrap_err().errno(), "EINVAL");
    options.set("arp_ip_target", "-10.0.0.3").unwrap();
    assert_eq!(options.arp_ip_targets()[2].to_string(), "10.0.0.4");
}
