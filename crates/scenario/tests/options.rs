//! What the command line and a sweep change, and what the resolved form keeps of it.

use talkpath_config::{CongestionControlKind, NagleKind, TcpConfig, TransportConfig};
use talkpath_path::LossModel;
use talkpath_scenario::{Direction, Options, Percent, Plan, Setting, Source, load};
use talkpath_units::{Duration, Seed};

use crate::loading::{self, TCP as BASE, refused, set};

fn plan(text: &str, keys: &[(&str, &str)]) -> Plan {
    loading::plan(text, &set(keys))
}

fn tcp(plan: &Plan, cell: usize) -> &TcpConfig {
    match &plan.cells[cell].scenario.flows[0].transport {
        TransportConfig::Tcp(tcp) => tcp,
        TransportConfig::Udp(_) | TransportConfig::Encapsulated(_) | TransportConfig::Quic(_) => {
            panic!("the flow is TCP")
        }
    }
}

#[test]
fn a_key_of_a_preset_is_changed_alone() {
    let plan = plan(BASE, &[("path.up.delay", "30 ms"), ("path.up.loss", "0.5")]);
    let links = &plan.cells[0].scenario.links;
    assert_eq!(links[0].config.delay, Duration::from_millis(30));
    assert_eq!(links[0].config.loss, LossModel::Bernoulli { rate: 0.5 });
    assert_eq!(links[1].config.delay, Duration::from_millis(20));
}

#[test]
fn seed_and_repeat_of_the_command_line_stand_over_the_files() {
    let options = Options { seed: Some(7), repeat: Some(3), ..Options::default() };
    let plan = load(&Source::new("base.toml", BASE), &options).unwrap();
    assert_eq!((plan.seed, plan.repeat, plan.name.as_str()), (Seed::new(7), 3, "base"));
    assert!(plan.resolved.contains("seed = 7\n"), "{}", plan.resolved);
}

#[test]
fn the_far_clock_stands_in_the_resolved_form() {
    let plan = plan(&format!("far_clock = {{ offset = \"1 s\", skew = 40 }}\n{BASE}"), &[]);
    assert_eq!(plan.cells[0].scenario.far_clock.map(|clock| clock.offset), Some(Duration::from_secs(1)));
}

#[test]
fn a_key_set_on_the_command_line_is_not_swept_any_more() {
    let text =
        format!("{BASE}[sweep]\n\"flow.call.transport\" = [\"udp\", \"tcp\"]\n\"path.up.loss\" = [0, 0.1]\n");
    let plan = plan(&text, &[("flow.call.transport", "tcp-nodelay")]);
    assert_eq!(plan.cells.len(), 2);
    assert_eq!(plan.cells[1].scenario.flows[0].transport_name, "tcp-nodelay");
    assert_eq!(plan.warnings.len(), 1);
}

#[test]
fn defaults_follow_a_swept_stack_in_the_resolved_form_too() {
    let text = format!("{BASE}[sweep]\n\"flow.call.transport.stack\" = [\"linux\", \"bsd-reno\"]\n");
    let plan = plan(&text, &[]);
    assert_eq!(tcp(&plan, 0).nagle, NagleKind::Minshall);
    assert_eq!(tcp(&plan, 1).nagle, NagleKind::Classic);
    assert_eq!(tcp(&plan, 1).cc, Some(CongestionControlKind::Reno));
    assert!(
        plan.cells[1].scenario.flows[0].asked_for.is_empty(),
        "a stack's own mechanisms are not asked for"
    );
}

#[test]
fn a_swept_path_may_have_one_of_its_keys_swept_too() {
    let text =
        format!("{BASE}[sweep]\n\"path.up.delay\" = [\"1 ms\", \"2 ms\"]\npath = [\"lan\", \"lte\"]\n");
    let plan = plan(&text, &[]);
    let links = |cell: usize| &plan.cells[cell].scenario.links;
    assert_eq!(plan.cells[3].label, "path.up.delay=2 ms, path=lte");
    assert_eq!(links(3)[0].config.delay, Duration::from_millis(2));
    assert_eq!(links(3)[1].config.delay, Duration::from_millis(33));
    assert_eq!(links(2)[1].config.delay, Duration::from_micros(100));
}

