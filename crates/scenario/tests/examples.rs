//! Every example and every preset of the documentation loads, and its resolved form says the same.

use talkpath_path::{Codel, CodelParameters, DropTail, Fq, FqCodel, QueueKind, QueueLimit};
use talkpath_scenario::campaign::Campaign;
use talkpath_scenario::{
    ByOption, ComparedWorkload, Comparison, Direction, EchoWrite, Options, Plan, Source, WorkloadConfig,
    load, presets,
};
use talkpath_units::{Bytes, Duration, Packets, Seed};

use crate::loading::plan_named;

const EXAMPLES: &[(&str, &str)] = &[
    ("voice-beside-an-upload.toml", include_str!("../../../scenarios/voice-beside-an-upload.toml")),
    ("dumbbell.toml", include_str!("../../../scenarios/dumbbell.toml")),
    ("sweep.toml", include_str!("../../../scenarios/sweep.toml")),
    ("slow-receiver.toml", include_str!("../../../scenarios/slow-receiver.toml")),
    ("red.toml", include_str!("../../../scenarios/red.toml")),
];

const CAMPAIGNS: &[(&str, &str)] = &[
    ("sites.toml", include_str!("../../../scenarios/campaigns/sites.toml")),
    ("columbia.toml", include_str!("../../../scenarios/campaigns/columbia.toml")),
    ("columbia-short.toml", include_str!("../../../scenarios/campaigns/columbia-short.toml")),
];

fn example(name: &str) -> Plan {
    let (name, text) =
        EXAMPLES.iter().find(|(example, _)| *example == name).expect("an example of that name");
    plan_named(name, text, &Options::default())
}

#[test]
fn every_example_loads_without_a_warning_and_its_resolved_form_gives_the_same_plan() {
    for (name, text) in EXAMPLES {
        let plan = plan_named(name, text, &Options::default());
        assert_eq!(plan.warnings, [], "{name}");
    }
}

#[test]
fn every_campaign_loads() {
    for (name, text) in CAMPAIGNS {
        let campaign =
            Campaign::load(&Source::new(*name, *text)).unwrap_or_else(|mistakes| panic!("{mistakes}"));
        assert!(campaign.measures.iter().all(|measure| measure.pairs.len() >= 3), "{name}");
    }
}

#[test]
fn every_preset_loads_and_its_resolved_form_gives_the_same_plan() {
    let text = |path: &str| {
        format!(
            "duration = \"1 s\"\npath = \"{path}\"\n[flow.a]\ntransport = \"udp\"\nworkload = \"voice\"\n"
        )
    };
    for preset in presets() {
        let plan = plan_named("preset.toml", &text(preset.name), &Options::default());
        assert_eq!(plan.warnings, [], "{}", preset.name);
        let names: Vec<_> = plan.cells[0].scenario.links.iter().map(|link| link.name.as_str()).collect();
        assert_eq!(names, ["up", "down"]);
    }
}

#[test]
fn the_sweep_makes_a_cell_of_each_combination_with_the_last_key_moving_fastest() {
    let plan = example("voice-beside-an-upload.toml");
    let labels: Vec<_> = plan.cells.iter().map(|cell| cell.label.as_str()).collect();
    assert_eq!(labels[0], "flow.call.transport=udp, path.up.loss=0.0");
    assert_eq!(labels[1], "flow.call.transport=udp, path.up.loss=0.01");
    assert_eq!(labels[8], "flow.call.transport=tcp-nodelay, path.up.loss=0.03");
    assert_eq!(plan.cells[3].sweep["flow.call.transport"], "tcp");
    assert_eq!(plan.cells[3].scenario.flows[0].transport_name, "tcp");
    assert_eq!((plan.repeat, plan.seed), (5, Seed::new(1)));
}

#[test]
fn copies_share_the_links_of_their_number_and_their_delays_step() {
    let plan = example("dumbbell.toml");
    let scenario = &plan.cells[0].scenario;
    let link = |name: &str| scenario.links.iter().position(|link| link.name == name).unwrap();
    let flow = |name: &str| scenario.flows.iter().find(|flow| flow.name == name).unwrap();
    let route = |name: &str| flow(name).route.iter().map(|index| index.0 as usize).collect::<Vec<_>>();
    assert_eq!(scenario.links.len(), 4 * 6 + 2);
    assert_eq!(scenario.flows.len(), 7);
    assert_eq!(route("transfer-6"), [link("tx6"), link("wan"), link("rx6")]);
    assert_eq!(
        route("call"),
        [link("tx1"), link("wan"), link("rx1")],
        "the call shares the first sender's link"
    );
    let delays: Vec<_> = (1..=6).map(|n| scenario.links[link(&format!("rx{n}"))].config.delay).collect();
    assert_eq!(delays, [1, 3, 5, 7, 9, 11].map(Duration::from_millis));
    assert_eq!(flow("transfer-2").start, (Duration::ZERO, Duration::from_secs(1)));
    assert_eq!(flow("transfer-2").group, "transfer");
    let talkpath_config::TransportConfig::Tcp(tcp) = &flow("transfer-1").transport else { panic!() };
    assert_eq!(tcp.rwnd.get(), 16 * 512, "packets of one mss each");
    assert_eq!(flow("transfer-1").asked_for, ["cc"]);
}

