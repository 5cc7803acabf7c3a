//! What a link does to packets: what its keys resolve to, and their mistakes.

use talkpath_path::{
    Check, Classes, Damage, DelayVariation, DropTail, Drr, Dscp, LinkConfig, LossModel, Priority, QueueKind,
    QueueLimit, Reordering, TokenBucket,
};
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
