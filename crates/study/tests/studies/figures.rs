//! Figures: what they draw of samples, and what is printed beside it.

use talkpath_measure::RunRecord;
use talkpath_scenario::{Diagnostics, Source};
use talkpath_study::{
    ArenaName, CellRepetitions, CellSamples, Drawing, Role, Sampled, Selection, StateTrace, Study, TraceLine,
    judge, load,
};

use super::{ONE, SCENARIO, STUDY, TWO, samples};

fn with_figure(figure: &str, csv: &str) -> Result<Study, Diagnostics> {
    let text =
        format!("{STUDY}\n[[figure]]\nnumber = \"1\"\ntitle = \"Loss\"\nnote = \"Printed\"\n{figure}\n");
    let files = [Source::new("call.toml", SCENARIO), Source::new("paper.csv", csv)];
    load("test-1999", &Source::new("study.toml", text.as_str()), &files)
}

#[test]
fn a_figure_has_the_printed_figures_of_its_cells_and_metrics() {
    let figure = r#"medians = { metric = "flows.call.loss_rate", y_title = "lost", names = ["near", "far"], published = "paper.csv",
        lines = [{ label = "call", cells = ["call-near", "call-far"] }] }"#;
    let csv = "cell,metric,published,role\ncall-far,flows.call.loss_rate,0.01 0.02,fitted\n\
               call-near,flows.call.ipdv_ms.p90,7,\n";
    let study = with_figure(figure, csv).unwrap_or_else(|mistakes| panic!("{mistakes}"));
    let all = samples(&study, &[("call-near", "base", ONE), ("call-far", "base", TWO)]);
    let found = judge(&study, &Selection::default(), &all);
    let Drawing::Groups { names, lines } = &found.figures[0].drawing else { panic!("{found:?}") };
    assert_eq!((names.len(), found.figures[0].note.as_str()), (2, "Printed"));
    let [near, far] = lines[0].points.as_slice() else { panic!("{lines:?}") };
    assert_eq!((near.median, near.published.len()), (0.010, 0));
    assert_eq!((far.x, far.published.as_slice(), far.role), (1.0, &[0.01, 0.02][..], Role::Fitted));
    let other = csv.replace("flows.call.loss_rate,0.01 0.02", "flows.call.ipdv_ms.p90,1");
    let mistake = with_figure(figure, &other).expect_err("a mistake").to_string();
    assert!(mistake.contains("paper.csv prints nothing of the figure's cells and metrics"), "{mistake}");
    let words = with_figure(figure, &csv.replace("0.01 0.02", "a few")).expect_err("a mistake").to_string();
    assert!(words.contains("a number, or several with spaces between them"), "{words}");
}

#[test]
fn a_figure_of_which_nothing_ran_is_named() {
    let figure = r#"medians = { metric = "flows.call.loss_rate", x_title = "where", y_title = "lost", names = ["near"],
        lines = [{ label = "call", cells = ["call-near"] }] }"#;
    let study = with_figure(figure, "").unwrap_or_else(|mistakes| panic!("{mistakes}"));
    let of = |cell| judge(&study, &Selection::default(), &samples(&study, &[(cell, "base", ONE)]));
    let (drawn, absent) = (of("call-near"), of("call-far"));
    assert_eq!((drawn.figures.len(), drawn.not_shown.len()), (1, 0));
    assert_eq!((&*drawn.figures[0].x_title, &*drawn.figures[0].y_title), ("where", "lost"));
    assert_eq!((absent.figures.len(), &absent.not_shown[..]), (0, &["figure 1 (Loss)".to_owned()][..]));
}

#[test]
fn a_scatter_has_the_line_of_least_squares_and_an_absent_figure_its_reason() {
    let figure = r#"scatter = { x = "flows.call.loss_rate", y = "double", x_title = "lost", y_title = "twice",
        points = [{ label = "all", cells = ["call-near", "call-far"] }] }

