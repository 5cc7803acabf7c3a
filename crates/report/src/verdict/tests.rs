use std::collections::BTreeMap;

use talkpath_measure::judge::judge_copies;
use talkpath_measure::summary::{CallSummary, FlowSummary, GroupSummary, Ledger, LinkSummary};

use super::*;
use crate::Style;
use crate::fixture;
use crate::terminal::{comparison_table, run_table};
use crate::view::is_copy;

/// Changes one transport's call in every repetition.
fn set(summary: &mut Summary, cell: u64, change: impl Fn(&mut FlowSummary, u64)) {
    for run in summary.runs.iter_mut().filter(|run| run.cell == cell) {
        change(run.flows.get_mut("call").unwrap(), run.repetition);
    }
    fixture::refresh(summary);
}

/// Gives each transport's call this score, the same in every repetition.
fn scores(summary: &mut Summary, scores: [f64; 3]) {
    for (cell, mos) in (0..).zip(scores) {
        set(summary, cell, |flow, _| flow.call.as_mut().unwrap().mos = Some(mos));
    }
}

fn answer(summary: &Summary) -> Answer {
    comparisons(summary).remove(0).answer
}

/// The three cells as they are, and again with another queue on the uplink.
fn with_cure(before: [f64; 3], after: [f64; 3]) -> Summary {
    with_variants(before, &[("path.up.queue", "fq_codel".into(), after)])
}

/// The three cells with the scores `base`, and again with each change of a key and its scores.
fn with_variants(base: [f64; 3], variants: &[(&str, serde_json::Value, [f64; 3])]) -> Summary {
    let swept = [
        ("path.up.queue", serde_json::json!({ "kind": "drop-tail", "limit": "64 kB" })),
        ("flow.upload.workload", serde_json::json!({ "kind": "bulk" })),
        ("flow.upload.count", 1.into()),
    ];
    let is_changed = |(key, _): &&(&str, _)| variants.iter().any(|(changed, ..)| changed == key);
    let swept: Vec<_> = swept.iter().filter(is_changed).collect();
    let cells_with = |mos, changed: Option<(&str, &serde_json::Value)>| {
        let mut cells = fixture::summary(8);
        scores(&mut cells, mos);
        for run in &mut cells.runs {
            run.sweep.extend(swept.iter().map(|(key, value)| ((*key).to_owned(), value.clone())));
            run.sweep.extend(changed.map(|(key, value)| (key.to_owned(), value.clone())));
        }
        cells
    };
    let mut summary = cells_with(base, None);
    for (number, (key, value, mos)) in (1..).zip(variants) {
        let mut runs = cells_with(*mos, Some((key, value))).runs;
        runs.iter_mut().for_each(|run| run.cell += 3 * number);
        summary.runs.extend(runs);
    }
    fixture::refresh(&mut summary);
    summary
}

#[test]
fn one_line_answers_and_one_says_why_and_one_what_it_did_to_the_neighbours() {
    let mut summary = fixture::summary(8);
    scores(&mut summary, [4.38, 2.0, 4.12]);
    let answer = answer(&summary);
    assert_eq!((answer.best.as_slice(), answer.outcome), (&["udp".to_owned()][..], AnswerKind::Distinct));
    assert_eq!(answer.line, "UDP is best for this call: MOS 4.38 against 4.12 (TCP_NODELAY) and 2.00 (TCP).");
    assert!(answer.why.contains("late or missing") && answer.why.contains("(TCP_NODELAY)"), "{}", answer.why);
    let neighbours = answer.neighbours.unwrap();
    assert!(neighbours.starts_with("Beside this call, the flow upload gets 0.8"), "{neighbours}");
}

#[test]
fn a_run_that_is_not_valid_names_no_transport() {
    let mut summary = fixture::summary(8);
    scores(&mut summary, [4.38, 2.0, 4.12]);
    summary.valid = false;
    assert!(comparisons(&summary).is_empty());
    let conditions = conditions(&summary, "call");
    let verdict = judge(&conditions, "call").remove(0).unwrap();
    assert!(verdict.best_cells.is_empty(), "no row stands out");
    assert_eq!(verdict.lines(), [NOT_VALID]);
    assert!(verdict.in_brief().contains("no answer"));
}

