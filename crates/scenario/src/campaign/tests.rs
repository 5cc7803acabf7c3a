//! Campaign files: what they mean, and every mistake at once.

use talkpath_units::Duration;

use super::scenario::ROUNDS;
use super::*;

const WEEK: &str = r#"
name = "a week"
key_file = "key"
between = { kind = "hub", hub = "here" }

[host.here]
local = true

[host.tokyo]
address = "192.0.2.7"
ssh = "tokyo"
server = "start"

[host.lima]
address = "lima.example:7000"

[measure.call]
transports = ["udp", "tcp-nodelay"]

[schedule]
zone = "Europe/Berlin"
start = "2026-12-01 06:00"
every = "6 h"
days = 5
start_within = "30 min"
"#;

fn mistakes(text: &str) -> Vec<String> {
    let found = Campaign::load(&Source::new("c.toml", text)).unwrap_err();
    found.iter().map(ToString::to_string).collect()
}

#[test]
fn an_address_that_is_none_is_a_mistake() {
    for (address, says) in [
        ("lima.example:70000", "found the port \"70000\", expected a number from 1 to 65535"),
        ("[2001:db8::1]:x", "found the port \"x\", expected a number from 1 to 65535"),
        ("[2001:db8::1", "found a bracket that is not closed, expected [ADDRESS]:PORT"),
        ("lima:example:7000", "found no IPv6 address, expected one, or [ADDRESS]:PORT"),
    ] {
        let found = mistakes(&WEEK.replace("lima.example:7000", address));
        let says = format!("host.lima.address: {says}");
        assert!(found.len() == 1 && found[0].contains(&says), "{address}: {found:?}");
    }
    for address in ["lima.example", "2001:db8::1", "[2001:db8::1]", "[2001:db8::1]:7000"] {
        Campaign::load(&Source::new("c.toml", WEEK.replace("lima.example:7000", address))).unwrap();
    }
}

#[test]
fn a_hub_is_measured_with_every_other_host() {
    let campaign = Campaign::load(&Source::new("c.toml", WEEK)).unwrap();
    assert_eq!(campaign.measures[0].pairs, [HostPair { near: 0, far: 1 }, HostPair { near: 0, far: 2 }]);
    assert_eq!(campaign.hosts[1].key_file.as_deref(), Some("key"));
    assert!(campaign.hosts[1].starts_server);
    let Schedule { window, every, day, .. } = campaign.schedule;
    assert_eq!((window, every, day), (every, Duration::from_secs(6 * 3600), Duration::from_secs(86_400)));
}

#[test]
fn a_mesh_has_each_pair_once() {
    let text = WEEK
        .replace("between = { kind = \"hub\", hub = \"here\" }", "")
        .replace("[host.tokyo]", "[host.second]\nlocal = true\naddress = \"127.0.0.2\"\n\n[host.tokyo]");
    let campaign = Campaign::load(&Source::new("c.toml", text)).unwrap();
    assert_eq!(campaign.measures[0].pairs.len(), 6);
}

#[test]
fn what_is_measured_is_a_scenario() {
    let campaign = Campaign::load(&Source::new("c.toml", WEEK)).unwrap();
    let plan =
        crate::load(&campaign.measures[0].comparison_source().unwrap(), &crate::Options::default()).unwrap();
    assert_eq!((plan.cells.len(), plan.repeat, plan.name.as_str()), (2, ROUNDS, "call"));
    assert!(!plan.cells[0].scenario.has_path);
}

#[test]
fn an_emulated_path_becomes_keys_of_the_scenario() {
    let text = WEEK.replace("address = \"lima.example:7000\"", "emulated = \"lima.toml\"");
    let campaign = Campaign::load(&Source::new("c.toml", text)).unwrap();
    let emulated_text = "path = \"lan\"\n[far_clock]\noffset = \"1 s\"\n[flow.other]\ntransport = \"tcp\"\nworkload = { kind = \"bulk\" }\n";
    let source = campaign.measures[0].comparison_source().unwrap();
    let set = campaign.hosts[2].emulated_settings(emulated_text, &source).unwrap();
    let options = crate::Options { set, ..crate::Options::default() };
    let plan = crate::load(&source, &options).unwrap();
    let scenario = &plan.cells[0].scenario;
    assert!(scenario.has_path && scenario.far_clock.is_some());
    assert_eq!(scenario.flows.len(), 2);
    for wrong in ["duration = \"1 s\"", "path", "[flow.call]\ntransport = \"tcp\""] {
        assert!(campaign.hosts[2].emulated_settings(wrong, &source).is_err(), "{wrong}");
    }
    let message = campaign.hosts[2].emulated_settings("drain = \"1 s\"", &source).unwrap_err();
    assert_eq!(message, "found the key drain, expected path, link, far_clock, kernel or flow tables");
}

#[test]
fn every_mistake_is_reported_at_once_with_its_place() {
    let text = WEEK
        .replace("hub = \"here\"", "hub = \"hare\"")
        .replace("Europe/Berlin", "Europe/Berlim")
        .replace("\"6 h\"", "6")
        .replace("\"tcp-nodelay\"", "\"tcp-nodelai\"")
        .replace("ssh = \"tokyo\"\n", "sssh = \"tokyo\"\n");
    let found = mistakes(&text);
    let expected = [
        "4:33: between.hub: found \"hare\", expected the name of a host (did you mean \"here\"?)",
        "11:1: host.tokyo.sssh: unknown key of a host (did you mean `ssh`?)",
        "12:10: host.tokyo.server: found \"start\" for a host on which talkpath cannot start a program (give `ssh = \"NAME\"`, or `local = true`)",
        "18:22: measure.call.transports: found \"tcp-nodelai\", expected a transport: udp, tcp, tcp-nodelay",
        "21:8: schedule.zone: found \"Europe/Berlim\", expected a zone of the IANA time zone database (did you mean \"Europe/Berlin\"?)",
        "23:9: schedule.every: found 6, expected a duration such as \"20 ms\" (a number needs its unit: \"6 h\"?)",
    ];
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    for (found, expected) in found.iter().zip(expected) {
        assert!(found.starts_with(expected), "{found}\n{expected}");
    }
}

