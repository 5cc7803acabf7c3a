//! Every mistake is reported at its place, with what was found, what would be right and the nearest known
//! word.

use std::collections::BTreeSet;

use talkpath_scenario::{LARGEST_FILE, Options, Setting, Source, load};

use crate::loading::{GOOD, mistakes};

/// Checks that the mistakes of `text` are these, in order: each line must have all of the parts after `|`.
#[track_caller]
pub(crate) fn check(text: &str, expected: &[&str]) {
    let found: Vec<_> = mistakes(text).iter().map(ToString::to_string).collect();
    assert_eq!(found.len(), expected.len(), "{found:#?}\n{text}");
    for (found, expected) in found.iter().zip(expected) {
        let (place, parts) = expected.split_once(": ").expect("a place before a colon");
        assert!(found.starts_with(&format!("{place}: ")), "{found}\nis not at {place}\n{text}");
        for part in parts.split(" | ") {
            assert!(found.contains(part), "{found}\nlacks {part:?}\n{text}");
        }
    }
}

/// Checks the single mistake of [`GOOD`] with `line` after it.
#[track_caller]
fn check_line(line: &str, expected: &str) {
    check(&format!("{GOOD}{line}\n"), &[&format!("6:{expected}")]);
}

#[test]
fn an_empty_file_is_told_what_a_scenario_needs() {
    for text in ["", "\n \n", "# only a comment"] {
        check(text, &["1:1: found nothing | `duration` | `path` | [flow.NAME]"]);
    }
    check("name = \"x\"", &["1:1: duration: missing | \"20 ms\"", "1:1: flow: missing"]);
}

#[test]
fn all_mistakes_are_told_at_once() {
    let text = r#"duratoin = "60 s"
drain = 5
path = "home-asdl"
[flow.call]
transport = "tpc"
workload = { kind = "voice", ecoh = true, ptime = "20 sec" }
"#;
    check(
        text,
        &[
            "1:1: duratoin: unknown key | did you mean `duration`?",
            "1:1: duration: missing",
            "2:9: drain: found 5, expected a duration such as \"20 ms\" | \"5 s\"?",
            "3:8: path: found \"home-asdl\" | did you mean \"home-adsl\"?",
            "5:13: flow.call.transport: found \"tpc\", expected a transport: udp, tcp, tcp-nodelay, dccp-ccid2 | did you mean \"tcp\"?",
            "6:30: flow.call.workload.ecoh: unknown key of voice | did you mean `echo`?",
            "6:51: flow.call.workload.ptime: found the unit \"sec\", expected one of ns, us, ms, s, min, h | \"20 s\"",
        ],
    );
}

#[test]
fn quantities_out_of_bounds_name_the_bound() {
    for (value, expected) in [
        ("\"-5 ms\"", "found \"-5 ms\", expected at least 0 s"),
        ("\"1e9 s\"", "found the unit \"e9 s\" | exponent"),
        ("\"99999999999999999999999999 h\"", "expected at most 1000000 s"),
        ("\"nan s\"", "found \"nan s\", expected a duration"),
        ("nan", "found nan, expected a duration"),
        ("-inf", "found -inf, expected a duration"),
        ("1e400", "found 1e400, expected a duration"),
        ("9999999999999999999999", "found 9999999999999999999999, expected a duration"),
        ("\"0.5 ns\"", "finer than 1 ns"),
        ("\"5\"", "without a unit | units: ns, us, ms, s, min, h"),
        ("\"5 Mbps\"", "a rate; expected a duration | units:"),
        ("true", "found true, expected a duration"),
        ("[]", "found a list, expected a duration"),
        ("{}", "found a table, expected a duration"),
        ("1979-05-27", "found the date 1979-05-27, expected a duration"),
        ("{ from = \"1 s\", step = \"1 s\" }", "found a table, expected a duration"),
    ] {
        check(&format!("drain = {value}\n{GOOD}"), &[&format!("1:9: drain: | {expected}")]);
    }
}