#[test]
fn where_nothing_is_usable_the_delay_of_each_transport_is_given_and_not_that_of_a_leader_by_a_hundredth() {
    let mut summary = fixture::summary(8);
    scores(&mut summary, [1.0, 1.01, 1.0]);
    set(&mut summary, 1, |flow, _| {
        flow.call.as_mut().unwrap().mouth_to_ear_ms.as_mut().unwrap().p50 = 802.0;
    });
    let answer = answer(&summary);
    assert_eq!((answer.outcome, answer.best.len()), (AnswerKind::Unusable, 3));
    let delays = " From mouth to ear it takes 149 ms (UDP), 802 ms (TCP) and 150 ms (TCP_NODELAY).";
    assert!(answer.why.ends_with(delays), "{}", answer.why);
}

#[test]
fn figures_within_the_tolerance_make_no_difference() {
    let mut summary = fixture::summary(8);
    scores(&mut summary, [4.38, 4.37, 4.31]);
    let all = answer(&summary);
    assert_eq!((all.best.len(), all.outcome), (3, AnswerKind::Alike));
    let says = "It makes no difference for this call which of UDP, TCP and TCP_NODELAY carries it: MOS 4.38, 4.37 and 4.31.";
    assert_eq!(all.line, says);
    scores(&mut summary, [4.38, 2.0, 4.31]);
    let two = answer(&summary);
    assert_eq!(two.line, "UDP and TCP_NODELAY serve this call alike: MOS 4.38 and 4.31 against 2.00 (TCP).");
}

#[test]
fn calls_without_a_score_are_ranked_by_what_is_heard_and_the_answer_says_so() {
    let mut summary = fixture::summary(8);
    for cell in 0..3 {
        set(&mut summary, cell, |flow, repetition| {
            let call = flow.call.as_mut().unwrap();
            (call.mos, call.r, call.usable) = (None, None, None);
            call.concealed = Some([0.002, 0.04, 0.003][cell as usize] + 0.0002 * repetition as f64);
        });
    }
    let answer = answer(&summary);
    assert_eq!(answer.outcome, AnswerKind::Alike);
    let says = "UDP and TCP_NODELAY serve this call alike: 99.73 % and 99.63 % heard against 95.93 % (TCP).";
    assert_eq!(answer.line, says);
    assert!(
        answer.why.contains("There is no score") && answer.why.contains("mouth to ear"),
        "{}",
        answer.why
    );
    let style = Style { width: 140, color: false, explain: true };
    let table = comparison_table(&summary, "call", &style);
    assert!(table.contains("99.73") && table.contains("no MOS for") && !table.contains("usable"), "{table}");
    assert!(table.contains("share heard; alike if"), "{table}");
    let table = run_table(&summary, &style);
    assert!(table.contains("concealed") && table.contains("longest gap"), "{table}");
}

#[test]
fn repetitions_that_disagree_name_no_winner_and_say_how_many_more_would() {
    let mut summary = fixture::summary(8);
    scores(&mut summary, [4.0, 2.0, 4.0]);
    set(&mut summary, 2, |flow, repetition| {
        flow.call.as_mut().unwrap().mos = Some(if repetition % 2 == 0 { 4.3 } else { 3.3 });
    });
    let tie = answer(&summary);
    assert_eq!((tie.best.len(), tie.outcome), (2, AnswerKind::Undecided));
    let more = tie.more.unwrap();
    let says = format!(
        "Undecided: 8 repetitions do not tell whether one of UDP (MOS 4.00) and TCP_NODELAY (two outcomes: 3.30 or 4.30) is \
         better for this call by more than 0.1; about {more} more would (--repeat {}).",
        8 + more
    );
    assert_eq!(tie.line, says);
    let one = answer(&fixture::summary(1));
    assert_eq!((one.outcome, one.more), (AnswerKind::Undecided, None));
    assert!(one.line.contains("1 repetition does not") && one.line.contains("--repeat 20"), "{}", one.line);
}

