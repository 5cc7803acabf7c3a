//! What a link does to packets: what its keys resolve to, and their mistakes.

use talkpath_path::{
    Cellular, Check, Classes, Damage, DelayVariation, DropTail, Drr, Dscp, GrantRequest, Harq, LinkConfig,
    LossModel, Priority, QueueKind, QueueLimit, Reordering, Scheduler, TokenBucket,
};
use talkpath_path::{Medium, Offered, OtherStations, WifiAir, WifiConfig, WifiLink, WifiSender};
use talkpath_scenario::{Options, Setting};
use talkpath_units::{Bytes, Duration, Packets, Rate};

use crate::loading::plan;
use crate::mistakes::check;

/// Ten lines. The link `up` is a table, whose further keys come after these lines.
const GOOD: &str = "duration = \"60 s\"\n[flow.call]\ntransport = \"udp\"\nworkload = \"voice\"\n[path.down]\n\
                    rate = \"8 Mbps\"\ndelay = \"30 ms\"\n[path.up]\nrate = \"1 Mbps\"\ndelay = \"20 ms\"\n";

/// The link `up` with further `keys`. The resolved form resolves to the same link.
fn up(keys: &str) -> LinkConfig {
    let plan = plan(&format!("{GOOD}{keys}\n"), &Options::default());
    let links = &plan.cells[0].scenario.links;
    links.iter().find(|link| link.name == "up").expect("a path has `up`").config.clone()
}