#[test]
fn an_echo_knows_how_it_writes() {
    let flow = &example("sweep.toml").cells[0].scenario.flows[0];
    assert_eq!(flow.echo, Some(EchoWrite::PerMessage));
    let flow = &example("voice-beside-an-upload.toml").cells[0].scenario.flows[0];
    assert_eq!(flow.echo, Some(EchoWrite::PerRead));
    assert_eq!(flow.direction, Direction::Up);
}

#[test]
fn the_comparison_is_a_scenario_like_any_other() {
    let transports = ["udp", "tcp", "tcp-nodelay"].map(str::to_owned);
    let with_load = Comparison {
        path: "home-adsl",
        workload: ByOption { value: ComparedWorkload::Voice, option: "--workload" },
        transports: ByOption { value: &transports, option: "--transports" },
        cc: ByOption { value: &[], option: "--cc" },
        load: true,
        duration: ByOption { value: "60 s", option: "--duration" },
        kernel: None,
    };
    let compared = |comparison: &Comparison<'_>| {
        let path = presets().iter().find(|preset| preset.name == comparison.path).unwrap();
        let options = Options { set: comparison.settings(), ..Options::default() };
        load(&Source::path(path.name, path.text), &options).unwrap()
    };
    let plan = compared(&with_load);
    assert_eq!((plan.name.as_str(), plan.cells.len()), ("voice over home-adsl beside an upload", 3));
    assert_eq!(plan.cells[2].scenario.flows[0].transport_name, "tcp-nodelay");
    assert_eq!(plan.cells[2].scenario.flows[1].workload, WorkloadConfig::Bulk { bytes: None });
    let kernel = Some("debian-12");
    let alone = Comparison {
        path: "lan",
        load: false,
        duration: ByOption { value: "1500 ms", option: "--duration" },
        kernel,
        ..with_load
    };
    let plan = compared(&alone);
    assert_eq!(plan.cells[0].scenario.flows.len(), 1);
    assert_eq!(plan.cells[0].scenario.kernel.as_ref().map(|kernel| kernel.release.as_str()), Some("6.1"));
    assert_eq!(plan.cells[0].scenario.duration, Duration::from_millis(1500));
}

#[test]
fn a_queue_has_linuxs_defaults_and_its_name_a_hyphen_or_an_underscore() {
    let queue = |text: &str| {
        let text = format!(
            "name = \"x\"\nduration = \"1 s\"\npath.down = {{ rate = \"1 Mbps\" }}\n\
             path.up = {{ rate = \"1 Mbps\", queue = {text} }}\n\
             [flow.call]\ntransport = \"udp\"\nworkload = \"voice\"\n"
        );
        let plan = plan_named("queue.toml", &text, &Options::default());
        plan.cells[0].scenario.links[0].config.queue.clone()
    };
    let defaults = CodelParameters {
        target: Duration::from_millis(5),
        interval: Duration::from_millis(100),
        ecn: true,
        ce_threshold: None,
    };
    let fq_codel = FqCodel {
        limit: Packets::new(10_240),
        memory_limit: Bytes::new(32 << 20),
        flows: 1024,
        quantum: None,
        parameters: defaults,
    };
    for text in ["\"fq_codel\"", "\"fq-codel\"", "{ kind = \"fq-codel\", target = \"5 ms\" }"] {
        assert_eq!(queue(text), QueueKind::FqCodel(fq_codel), "{text}");
    }
    let changed =
        "{ kind = \"fq_codel\", quantum = \"300 B\", ce_threshold = \"1 ms\", ecn = false, flows = 16 }";
    let parameters = CodelParameters { ecn: false, ce_threshold: Some(Duration::from_millis(1)), ..defaults };
    let expected = FqCodel { quantum: Some(Bytes::new(300)), flows: 16, parameters, ..fq_codel };
    assert_eq!(queue(changed), QueueKind::FqCodel(expected));
    let limit = QueueLimit::Packets(Packets::new(1000));
    let parameters = CodelParameters { ecn: false, ..defaults };
    assert_eq!(queue("\"codel\""), QueueKind::Codel(Codel { limit, parameters }));
    assert_eq!(queue("\"fq\""), QueueKind::Fq(Fq { limit, quantum: None }));
    let drop_tail = DropTail { limit, in_service: false, mark_at: None };
    assert_eq!(queue("\"drop_tail\""), QueueKind::DropTail(drop_tail));
}

#[test]
fn a_scenario_without_a_path_is_for_live_hosts_alone() {
    let text = "duration = \"1 s\"\n[flow.call]\ntransport = \"udp\"\nworkload = \"voice\"\n";
    let plan = plan_named("live.toml", text, &Options::default());
    let scenario = &plan.cells[0].scenario;
    assert!(scenario.check_path_is_known().unwrap_err().contains("path = \"home-adsl\""));
    assert_eq!(scenario.links.len(), 2);
    assert_eq!(plan.warnings, [], "nobody wrote the links that stand in for the network");
    assert!(!plan.resolved.contains("path"), "{}", plan.resolved);
    assert!(example("dumbbell.toml").cells[0].scenario.check_path_is_known().is_ok());
}