#[test]
fn nothing_usable_is_the_answer_with_cause_and_cure() {
    let summary = with_cure([1.9, 1.0, 1.7], [4.37, 3.5, 4.36]);
    let found = comparisons(&summary);
    assert_eq!((found.len(), found[1].answer.outcome), (2, AnswerKind::Alike));
    let answer = &found[0].answer;
    assert_eq!(answer.outcome, AnswerKind::Unusable);
    assert_eq!(
        answer.line,
        "No transport makes this call usable while the upload runs: MOS 1.90 (UDP) at best. With fq_codel on the \
         uplink it is usable, best over UDP (MOS 4.37) or TCP_NODELAY (4.36)."
    );
    assert!(
        answer.why.starts_with("Without it: Packets wait 110 ms in the queue of the uplink (CoDel)."),
        "{}",
        answer.why
    );
    let cure = answer.cure.as_ref().unwrap();
    assert_eq!((cure.best.len(), cure.mos, cure.in_time), (2, Some(4.37), None));
    assert_eq!(cure.change, [("path.up.queue".to_owned(), "fq_codel".into())].into());
    let cells = FlowCells { flow: "call".to_owned(), conditions: conditions(&summary, "call") };
    let judged = cells.judge();
    let unusable = judged.conditions[0].verdict.as_ref().unwrap();
    assert!(unusable.best_cells.is_empty(), "no row stands out");
    assert_eq!(judged.answers().len(), 1, "the cure speaks within the answer");
}

#[test]
fn a_cure_that_does_not_help_is_none_and_is_named() {
    let answer = answer(&with_cure([1.9, 1.0, 1.7], [2.5, 1.0, 1.0]));
    assert!(answer.cure.is_none() && answer.line.ends_with("MOS 1.90 (UDP) at best."), "{}", answer.line);
    let says = "With fq_codel on the uplink it is not usable: MOS 2.50 at best.";
    assert!(answer.why.contains(says), "{}", answer.why);
}

/// The upload at 0.8 Mb/s, and left out, where nothing is usable beside it.
fn with_the_upload_changed(held: [f64; 3]) -> Summary {
    let workload = serde_json::json!({ "kind": "cbr", "rate": "800 kbps", "size": "1448 B" });
    with_variants(
        [1.9, 1.0, 1.7],
        &[
            ("flow.upload.workload", workload, held),
            ("flow.upload.count", 0.into(), [4.4, 4.3, 4.4]),
            ("path.up.queue", "fq_codel".into(), [4.37, 3.5, 4.36]),
        ],
    )
}

#[test]
fn each_change_that_was_tried_is_in_the_answer_with_its_score() {
    let summary = with_the_upload_changed([4.2, 3.0, 4.1]);
    let answer = answer(&summary);
    assert!(answer.line.contains(" With fq_codel on the uplink it is usable, best over "), "{}", answer.line);
    let tried: Vec<_> = answer.tried.iter().map(|tried| (tried.usable, tried.mos)).collect();
    assert_eq!(tried, [(Some(true), Some(4.37)), (Some(true), Some(4.2)), (Some(true), Some(4.4))]);
    let conditions = conditions(&summary, "call");
    let labels: Vec<_> = conditions.iter().map(|condition| condition.label.as_str()).collect();
    assert_eq!(
        labels,
        [
            "as given",
            "flow.upload.workload = cbr, rate 800 kbps, size 1448 B",
            "flow.upload.count = 0",
            "path.up.queue = fq_codel"
        ]
    );
    let verdicts = judge(&conditions, "call");
    let shown = verdicts.iter().flatten().filter(|verdict| !verdict.is_variant).count();
    assert_eq!(shown, 1, "one answer has them all");
    let rows = &verdicts[0].as_ref().unwrap().changes_tried;
    let rows: Vec<_> = rows.iter().map(|row| (row.what.as_str(), row.who, row.usable, row.figure)).collect();
    assert_eq!(
        rows,
        [
            ("as it is", "", "no", 1.9),
            ("fq_codel on the uplink", "", "yes", 4.37),
            ("the flow upload held to 800 kb/s", "the program that sends it", "yes", 4.2),
            ("without the flow upload", "", "yes", 4.4),
        ]
    );
}

#[test]
fn a_change_that_does_not_help_is_no_cure() {
    let answer = answer(&with_the_upload_changed([2.2, 1.0, 2.1]));
    assert_eq!(answer.tried[1].what, "with the flow upload held to 800 kb/s");
    assert!(answer.tried[1].others_bps["upload"] > 0.0);
    assert_eq!(answer.tried[1].usable, Some(false));
    assert_eq!(answer.cure.unwrap().change, [("path.up.queue".to_owned(), "fq_codel".into())].into());
}