[metric]
double = { sum = ["flows.call.loss_rate", "flows.call.loss_rate"] }"#;
    let study = with_figure(figure, "").unwrap_or_else(|mistakes| panic!("{mistakes}"));
    let mut all = samples(&study, &[("call-near", "base", ONE), ("call-far", "base", TWO)]);
    for sample in all.iter_mut().flat_map(|cell| &mut cell.samples) {
        sample.values.insert("double".to_owned(), 2.0 * sample.values["flows.call.loss_rate"]);
    }
    let found = judge(&study, &Selection::default(), &all);
    let Drawing::Scatter { fit: Some(line), .. } = found.figures[0].drawing else { panic!("{found:?}") };
    assert!((line.slope - 2.0).abs() < 1e-9 && line.intercept.abs() < 1e-9, "{line:?}");
    let absent = with_figure("absent = \"it shows a screen\"", "").unwrap_or_else(|it| panic!("{it}"));
    let found = judge(&absent, &Selection::default(), &[]);
    assert_eq!(found.figures[0].drawing, Drawing::Absent { why: "it shows a screen".to_owned() });
    let both = with_figure(&format!("absent = \"no\"\n{figure}"), "").expect_err("a mistake").to_string();
    assert!(
        both.contains("expected one of `trace`, `medians`, `quantiles`, `scatter` or `absent`"),
        "{both}"
    );
}

#[test]
fn each_kind_of_run_keeps_the_trace_of_its_first_repetition() {
    let figure = r#"trace = { series = "queue", entity = "up", cell = "call-far", seconds = [0.0, 1.0], cap = 3.0,
        kinds = { metric = "flows.call.loss_rate", times = 100.0, what = "% lost" } }"#;
    let study = with_figure(figure, "").unwrap_or_else(|mistakes| panic!("{mistakes}"));
    let cell = study.cell("call-far", ArenaName::Sim, 0).unwrap();
    let far = samples(&study, &[("call-far", "base", [0.01, 0.02, 0.01, 0.01, 0.02, 0.01])]).remove(0);
    let mut kept = CellRepetitions::default();
    for sample in far.samples {
        assert!(kept.wants_series(cell, sample.repetition) && kept.wants_trace(cell, sample.repetition));
        let trace = StateTrace::from_run(&RunRecord::default(), cell, &serde_json::Value::Null);
        kept.add(cell, CellSamples::of_one(cell, "base", "", Sampled { sample, trace, warnings: &[] }));
    }
    let mut all = vec![kept.joined().expect("it ran")];
    assert_eq!(all[0].traces.iter().map(|kept| kept.repetition).collect::<Vec<_>>(), [0, 1]);
    let line = TraceLine { entity: "up".to_owned(), kind: "queue".to_owned(), points: vec![(0.0, 9.0)] };
    for kept in &mut all[0].traces {
        kept.trace.lines.push(line.clone());
    }
    let found = judge(&study, &Selection::default(), &all);
    let Drawing::Traces { panels, .. } = &found.figures[0].drawing else { panic!("{found:?}") };
    let titles: Vec<_> = panels.iter().map(|panel| panel.title.as_str()).collect();
    assert_eq!(titles, ["1 % lost: 4 of 6 runs; run 1 is shown", "2 % lost: 2 of 6 runs; run 2 is shown"]);
    assert_eq!(panels[0].steps[0].points, [(0.0, 3.0)]);
}

/// The repetitions that the machine disturbed run again after the others: the first may then not be the first
/// that has a trace.
#[test]
fn a_figure_shows_the_first_repetition_also_if_a_later_one_was_kept_before_it() {
    let figure = r#"trace = { series = "cwnd", entity = "call", cell = "call-far", seconds = [0.0, 1.0] }"#;
    let study = with_figure(figure, "").unwrap_or_else(|mistakes| panic!("{mistakes}"));
    let cell = study.cell("call-far", ArenaName::Emu, 0).unwrap();
    let far = samples(&study, &[("call-far", "base", ONE)]).remove(0);
    let mut kept = CellRepetitions::default();
    for repetition in [2, 3, 0, 1] {
        let sample = far.samples[repetition as usize].clone();
        let is_first = matches!(repetition, 2 | 0);
        let wants = (kept.wants_series(cell, repetition), kept.wants_trace(cell, repetition));
        assert_eq!(wants, (is_first, is_first), "{repetition}");
        let record = RunRecord::default();
        let trace = is_first.then(|| StateTrace::from_run(&record, cell, &serde_json::Value::Null)).flatten();
        kept.add(cell, CellSamples::of_one(cell, "base", "", Sampled { sample, trace, warnings: &[] }));
    }
    let joined = kept.joined().expect("it ran");
    assert_eq!(joined.traces.iter().map(|kept| kept.repetition).collect::<Vec<_>>(), [0]);
    assert_eq!(joined.samples.iter().map(|it| it.repetition).collect::<Vec<_>>(), [0, 1, 2, 3]);
}