#[test]
fn counts_and_probabilities_have_their_ranges() {
    for value in ["-1", "1.5", "nan", "50001", "\"3\"", "99999999999999999999"] {
        check_line(
            &format!("count = {value}"),
            "9: flow.call.count: found | expected a whole number from 0 to 50000",
        );
    }
    for value in ["-0.1", "1.01", "nan", "inf", "\"0.1\""] {
        let text =
            format!("{GOOD}[sweep]\n\"path.up.loss\" = [{{ kind = \"bernoulli\", rate = {value} }}]\n");
        check(&text, &["7:48: path.up.loss.rate: found | expected a share from 0 to 1"]);
    }
    check(
        &GOOD.replace("path = \"home-adsl\"", "path.up = { loss = 5 }\npath.down = {}"),
        &["2:20: path.up.loss: found 5, expected a share from 0 to 1"],
    );
    check(
        &format!("{GOOD}[sweep]\n\"path.up.loss\" = [{{ kind = \"bernoulli\", rate = \"101%\" }}]\n"),
        &["7:48: path.up.loss.rate: found \"101%\", expected from 0% to 100%"],
    );
}

#[test]
fn toml_mistakes_are_told_with_their_place_and_nothing_is_called_missing() {
    check("duration = 60 s\npath = \"lan\"\n", &["1:12: must be quoted | \"60 s\""]);
    check("duration = \"60 s\"\nduration = \"61 s\"\n", &["2:1: duplicate key"]);
    let found = mistakes("drain = 5 s\nseed = = 1\npaht = \"lan\"\n[flow\n");
    let lines: BTreeSet<_> = found.iter().map(|mistake| mistake.line).collect();
    assert!([1, 2, 3].iter().all(|line| lines.contains(line)), "{found}");
    assert!(found.iter().all(|mistake| !mistake.message.contains("missing;")), "{found}");
}

#[test]
fn a_scenario_has_a_path_or_links_and_not_both() {
    let text = format!("{GOOD}[link.wan]\n");
    check(&text, &["6:2: link: | `path` | one or the other"]);
    check(&GOOD.replace("\"home-adsl\"", "{ up = {} }"), &["2:8: path.down: missing"]);
    check(&GOOD.replace("\"home-adsl\"", "{}"), &["2:8: path.up: missing", "2:8: path.down: missing"]);
    check(&GOOD.replace("\"home-adsl\"", "7"), &["2:8: path: found 7, expected the name of a path"]);
}

#[test]
fn routes_name_links_that_there_are() {
    let text = r#"duration = "1 s"
[link.wan]
[link."tx{n}"]
[flow.a]
count = 2
transport = "tcp"
workload = "bulk"
route = ["tx{n}", "wna"]
return_route = ["wan", "tx{n}", "wan"]
[flow.b]
transport = "udp"
workload = "voice"
route = ["tx", "wan"]
[flow.c]
transport = "udp"
workload = "voice"
route = []
return_route = "wan"
"#;
    check(
        text,
        &[
            "8:19: flow.a.route: | no link called \"wna\" | did you mean \"wan\"?",
            "9:33: flow.a.return_route: found \"wan\" twice in one route",
            "10:7: flow.b.return_route: missing | return_route = [\"wan\"]",
            "13:10: flow.b.route: | no link called \"tx\" | there are: wan, tx{n}",
            "17:9: flow.c.route: found an empty list",
            "18:16: flow.c.return_route: found \"wan\", expected a list of links",
        ],
    );
}

#[test]
fn a_second_path_has_both_ways_and_a_connection_that_may_use_it() {
    let text = |transport: &str, second: &str| {
        format!(
            "duration = \"1 s\"\n[link.wan]\n[link.lte]\n[flow.a]\ntransport = {transport}\nworkload = \"bulk\"\n\
             route = [\"wan\"]\nreturn_route = [\"wan\"]\nsecond_route = [\"lte\"]\n{second}"
        )
    };
    let multipath = "{ kind = \"tcp\", multipath = true }";
    check(&text(multipath, ""), &["4:7: flow.a.second_return_route: missing | [\"wan\"]"]);
    let back = "second_return_route = [\"lte\"]\n";
    check(&text("\"tcp\"", back), &["9:16: flow.a.second_route: found it without `multipath = true`"]);
    check(&text("{ kind = \"tcp\", multipath = 1 }", back), &["5:41: flow.a.transport.multipath: found 1"]);
    let marked = format!("{back}dscp = \"EF\"\n");
    check(&text(multipath, &marked), &["11:8: flow.a.dscp: found it beside `multipath = true`"]);
}