#[test]
fn the_changes_of_a_preset_come_beside_those_of_the_scenario_and_in_its_cells_alone() {
    let changes = |text: &str, keys: &[(&str, &str)]| -> Vec<usize> {
        plan(text, keys).cells.iter().map(|cell| cell.scenario.changes.len()).collect()
    };
    let starlink = BASE.replace("home-adsl", "starlink");
    assert_ne!(starlink, BASE);
    let own = "[[change]]\nat = \"1 s\"\nlink = \"up\"\nrate = \"1 Mbps\"\n";
    // Its change is of both links.
    assert_eq!(changes(&starlink, &[]), [2]);
    assert_eq!(changes(&format!("{starlink}{own}"), &[("path.up.delay", "1 ms")]), [3]);
    assert_eq!(changes(BASE, &[("path", "starlink")]), [2]);
    assert_eq!(changes(&starlink, &[("path", "lan")]), [0]);
    let swept = format!("{starlink}{own}[sweep]\npath = [\"lan\", \"starlink\", \"geo-satellite\"]\n");
    assert_eq!(changes(&swept, &[]), [1, 3, 1]);
}

#[test]
fn a_star_stands_for_both_directions_and_for_every_flow() {
    let text = format!("{BASE}[flow.chat]\ntransport = \"udp\"\nworkload = \"voice\"\n");
    let swept = plan(&text, &[("sweep.path.*.loss", "[0, 0.02]"), ("flow.*.count", "2")]);
    let loss = |cell: usize, link: usize| &swept.cells[cell].scenario.links[link].config.loss;
    assert_eq!((loss(0, 0), loss(1, 0)), (loss(0, 1), loss(1, 1)), "of both directions");
    assert_ne!(loss(0, 0), loss(1, 0));
    assert_eq!(swept.cells[1].label, "path.*.loss=0.02");
    assert_eq!(swept.cells[0].scenario.flows.len(), 4);
}

#[test]
fn a_line_with_several_keys_sets_them_together() {
    let text = format!(
        "{BASE}[sweep]\n\"path.up.delay, path.*.loss\" = [[\"1 ms\", \"1%\"], [\"2 ms\", \"2%\"]]\n\
         \"flow.call.transport\" = [\"udp\", \"tcp\"]\n"
    );
    let plan = plan(&text, &[]);
    let found: Vec<_> = plan
        .cells
        .iter()
        .map(|cell| {
            let [up, down] = &cell.scenario.links[..] else { panic!("two links") };
            (up.config.delay.as_millis(), up.config.loss.mean(), down.config.loss.mean())
        })
        .collect();
    assert_eq!(found, [(1, 0.01, 0.01), (1, 0.01, 0.01), (2, 0.02, 0.02), (2, 0.02, 0.02)]);
    assert_eq!(plan.cells[2].label, "path.up.delay=2 ms, path.*.loss=0.02, flow.call.transport=udp");

    let rows = "[[\"3 ms\", 0], [\"4 ms\", 0.1], [\"5 ms\", 0.2]]";
    let option = Setting::sweep("path.up.delay,path.up.loss", rows);
    let by_option = loading::plan(&text, &Options { set: vec![option], ..Options::default() });
    assert_eq!(by_option.cells.len(), 6, "the line of the file over the same key is left out");
    let with_set = loading::plan(&text, &set(&[("path.up.loss", "0")]));
    assert_eq!(with_set.cells.len(), 2, "a line is left out if one of its keys is set");
}

#[test]
fn a_line_with_several_keys_has_a_value_for_each() {
    let mistakes = |line: &str| refused(&format!("{BASE}[sweep]\n{line}\n"), &[]);
    let keys = "\"path.up.delay, path.up.loss\"";
    let short = mistakes(&format!("{keys} = [[\"1 ms\", 0], [\"2 ms\"]]"));
    assert!(short.contains("found 1 values, expected a list of 2"), "{short}");
    let bare = mistakes(&format!("{keys} = [\"1 ms\"]"));
    assert!(bare.contains("found \"1 ms\", expected a list of 2"), "{bare}");
    let twice = mistakes("\"path.up.loss, path.*.loss\" = [[0, 0.1]]");
    assert!(twice.contains("sets a key that this line has already"), "{twice}");
    let unknown = mistakes("\"path.up.delay, path.up.los\" = [[\"1 ms\", 0]]");
    assert!(unknown.contains("path.up.loss") || unknown.contains("loss"), "{unknown}");
}

