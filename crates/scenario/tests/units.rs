//! Numbers without a unit and quantities in place of a table: what is proposed.

use talkpath_scenario::{Options, Source, load};

use crate::loading::{GOOD, mistakes};

/// A path whose uplink has `up` on the file's third line.
fn path(up: &str) -> String {
    GOOD.replace("path = \"home-adsl\"", &format!("path.up = {{ {up} }}\npath.down = {{}}"))
}

#[test]
fn a_number_without_its_unit_is_proposed_in_the_unit_that_is_usual_for_its_key() {
    for (up, proposed) in [
        ("rate = 1000000", "1 Mbps"),
        ("rate = 8000000", "8 Mbps"),
        ("rate = 64", "64 Mbps"),
        ("delay = 20", "20 ms"),
        ("delay = 0.02", "20 ms"),
        ("delay = 1000", "1 s"),
        ("mtu = 1500", "1500 B"),
        ("queue = { kind = \"drop-tail\", limit = 64000 }", "64 kB"),
        ("queue = { kind = \"drop-tail\", limit = 100 }", "100 packets"),
        ("jitter = { kind = \"normal\", sd = 5 }", "5 ms"),
    ] {
        let text = path(up);
        let found = mistakes(&text);
        let helps: Vec<_> = found.iter().filter_map(|mistake| mistake.help.as_deref()).collect();
        assert_eq!(helps, [format!("a number needs its unit: \"{proposed}\"?")], "{up}");
    }
    let help = |text: &str| mistakes(text).list.remove(0).help.unwrap();
    assert_eq!(help(&format!("drain = 5\n{GOOD}")), "a number needs its unit: \"5 s\"?");
    assert_eq!(help(&path("delay = 1e30")), "a number needs its unit: ns, us, ms, s, min, h");
}

#[test]
fn a_quantity_in_place_of_a_table_is_told_the_line_to_write() {
    for (up, line) in [
        ("jitter = \"20ms\"", "write jitter = { kind = \"normal\", sd = \"20 ms\" }"),
        ("jitter = 20", "write jitter = { kind = \"normal\", sd = \"20 ms\" }"),
        ("queue = \"64 kB\"", "write queue = { kind = \"drop-tail\", limit = \"64 kB\" }"),
        ("framing = \"38 B\"", "write framing = { kind = \"bytes\", overhead = \"38 B\" }"),
    ] {
        let found = mistakes(&path(up));
        assert_eq!(found.iter().filter_map(|it| it.help.as_deref()).collect::<Vec<_>>(), [line], "{up}");
        let as_written = line.strip_prefix("write ").unwrap();
        assert!(load(&Source::new("x.toml", path(as_written)), &Options::default()).is_ok(), "{as_written}");
    }
}