#[test]
fn what_does_not_exist_yet_says_so_and_names_what_does() {
    for kind in ["sctp", "webrtc"] {
        let text = GOOD.replace("\"udp\"", &format!("\"{kind}\""));
        check(
            &text,
            &["4:13: flow.call.transport: | not available yet; available: udp, tcp, tcp-nodelay, dccp-ccid2"],
        );
        let text = GOOD.replace("\"udp\"", &format!("{{ kind = \"{kind}\", ack_ratio = 2 }}"));
        check(
            &text,
            &[
                "4:22: flow.call.transport.kind: | not available yet; available: udp, tcp, tcp-nodelay, dccp-ccid2",
            ],
        );
    }
    check(&GOOD.replace("\"voice\"", "\"file\""), &["5:12: flow.call.workload.source: missing"]);
    let with = |link: &str| {
        GOOD.replace("path = \"home-adsl\"", &format!("path.down = {{}}\npath.up = {{ {link} }}"))
    };
    for queue in ["red", "cake", "pie", "dualpi2"] {
        check(
            &with(&format!("queue = \"{queue}\"")),
            &[
                "3:21: path.up.queue: | not available yet; available: drop-tail, codel, fq_codel, fq, priority or drr",
            ],
        );
    }
    check(&with("rate = { trace = \"x\" }"), &["3:30: path.up.rate.trace: x: files cannot be named here"]);
    check(
        &with("rate = { file = \"x\" }"),
        &[
            "3:20: path.up.rate: found | { trace = \"FILE\" }",
            "3:22: path.up.rate.file: unknown key of a rate",
        ],
    );
    check(&with("loss = { kind = \"trace\" }"), &["3:20: path.up.loss.file: missing"]);
    check(&with("jitter = \"trace\""), &["3:22: path.up.jitter.file: missing"]);
    check(
        &GOOD.replace("\"udp\"", "{ kind = \"tcp\", cc = \"vegas\" }"),
        &[
            "4:34: flow.call.transport.cc: \"vegas\" is not available yet; available: default, tahoe, reno, newreno, cubic or bbr",
        ],
    );
    check(
        &GOOD.replace("\"udp\"", "{ kind = \"tcp\", cc = \"cubik\" }"),
        &["4:34: flow.call.transport.cc: found \"cubik\" | did you mean \"cubic\"?"],
    );
}

#[test]
fn mistakes_of_quic_name_what_is_right() {
    let with = |keys: &str| GOOD.replace("\"udp\"", &format!("{{ {keys} }}"));
    check(
        &with("kind = \"quic\", cc = \"bbr\""),
        &[
            "4:35: flow.call.transport.cc: \"bbr\" is not available yet; available: cubic or newreno | no seed sets",
        ],
    );
    check(
        &with("kind = \"quic\", carry = \"stream\", expire = \"150 ms\""),
        &[
            "4:57: flow.call.transport.expire: found 150 ms with one stream for all messages, expected \"never\"",
        ],
    );
    check(
        &with("kind = \"quic-stream\", expire = \"150 ms\""),
        &[
            "4:46: flow.call.transport.expire: found 150 ms with one stream for all messages, expected \"never\"",
        ],
    );
    check(
        &with("kind = \"quic\", idle_timeout = \"5 s\", keep_alive = \"5 s\""),
        &[
            "4:65: flow.call.transport.keep_alive: found 5 s and an `idle_timeout` of 5 s, expected less: the connection",
        ],
    );
    check(&with("kind = \"tcp\", idle_timeout = \"5 s\""), &["4:29: flow.call.transport.idle_timeout: "]);
    check(
        &with("kind = \"quic-stream\", carry = \"datagram\""),
        &["4:37: flow.call.transport.carry: unknown key"],
    );
    check(
        &with("kind = \"quic\", carry = \"streams\""),
        &["4:38: flow.call.transport.carry: found \"streams\", expected what carries a message: datagram"],
    );
    for transport in ["quic-stream", "quic-stream-per-message"] {
        let slow = format!("{}receiver = {{ socket_buffer = \"64 kB\" }}\n", GOOD.replace("udp", transport));
        check(
            &slow,
            &[
                "6:12: flow.call.receiver: found a `socket_buffer` of 64000 B over a QUIC stream | expected \"default\"",
            ],
        );
    }
    let large = GOOD.replace("\"voice\"", "{ kind = \"cbr\", size = \"1500 B\", rate = \"1 Mbps\" }");
    check(
        &large.replace("\"udp\"", "\"quic-datagram\""),
        &[
            "5:12: flow.call.workload: found messages of 1500 B, expected at most 1414 B, which one DATAGRAM frame",
        ],
    );
}