#[test]
fn other_sizes_of_an_assumed_queue_are_in_the_answer_of_a_usable_call_as_well() {
    let queue = |limit: &str| serde_json::json!({ "kind": "drop-tail", "limit": limit });
    let mut summary = with_variants(
        [4.38, 2.0, 4.12],
        &[
            ("path.up.queue", queue("32 kB"), [4.39, 3.0, 4.2]),
            ("path.up.queue", queue("256 kB"), [1.5, 1.0, 1.2]),
        ],
    );
    assert_eq!(answer(&summary).tried, [], "the size is given");
    summary.understood.assumed_queues = vec!["up".to_owned()];
    let found = comparisons(&summary);
    let answer = &found[0].answer;
    let says = "With half of the queue of the uplink it is usable: MOS 4.39 at best. With four times the queue of the \
                uplink it is not usable: MOS 1.50 at best.";
    assert!(answer.why.ends_with(says), "{}", answer.why);
    assert_eq!((answer.tried.len(), &answer.cure), (2, &None));
    assert_eq!(found[2].answer.tried, [], "a size is no variant of another size");
}

/// Whether a run lacks repetitions, and the link on which it lacks a cure.
fn wanted(summary: &Summary) -> (bool, Option<String>) {
    let Lacking { repetitions, cure_on, .. } = lacking(summary);
    (repetitions, cure_on)
}

#[test]
fn the_next_size_of_a_queue_lies_between_one_that_is_usable_and_one_that_is_not() {
    let queue = |limit: &str| serde_json::json!({ "kind": "drop-tail", "limit": limit });
    let next = |half: f64, quarter: f64| {
        let tried = [
            ("path.up.queue", queue("32 kB"), [half; 3]),
            ("path.up.queue", queue("256 kB"), [1.0; 3]),
            ("path.up.queue", queue("16 kB"), [quarter; 3]),
        ];
        let mut summary = with_variants([1.9, 1.0, 1.7], &tried);
        summary.understood.assumed_queues = vec!["up".to_owned()];
        lacking(&summary).next_size.map(|size| (size.link, size.limit))
    };
    let size = |limit: &str| Some(("up".to_owned(), limit.to_owned()));
    assert_eq!(next(4.3, 4.3), size("45 kB"), "between 32 and 64");
    assert_eq!(next(1.0, 4.3), size("23 kB"));
    assert_eq!(next(1.0, 1.0), size("4 kB"));
    assert_eq!(next(4.3, 1.0), None, "a larger one is usable and a smaller one is not");
}

#[test]
fn of_changes_that_do_not_help_the_best_is_named() {
    let held = serde_json::json!({ "kind": "cbr", "rate": "800 kbps", "size": "1448 B" });
    let tried = [
        ("flow.upload.workload", held, [2.6, 1.0, 2.1]),
        ("path.up.queue", "fq_codel".into(), [2.5, 1.0, 1.0]),
    ];
    let answer = answer(&with_variants([1.9, 1.0, 1.7], &tried));
    let says = " With the flow upload held to 800 kb/s it is not usable: MOS 2.60 at best.";
    assert!(answer.why.ends_with(says), "{}", answer.why);
    assert_eq!((answer.tried.len(), answer.cure), (2, None));
}

#[test]
fn the_queue_of_a_phones_cell_is_said_to_be_no_routers() {
    let mut summary = with_cure([1.9, 1.0, 1.7], [1.5, 1.0, 1.0]);
    assert!(!answer(&summary).why.contains("the cell's own queue"));
    summary.understood.links_of_cells = vec!["up".to_owned()];
    let why = answer(&summary).why;
    assert!(why.contains("(CoDel). It is the cell's own queue: "), "{why}");
}

#[test]
fn a_router_before_the_line_is_a_cure_with_its_rate() {
    let mut summary = with_cure([1.9, 1.0, 1.7], [4.37, 3.5, 4.36]);
    for run in &mut summary.runs {
        let is_cured = run.sweep["path.up.queue"] == "fq_codel";
        run.sweep.insert("path.up.rate".to_owned(), if is_cured { "950 kbps" } else { "1 Mbps" }.into());
    }
    fixture::refresh(&mut summary);
    let found = comparisons(&summary).remove(0).answer;
    assert!(
        found.line.contains(
            "With fq_codel on the uplink, shaped to 950 kb/s (in the router, at 95 % of the line's rate; the whole rate \
             needs a modem that has it) it is usable, best over UDP (MOS 4.37)"
        ),
        "{}",
        found.line
    );
    assert_eq!(found.cure.unwrap().change.len(), 2);
    let conditions = conditions(&summary, "call");
    assert_eq!(conditions[1].label, "path.up.queue = fq_codel, path.up.rate = 950 kbps");
}