#[test]
fn a_count_of_zero_leaves_a_flow_out_but_not_all_flows() {
    let upload = "[flow.upload]\ntransport = \"tcp\"\nworkload = \"bulk\"\n";
    let swept = format!("{BASE}{upload}[sweep]\n\"flow.upload.count\" = [0, 1, 2]\n");
    let names: Vec<Vec<String>> = plan(&swept, &[])
        .cells
        .iter()
        .map(|cell| cell.scenario.flows.iter().map(|flow| flow.name.clone()).collect())
        .collect();
    assert_eq!(names, [vec!["call"], vec!["call", "upload"], vec!["call", "upload-1", "upload-2"]]);
    let none = refused(BASE, &[Setting::new("flow.call.count", "0")]);
    assert!(none.contains("`count = 0` in every flow"), "{none}");
}

#[test]
fn two_lines_of_a_sweep_do_not_reach_the_same_key() {
    let text = format!("{BASE}[sweep]\n\"path.*.loss\" = [0, 0.01]\n\"path.up.loss\" = [0, 0.02]\n");
    let mistakes = refused(&text, &[]);
    assert!(
        mistakes.contains("f.toml:8:1") && mistakes.contains("`path.*.loss` sweeps over the same key"),
        "{mistakes}"
    );
    let both = ["path.*.loss", "path.up.loss"].map(|key| Setting::sweep(key, "0,1%"));
    assert!(refused(BASE, &both).contains("sweeps over the same key"));
}

#[test]
fn what_the_command_line_sets_or_sweeps_is_no_longer_swept_by_the_file() {
    let swept = |line: &str| format!("{BASE}[sweep]\n{line} = [0, 0.01]\nduration = [\"1 s\", \"2 s\"]\n");
    for line in ["\"path.*.loss\"", "\"path.up.loss\"", "path.up.loss"] {
        for set in [Setting::new("path.up.loss", "0.5"), Setting::new("path.*.loss", "0.5")] {
            let options = Options { set: vec![set.clone()], ..Options::default() };
            let plan = load(&Source::new("test.toml", swept(line)), &options).unwrap();
            assert_eq!(plan.cells.len(), 2, "{line}, {set:?}");
            assert_eq!(plan.warnings.len(), 1, "{line}, {set:?}");
        }
        let options = Options { set: vec![Setting::sweep("path.up.loss", "0,1%,2%")], ..Options::default() };
        let plan = load(&Source::new("test.toml", swept(line)), &options).unwrap();
        assert_eq!(plan.cells.len(), 6, "{line}");
    }
}

#[test]
fn a_star_that_says_nothing_is_a_mistake() {
    assert!(refused(BASE, &[Setting::new("flow.*", "3")]).contains("found no key after `*`"));
    assert!(refused(BASE, &[Setting::sweep("link.*.loss", "0,1%")]).contains("there is no link for `*`"));
    let transports = refused(BASE, &[Setting::sweep("flow.*.transport", "udp,tcp")]);
    assert!(transports.contains("flow.NAME.transport"), "{transports}");
}

#[test]
fn a_key_may_stand_in_quotes() {
    let swept = plan(BASE, &[("sweep.\"path.up.loss\"", "[0, 0.02]")]);
    assert_eq!(swept.cells[1].label, "path.up.loss=0.02");
}

#[test]
fn the_values_of_a_sweep_stand_between_commas_and_percent_are_shares() {
    let of = |values: &str| Setting::sweep("path.up.loss", values).value;
    assert_eq!(of("0, 0.5%,1%"), "[0, \"0.5%\", \"1%\"]");
    assert_eq!(of("[0, 0.02]"), "[0, 0.02]");
    assert_eq!(of("16kB,64 kB"), "[\"16kB\", \"64 kB\"]");
    assert_eq!(of("{ kind = \"cbr\", p = 0.1 }"), "[{ kind = \"cbr\", p = 0.1 }]");
    let options = Options { set: vec![Setting::sweep("path.up.loss", "0,1.1%,0.7%")], ..Options::default() };
    let swept = load(&Source::new("base.toml", BASE), &options).unwrap();
    let labels: Vec<_> = swept.cells.iter().map(|cell| cell.label.as_str()).collect();
    assert_eq!(labels, ["path.up.loss=0", "path.up.loss=0.011", "path.up.loss=0.007"]);
    assert_eq!(of("[0,1%]"), "[0,1%]", "what is meant as a list is shown whole");
}