#[test]
fn flows_of_one_connection_agree_on_what_it_has_once() {
    let two = |second: &str| {
        format!(
            "{}[flow.other]\ntransport = {{ kind = \"quic\", connection = \"one\", {second} }}\nworkload = \"bulk\"\n",
            GOOD.replace("\"udp\"", "{ kind = \"quic\", connection = \"one\" }")
        )
    };
    check(
        &two("cc = \"newreno\""),
        &["6:7: flow.other.transport: found the connection \"one\" of the flow call with another `cc`"],
    );
    check(&two("zero_rtt = true"), &["6:7: flow.other.transport: found the connection | another `zero_rtt`"]);
    check(
        &two("keep_alive = \"1 s\""),
        &["6:7: flow.other.transport: found the connection | another `keep_alive`"],
    );
    check(
        &two("encryption = false"),
        &["6:7: flow.other.transport: found the connection | another `encryption`"],
    );
}

#[test]
fn a_mistake_in_what_a_flow_is_judged_by_names_what_is_right() {
    let workload = |workload: &str, expected: &[&str]| check(&GOOD.replace("\"voice\"", workload), expected);
    workload(
        "{ kind = \"voice\", playout = \"adaptiv\" }",
        &[
            "5:40: flow.call.workload.playout: found \"adaptiv\", expected a playout: adaptive, ramjee or fixed | did you mean \"adaptive\"?",
        ],
    );
    workload(
        "{ kind = \"voice\", playout = \"fixed\" }",
        &["5:40: flow.call.workload.playout.delay: missing; expected a duration such as \"20 ms\""],
    );
    workload(
        "{ kind = \"voice\", playout = { kind = \"fixed\", dealy = \"60 ms\", delay = \"60\" } }",
        &[
            "5:58: flow.call.workload.playout.dealy: unknown key of fixed | did you mean `delay`?",
            "5:83: flow.call.workload.playout.delay: found \"60\" without a unit",
        ],
    );
    workload(
        "{ kind = \"voice\", concealment = \"g711\", floor = 0.9, dedline = \"1 s\" }",
        &[
            "5:44: flow.call.workload.concealment: found \"g711\", expected a concealment: none, g711-appendix-i, g729a or opus",
            "5:60: flow.call.workload.floor: found 0.9, expected a number above 1 and at most 4.5",
            "5:65: flow.call.workload.dedline: unknown key of voice",
        ],
    );
    workload(
        "{ kind = \"cbr\", rate = \"60 Hz\", size = \"200 B\", deadline = \"0 ms\", floor = 95 }",
        &[
            "5:35: flow.call.workload.rate: found \"60 Hz\", a frequency; expected a rate | `message_rate`",
            "5:71: flow.call.workload.deadline: found \"0 ms\", expected at least 1 ns",
            "5:87: flow.call.workload.floor: found 95, expected a number above 0 and at most 1",
        ],
    );
    workload(
        "{ kind = \"cbr\", rate = \"96 kbps\", message_rate = \"60 Hz\", size = \"200 B\" }",
        &["5:61: flow.call.workload.message_rate: found both `rate` and `message_rate`, expected one"],
    );
    workload(
        "{ kind = \"cbr\", rate = \"96 kbps\", size = \"200 B\", min_size = \"300 B\" }",
        &["5:73: flow.call.workload.min_size: found 300 B, expected at most `size`, which is 200 B"],
    );
    workload(
        "{ kind = \"cbr\", size = \"200 B\" }",
        &["5:12: flow.call.workload.rate: missing; expected a rate | or `message_rate`, such as \"60 Hz\""],
    );
    workload(
        "{ kind = \"cbr\", message_rate = \"60\", size = \"200 B\" }",
        &[
            "5:43: flow.call.workload.message_rate: found \"60\" without a unit | a frequency such as \"60 Hz\" | mHz, Hz, kHz",
        ],
    );
    workload(
        "{ kind = \"cbr\", message_rate = \"1000000 kHz\", size = \"1 GB\" }",
        &[
            "5:43: flow.call.workload.message_rate: found 1000000 kHz of 1000000000 B, expected at least 1 bps and at most 100 Tbps",
        ],
    );
    workload(
        "{ kind = \"cbr\", message_rate = \"100000 kHz\", size = \"1 B\" }",
        &["5:43: flow.call.workload.message_rate: | 6000000000 messages within `duration`"],
    );
}

