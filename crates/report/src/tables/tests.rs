use talkpath_measure::summary::JudgedBy;

use super::*;
use crate::condition::{Condition, conditions};
use crate::fixture;
use crate::verdict::{JudgedFlow, Verdict, judge};

/// The table of `condition`, as if no other condition were compared.
fn comparison(condition: &Condition<'_>, flow: &str, verdict: Option<&Verdict>) -> Grid {
    let judged = JudgedFlow { flow, conditions: Vec::new() };
    ComparisonTables::new(&judged).grid(condition, verdict)
}

fn flows(cell: &CellView<'_>) -> Grid {
    super::flows(cell, &FlowMeanings::new(std::slice::from_ref(cell)))
}

fn column(grid: &Grid, title: &str) -> Vec<String> {
    let at = grid.columns.iter().position(|column| column.title() == title);
    let at = at.unwrap_or_else(|| panic!("no {title}"));
    grid.rows.iter().map(|row| row.cells[at].clone()).collect()
}

#[test]
fn the_tables_numbers_are_the_summarys() {
    let summary = fixture::summary(1);
    let grid = comparison(&conditions(&summary, "call")[0], "call", None);
    let of = |text: &dyn Fn(&RunSummary) -> String| summary.runs.iter().map(text).collect::<Vec<_>>();
    let call = |run: &RunSummary| run.flows["call"].clone();
    let delay = |run: &RunSummary| call(run).round_trip_delay_ms.unwrap();
    assert_eq!(column(&grid, "round trip, ms p50"), of(&|run| format!("{:.1}", delay(run).p50)));
    assert_eq!(column(&grid, "round trip, ms p99"), of(&|run| format!("{:.1}", delay(run).p99)));
    assert_eq!(column(&grid, "jitter ms"), of(&|run| format!("{:.1}", call(run).ipdv_ms.unwrap().p90)));
    assert_eq!(column(&grid, "loss %"), of(&|run| percent(call(run).loss_rate)));
    assert_eq!(
        column(&grid, "goodput kb/s"),
        of(&|run| format!("{:.1}", call(run).goodput_bps.unwrap() / 1e3))
    );
    let upload = |run: &RunSummary| run.flows["upload"].clone();
    let goodput = of(&|run| format!("{:.3}", upload(run).goodput_bps.unwrap() / 1e6));
    assert_eq!(column(&grid, "upload Mb/s"), goodput);
    assert_eq!(column(&grid, "upload resent %"), of(&|run| percent(upload(run).retransmit_rate)));
    let heard = |run: &RunSummary| call(run).call.unwrap().mouth_to_ear_ms.unwrap().p50;
    assert_eq!(column(&grid, "mouth to ear, ms"), of(&|run| format!("{:.1}", heard(run))));
}

#[test]
fn the_copies_of_a_transfer_beside_a_call_are_one_in_its_table_and_its_answer() {
    let mut summary = fixture::summary(8);
    for run in &mut summary.runs {
        let upload = run.flows.remove("upload").unwrap();
        for copy in ["upload-1", "upload-2"] {
            run.flows.insert(copy.to_owned(), upload.clone());
        }
        let group = serde_json::json!({
            "flows": 2, "sent": 0, "received": 0, "lost": 0, "goodput_bps": 1.8e6, "jain_index": 0.9,
        });
        run.groups.insert("upload".to_owned(), serde_json::from_value(group).unwrap());
    }
    fixture::refresh(&mut summary);
    let conditions = conditions(&summary, "call");
    let grid = comparison(&conditions[0], "call", None);
    assert_eq!(column(&grid, "upload, 2 copies Mb/s"), ["1.800"; 3]);
    assert_eq!(column(&grid, "upload, 2 copies Jain's index"), ["0.900"; 3]);
    assert!(grid.columns.iter().all(|it| !it.title().contains("upload-1")));
    let verdict = judge(&conditions, "call").remove(0).unwrap();
    let neighbours = verdict.answer.neighbours.clone().unwrap();
    assert_eq!(neighbours, "Beside this call, the 2 flows upload get 1.800 Mb/s together.");
    let grid = groups(&CellView::all(&summary)[0]).unwrap();
    assert_eq!(
        (column(&grid, "goodput, Mb/s all"), column(&grid, "flows")),
        (vec!["1.800".to_owned()], vec!["2".to_owned()])
    );
}

#[test]
fn the_answers_figures_stand_in_the_table() {
    let summary = fixture::summary(8);
    let conditions = conditions(&summary, "call");
    let verdict = judge(&conditions, "call").remove(0).unwrap();
    let grid = comparison(&conditions[0], "call", Some(&verdict));
    assert_eq!(grid.rows.len(), 3, "a row a transport");
    let means = |cell: u64| {
        let runs = summary.runs.iter().filter(|run| run.cell == cell);
        runs.map(|run| run.flows["call"].call.as_ref().unwrap().score().unwrap()).sum::<f64>() / 8.0
    };
    assert_eq!(column(&grid, "MOS"), [0, 1, 2].map(|cell| format!("{:.2}", means(cell))));
    let differences = column(&grid, "vs UDP 95 %");
    assert_eq!(differences[0], "", "the leader has no difference to itself");
    assert!(differences[1].starts_with('-') && differences[1].contains(" to -"), "{differences:?}");
}