#[test]
fn a_bare_number_beside_percent_is_refused_and_says_what_it_may_mean() {
    let of = |values: &str| refused(BASE, &[Setting::sweep("path.*.loss", values)]);
    for (values, found, meant) in [
        ("0,1,5%", "found 1 beside 5%", "did you mean 1% or 100%?"),
        ("0.5%, 0.01", "found 0.01 beside 0.5%", "did you mean 0.01% or 1%?"),
        ("2,5%", "found 2 beside 5%", "did you mean 2%?"),
    ] {
        let mistakes = of(values);
        assert!(mistakes.contains(found) && mistakes.contains(meant), "{values}: {mistakes}");
    }
    for values in ["0,1%,5%", "0, 0.01, 0.05", "0.0,1%"] {
        let options = Options { set: vec![Setting::sweep("path.*.loss", values)], ..Options::default() };
        assert!(load(&Source::new("base.toml", BASE), &options).is_ok(), "{values}");
    }
}

#[test]
fn a_share_above_one_is_probably_in_per_cent() {
    let mistakes = refused(BASE, &[Setting::new("path.up.loss", "2")]);
    assert!(mistakes.contains("found 2, expected a share from 0 to 1"), "{mistakes}");
    assert!(mistakes.contains("did you mean 2%? As a share of 1 it is 0.02"), "{mistakes}");
    for value in ["101", "-1"] {
        let mistakes = refused(BASE, &[Setting::new("path.up.loss", value)]);
        assert!(!mistakes.contains("did you mean"), "{mistakes}");
    }
}

#[test]
fn a_round_trip_or_a_links_key_on_the_path_says_which_key_there_is() {
    let both = "half of a round trip is the delay of each direction: `path.*.delay` sets both";
    let one = "half of a round trip is the `delay` of each direction";
    for (key, help) in [("path.rtt", both), ("path.*.rtt", one), ("path.up.rtt", one)] {
        let mistakes = refused(BASE, &[Setting::sweep(key, "20ms")]);
        assert!(mistakes.contains(help), "{mistakes}");
    }
    let mistakes = refused(BASE, &[Setting::new("path.loss", "1%")]);
    assert!(mistakes.contains("both directions are `path.*.loss`"), "{mistakes}");
}

#[test]
fn a_name_that_another_tool_has_for_a_key_says_what_to_write_here() {
    for (setting, help) in [
        (("path.up.latency", "20ms"), "did you mean `delay`? It is one way"),
        (("path.up.bandwidth", "1Mbps"), "did you mean `rate`?"),
        (("path.up.packet-loss", "1%"), "did you mean `loss`?"),
        (("path.up.corrupt", "1%"), "did you mean `damage`?"),
        (("path.up.limit", "50"), "limit = \"50 packets\" }"),
        (("path.up.tbf", "1Mbps"), "shaper = {"),
        (("path.up.queue", "tbf"), "shaper = {"),
        (("path.up.queue", "{ kind = 'pfifo', limit = '50 packets' }"), "did you mean \"drop-tail\"?"),
        (("path.up.loss", "random"), "did you mean \"bernoulli\"?"),
        (("path.up.loss", "{ kind = 'gemodel', p = 0.01, r = 0.3 }"), "kind = \"gilbert-elliott\", p = "),
        (
            ("path.up.loss", "{ kind = 'gilbert-elliott', rate = 0.01, run = 3 }"),
            "{ mean = \"1%\", burst = 3 }",
        ),
    ] {
        let mistakes = refused(BASE, &[Setting::new(setting.0, setting.1)]);
        assert!(mistakes.contains(help), "{setting:?}: {mistakes}");
    }
}

#[test]
fn what_to_write_in_place_of_another_tools_name_is_right() {
    for value in [
        "queue={ kind = \"drop-tail\", limit = \"50 packets\" }",
        "shaper={ rate = \"1 Mbps\", burst = \"32 kB\" }",
        "loss={ mean = \"1%\", burst = 3 }",
        "loss={ kind = \"gilbert-elliott\", p = \"1%\", r = \"30%\" }",
    ] {
        let (key, value) = value.split_once('=').unwrap();
        let _ = plan(BASE, &[(&format!("path.up.{key}"), value)]);
    }
}

#[test]
fn a_list_where_a_value_belongs_says_how_to_sweep() {
    let mistakes = refused(BASE, &[Setting::new("path.up.queue.limit", "['16 kB', '64 kB']")]);
    assert!(mistakes.contains("--sweep KEY=A,B"), "{mistakes}");
}