#[test]
fn a_variant_needs_no_more_repetitions() {
    let summary = with_cure([1.9, 1.0, 1.7], [4.37, 3.5, 4.36]);
    assert_eq!(wanted(&summary), (false, None));
    let verdicts = judge(&conditions(&summary, "call"), "call");
    let is_variant: Vec<bool> = verdicts.iter().flatten().map(|verdict| verdict.is_variant).collect();
    assert_eq!(is_variant, [false, true]);
}

#[test]
fn a_run_lacks_a_cure_until_it_has_tried_one_and_repetitions_until_it_is_settled() {
    let mut summary = fixture::summary(8);
    scores(&mut summary, [1.9, 1.0, 1.8]);
    assert_eq!(wanted(&summary), (false, Some("up".to_owned())));
    assert_eq!(wanted(&with_cure([1.9, 1.0, 1.7], [2.5, 1.0, 1.0])), (false, None));
    assert_eq!(lacking(&summary).variants_of, [0, 2], "UDP, and the better of those that send again");
    scores(&mut summary, [4.0, 1.0, 1.8]);
    assert_eq!(wanted(&summary), (false, None));
    assert!(lacking(&fixture::summary(1)).repetitions);
}

#[test]
fn what_does_not_come_back_or_comes_from_far_is_the_cause_where_no_queue_is() {
    let mut summary = fixture::summary(8);
    scores(&mut summary, [1.9, 1.0, 1.8]);
    for run in &mut summary.runs {
        run.links.clear();
    }
    set(&mut summary, 0, |flow, _| flow.round_trip_delay_ms.as_mut().unwrap().min = 42.0);
    assert!(
        answer(&summary).why.starts_with("Packets wait in a queue on the path: over UDP the median delay, ")
    );
    let steady = |flow: &mut FlowSummary, min: f64, loss| {
        let delay = flow.round_trip_delay_ms.as_mut().unwrap();
        (delay.min, delay.p50, flow.loss_rate) = (min, min + 5.0, Some(loss));
    };
    set(&mut summary, 0, |flow, _| steady(flow, 42.0, 0.05));
    assert!(answer(&summary).why.starts_with("Over UDP 5.00 % of the messages were lost."));
    set(&mut summary, 0, |flow, _| steady(flow, 600.0, 0.0));
    let says = "The path is too long: even the shortest round trip over UDP is 600 ms, and a conversation bears 400 ms.";
    let why = answer(&summary).why;
    assert!(why.starts_with(says), "{why}");
    set(&mut summary, 0, |flow, _| steady(flow, 42.0, 0.0));
    let says =
        "The round trips of UDP vary more than this receiver waits for (adaptive playout): p50 47.0 ms, p99 ";
    let why = answer(&summary).why;
    assert!(why.starts_with(says), "{why}");
}

#[test]
fn of_a_call_that_is_heard_whole_delay_codec_and_receiver_are_the_cause_and_else_what_takes_its_frames() {
    let mut summary = fixture::summary(8);
    scores(&mut summary, [1.9, 1.0, 1.8]);
    for run in &mut summary.runs {
        run.links.clear();
    }
    let mut why = |late: u64, missing: u64| {
        set(&mut summary, 0, |flow, _| {
            let delay = flow.round_trip_delay_ms.as_mut().unwrap();
            (delay.min, delay.p50, delay.p99, flow.loss_rate) =
                (42.0, 47.0, 60.0, Some(missing as f64 / 1000.0));
            let call = flow.call.as_mut().unwrap();
            (call.played, call.late, call.missing) = (1000 - late - missing, late, missing);
        });
        answer(&summary).why
    };
    let whole = why(0, 0);
    let says = "Of UDP hardly a frame is late or missing: delay (p50 47.0 ms, p99 60.0 ms), codec and receiver (adaptive \
                playout) allow this call no more. From mouth to ear";
    assert!(whole.starts_with(says), "{whole}");
    let late = why(700, 0);
    assert!(late.starts_with("The round trips of UDP vary more than this receiver waits for"), "{late}");
    let lost = why(1, 6);
    assert!(lost.starts_with("Over UDP 0.60 % of the messages were lost."), "{lost}");
}