#[test]
fn what_a_transport_can_never_carry_is_refused() {
    let with =
        |transport: &str, workload: &str| GOOD.replace("\"udp\"", transport).replace("\"voice\"", workload);
    let big = "{ kind = \"cbr\", rate = \"1 Mbps\", size = \"65508 B\" }";
    check(
        &with("\"udp\"", big),
        &["5:12: flow.call.workload: | messages of 65508 B, expected at most 65507 B"],
    );
    check(
        &with("\"udp\"", "\"bulk\""),
        &["5:12: flow.call.workload: | `bulk` without an end over `udp` | `bytes`"],
    );
    check(
        &with("{ kind = \"udp\", stack = \"rfc\", socket_buffer = \"100 B\" }", "\"voice\""),
        &["5:12: flow.call.workload: | messages of 172 B | never find room in a receiving socket of 100 B"],
    );
    check(
        &with("{ kind = \"tcp\", mss = \"1461 B\" }", "\"bulk\""),
        &["4:35: flow.call.transport.mss: found 1461 B, expected at most 1460 B | `mtu` | 1500 B"],
    );
    check(
        &with("\"udp\"", "{ kind = \"cbr\", rate = \"100000 Gbps\", size = \"1 B\" }"),
        &["5:35: flow.call.workload.rate: | 750000000000000 messages"],
    );
    check(
        &with("\"udp\"", "{ kind = \"burst\", count = 1000000000, repeat = 1000000000, size = \"1 B\" }"),
        &["5:38: flow.call.workload.count: | messages within `duration`"],
    );
    check(
        &with("\"udp\"", "{ kind = \"burst\", count = 1000001, size = \"1 B\", repeat = 9, gap = \"1 s\" }"),
        &[
            "5:12: flow.call.workload: found 1000001 messages at one moment over `udp` | at most 1000000 | `gap`",
        ],
    );
    check(
        &with("\"udp\"", "{ kind = \"burst\", count = 500001, size = \"1000 B\", repeat = 2 }"),
        &["5:12: flow.call.workload: | 1000002000 B at one moment over `udp`"],
    );
    check(
        &with("\"udp\"", "{ kind = \"bulk\", bytes = \"1000000001 B\" }"),
        &[
            "5:12: flow.call.workload: found 1000000001 B at one moment over `udp` | at most 1000000000 B | `cbr`",
        ],
    );
    check(
        &with("\"udp\"", "{ kind = \"voice\", ptime = \"2.5 ms\" }"),
        &[
            "5:38: flow.call.workload.ptime: found 2500 us, expected a multiple of 1 ms, the shortest frame of g711",
        ],
    );
}

/// RFC 8200 §5.
#[test]
fn ipv6_needs_links_that_it_may_have() {
    check(&format!("ip = \"ipv5\"\n{GOOD}"), &["1:6: ip: | ipv5 | a version of IP | ipv6"]);
    let text = r#"
        duration = "1 s"
        ip = "ipv6"
        [path]
        up = { rate = "1 Mbps", delay = "5 ms", mtu = "576 B" }
        down = { rate = "1 Mbps", delay = "5 ms" }
        [flow.call]
        transport = "udp"
        workload = { kind = "voice" }
    "#;
    check(
        text,
        &[
            "3:14: ip: found \"ipv6\" over the link up with an mtu of 576 B, expected 1280 B or more on every link (RFC 8200 §5)",
        ],
    );
}