#[test]
fn what_a_sweep_brings_need_not_stand_in_the_file() {
    let text = BASE.replace("transport = \"tcp\"\n", "").replace("path = \"home-adsl\"\n", "")
        + "[sweep]\n\"flow.call.transport\" = [\"tcp\"]\npath = [\"lan\"]\n";
    assert_eq!(plan(&text, &[]).cells.len(), 1);
}

#[test]
fn both_directions_are_two_flows_each_the_others_way_back() {
    let plan = plan(BASE, &[("flow.call.direction", "both"), ("flow.call.count", "2")]);
    let flows = &plan.cells[0].scenario.flows;
    let names: Vec<_> = flows.iter().map(|flow| flow.name.as_str()).collect();
    assert_eq!(names, ["call-1-up", "call-1-down", "call-2-up", "call-2-down"]);
    assert_eq!((&flows[0].route, &flows[0].return_route), (&flows[1].return_route, &flows[1].route));
    assert_eq!((flows[0].direction, flows[1].direction), (Direction::Up, Direction::Down));
}

#[test]
fn a_second_path_has_links_of_its_own_and_turns_with_the_direction() {
    let text = BASE
        .replace("path = \"home-adsl\"\n", "")
        .replace("\"tcp\"", "{ kind = \"tcp\", multipath = true }")
        + "route = [\"a\"]\nreturn_route = [\"b\"]\nsecond_route = [\"c\"]\nsecond_return_route = [\"d\"]\ndirection = \"both\"\n\
           [link.a]\n[link.b]\n[link.c]\nmtu = \"1000 B\"\n[link.d]\n";
    let plan = plan(&text, &[]);
    assert!(tcp(&plan, 0).multipath && !tcp(&self::plan(BASE, &[]), 0).multipath);
    let scenario = &plan.cells[0].scenario;
    let [up, down] = [0, 1].map(|flow: usize| scenario.flows[flow].second_path.clone().unwrap());
    assert_eq!((&up.route, &up.return_route), (&down.return_route, &down.route));
    let unused = plan.warnings.iter().filter(|warning| warning.message.contains("no flow goes over"));
    assert_eq!(unused.count(), 0);
    assert_eq!(scenario.path_mtu(&scenario.flows[0]).get(), 1000);
}

#[test]
fn what_was_asked_for_by_name_is_known_from_what_a_stack_has() {
    let text = BASE.replace(
        "\"tcp\"",
        "{ kind = \"tcp\", cc = \"cubic\", sack = false, tlp = true, pacing = \"default\" }",
    );
    let plan = plan(&text, &[]);
    assert_eq!(plan.cells[0].scenario.flows[0].asked_for, ["cc", "sack", "tlp"]);
    assert!(!tcp(&plan, 0).sack && tcp(&plan, 0).tlp && !tcp(&plan, 0).pacing);
}

#[test]
fn a_link_that_nobody_uses_is_a_warning() {
    let text = BASE.replace("path = \"home-adsl\"\n", "")
        + "route = [\"wan\"]\nreturn_route = [\"naw\"]\n[link.wan]\n[link.naw]\n[link.spare]\n[link.\"x{n}\"]\n";
    let told: Vec<_> = plan(&text, &[]).warnings.iter().map(|warning| warning.key.clone()).collect();
    let unused: Vec<_> = told.iter().filter(|key| !key.ends_with(".rate")).collect();
    assert_eq!(unused, ["link.spare", "link.x{n}"]);
}

#[test]
fn a_large_sweep_is_read_in_reasonable_time_and_memory() {
    let delays = (1..=100).map(|ms| format!("\"{ms} ms\"")).collect::<Vec<_>>().join(", ");
    let text = format!("{BASE}[sweep]\n\"path.up.delay\" = [{delays}]\n\"path.down.delay\" = [{delays}]\n");
    let plan = load(&Source::new("base.toml", text), &Options::default()).unwrap();
    assert_eq!(plan.cells.len(), 10_000);
    assert_eq!(plan.cells[9_999].index, 9_999);
}