#[test]
fn each_row_says_whether_it_is_usable_and_two_outcomes_how_often() {
    let mut summary = fixture::summary(20);
    for run in &mut summary.runs {
        let mos = [4.3, 1.0, if run.repetition < 12 { 3.9 } else { 1.7 }][run.cell as usize];
        run.flows.get_mut("call").unwrap().call.as_mut().unwrap().mos = Some(mos);
    }
    fixture::refresh(&mut summary);
    let conditions = conditions(&summary, "call");
    let verdict = judge(&conditions, "call").remove(0).unwrap();
    let grid = comparison(&conditions[0], "call", Some(&verdict));
    assert_eq!(column(&grid, "usable"), ["yes", "no", "60 %"]);
    // No repetition has their mean, so no table shows it.
    assert_eq!(column(&grid, "MOS"), ["4.30", "1.00", "1.70 or 3.90"]);
    let cells = CellView::all(&summary);
    assert_eq!(column(&flows(&cells[2]), "MOS")[0], "1.70 (40 %), 3.90 (60 %)");
    let two = &verdict.answer.two_outcomes;
    let found: Vec<_> = two.iter().map(|it| (it.transport.as_str(), it.cell, it.low_share)).collect();
    assert_eq!(found, [("tcp-nodelay", 2, 0.4)]);
}

#[test]
fn a_difference_has_the_decimals_of_its_figure_and_no_sign_if_they_are_all_zero() {
    let mut summary = fixture::summary(8);
    for run in &mut summary.runs {
        let call = run.flows.get_mut("call").unwrap();
        (call.call, call.in_time, call.deadline_ms) = (None, None, None);
        call.goodput_bps = Some([9000.0, 8000.0, 8999.7][run.cell as usize]);
    }
    fixture::refresh(&mut summary);
    let conditions = conditions(&summary, "call");
    let verdict = judge(&conditions, "call").remove(0).unwrap();
    let grid = comparison(&conditions[0], "call", Some(&verdict));
    let differences = ["", "-0.001 to -0.001", "0.000 to 0.000"];
    assert_eq!(column(&grid, "vs UDP 95 %"), differences);
    let style = crate::verdict::figure_style(JudgedBy::Mos);
    let texts = [0.5, -0.5, 0.0, -0.0, 0.004, -0.004].map(|value| style.signed(value));
    assert_eq!(texts, ["+0.50", "-0.50", "0.00", "0.00", "0.00", "0.00"]);
}

#[test]
fn a_tie_at_the_scales_lower_end_is_no_difference_of_zero() {
    let mut summary = fixture::summary(8);
    for run in &mut summary.runs {
        run.flows.get_mut("call").unwrap().call.as_mut().unwrap().mos = Some(1.0);
    }
    fixture::refresh(&mut summary);
    let conditions = conditions(&summary, "call");
    let verdict = judge(&conditions, "call").remove(0).unwrap();
    let grid = comparison(&conditions[0], "call", Some(&verdict));
    assert_eq!(column(&grid, "vs UDP 95 %"), ["", UNKNOWN, UNKNOWN]);
}

#[test]
fn a_loss_beside_many_unfinished_messages_says_how_many_they_are_and_one_beside_few_does_not() {
    let mut summary = fixture::summary(2);
    let titles = |summary: &talkpath_measure::summary::Summary| {
        let cell = &CellView::all(summary)[0];
        let compared = comparison(&conditions(summary, "call")[0], "call", None);
        [compared, flows(cell)].map(|grid| {
            grid.columns
                .iter()
                .map(Column::title)
                .filter(|title| title.contains("unfinished"))
                .collect::<String>()
        })
    };
    for run in summary.runs.iter_mut().filter(|run| run.cell == 0) {
        let call = run.flows.get_mut("call").unwrap();
        (call.sent, call.received, call.lost, call.unfinished) = (500, 490, 0, 10);
    }
    fixture::refresh(&mut summary);
    assert_eq!(titles(&summary), ["", ""]);
    for run in summary.runs.iter_mut().filter(|run| run.cell == 0) {
        let call = run.flows.get_mut("call").unwrap();
        (call.received, call.unfinished, call.loss_rate) = (10, 490, Some(0.0));
    }
    fixture::refresh(&mut summary);
    assert_eq!(titles(&summary), ["unfinished %", "unfinished %"]);
    let grid = comparison(&conditions(&summary, "call")[0], "call", None);
    assert_eq!((&*column(&grid, "unfinished %")[0], &*column(&grid, "loss %")[0]), ("98.00", "0.00"));
    let text = crate::run_table(&summary, &crate::Style { width: 120, color: false, explain: true });
    assert!(text.contains("\nunfinished    of the messages sent, those still queued"), "{text}");
}