#[test]
fn a_pair_must_be_able_to_be_measured() {
    let text = WEEK.replace("local = true\n", "").replace("address = \"lima.example:7000\"\n", "");
    let found = mistakes(&text);
    assert!(
        found[0].contains(
            "host.here: measurements start on this host, but talkpath cannot start a program there"
        ),
        "{found:?}"
    );
    assert!(
        found[1].contains("host.lima: other hosts measure to this host, but it has no `address`"),
        "{found:?}"
    );
    let text = WEEK.replace("\"30 min\"", "\"7 h\"").replace("\"6 h\"", "\"1 ns\"");
    let found = mistakes(&text);
    assert!(
        found.iter().any(|mistake| mistake.contains("schedule.every: found 1 ns, expected at most")),
        "{found:?}"
    );
    let text = WEEK.replace("2026-12-01 06:00", "tomorrow").replace("hub = \"here\"", "hub = 3");
    let found = mistakes(&text);
    assert!(found.iter().any(|mistake| mistake.contains("expected a date and a time such as")), "{found:?}");
}

#[test]
fn bytes_that_are_no_campaign_are_mistakes() {
    for text in [
        "",
        "host = 3",
        "[host]\n[measure]\n[schedule]\n",
        "a = ",
        "between = { kind = \"pairs\", pairs = [1] }",
    ] {
        assert!(!mistakes(text).is_empty(), "{text}");
    }
}

#[test]
fn records_are_copied_by_a_command_that_has_a_place_for_the_file_and_for_its_key() {
    let with = |lines: &str| WEEK.replace("name = \"a week\"\n", &format!("name = \"a week\"\n{lines}\n"));
    let load = |lines: &str| Campaign::load(&Source::new("c.toml", with(lines))).unwrap().store_command;
    assert_eq!(load(""), None);
    let line = "store_command = [\"rclone\", \"copyto\", \"{file}\", \"lab:records/{key}\"]";
    let words = ["rclone", "copyto", "{file}", "lab:records/{key}"].map(str::to_owned).to_vec();
    let timeout = STORE_TIMEOUT;
    assert_eq!(load(line), Some(StoreCommand { words: words.clone(), timeout }));
    let timeout = Duration::from_secs(60);
    let lines = format!("{line}\nstore_timeout = \"1 min\"");
    assert_eq!(load(&lines), Some(StoreCommand { words, timeout }));
    for (lines, says) in [
        (
            "store_command = \"rclone\"",
            "3:17: store_command: found \"rclone\", expected a list of words such as",
        ),
        ("store_command = []", "3:17: store_command: found an empty list"),
        (
            "store_command = [\"\", \"{file}\", \"{key}\"]",
            "store_command: found no program in the first word",
        ),
        ("store_command = [\"cp\", \"{file}\", \"/share\"]", "store_command: found no `{key}` in it"),
        ("store_command = [\"cp\", \"$file\", \"{key}\"]", "store_command: found no `{file}` in it"),
        ("store_timeout = \"1 min\"", "3:17: store_timeout: found it without `store_command`"),
    ] {
        let found = mistakes(&with(lines));
        assert!(found.len() == 1 && found[0].contains(says), "{lines}: {found:?}");
    }
}

#[test]
fn the_message_about_a_former_store_key_has_the_line_to_write() {
    let with = |lines: &str| WEEK.replace("name = \"a week\"\n", &format!("name = \"a week\"\n{lines}\n"));
    let rclone = |target: &str| {
        format!("(write `store_command = [\"rclone\", \"copyto\", \"{{file}}\", \"{target}/{{key}}\"]`)")
    };
    let other = "store_endpoint = \"https://s3.example:9000\"";
    for (lines, target) in [
        ("store = \"file:///mnt/share/\"".to_owned(), "/mnt/share"),
        ("store = \"s3://records\"".to_owned(), ":s3,env_auth,provider=AWS:records"),
        (
            format!("store = \"s3://records/lab/\"\n{other}"),
            ":s3,env_auth,provider=Other,endpoint='https://s3.example:9000':records/lab",
        ),
    ] {
        let found = mistakes(&with(&lines));
        assert_eq!(found.len(), lines.lines().count(), "{found:?}");
        assert!(found[0].starts_with("3:1: store: found \""), "{found:?}");
        assert!(found.iter().all(|mistake| mistake.contains(&rclone(target))), "{lines}: {found:?}");
        // The line in the message is a valid one.
        let line = found[0].split('`').nth(3).unwrap();
        Campaign::load(&Source::new("c.toml", with(line))).unwrap();
    }
    for lines in [other, "store = 3", "store = \"s3://a\\u001b\\\"\""] {
        let found = mistakes(&with(lines));
        assert!(found.len() == 1 && found[0].contains("such as [\"rclone\""), "{lines}: {found:?}");
    }
}
