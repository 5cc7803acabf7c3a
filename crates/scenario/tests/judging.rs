//! What a flow is judged by, as the keys of its workload say.

use talkpath_scenario::{Concealment, Flow, Judging, MessageSize, Options, Plan, Playout, WorkloadConfig};
use talkpath_units::{Bytes, Duration, Rate};

use crate::loading::plan;

/// The plan of a flow with this workload.
fn plan_of(workload: &str) -> Plan {
    let text = format!(
        "duration = \"10 s\"\npath = \"lan\"\n[flow.a]\ntransport = \"tcp\"\nworkload = {workload}\n"
    );
    plan(&text, &Options::default())
}

/// The flow with this workload. The scenario causes no warning.
fn flow(workload: &str) -> Flow {
    let plan = plan_of(workload);
    assert!(plan.warnings.is_empty(), "{:?}", plan.warnings);
    plan.cells[0].scenario.flows[0].clone()
}

#[test]
fn a_call_has_the_receiver_of_browsers_conceals_what_is_missing_and_needs_a_score_of_3_1() {
    let concealment = Concealment::Concealed;
    let usual = Judging::Call { playout: Playout::Adaptive, others: true, concealment, floor: 3.1 };
    for workload in [
        "\"voice\"",
        "{ kind = \"voice\", concealment = \"g711-appendix-i\", floor = 3.1 }",
        "{ kind = \"voice\", playout = \"adaptive\" }",
        "{ kind = \"voice\", playout = { kind = \"adaptive\" } }",
    ] {
        assert_eq!(flow(workload).judging, usual, "{workload}");
    }
    // The same R of 60 has a lower score on the longer scales.
    for (bandwidth, bitrate, expected) in
        [("nb", "8 kbps", 3.1), ("wb", "12 kbps", 2.4), ("swb", "32 kbps", 2.1)]
    {
        let opus = format!(
            "{{ kind = \"voice\", codec = \"opus\", bandwidth = \"{bandwidth}\", bitrate = \"{bitrate}\" }}"
        );
        let Judging::Call { floor, .. } = flow(&opus).judging else { panic!("{bandwidth}") };
        assert_eq!(floor.to_bits(), f64::to_bits(expected), "{bandwidth}");
    }
    // A run directory names its receiver, so that another default changes nothing there.
    assert!(plan_of("\"voice\"").resolved.contains("playout = { kind = \"adaptive\" }"));
}

#[test]
fn a_call_is_played_as_its_keys_say() {
    let call = flow(
        "{ kind = \"voice\", playout = { kind = \"fixed\", delay = \"60 ms\" }, concealment = \"none\", floor = 3.6 }",
    );
    let ramjee = flow("{ kind = \"voice\", playout = \"ramjee\" }");
    let concealment = Concealment::Concealed;
    assert_eq!(
        ramjee.judging,
        Judging::Call { playout: Playout::Ramjee, others: false, concealment, floor: 3.1 }
    );
    let playout = Playout::Fixed(Duration::from_millis(60));
    assert_eq!(
        call.judging,
        Judging::Call { playout, others: false, concealment: Concealment::Silence, floor: 3.6 }
    );
    let usual = flow("\"voice\"").workload;
    assert_eq!(call.workload, usual, "what is sent is the same");
    let bare = flow("{ kind = \"voice\", rtp = false }").workload;
    assert_eq!(bare, WorkloadConfig::G711);
}

#[test]
fn messages_have_the_deadline_and_floor_of_their_keys() {
    let none = Judging::InTime { deadline: None, is_state: false, floor: 0.95 };
    assert_eq!(flow("{ kind = \"cbr\", rate = \"96 kbps\", size = \"200 B\" }").judging, none);
    assert_eq!(flow("{ kind = \"burst\", count = 9, size = \"200 B\" }").judging, none);
    let deadline = Some(Duration::from_millis(100));
    let cbr = "{ kind = \"cbr\", rate = \"96 kbps\", size = \"200 B\", deadline = \"100 ms\", state = true, floor = 0.9 }";
    assert_eq!(flow(cbr).judging, Judging::InTime { deadline, is_state: true, floor: 0.9 });
    let burst = "{ kind = \"burst\", count = 9, size = \"200 B\", deadline = \"100 ms\" }";
    assert_eq!(flow(burst).judging, Judging::InTime { deadline, is_state: false, floor: 0.95 });
    assert_eq!(flow("\"bulk\"").judging, Judging::Unjudged);
}

/// 60 messages a second of 200.5 B in the mean are 96,240 bps.
#[test]
fn drawn_sizes_have_their_mean_at_the_rate() {
    for clock in ["message_rate = \"60 Hz\"", "rate = \"96.24 kbps\""] {
        let flow = flow(&format!("{{ kind = \"cbr\", {clock}, min_size = \"100 B\", size = \"301 B\" }}"));
        let size = MessageSize::Uniform { min: Bytes::new(100), max: Bytes::new(301) };
        assert_eq!(flow.workload, WorkloadConfig::Cbr { rate: Rate::from_bps(96_240), size }, "{clock}");
    }
}

#[test]
fn messages_a_second_are_a_rate() {
    for (message_rate, size, bps) in [
        ("60 Hz", 200, 96_000),
        ("59.94 Hz", 100, 47_952),
        ("0.5 Hz", 1, 4),
        ("8 kHz", 1, 64_000),
        // 15,824.16 bps, to the nearest.
        ("59.94 Hz", 33, 15_824),
    ] {
        let flow =
            flow(&format!("{{ kind = \"cbr\", message_rate = \"{message_rate}\", size = \"{size} B\" }}"));
        let expected = WorkloadConfig::Cbr { rate: Rate::from_bps(bps), size: Bytes::new(size).into() };
        assert_eq!(flow.workload, expected, "{message_rate}");
    }
}

#[test]
fn a_file_that_names_the_adaptive_receiver_is_told_what_the_word_means_now() {
    let renamed = |workload: &str| plan_of(workload).understood.renamed;
    assert_eq!(renamed("\"voice\""), []);
    assert_eq!(renamed("{ kind = \"voice\", playout = \"ramjee\" }"), []);
    let told = renamed("{ kind = \"voice\", playout = \"adaptive\" }");
    assert_eq!(told.len(), 1);
    assert_eq!(told[0].0, "flow.a.workload.playout");
    assert!(told[0].1.ends_with("the receiver that had this name is `ramjee`"), "{}", told[0].1);
}
