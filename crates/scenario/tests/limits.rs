//! What is refused because it could not run, or could not be read again: too much of it, or two of the same.

use talkpath_scenario::{LARGEST_FILE, Options, Setting, Source, load};

use crate::loading::{TCP as BASE, plan, refused};

/// Eleven flows over `a1` to `a11`; `a1{n}` makes an `a11`, too.
fn links(tables: &str) -> String {
    format!(
        "duration = \"1 s\"\n{tables}\n[flow.f]\ncount = 11\ntransport = \"tcp\"\nworkload = \"voice\"\n\
         route = [\"a{{n}}\"]\nreturn_route = [\"back\"]\n"
    )
}

#[test]
fn two_tables_that_make_a_link_of_one_name_are_told_and_both_are_named() {
    let (a, a1, back) = ("[link.\"a{n}\"]", "[link.\"a1{n}\"]", "[link.back]");
    for tables in [[a, a1, back], [back, a, a1], [a1, back, a]] {
        let why = refused(&links(&tables.join("\n")), &[]);
        assert!(why.contains("a11") && why.contains("`a{n}`") && why.contains("`a1{n}`"), "{why}");
    }
    let plan = plan(&links("[link.\"a{n}\"]\n[link.a11]\n[link.back]"), &Options::default());
    let scenario = &plan.cells[0].scenario;
    let last = scenario.flows[10].route[0].0 as usize;
    assert_eq!((scenario.links.len(), scenario.links[last].name.as_str()), (12, "a11"));
}

#[test]
fn what_resolves_to_more_than_a_reader_takes_is_refused() {
    let flows = |count: usize| {
        let flow = |n| format!("[flow.f{n}]\ntransport = \"tcp\"\nworkload = \"voice\"\n");
        (0..count).map(flow).collect::<String>()
    };
    let of = |count| format!("duration = \"1 s\"\npath = \"lan\"\n{}", flows(count));
    let ran = plan(&of(1_500), &Options::default());
    assert!(ran.resolved.len() > 1_000_000, "{}", ran.resolved.len());
    let why = refused(&of(5_000), &[]);
    assert!(why.contains("with its defaults") && why.contains(&LARGEST_FILE.to_string()), "{why}");
}

#[test]
fn more_repetitions_than_a_machine_can_list_are_refused_where_their_number_stands() {
    let delays = (1..=100).map(|ms| format!("\"{ms} ms\"")).collect::<Vec<_>>().join(", ");
    let text = format!("repeat = 1000000\n{BASE}[sweep]\n\"path.up.delay\" = [{delays}]\n");
    let why = refused(&text, &[]);
    assert!(why.contains("f.toml:1:10: repeat: ") && why.contains("100000000 repetitions"), "{why}");
    let options = Options { repeat: Some(1_000_000), ..Options::default() };
    assert_eq!(plan(BASE, &options).repeat, 1_000_000);
}

#[test]
fn a_key_that_the_command_line_sweeps_twice_is_refused() {
    let of = |keys: [&str; 2]| {
        let [first, second] = keys;
        refused(BASE, &[Setting::sweep(first, "0,1%"), Setting::sweep(second, "2%,3%")])
    };
    let twice = (["path.up.loss", "path.up.loss"], "is swept already, by another line or option");
    let wider = (["path.up.loss", "path.*.loss"], "`path.up.loss` sweeps over the same key");
    for (keys, message) in [twice, wider] {
        let why = of(keys);
        assert!(why.contains(message), "{why}");
        assert!(why.contains(&format!("--sweep {}=2%,3%: ", keys[1])), "{why}");
    }
}

#[test]
fn two_equal_values_of_a_sweep_are_refused() {
    let text = format!("{BASE}[sweep]\n\"path.up.loss\" = [0, 0.1, 0]\n");
    let why = refused(&text, &[]);
    assert!(why.contains("f.toml:7:27: sweep.path.up.loss: found 0 twice"), "{why}");
    let why = refused(BASE, &[Setting::sweep("flow.call.transport", "udp,tcp,udp")]);
    assert!(why.contains("found \"udp\" twice"), "{why}");
}