/// All three transports unusable, and on each link of each repetition this change.
fn unusable(change: impl Fn(&str, &mut LinkSummary, u64)) -> Summary {
    let mut summary = fixture::summary(8);
    scores(&mut summary, [1.9, 1.0, 1.8]);
    for run in &mut summary.runs {
        for (name, link) in &mut run.links {
            change(name, link, run.repetition);
        }
    }
    fixture::refresh(&mut summary);
    summary
}

/// The uplink's wait, and a downlink that takes packets, too.
fn with_wait(up_ms: f64, up_lost: u64, down_lost: u64) -> Summary {
    let mut summary = unusable(|_, link, _| {
        link.queue_delay_ms.as_mut().unwrap().p50 = up_ms;
        (link.dropped, link.lost) = (0, up_lost);
    });
    for run in &mut summary.runs {
        let mut down = run.links["up"].clone();
        down.queue_delay_ms.as_mut().unwrap().p50 = 0.0;
        (down.dropped, down.lost) = (0, down_lost);
        run.links.insert("down".to_owned(), down);
    }
    summary
}

#[test]
fn a_queue_in_which_the_flow_cannot_have_waited_is_no_cause_and_not_cured() {
    let mut summary = with_wait(360.0, 0, 7);
    set(&mut summary, 0, |flow, _| {
        let delay = flow.round_trip_delay_ms.as_mut().unwrap();
        (delay.min, delay.p50, delay.p99, flow.loss_rate) = (20.0, 20.2, 20.2, Some(0.05));
    });
    let says = "Over UDP 5.00 % of the messages were lost: packets were lost on the downlink alone.";
    let Answer { line, why, .. } = answer(&summary);
    assert!(why.starts_with(says), "{why}");
    assert!(line.starts_with("No transport makes this call usable: "), "{line}");
    assert_eq!(lacking(&summary).cure_on.as_deref(), Some("down"), "not the one with 360 ms");
    set(&mut summary, 0, |flow, _| flow.round_trip_delay_ms.as_mut().unwrap().p99 = 360.0);
    assert_eq!(lacking(&summary).cure_on.as_deref(), Some("up"), "the slowest can have waited there");
    assert!(answer(&summary).why.starts_with(says));
    set(&mut summary, 0, |flow, _| flow.round_trip_delay_ms.as_mut().unwrap().p50 = 360.0);
    let says = "Packets wait 360 ms in the queue of the uplink";
    assert!(answer(&summary).why.starts_with(says));
    set(&mut summary, 0, |flow, _| flow.round_trip_delay_ms = None);
    assert!(answer(&summary).why.starts_with(says), "a delay that is not known rules nothing out");
    assert_eq!(lacking(&summary).cure_on.as_deref(), Some("up"));
}

#[test]
fn messages_that_were_never_sent_are_not_laid_to_a_link() {
    let mut summary = with_wait(10.0, 0, 7);
    let mut why = |not_open: u64, no_network: u64| {
        set(&mut summary, 0, |flow, _| {
            flow.loss_rate = Some(0.31);
            let missing = 31 - not_open - no_network;
            flow.ledger =
                Some(Ledger { due: 100, delivered: 69, not_open, no_network, missing, ..Ledger::default() });
        });
        answer(&summary).why
    };
    let says = "Over UDP 31.00 % of the messages were lost, most of them never sent: the connection was not open when they \
                were due.";
    assert!(why(20, 0).starts_with(says), "{}", why(20, 0));
    assert!(why(5, 20).contains("most of them never sent: the host had no network for them."));
    assert!(why(10, 5).contains("of the messages were lost: packets were lost on the downlink alone."));
}

#[test]
fn of_two_links_that_take_packets_none_is_named() {
    let mut summary = with_wait(10.0, 2500, 7);
    set(&mut summary, 0, |flow, _| flow.loss_rate = Some(0.048));
    let why = answer(&summary).why;
    assert!(why.starts_with("Over UDP 4.80 % of the messages were lost. "), "{why}");
}

#[test]
fn a_wait_is_the_median_over_the_repetitions() {
    let p50 = |repetition| if repetition == 0 { 2000.0 } else { 120.0 };
    let summary = unusable(|_, link, repetition| link.queue_delay_ms.as_mut().unwrap().p50 = p50(repetition));
    let why = answer(&summary).why;
    assert!(why.starts_with("Packets wait 120 ms in the queue of the uplink (CoDel)."), "{why}");
}