fn limit(keys: &str) -> QueueLimit {
    match up(keys).queue {
        QueueKind::DropTail(DropTail { limit, .. }) => limit,
        QueueKind::Codel(codel) => codel.limit,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_loss_by_mean_and_burst_is_gilberts_with_these_figures() {
    let LossModel::GilbertElliott { p, r, loss_bad, loss_good } =
        up("loss = { mean = \"1%\", burst = 4 }").loss
    else {
        panic!("another model")
    };
    assert_eq!((r, loss_bad, loss_good), (0.25, 1.0, 0.0));
    assert!((p / (p + r) - 0.01).abs() < 1e-12, "the mean is p / (p + r): {p}");
    let loss = up("loss = { kind = \"bursts\", mean = 0.2, burst = 2.5 }").loss;
    assert!((loss.mean() - 0.2).abs() < 1e-12);
    let set = vec![Setting::new("path.up.loss.mean", "5%")];
    let text = format!("{GOOD}loss = {{ mean = \"1%\", burst = 4 }}\n");
    let plan = plan(&text, &Options { set, ..Options::default() });
    assert!((plan.cells[0].scenario.links[0].config.loss.mean() - 0.05).abs() < 1e-12);
}

#[test]
fn gilbert_elliott_with_a_step_is_in_time() {
    let loss = up("loss = { kind = \"gilbert-elliott\", p = \"1%\", r = \"20%\", step = \"20 ms\" }").loss;
    let step = Duration::from_millis(20);
    let expected = LossModel::GilbertElliottInTime { step, p: 0.01, r: 0.2, loss_bad: 1.0, loss_good: 0.0 };
    assert_eq!(loss, expected);
}

#[test]
fn a_limit_in_time_or_in_products_is_bytes_at_the_rate_at_which_the_queue_empties() {
    let bytes = |count| QueueLimit::Bytes(Bytes::new(count));
    // 1 Mb/s for 100 ms, and for the path's 50 ms there and back.
    assert_eq!(limit("queue.limit = \"100 ms\""), bytes(12_500));
    assert_eq!(limit("queue.limit = \"1 bdp\""), bytes(6_250));
    assert_eq!(limit("queue = { kind = \"codel\", limit = \"2.5 bdp\" }"), bytes(15_625));
    let shaper = "shaper = { rate = \"500 kbps\", burst = \"3 kB\" }\nqueue.limit = \"100 ms\"";
    assert_eq!(limit(shaper), bytes(6_250));
}

#[test]
fn buckets_reordering_and_memory_are_those_of_the_link() {
    let bucket = |bps, burst| Some(TokenBucket { rate: Rate::from_bps(bps), burst: Bytes::new(burst) });
    let link = up(
        "policer = { rate = \"2 Mbps\", burst = \"15 kB\" }\nshaper = { rate = \"500 kbps\", burst = \"4 kB\" }\n\
                   reorder = { share = \"1%\", by = \"30 ms\" }\njitter = { kind = \"normal\", sd = \"5 ms\", memory = \"25%\" }",
    );
    assert_eq!((link.policer, link.shaper), (bucket(2_000_000, 15_000), bucket(500_000, 4_000)));
    assert_eq!(link.reorder, Some(Reordering { share: 0.01, by: Duration::from_millis(30) }));
    let sd = Duration::from_millis(5);
    assert_eq!(link.jitter, DelayVariation::Normal { sd, memory: 0.25, reorder: false });
    let plain = up("");
    assert_eq!((plain.policer, plain.shaper, plain.reorder), (None, None, None));
}

#[test]
fn repetition_and_damage_are_those_of_the_link() {
    let link = up("duplicate = \"1%\"\ndamage = \"0.1%\"");
    assert_eq!((link.duplicate, link.damage), (0.01, Some(Damage { share: 0.001, check: Check::Checksum })));
    let link = up("damage = { kind = \"frame-check\", share = 0.25 }");
    assert_eq!((link.duplicate, link.damage), (0.0, Some(Damage { share: 0.25, check: Check::Frame })));
    let set = vec![Setting::new("path.*.damage", "2%"), Setting::new("path.*.duplicate", "3%")];
    let plan = plan(GOOD, &Options { set, ..Options::default() });
    for link in &plan.cells[0].scenario.links {
        assert_eq!((link.config.duplicate, link.config.damage.unwrap().share), (0.03, 0.02));
    }
}

#[test]
fn queues_with_classes_have_them_by_name_and_one_class_more() {
    let [ef, va, af41] = ["EF", "VA", "AF41"].map(|name| Dscp::named(name).unwrap());
    let classes = Classes::new(&[vec![ef, va], vec![af41]]);
    let tables = "{ dscp = [\"EF\", \"VA\"] }, { dscp = [\"AF41\"] }";
    let limit = QueueLimit::Packets(Packets::new(50));
    let queue =
        up(&format!("queue = {{ kind = \"priority\", classes = [{tables}], limit = \"50 packets\" }}")).queue;
    assert_eq!(queue, QueueKind::Priority(Priority { classes: classes.clone(), limit }));
    let tables = tables.replace("\"VA\"]", "\"VA\"], quantum = \"3000 B\"");
    let keys =
        format!("queue = {{ kind = \"drr\", classes = [{tables}], quantum = \"600 B\", limit = \"50 ms\" }}");
    let quanta = [3000, 600, 600].map(|bytes| Some(Bytes::new(bytes))).to_vec();
    let limit = QueueLimit::Bytes(Bytes::new(6250));
    assert_eq!(up(&keys).queue, QueueKind::Drr(Drr { classes, quanta, limit }));
}

#[test]
fn links_over_wifi_are_those_of_their_keys_and_share_the_wifi_of_the_link_that_they_name() {
    let rate = |mbps: u64| Rate::from_bps(1_000_000 * mbps);
    let fast = "rate = \"65 Mbps\"\n";
    let good = GOOD.replace("rate = \"1 Mbps\"\n", "").replace("rate = \"8 Mbps\"\n", fast);
    assert_eq!(up("").medium, Medium::Wire);
    let text = format!(
        "{good}{fast}wifi = {{ sender = \"station\", with = \"down\" }}\n[path.down.wifi]\nsender = \"access-point\"\n\
         frame_error = \"2%\"\nattempts = 4\naggregate = \"0 B\"\n\
         others = [{{ rate = \"13 Mbps\", up = \"saturated\" }}, {{ count = 3, rate = \"65 Mbps\", down = \"2 Mbps\", packet = \"300 B\" }}]\n"
    );
    let links = plan(&text, &Options::default()).cells[0].scenario.links.clone();
    let of = |name: &str| links.iter().find(|link| link.name == name).unwrap().config.medium.clone();
    let shared = WifiAir::Of("down".to_owned());
    let up = WifiLink { sender: WifiSender::Station, rate: rate(65), air: shared };
    assert_eq!(of("up"), Medium::Wifi(Box::new(up)));
    let others = |count, mbps, up, down, packet| OtherStations {
        count,
        rate: rate(mbps),
        up,
        down,
        packet: Bytes::new(packet),
    };
    let config = WifiConfig {
        frame_error: 0.02,
        attempts: 4,
        aggregate: Bytes::ZERO,
        others: vec![
            others(1, 13, Offered::Saturated, Offered::Nothing, 1500),
            others(3, 65, Offered::Nothing, Offered::Rate(rate(2)), 300),
        ],
    };
    let down = WifiLink { sender: WifiSender::AccessPoint, rate: rate(65), air: WifiAir::Own(config) };
    assert_eq!(of("down"), Medium::Wifi(Box::new(down)));
}

#[test]
fn a_link_over_wifi_is_refused_what_its_medium_decides() {
    let good = GOOD.replace("1 Mbps", "65 Mbps");
    for (lines, expected) in [
        ("wifi = {}", "11:8: path.up.wifi.sender: missing"),
        (
            "wifi = { sender = \"station\", with = \"down\" }",
            "8:7: path.up.wifi.with: there is no link that brings a Wi-Fi called \"down\"",
        ),
        (
            "wifi = { sender = \"station\", with = \"down\", attempts = 3 }",
            "11:56: path.up.wifi.attempts: found `attempts` beside `with`",
        ),
        (
            "framing = { kind = \"atm\", overhead = \"8 B\" }\nwifi.sender = \"station\"",
            "11:11: path.up.framing: found a framing beside `wifi`",
        ),
        (
            "shaper = { rate = \"1 Mbps\", burst = \"3 kB\" }\nwifi.sender = \"station\"",
            "11:10: path.up.shaper: found a shaper beside `wifi`",
        ),
        ("mtu = \"9000 B\"\nwifi.sender = \"station\"", "11:7: path.up.mtu: found 9000 B | at most 2296 B"),
        (
            "wifi.sender = \"station\"\n[[change]]\nat = \"1 s\"\nlink = \"up\"\nrate = \"2 Mbps\"",
            "15:8: change.1.rate: found a change of up, which is over Wi-Fi",
        ),
        (
            "wifi.sender = \"station\"\n[[change]]\nat = \"1 s\"\nlink = \"up\"\noutage = \"1 s\"",
            "15:10: change.1.outage: found a change of up, which is over Wi-Fi",
        ),
    ] {
        check(&format!("{good}{lines}\n"), &[expected]);
    }
    check(
        &format!("{GOOD}wifi.sender = \"station\"\n"),
        &["9:8: path.up.rate: found no rate from 6 Mbps to 10 Gbps beside `wifi` | rate = \"65 Mbps\""],
    );
}

#[test]
fn a_users_share_of_a_cell_has_ltes_times_by_default() {
    let ms = Duration::from_millis;
    let harq = Harq { block_error: 0.0, repeat_error: 0.0, delay: ms(8), attempts: 4, recovery: ms(60) };
    let scheduler = Scheduler::ProportionalFair { window: ms(100) };
    let alone = Cellular { others: 0, scheduler, tti: ms(1), request: None, harq };
    assert_eq!(up("cellular = {}").cellular, Some(alone.clone()));
    let keys = "cellular = { others = 9, scheduler = { kind = \"round-robin\", at_once = 4 }, request = \"10 ms\", \
                block_error = \"10%\", attempts = 3 }";
    let uplink = Cellular {
        others: 9,
        scheduler: Scheduler::RoundRobin { at_once: 4 },
        request: Some(GrantRequest { period: ms(10), grant: ms(8) }),
        harq: Harq { block_error: 0.1, attempts: 3, ..harq },
        ..alone
    };
    assert_eq!(up(keys).cellular, Some(uplink));
}

#[test]
fn a_users_share_of_a_cell_is_refused_what_the_cell_decides() {
    for (lines, expected) in [
        (
            "cellular.block_error = 0.6",
            "11:24: path.up.cellular.block_error: found 60%, expected at most 50%",
        ),
        (
            "shaper = { rate = \"1 Mbps\", burst = \"3 kB\" }\ncellular.others = 1",
            "11:10: path.up.shaper: found a shaper beside `cellular`",
        ),
        (
            "cellular.others = 1\n[[change]]\nat = \"1 s\"\nlink = \"up\"\nrate = \"unlimited\"",
            "15:8: change.1.rate: found an unlimited rate of up, which is a user's share of a cell",
        ),
    ] {
        check(&format!("{GOOD}{lines}\n"), &[expected]);
    }
    let fast = GOOD.replace("1 Mbps", "65 Mbps");
    check(
        &format!("{fast}cellular = {{ others = 1 }}\nwifi.sender = \"station\"\n"),
        &["11:12: path.up.cellular: found `cellular` beside `wifi`"],
    );
    let slow = GOOD.replace("rate = \"1 Mbps\"", "rate = \"1 kbps\"");
    check(
        &format!("{slow}cellular.others = 1\n"),
        &["9:8: path.up.rate: found no rate from 10 kbps to 10 Gbps beside `cellular`"],
    );
}

#[test]
fn what_a_link_cannot_be_is_refused_with_what_is_right() {
    for (lines, expected) in [
        (
            "loss = { mean = \"80%\", burst = 3 }",
            "11:8: path.up.loss: found a loss of 80% in runs of 3 packets | at most 75%",
        ),
        (
            "loss = { mean = \"1%\", burst = 1 }",
            "11:31: path.up.loss.burst: found 1, expected a number above 1",
        ),
        ("loss = { burst = 3 }", "11:8: path.up.loss.mean: missing"),
        (
            "shaper = { rate = \"1 Mbps\", burst = \"1 kB\" }",
            "11:10: path.up.shaper: found a burst of 1000 B, expected at least 1500 B",
        ),
        ("policer = { rate = \"1 Mbps\" }", "11:11: path.up.policer.burst: missing"),
        ("reorder = { share = \"1%\" }", "11:11: path.up.reorder.by: missing"),
        ("duplicate = \"110%\"", "11:13: path.up.duplicate: found | from 0"),
        ("damage = \"some\"", "11:10: path.up.damage: found \"some\" | checksum"),
        ("queue = \"priority\"", "11:9: path.up.queue.classes: missing"),
        ("queue = { kind = \"drr\", classes = [] }", "11:35: path.up.queue.classes: found no class"),
        (
            "queue = { kind = \"drr\", classes = [{ dscp = [\"EX\"] }] }",
            "11:46: path.up.queue.classes.1.dscp: there is no DSCP called \"EX\" | did you mean \"EF\"",
        ),
        (
            "queue = { kind = \"priority\", classes = [{ dscp = [\"EF\"] }, { dscp = [\"EF\"] }] }",
            "11:70: path.up.queue.classes.2.dscp: found EF twice; class 1 has it already",
        ),
        (
            "queue.limit = \"0.0001 bdp\"",
            "11:15: path.up.queue.limit: found \"0.0001 bdp\", which is finer than 0.001 bdp",
        ),
    ] {
        check(&format!("{GOOD}{lines}\n"), &[expected]);
    }
    let no_rate = GOOD.replace("rate = \"1 Mbps\"\n", "rate = \"unlimited\"\n");
    check(
        &format!("{no_rate}queue.limit = \"50 ms\"\n"),
        &["11:15: path.up.queue.limit: found 50 ms, but the link has no rate | write `rate` too"],
    );
    let wrong_rate = GOOD.replace("rate = \"1 Mbps\"", "rate = \"0 Mbps\"");
    check(&format!("{wrong_rate}queue.limit = \"50 ms\"\n"), &["9:8: path.up.rate: found \"0 Mbps\""]);
    let links = "duration = \"60 s\"\n[link.a]\nrate = \"1 Mbps\"\nqueue.limit = \"1 bdp\"\n[link.b]\nrate = \"1 Mbps\"\n[flow.call]\n\
                 transport = \"udp\"\nworkload = \"voice\"\nroute = [\"a\"]\nreturn_route = [\"b\"]\n";
    check(
        links,
        &["4:15: link.a.queue.limit: found 1 bdp, but only a `path` has a round trip | a time such as"],
    );
}

#[test]
fn a_policer_that_drops_every_full_packet_is_warned_of() {
    let text = format!("{GOOD}policer = {{ rate = \"1 Mbps\", burst = \"1 kB\" }}\n");
    let warnings = plan(&text, &Options::default()).warnings;
    let line = warnings.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
    assert!(line.contains("path.up.policer: its burst is 1000 B, so a packet of 1500 B"), "{line}");
}

#[test]
fn a_token_bucket_alone_lets_time_pass_on_a_link() {
    for bucket in ["shaper", "policer"] {
        let text = format!(
            "duration = \"2 s\"\n[flow.file]\ntransport = \"tcp\"\nworkload = \"bulk\"\n\
             [path]\nup = {{ {bucket} = {{ rate = \"8 Mbps\", burst = \"16 kB\" }} }}\ndown = {{ delay = \"0 ms\" }}\n"
        );
        plan(&text, &Options::default());
    }
}