#[test]
fn a_rows_counts_and_rates_are_means_of_the_same_repetitions() {
    let mut summary = fixture::summary(3);
    for run in &mut summary.runs {
        let call = run.flows.get_mut("call").unwrap();
        (call.sent, call.lost) = (1000, 10 * (3 - run.repetition));
        call.loss_rate = Some(call.lost as f64 / 1000.0);
    }
    fixture::refresh(&mut summary);
    let grid = flows(&CellView::all(&summary)[0]);
    assert_eq!(grid.rows[0].cells[2..5], ["1000", "20", "2.00"]);
    // One message of one repetition: the median would be no loss.
    for run in &mut summary.runs {
        let call = run.flows.get_mut("call").unwrap();
        call.lost = u64::from(run.repetition == 0);
        call.loss_rate = Some(call.lost as f64 / 1000.0);
    }
    fixture::refresh(&mut summary);
    let grid = flows(&CellView::all(&summary)[0]);
    assert_eq!(grid.rows[0].cells[2..5], ["1000", "0.3", "0.03"]);
}

#[test]
fn words_stand_beside_bursts_alone() {
    let mut summary = fixture::summary(1);
    let has_words = |grid: &Grid| grid.columns.last().unwrap().head == "in words";
    let grid = flows(&CellView::all(&summary)[0]);
    assert!(!has_words(&grid) && grid.rows.iter().all(|row| row.cells.len() == grid.columns.len()));
    summary.runs[0].flows.get_mut("upload").unwrap().verdict = Some("good".to_owned());
    let grid = flows(&CellView::all(&summary)[0]);
    assert!(has_words(&grid));
    let words: Vec<_> = grid.rows.iter().map(|row| row.cells.last().unwrap().as_str()).collect();
    assert_eq!(words, ["", "good"]);
}

#[test]
fn what_the_machine_did_is_told_where_it_was_measured() {
    use talkpath_measure::summary::{LateMs, MachineSummary};
    let mut run = fixture::summary(1).runs.swap_remove(0);
    assert!(machine(&run).is_none() && machine_line(&run).is_none(), "a simulation has no machine");
    run.machine = Some(Box::new(MachineSummary {
        emulator_late_ms: Some(LateMs { p50: 0.004, p99: 0.0315, max: 1.25 }),
        packets: Some(12_000),
        device_drops: Some(0),
        emulator_cpu_share: Some(0.25),
        real_time: Some(true),
        stolen_share: Some(0.056),
        checksum_errors: Some(0),
        far_checksum_errors: Some(7),
        ..MachineSummary::default()
    }));
    let grid = machine(&run).unwrap();
    assert_eq!(grid.rows.len(), 1, "what was not measured has no row");
    assert_eq!(grid.rows[0].cells, ["emulator's writes", "0.004", "0.032", "1.250"]);
    let line = machine_line(&run).unwrap();
    assert!(line.contains("real-time priority, 5.60 % of its processors"), "{line}");
    assert!(line.contains("7 UDP datagrams at the far host with a wrong checksum"), "{line}");
    assert!(!line.contains("datagrams here"), "none of this host's: {line}");
    assert!(line.contains(", 12") && line.contains("25.00 %"), "{line}");
}

#[test]
fn what_the_echoing_host_took_stands_beside_the_round_trips_where_it_is_known() {
    use talkpath_measure::summary::TurnRoundMs;
    let mut summary = fixture::summary(1);
    let compared = |summary: &_| comparison(&conditions(summary, "call")[0], "call", None);
    assert!(compared(&summary).columns.iter().all(|column| column.group != "turn-round, ms"), "a simulation");
    for run in &mut summary.runs {
        run.machine = Some(Box::default());
        let call = run.flows.get_mut("call").unwrap();
        call.turn_round_ms = Some(TurnRoundMs { p50: 3.9, p90: 12.0, p99: 172.04, max: 180.5 });
    }
    fixture::refresh(&mut summary);
    let grid = compared(&summary);
    assert_eq!(column(&grid, "turn-round, ms p99")[0], "172.0");
    let machine = machine(&summary.runs[0]).unwrap();
    assert_eq!(machine.rows[0].cells, ["turn-round of call", "3.900", "172.040", "180.500"]);
}

#[test]
fn a_figure_that_the_arena_cannot_know_is_a_dash() {
    let mut summary = fixture::summary(1);
    summary.runs[0].flows.get_mut("upload").unwrap().retransmit_rate = None;
    let grid = comparison(&conditions(&summary, "call")[0], "call", None);
    let resent = column(&grid, "upload resent %");
    assert_eq!(resent[0], "–");
    assert_ne!(resent[1], "–");
}