#[test]
fn a_steady_delay_past_the_flows_deadline_is_the_paths_length_and_no_variation() {
    let mut summary = unusable(|_, link, _| link.queue_delay_ms.as_mut().unwrap().p50 = 0.0);
    for cell in 0..3 {
        set(&mut summary, cell, |flow, _| {
            (flow.call, flow.in_time, flow.deadline_ms) = (None, Some(0.0), Some(100.0));
            let delay = flow.round_trip_delay_ms.as_mut().unwrap();
            (delay.min, delay.p50, delay.p99, flow.loss_rate) = (140.4, 140.4, 140.4, Some(0.0));
        });
    }
    let why = answer(&summary).why;
    let says = "The path is too long: even the shortest round trip over UDP is 140 ms, and this flow's deadline is 100 ms.";
    assert!(why.starts_with(says), "{why}");
    // A deadline that is longer than a conversation bears is the limit, too.
    for cell in 0..3 {
        set(&mut summary, cell, |flow, _| {
            flow.deadline_ms = Some(1000.0);
            let delay = flow.round_trip_delay_ms.as_mut().unwrap();
            (delay.min, delay.p50, delay.p99) = (950.0, 1010.0, 1200.0);
        });
    }
    assert!(answer(&summary).why.starts_with("The round trips of UDP vary too much"));
}

#[test]
fn two_outcomes_are_shown_with_their_shares() {
    let mut summary = fixture::summary(20);
    scores(&mut summary, [4.3, 1.0, 1.8]);
    set(&mut summary, 2, |flow, repetition| {
        flow.call.as_mut().unwrap().mos = Some(if repetition < 12 { 3.9 } else { 1.7 });
    });
    let answer = answer(&summary);
    assert_eq!(answer.outcome, AnswerKind::Distinct);
    let says = "TCP_NODELAY: two outcomes, MOS 1.70 in 40 % of the repetitions and MOS 3.90 in 60 %.";
    assert!(answer.why.ends_with(says), "{}", answer.why);
    assert!(!answer.line.contains("3.02"), "the mean, which no call gets: {}", answer.line);
    let headline = "UDP is best for this call: MOS 4.30 against 1.70 or 3.90 (TCP_NODELAY, two outcomes) and 1.00 (TCP).";
    assert_eq!(answer.line, headline);
}

#[test]
fn a_leader_with_two_outcomes_is_quoted_with_both() {
    let mut summary = fixture::summary(20);
    scores(&mut summary, [4.3, 1.0, 1.1]);
    set(&mut summary, 0, |flow, repetition| {
        flow.call.as_mut().unwrap().mos = Some(if repetition < 12 { 4.3 } else { 2.5 });
    });
    let line = answer(&summary).line;
    let says = "UDP is best for this call: MOS 2.50 or 4.30 (two outcomes) against 1.10 (TCP_NODELAY) and 1.00 (TCP).";
    assert_eq!(line, says);
}

#[test]
fn a_flow_that_is_no_call_is_ranked_by_its_share_in_time() {
    let mut summary = fixture::summary(8);
    for (cell, in_time) in [(0, 0.998), (1, 0.2), (2, 0.96)] {
        set(&mut summary, cell, |flow, _| (flow.call, flow.in_time) = (None, Some(in_time)));
    }
    let best = answer(&summary);
    assert_eq!(
        best.line,
        "UDP is best for the flow call: 99.80 % in time against 96.00 % (TCP_NODELAY) and 20.00 % (TCP)."
    );
    set(&mut summary, 0, |flow, _| flow.in_time = Some(0.9));
    set(&mut summary, 2, |flow, _| flow.in_time = Some(0.1));
    assert_eq!(answer(&summary).outcome, AnswerKind::Unusable, "below 95 %");
}

#[test]
fn a_call_of_which_nothing_came_ranks_last_and_a_flow_without_a_clock_not_at_all() {
    let mut summary = fixture::summary(8);
    scores(&mut summary, [1.0, 4.0, 4.2]);
    set(&mut summary, 0, |flow, _| {
        (flow.received, flow.lost, flow.round_trip_delay_ms) = (0, flow.sent, None);
        flow.call = Some(Box::new(CallSummary {
            mos: Some(1.0),
            r: Some(0.0),
            missing: flow.sent,
            ..CallSummary::default()
        }));
    });
    assert_eq!(answer(&summary).best, ["tcp-nodelay"]);
    for cell in 0..3 {
        // A burst has neither a score nor a deadline.
        set(&mut summary, cell, |flow, _| {
            (flow.call, flow.in_time, flow.verdict) = (None, None, Some("good".to_owned()));
        });
    }
    assert!(comparisons(&summary).is_empty());
}