#[test]
fn times_fit_into_the_run() {
    check(
        &format!("warm_up = \"60 s\"\n{GOOD}"),
        &["1:11: warm_up: found 60 s, expected less than `duration`, 60 s"],
    );
    check_line("start = \"60 s\"", "9: flow.call.start: | start at 60 s | before the end of sending");
    check_line(
        "start = { from = \"2 s\", to = \"1 s\" }",
        "9: flow.call.start: | from 2 s to 1 s | `from` not above `to`",
    );
    check_line("start = { from = \"2 s\", until = \"1 s\" }", "9: flow.call.start: found a table | range");
}

#[test]
fn a_sweep_names_keys_that_there_are_and_values_that_fit() {
    let sweep = |line: &str| format!("{GOOD}[sweep]\n{line}\n");
    for (line, expected) in [
        (
            "\"flow.call.transprot\" = [\"udp\"]",
            "7:1: sweep.flow.call.transprot: unknown key of a flow | did you mean `transport`?",
        ),
        (
            "\"flow.cal.transport\" = [\"udp\"]",
            "7:1: sweep.flow.cal.transport: | no flow called \"cal\" | did you mean \"call\"?",
        ),
        ("\"path.up.lost\" = [0.1]", "7:1: sweep.path.up.lost: unknown key of a link | did you mean `loss`?"),
        ("\"path.up.loss\" = []", "7:18: sweep.path.up.loss: | empty list"),
        ("\"path.up.loss\" = 0.1", "7:18: sweep.path.up.loss: found 0.1, expected a list of values"),
        ("\"path.up.loss\" = [0.1, 2]", "7:24: path.up.loss: found 2, expected a share"),
        (
            "\"flow.call.transport\" = [\"udp\", \"tcpp\"]",
            "7:33: flow.call.transport: found \"tcpp\" | did you mean \"tcp\"?",
        ),
        ("\"duration.x\" = [1]", "7:1: sweep.duration.x: `duration` has no keys of its own"),
        ("seed = [1, 2]", "7:1: sweep.seed: | cannot be swept"),
        ("path = [\"lan\", \"lann\"]", "7:16: path: found \"lann\" | did you mean \"lan\"?"),
    ] {
        check(&sweep(line), &[expected]);
    }
    let values = (0..400).map(|n| format!("\"{n} ms\"")).collect::<Vec<_>>().join(", ");
    let text = sweep(&format!("\"path.up.delay\" = [{values}]\n\"path.down.delay\" = [{values}]"));
    check(&text, &["6:1: sweep: found 160000 combinations, expected at most 100000 cells"]);
    check(&format!("sweep = 5\n{GOOD}"), &["1:9: sweep: found 5, expected a table"]);
}

#[test]
fn options_are_told_by_name() {
    let options = Options {
        percent_of: None,
        set: [
            ("flow.call.count", "-1"),
            ("path.up.dealy", "1 ms"),
            ("path.up.delay", "1 m"),
            ("nothing", ""),
        ]
        .map(|(key, value)| Setting::new(key, value))
        .to_vec(),
        seed: None,
        repeat: Some(0),
        is_recorded: false,
        is_path_alone: false,
    };
    let mistakes = load(&Source::new("f.toml", GOOD), &options).unwrap_err().to_string();
    let lines: Vec<_> = mistakes.lines().collect();
    assert_eq!(lines.len(), 5, "{mistakes}");
    for (start, part) in [
        ("--set flow.call.count=-1: flow.call.count: found -1", "from 0 to 50000"),
        ("--set path.up.dealy=1 ms: path.up.dealy: unknown key", "did you mean `delay`?"),
        (
            "--set path.up.delay=1 m: path.up.delay: found the unit \"m\"",
            "did you mean \"1 ms\" or \"1 min\"?",
        ),
        ("--set nothing=: nothing: unknown key", "known keys: name, duration"),
        ("--repeat 0: repeat: found 0", "from 1 to 1000000"),
    ] {
        assert!(
            lines.iter().any(|line| line.starts_with(start) && line.contains(part)),
            "{start} {part}\n{mistakes}"
        );
    }
}