#[test]
fn a_swept_kind_is_read_again_though_its_table_is_not_in_the_file() {
    let of_queues = BASE.replace("path = \"home-adsl\"", "path.up = {}\npath.down = {}")
        + "[sweep]\n\"path.up.queue.kind\" = [\"codel\", \"fq_codel\"]\n";
    assert_eq!(plan(&of_queues, &[]).cells.len(), 2);
    let of_transports = BASE.replace("transport = \"tcp\"\n", "")
        + "[sweep]\n\"flow.call.transport.kind\" = [\"tcp\", \"udp\"]\n";
    assert_eq!(plan(&of_transports, &[]).cells.len(), 2);
    let without_kind = BASE.replace("\"tcp\"", "{ cc = \"reno\" }");
    assert!(refused(&without_kind, &[]).contains("flow.call.transport.kind: missing"));
}

#[test]
fn a_word_with_an_underscore_in_place_of_its_hyphen_means_the_same() {
    let of =
        |stack: &str| BASE.replace("\"tcp\"", &format!("{{ kind = \"tcp_nodelay\", stack = \"{stack}\" }}"));
    assert_eq!(
        plan(&of("bsd_reno"), &[]).cells[0].scenario.flows,
        plan(&of("bsd-reno"), &[]).cells[0].scenario.flows
    );
}

#[test]
fn a_key_in_a_table_that_the_file_does_not_have_makes_the_table() {
    let delay = Setting::new("flow.call.workload.playout.delay", "60 ms");
    let why = refused(BASE, &[delay]);
    assert!(why.contains("flow.call.workload.playout.kind: missing") && why.contains("fixed"), "{why}");
    let set = [("flow.call.workload.playout.delay", "60 ms"), ("flow.call.workload.playout.kind", "fixed")];
    assert_eq!(plan(BASE, &set).cells.len(), 1);
    let why = refused(BASE, &[Setting::new("flow.call.workload.ptime.delay", "60 ms")]);
    assert!(why.contains("`ptime` has no keys of its own"), "{why}");
}

#[test]
fn a_rate_is_called_missing_only_where_nobody_wrote_it() {
    let warned = |up: &str| {
        let link = format!("{{ up = {{ {up} }}, down = {{ rate = \"unlimited\" }} }}");
        let keys: Vec<_> = plan(BASE, &[("path", &link)]).warnings.iter().map(|it| it.key.clone()).collect();
        keys
    };
    assert_eq!(warned("rate = \"unlimited\", delay = \"1 ms\""), Vec::<String>::new());
    assert_eq!(warned("delay = \"1 ms\""), ["path.up.rate"]);
}

#[test]
fn a_growth_that_linux_does_not_have_is_a_warning() {
    let of = |stack: &str| {
        let tcp = format!("{{ kind = \"tcp\", stack = \"{stack}\", growth = \"bsd\" }}");
        let warnings = plan(&BASE.replace("\"tcp\"", &tcp), &[]).warnings;
        warnings.into_iter().map(|warning| warning.key).collect::<Vec<_>>()
    };
    assert_eq!(of("linux"), ["flow.call.transport.growth"]);
    assert_eq!(of("rfc"), Vec::<String>::new());
}

#[test]
fn a_bare_1_of_the_command_line_is_refused_wherever_a_share_stands() {
    let meant = "did you mean 1% or 100%?";
    for (key, value) in [
        ("path.up.loss", "1"),
        ("path.*.loss", "1.0"),
        ("path.up.loss", "{ kind = \"bernoulli\", rate = 1 }"),
        ("path.up.loss", "{ kind = \"gilbert-elliott\", p = 0.1, r = 1 }"),
        ("path.up.loss", "{ kind = \"gilbert-elliott\", p = 0.1, r = 0.2, loss_bad = 1 }"),
        ("path.up", "{ rate = \"1 Mbps\", loss = 1 }"),
    ] {
        let mistakes = refused(BASE, &[Setting::new(key, value)]);
        assert!(mistakes.contains(meant), "{key}={value}: {mistakes}");
    }
    for values in ["0,1", "0.5,1", "[0, 1]"] {
        let mistakes = refused(BASE, &[Setting::sweep("path.up.loss", values)]);
        assert!(mistakes.contains(meant), "{values}: {mistakes}");
    }
    // In a file it is read as before, and so is each that says what it is.
    let all = LossModel::Bernoulli { rate: 1.0 };
    let loss = |plan: &Plan| plan.cells[0].scenario.links[0].config.loss.clone();
    assert_eq!(loss(&plan(BASE, &[("path.up.loss", "100%")])), all);
    let text = BASE.replace("path = \"home-adsl\"", "path = { up = { loss = 1 }, down = {} }");
    assert_eq!(loss(&plan(&text, &[])), all);
}