#[test]
fn a_flow_that_nothing_holds_back_is_refused() {
    let of = |link: &str, transport: &str, workload: &str| {
        format!(
            "duration = \"1 s\"\npath.up = {{ {link} }}\npath.down = {{}}\n\
             [flow.f]\ntransport = \"{transport}\"\nworkload = {workload}\n"
        )
    };
    for transport in ["tcp", "tcp-nodelay", "dccp-ccid2", "dccp-ccid3", "quic-datagram", "quic-stream"] {
        let why = refused(&of("", transport, "\"bulk\""), &[]);
        assert!(why.contains("flow.f.workload: ") && why.contains("without an end"), "{transport}: {why}");
        let why = refused(&of("", transport, "{ kind = \"bulk\", bytes = \"900 GB\" }"), &[]);
        assert!(why.contains("at one moment"), "{transport}: {why}");
        plan(&of("", transport, "{ kind = \"bulk\", bytes = \"1 MB\" }"), &Options::default());
        for link in
            ["rate = \"1 Mbps\"", "delay = \"1 us\"", "jitter = { kind = \"uniform\", max = \"1 ms\" }"]
        {
            plan(&of(link, transport, "\"bulk\""), &Options::default());
        }
    }
    // A slow reader closes the window of a stream. Datagrams have none.
    let reader = "\"bulk\"\nreceiver = { service = \"1 ms\" }";
    plan(&of("", "tcp", reader), &Options::default());
    assert!(refused(&of("", "quic-datagram", reader), &[]).contains("without an end"));
    // Between two hosts of a network the scenario does not say what holds it back.
    let network = "duration = \"1 s\"\n[flow.f]\ntransport = \"tcp\"\nworkload = \"bulk\"\n";
    plan(network, &Options::default());
}

#[test]
fn a_least_timeout_above_the_stacks_largest_is_refused() {
    for (stack, largest) in [("linux", "120 s"), ("rfc", "60 s"), ("bsd-reno", "64 s")] {
        let of = |min_rto: &str| {
            BASE.replace(
                "\"tcp\"",
                &format!("{{ kind = \"tcp\", stack = \"{stack}\", min_rto = \"{min_rto}\" }}"),
            )
        };
        plan(&of(largest), &Options::default());
        let why = refused(&of("121 s"), &[]);
        assert!(why.contains("flow.call.transport.min_rto: ") && why.contains(largest), "{stack}: {why}");
    }
}

#[test]
fn every_seed_that_a_run_prints_can_be_given_back() {
    let seed = 16_860_738_450_190_168_606;
    let of_option = plan(BASE, &Options { seed: Some(seed), ..Options::default() });
    let set = vec![Setting::new("seed", seed.to_string())];
    let of_set = plan(BASE, &Options { set, ..Options::default() });
    let of_file = plan(&format!("seed = \"{seed}\"\n{BASE}"), &Options::default());
    for plan in [&of_option, &of_set, &of_file] {
        assert_eq!(plan.seed.get(), seed);
        assert!(plan.resolved.contains(&format!("seed = \"{seed}\"\n")), "{}", plan.resolved);
    }
    assert!(plan(&format!("seed = 7\n{BASE}"), &Options::default()).resolved.contains("seed = 7\n"));
    for wrong in ["-1", "1.5", "\"x\"", "\"\"", "\"+1\"", "\"18446744073709551616\"", "true"] {
        let why = refused(&format!("seed = {wrong}\n{BASE}"), &[]);
        assert!(why.contains("expected a whole number from 0 to 18446744073709551615"), "{why}");
    }
}

#[test]
fn a_name_that_comes_from_a_file_fits_whatever_the_files_name_is() {
    let name_of = |file: String| {
        load(&Source::new(file, BASE), &Options::default()).unwrap_or_else(|why| panic!("{why}")).name
    };
    assert_eq!(name_of(format!("{}.toml", "é".repeat(250))), "é".repeat(200));
    assert_eq!(name_of("a\nb.toml".to_owned()), "a\\nb");
    assert_eq!(name_of(" \n.toml".to_owned()), "scenario");
}