#[test]
fn names_are_plain_and_each_flow_has_its_own() {
    check(
        "duration = \"1 s\"\npath = \"lan\"\nflow.\"a b\" = { transport = \"udp\", workload = \"voice\" }\n",
        &["3:6: flow: found the name \"a b\", expected at most 64 letters, digits, - and _"],
    );
    let text = format!("{GOOD}count = 2\n[flow.call-1]\ntransport = \"udp\"\nworkload = \"voice\"\n");
    check(&text, &["7:7: flow: two flows come out with the name \"call-1\""]);
    check(
        "duration = \"1 s\"\npath = \"lan\"\n[flow]\n",
        &["1:1: flow: missing; a scenario needs at least one [flow.NAME], or [program]"],
    );
    let text = GOOD.replace("[flow.call]", "[flow.program]") + "[program]\ncommand = [\"true\"]\n";
    check(&text, &["3:7: flow: found a flow called \"program\" beside `[program]`"]);
}

#[test]
fn too_many_flows_and_too_large_a_file_are_refused_early() {
    let text = format!("{GOOD}count = 50000\n[flow.b]\ntransport = \"udp\"\nworkload = \"voice\"\n");
    check(&text, &["7:7: flow.b.count: found 50001 flows"]);
    let text = "#".repeat(LARGEST_FILE + 1);
    check(&text, &["1:1: found 4194305 bytes, expected a scenario of at most 4194304"]);
}

/// Every key of the JSON Schema with the names that lead to it; alternatives are all followed.
fn keys(schema: &serde_json::Value, path: &[String], found: &mut Vec<Vec<String>>) {
    let forms = schema["anyOf"].as_array().map_or(&[][..], Vec::as_slice);
    let has_kind = |form: &serde_json::Value| form["properties"]["kind"]["const"].is_string();
    for form in forms {
        // A table that may leave out its kind has the same keys as the table with the kind.
        if form["properties"].is_object() && !has_kind(form) && forms.iter().any(has_kind) {
            continue;
        }
        let mut path = path.to_vec();
        if let Some(kind) = form["properties"]["kind"]["const"].as_str() {
            path.push(format!("={kind}"));
        }
        keys(form, &path, found);
    }
    for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
        let path: Vec<_> = path.iter().cloned().chain([name.clone()]).collect();
        found.push(path.clone());
        keys(inner, &path, found);
    }
    if schema["additionalProperties"].is_object() {
        let path: Vec<_> = path.iter().cloned().chain(["NAME".to_owned()]).collect();
        keys(&schema["additionalProperties"], &path, found);
    }
}

