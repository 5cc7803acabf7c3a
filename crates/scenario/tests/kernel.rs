//! The key `kernel`: what it sets, what wins over it, and what stands in the resolved form.

use talkpath_config::{TcpConfig, TransportConfig, UdpConfig};
use talkpath_scenario::{
    Diagnostics, Files, KernelProfile, Located, NoFiles, Options, Plan, Setting, Source, load_with_files,
};
use talkpath_units::{Bytes, Duration};

/// A machine that has `measured()`.
struct Machine;

impl Files for Machine {
    fn text(&self, name: &str) -> Result<String, String> {
        NoFiles.text(name)
    }

    fn locate(&self, name: &str) -> Result<Located, String> {
        NoFiles.locate(name)
    }

    fn this_kernel(&self) -> Result<KernelProfile, String> {
        Ok(measured())
    }
}

fn measured() -> KernelProfile {
    KernelProfile {
        release: "6.12.1 \"lean\"".to_owned(),
        timer_granularity: Duration::from_millis(10),
        header_room: Bytes::new(192),
        small_head: Some(Bytes::new(576)),
        socket_buffer: Bytes::new(200_000),
        rwnd: Bytes::new(8 << 20),
        initial_rwnd: Bytes::new(32 << 10),
        send_buffer_max: Bytes::new(1 << 20),
    }
}

fn read(text: &str, set: &[(&str, &str)], files: &dyn Files) -> Result<Plan, Diagnostics> {
    let set = set.iter().map(|(key, value)| Setting::new(*key, *value)).collect();
    load_with_files(&Source::new("f.toml", text), &Options { set, ..Options::default() }, files)
}

/// The plan of a scenario with these lines at its top. Its resolved form means the same on any machine.
fn plan(top: &str, set: &[(&str, &str)]) -> Plan {
    let text = format!(
        "duration = \"1 s\"\npath = \"lan\"\n{top}\n[flow.plain]\ntransport = \"tcp\"\nworkload = \"bulk\"\n\
         [flow.own]\ntransport = {{ kind = \"tcp-nodelay\", header_room = \"256 B\", timer_granularity = \"1 ms\" }}\n\
         workload = \"bulk\"\n[flow.rfc]\ntransport = {{ kind = \"tcp\", stack = \"rfc\" }}\nworkload = \"bulk\"\n\
         [flow.voice]\ntransport = \"udp\"\nworkload = \"voice\"\n\
         [flow.payload]\ntransport = {{ kind = \"udp\", stack = \"rfc\" }}\nworkload = \"voice\"\n\
         [flow.dccp]\ntransport = \"dccp-ccid2\"\nworkload = \"bulk\"\n"
    );
    let plan = read(&text, set, &Machine).unwrap_or_else(|why| panic!("{why}"));
    let again = read(&plan.resolved, &[], &NoFiles).unwrap_or_else(|why| panic!("{why}\n{}", plan.resolved));
    assert_eq!(again.cells, plan.cells, "{}", plan.resolved);
    assert_eq!(again.resolved, plan.resolved);
    plan
}

fn transport<'a>(plan: &'a Plan, cell: usize, flow: &str) -> &'a TransportConfig {
    &plan.cells[cell].scenario.flows.iter().find(|it| it.name == flow).expect("the flow is there").transport
}

fn tcp<'a>(plan: &'a Plan, flow: &str) -> &'a TcpConfig {
    transport(plan, 0, flow).as_tcp().expect("the flow is TCP")
}

fn udp<'a>(plan: &'a Plan, flow: &str) -> &'a UdpConfig {
    let TransportConfig::Udp(config) = transport(plan, 0, flow) else { panic!("{flow} is UDP") };
    config
}

#[test]
fn a_profile_sets_what_linux_transports_leave_open() {
    let none = plan("", &[]);
    assert_eq!(none.cells[0].scenario.kernel, None);
    assert_eq!(tcp(&none, "plain").timer_granularity, Duration::from_millis(1));
    let plan = plan("kernel = \"debian-12\"", &[]);
    let plain = tcp(&plan, "plain");
    assert_eq!(plain.timer_granularity, Duration::from_millis(4));
    assert_eq!((plain.header_room, plain.small_head), (Bytes::new(320), None));
    assert_eq!((plain.rwnd, plain.initial_rwnd), (Bytes::new(3 << 20), Bytes::new(64 << 10)));
    let own = tcp(&plan, "own");
    assert_eq!((own.header_room, own.timer_granularity), (Bytes::new(256), Duration::from_millis(1)));
    assert_eq!((own.rwnd, own.small_head), (Bytes::new(3 << 20), None));
    assert_eq!(udp(&plan, "voice").small_head, None);
    for flow in ["rfc", "payload", "dccp"] {
        assert_eq!(transport(&plan, 0, flow), transport(&none, 0, flow), "{flow} is not of that kernel");
    }
}