#[test]
fn per_cent_is_read_wherever_a_share_stands_in_files_and_options() {
    let loss = |plan: &Plan| plan.cells[0].scenario.links[0].config.loss.clone();
    let bursts = LossModel::GilbertElliott { p: 0.01, r: 0.2, loss_bad: 0.7, loss_good: 0.001 };
    let table =
        "{ kind = \"gilbert-elliott\", p = \"1%\", r = \"20 %\", loss_bad = \"70%\", loss_good = \"0.1%\" }";
    assert_eq!(loss(&plan(BASE, &[("path.up.loss", table)])), bursts);
    let path = |loss: &str| {
        BASE.replace("path = \"home-adsl\"", &format!("path = {{ up = {{ loss = {loss} }}, down = {{}} }}"))
    };
    assert_eq!(loss(&plan(&path(table), &[])), bursts);
    assert_eq!(loss(&plan(&path("\"1%\""), &[])), LossModel::Bernoulli { rate: 0.01 });
    let more = plan(&path("\"1%\""), &[("path.up.loss.rate", "2%")]);
    assert_eq!(loss(&more), LossModel::Bernoulli { rate: 0.02 });
    let swept = plan(&(BASE.to_owned() + "[sweep]\n\"path.*.loss\" = [0, \"1%\", \"2.5%\"]\n"), &[]);
    assert_eq!(swept.cells[2].label, "path.*.loss=0.025");
    assert_eq!(swept.cells[2].sweep["path.*.loss"], 0.025);
    let state = BASE.replace(
        "\"voice\"",
        "{ kind = \"cbr\", size = \"200 B\", message_rate = \"60 Hz\", floor = \"90%\" }",
    );
    assert!(plan(&state, &[]).resolved.contains("floor = 0.9"));
}

#[test]
fn a_bound_on_a_share_needs_its_percent_sign_from_1_on() {
    let in_file = |bound: &str| {
        let (figure, bound) = bound.split_once(' ').unwrap();
        let text = format!("{BASE}[thresholds]\n\"{figure}\" = \"{bound}\"\n");
        load(&Source::new("x.toml", text), &Options { percent_of: Some(percent_of), ..Options::default() })
    };
    let option = |text: &str| talkpath_scenario::split_threshold(text, false, percent_of);
    for text in ["call.loss_rate <= 2", "call.in_time >= 95", "link.up.utilisation <= 90"] {
        for why in [option(text).unwrap_err(), in_file(text).unwrap_err().to_string()] {
            assert!(why.contains("is a share") && why.contains("did you mean"), "{text}: {why}");
        }
        assert!(in_file(text).unwrap_err().to_string().contains("x.toml:"), "the place");
    }
    assert!(option("call.in_time.p10@path.up.loss=0.01 >= 1.0").unwrap_err().contains("did you mean"));
    for text in ["call.loss_rate <= 1%", "call.loss_rate <= 0.01", "call.loss_rate <= 100%", "call.mos >= 1"]
    {
        assert!(option(text).is_ok() && in_file(text).is_ok(), "{text}");
    }
}

/// A table of figures as small as the test needs. The whole table is in another crate.
fn percent_of(path: &str) -> Option<Percent> {
    match path {
        "loss_rate" | "in_time" | "utilisation" => Some(Percent::Share),
        "mos" => Some(Percent::Never),
        _ => None,
    }
}

#[test]
fn a_loss_above_a_fifth_is_said_in_words() {
    let said = |set: &[(&str, &str)]| plan(BASE, set).understood.losses;
    assert_eq!(said(&[("path.*.loss", "50%")]), ["The path loses 50 % of the packets each way."]);
    assert_eq!(said(&[("path.up.loss", "0.25")]), ["The link up loses 25 % of the packets."]);
    let bursts = "{ kind = \"gilbert-elliott\", p = 0.5, r = 0.5 }";
    assert_eq!(said(&[("path.down.loss", bursts)]), ["The link down loses 50 % of the packets."]);
    assert_eq!(said(&[("path.*.loss", "20%")]), [""; 0]);
    let swept = (BASE.to_owned() + "[sweep]\n\"path.*.loss\" = [0, 0.3]\n", &[][..]);
    assert_eq!(
        plan(&swept.0, swept.1).understood.losses,
        ["The path loses 30 % of the packets each way (in 1 of 2 cells)."]
    );
}