#[test]
fn a_transfer_is_ranked_by_its_goodput_and_alike_within_a_twentieth() {
    let mut summary = fixture::summary(8);
    let goodputs = |summary: &mut Summary, of: [f64; 3]| {
        for (cell, goodput) in (0..).zip(of) {
            set(summary, cell, |flow, repetition| {
                (flow.call, flow.in_time, flow.deadline_ms) = (None, None, None);
                flow.goodput_bps = Some(goodput * (1.0 + 0.001 * repetition as f64));
            });
        }
    };
    goodputs(&mut summary, [1e6, 3e6, 2e6]);
    let found = answer(&summary);
    assert_eq!((found.outcome, found.best), (AnswerKind::Distinct, vec!["tcp".to_owned()]));
    assert!(found.line.contains("goodput 3.0"), "{}", found.line);
    goodputs(&mut summary, [1e6, 2e6, 1.97e6]);
    assert_eq!(answer(&summary).outcome, AnswerKind::Alike);
}

#[test]
fn an_answer_stands_beside_its_cells_and_what_they_have_in_common() {
    let (summary, _) = fixture::sweep(2);
    let found = comparisons(&summary);
    assert_eq!(found.len(), 2);
    assert_eq!((found[1].flow.as_str(), found[1].cells.as_slice()), ("call", [3, 4, 5].as_slice()));
    assert_eq!(found[1].sweep, BTreeMap::from([("path.up.loss".to_owned(), 0.01.into())]));
}

/// The reason where `call` has these copies, of which in each repetition the one that `worst` tells has a
/// score of 2 and the others 3.
fn why_of_copies(copies: &[&str], worst: impl Fn(u64) -> usize) -> String {
    let mut summary = fixture::summary(8);
    for run in &mut summary.runs {
        let call = run.flows.remove("call").unwrap();
        for (index, name) in copies.iter().enumerate() {
            let mut copy = call.clone();
            copy.call.as_mut().unwrap().mos = Some(if index == worst(run.repetition) { 2.0 } else { 3.0 });
            run.flows.insert((*name).to_owned(), copy);
        }
        let copies = run.flows.iter().filter(|(name, _)| is_copy(name, "call"));
        let group = serde_json::json!({ "flows": 2, "sent": 1, "received": 1, "lost": 0 });
        let mut group: GroupSummary = serde_json::from_value(group).unwrap();
        group.judged =
            judge_copies("call", copies.map(|(name, flow)| (name.as_str(), flow.as_ref())), Receiver::Own);
        run.groups.insert("call".to_owned(), Box::new(group));
    }
    fixture::refresh(&mut summary);
    answer(&summary).why
}

#[test]
fn the_worse_direction_is_named_if_it_is_that_in_each_repetition() {
    let why = why_of_copies(&["call-down", "call-up"], |_| 1);
    assert!(why.contains("Judged by call-up, its worse direction."), "{why}");
    let why = why_of_copies(&["call-down", "call-up"], |repetition| usize::from(repetition > 1));
    assert!(why.contains("Judged by the worse direction of each repetition, mostly call-up."), "{why}");
    let why = why_of_copies(&["call-down", "call-up"], |repetition| usize::from(repetition > 3));
    assert!(why.contains("Judged by the worse direction of each repetition."), "{why}");
}

#[test]
fn the_worst_of_several_conversations_is_no_mere_direction() {
    let copies = ["call-1-down", "call-1-up", "call-2-down", "call-2-up"];
    let why = why_of_copies(&copies, |_| 3);
    assert!(why.contains("Judged by call-2-up, the worst of its copies."), "{why}");
}

#[test]
fn one_transport_alone_wins_nothing() {
    let mut summary = fixture::summary(1);
    summary.cells.truncate(1);
    assert!(comparisons(&summary).is_empty());
    let summary = fixture::summary(1);
    assert!(judge(&conditions(&summary, "no-such-flow"), "no-such-flow")[0].is_none());
}