#[test]
fn every_key_misspelt_is_told_at_its_place_with_the_key_that_was_meant() {
    let mut found = Vec::new();
    keys(&talkpath_scenario::schema(), &[], &mut found);
    let is_form = |name: &str| ["from", "to", "step", "tick", "kind"].contains(&name);
    found.retain(|path| !path.iter().any(|name| is_form(name)));
    let all = found.clone();
    assert!(found.len() > 80, "the schema lost its keys: {}", found.len());
    let mut tried = 0;
    for path in found {
        let (key, parents) = path.split_last().unwrap();
        // A table may stand in one of another kind: each needs its own.
        let (mut dotted, mut kinds) = (String::new(), String::new());
        for name in parents {
            match name.strip_prefix('=') {
                Some(kind) => kinds.push_str(&format!("{dotted}kind = \"{kind}\"\n")),
                None => dotted.push_str(&format!("{name}.")),
            }
        }
        let swapped: String = key.chars().rev().collect();
        let letters: Vec<_> = key.chars().collect();
        for wrong in [
            format!("{key}{key}"),
            format!("{key}x"),
            key.to_uppercase() + "_",
            key[..key.len() - 1].to_owned(),
            swapped,
        ] {
            // One letter of a short name says nothing; a doubled or reversed long one is another word.
            let is_near = strsim::damerau_levenshtein(&wrong.to_lowercase(), key) == 1
                && wrong.len() >= letters.len().min(2);
            if !is_near
                || all
                    .iter()
                    .any(|other| other[..other.len() - 1] == *parents && other.last() == Some(&wrong))
            {
                continue;
            }
            let mut text = kinds.clone();
            let line = text.lines().count() + 1;
            text.push_str(&format!("{dotted}{wrong} = 1\n"));
            let mistakes = mistakes(&text);
            let told = mistakes.iter().find(|mistake| mistake.message.starts_with("unknown key"));
            let told = told.unwrap_or_else(|| panic!("{mistakes}\n{text}"));
            assert_eq!((told.line, told.column), (line, dotted.chars().count() + 1), "{text}");
            let help = told.help.as_deref().unwrap();
            assert!(help.starts_with("did you mean `"), "{help}\n{text}");
            if !all.iter().any(|other| {
                other[..other.len() - 1] == *parents
                    && other.last() != Some(key)
                    && strsim::damerau_levenshtein(&wrong.to_lowercase(), other.last().unwrap()) <= 1
            }) {
                assert_eq!(help, format!("did you mean `{key}`?"), "{text}");
            }
            tried += 1;
        }
    }
    assert!(tried > 160, "{tried}");
}

#[test]
fn every_quantity_without_its_unit_or_with_a_wrong_one_is_told_the_right_ones() {
    let mut tried = 0;
    for (line, units) in [
        ("drain = ", "ns, us, ms, s, min, h"),
        ("warm_up = ", "ns, us, ms, s, min, h"),
        ("path.up.rate = ", "bps, kbps, Mbps, Gbps"),
        ("path.up.delay = ", "ns, us, ms, s, min, h"),
        ("path.up.mtu = ", "B, kB, MB, GB, KiB, MiB, GiB"),
        ("path.up.queue.limit = ", "packets, B, kB, MB, GB, KiB, MiB, GiB, ns, us, ms, s, min, h, bdp"),
        ("path.up.jitter = { kind = \"normal\", sd = ", "ns, us, ms, s, min, h"),
        ("flow.a.start = ", "ns, us, ms, s, min, h"),
        ("flow.a.send_jitter = ", "ns, us, ms, s, min, h"),
        ("flow.a.receiver.service = ", "ns, us, ms, s, min, h"),
        ("flow.a.workload = { kind = \"cbr\", size = \"1 B\", rate = ", "bps, kbps, Mbps, Gbps"),
        ("flow.a.workload = { kind = \"cbr\", rate = \"1 bps\", size = ", "B, kB, MB, GB, KiB, MiB, GiB"),
        ("flow.a.transport = { kind = \"tcp\", min_rto = ", "ns, us, ms, s, min, h"),
        ("flow.a.transport = { kind = \"tcp\", initial_window = ", "packets"),
        ("flow.a.transport = { kind = \"tcp\", rwnd = ", "B, kB, MB, GB, KiB, MiB, GiB, packets"),
    ] {
        let end = if line.contains('{') { " }" } else { "" };
        let line = line.replace("path.up.queue.limit = ", "path.up.queue = { kind = \"drop-tail\", limit = ");
        let end = if line.contains('{') { " }" } else { end };
        for value in ["5", "5.5", "\"5\"", "\"5 furlongs\"", "\"5 ss\"", "true"] {
            let text = format!("{line}{value}{end}\n");
            let mistakes = mistakes(&text);
            let told = mistakes.iter().find(|mistake| mistake.message.starts_with("found "));
            let told = told.unwrap_or_else(|| panic!("{mistakes}\n{text}"));
            assert_eq!((told.line, told.column), (1, line.chars().count() + 1), "{text}");
            let all = format!("{told}");
            if value.contains("furlongs") || value == "\"5\"" || value.contains("ss") {
                assert!(all.contains(units), "{all}\n{text}");
            } else {
                assert!(all.contains("such as \""), "{all}\n{text}");
            }
            tried += 1;
        }
    }
    assert_eq!(tried, 15 * 6);
}