#[test]
fn a_key_of_the_kernel_wins_over_its_kind() {
    let text = "kernel = { kind = \"linux-6.18\", timer_granularity = \"1 ms\" }";
    let plan = plan(text, &[("kernel.header_room", "192 B")]);
    let plain = tcp(&plan, "plain");
    assert_eq!((plain.timer_granularity, plain.header_room), (Duration::from_millis(1), Bytes::new(192)));
    assert_eq!(plain.small_head, Some(Bytes::new(704)));
}

#[test]
fn this_is_the_machines_own_and_its_values_take_the_words_place() {
    for top in ["kernel = \"this\"", "kernel = { kind = \"this\" }"] {
        let plan = plan(top, &[]);
        assert_eq!(plan.cells[0].scenario.kernel, Some(measured()));
        assert!(!plan.resolved.contains("\"this\""), "{}", plan.resolved);
        let plain = tcp(&plan, "plain");
        assert_eq!(
            (plain.timer_granularity, plain.header_room),
            (Duration::from_millis(10), Bytes::new(192))
        );
        assert_eq!((plain.rwnd, plain.initial_rwnd), (Bytes::new(8 << 20), Bytes::new(32 << 10)));
        assert_eq!(plain.send_buffer_max, Bytes::new(1 << 20));
        assert_eq!(udp(&plan, "voice").socket_buffer, Bytes::new(200_000));
    }
    let with_key = plan("", &[("kernel", "this"), ("kernel.rwnd", "1 MiB")]);
    assert_eq!(
        with_key.cells[0].scenario.kernel,
        Some(KernelProfile { rwnd: Bytes::new(1 << 20), ..measured() })
    );
}

#[test]
fn a_sweep_may_name_kernels() {
    let sweep = "[sweep]\n\"kernel\" = [\"linux-6.18\", \"debian-12\", \"this\"]\n";
    let plan = plan(sweep, &[]);
    let rooms = (0..3).map(|cell| transport(&plan, cell, "plain").as_tcp().unwrap().rwnd.get() >> 20);
    assert_eq!(rooms.collect::<Vec<_>>(), [16, 3, 8]);
}

#[test]
fn an_unknown_kernel_is_a_mistake_that_lists_the_known_ones() {
    let text = "duration = \"1 s\"\npath = \"lan\"\nkernel = \"windows\"\n[flow.a]\ntransport = \"udp\"\nworkload = \"voice\"\n";
    let why = read(text, &[], &Machine).unwrap_err();
    let only = &why.list[0];
    assert_eq!((why.list.len(), only.line, only.key.as_str()), (1, 3, "kernel"));
    for name in ["\"windows\"", "a kernel", "linux-6.18", "debian-12", "this", "measured"] {
        assert!(only.message.contains(name), "{only}");
    }
    let bad = text.replace("\"windows\"", "{ kind = \"this\", header_room = \"7 B\", jiffy = \"1 ms\" }");
    let why = read(&bad, &[], &Machine).unwrap_err();
    let keys: Vec<_> = why.iter().map(|mistake| mistake.key.as_str()).collect();
    assert_eq!(keys, ["kernel.header_room", "kernel.jiffy"], "{why}");
}

#[test]
fn without_a_machine_this_is_a_mistake_with_what_else_there_is() {
    let text = "duration = \"1 s\"\npath = \"lan\"\nkernel = \"this\"\n[flow.a]\ntransport = \"udp\"\nworkload = \"voice\"\n";
    let why = read(text, &[], &NoFiles).unwrap_err();
    assert_eq!((why.list.len(), why.list[0].key.as_str()), (1, "kernel"), "{why}");
    let help = why.list[0].help.as_deref().unwrap_or_default();
    assert!(help.contains("linux-6.18, debian-12") && !help.contains("measured"), "{why}");
}

#[test]
fn a_wrong_transport_is_reported_in_the_same_words_with_a_kernel_and_without() {
    let mistakes = |kernel: &str, transport: &str| {
        let text = format!(
            "duration = \"1 s\"\npath = \"lan\"\n{kernel}\n[flow.a]\ntransport = {transport}\nworkload = \"bulk\"\n"
        );
        read(&text, &[], &NoFiles).expect_err("the transport is wrong").to_string()
    };
    for transport in ["\"tpc\"", "5", "[\"tcp\"]", "{ kind = \"tpc\" }", "{ cc = \"reno\" }", "{ kind = 5 }"]
    {
        let without = mistakes("", transport);
        assert_eq!(mistakes("kernel = \"debian-12\"", transport), without, "{transport}");
        assert!(without.contains("flow.a.transport"), "{without}");
    }
}
