//! A run that takes the medians of an earlier one.

use talkpath_scenario::Source;
use talkpath_study::{
    ArenaName, CellSamples, Changes, Drawing, EarlierRun, KeptTrace, Outcome, Selection, StateTrace, Study,
    TraceLine, Verdict, judge, judge_with, load, load_with,
};

use super::{ONE, SCENARIO, STUDY, TWO, samples, valid};

const BEFORE: [(&str, &str, [f64; 6]); 4] = [
    ("call-near", "base", ONE),
    ("call-far", "base", ONE),
    ("call-near", "slow", ONE),
    ("call-far", "slow", TWO),
];
const ANOTHER_SET: &str = "[[assumption]]\nname = \"late\"\ntext = \"Later.\"\n\
                           set = { \"path.down.delay\" = \"90 ms\" }\n\n[axis.delay]";
/// Rates that are near 1 % under the new set, and others than under the base.
const NEAR_ONE: [f64; 6] = [0.0101, 0.0102, 0.0103, 0.0102, 0.0101, 0.0104];

/// The study with a third set.
fn grown() -> Study {
    valid(&STUDY.replacen("[axis.delay]", ANOTHER_SET, 1))
}

/// What was kept of a run of the study, as pages quote it, read back from its JSON.
fn kept() -> Outcome {
    let study = valid(STUDY);
    let outcome = judge(&study, &Selection::default(), &samples(&study, &BEFORE)).for_pages();
    let text = serde_json::to_string(&outcome).expect("an outcome");
    serde_json::from_str(&text).expect("an outcome")
}

fn earlier(study: &Study) -> EarlierRun {
    EarlierRun::new(kept(), study, &Selection::default()).unwrap_or_else(|why| panic!("{why}"))
}

/// The cells in the simulator that the earlier run does not cover, with their sets.
fn not_covered(study: &Study) -> Vec<String> {
    let (earlier, selection) = (earlier(study), Selection::default());
    let cells = selection.cells(study).into_iter();
    let missing = cells.filter(|cell| !earlier.covers(study, &selection, cell));
    missing.map(|cell| format!("{} {}", cell.name, study.assumptions[cell.assumption].name)).collect()
}

#[test]
fn without_a_run_the_same_study_is_judged_as_before() {
    let study = valid(STUDY);
    assert_eq!(not_covered(&study), Vec::<String>::new());
    let again = judge_with(&study, &Selection::default(), &[], Some(&earlier(&study)));
    assert_eq!(again.for_pages(), kept());
}

#[test]
fn a_new_set_alone_runs_and_gives_what_a_whole_run_gives() {
    let study = grown();
    assert_eq!(not_covered(&study), ["call-near late", "call-far late"]);
    for late in [TWO, NEAR_ONE, ONE] {
        let new = [("call-near", "late", late), ("call-far", "late", late)];
        let all: Vec<_> = BEFORE.into_iter().chain(new).collect();
        let whole = judge(&study, &Selection::default(), &samples(&study, &all));
        let part = judge_with(&study, &Selection::default(), &samples(&study, &new), Some(&earlier(&study)));
        assert_eq!(part.claims, whole.claims);
        assert_eq!(part.origins, whole.origins);
        assert!(part.valid && part.warnings == whole.warnings);
    }
}

#[test]
fn what_is_changed_runs_again_and_a_comment_changes_nothing() {
    let changed = |from: &str, to: &str| {
        assert!(STUDY.contains(from), "{from}");
        not_covered(&valid(&STUDY.replacen(from, to, 1)))
    };
    assert_eq!(changed("\"50 ms\"", "\"51 ms\""), ["call-far base", "call-far slow"]);
    assert_eq!(changed("\"1 Mbps\"", "\"2 Mbps\""), ["call-near slow", "call-far slow"]);
    assert_eq!(changed("repeat = 6", "repeat = 7").len(), 4);
    assert_eq!(changed("scenario = \"call.toml\"", "scenario = \"call.toml\"\ndraws = \"own\"").len(), 4);
    assert_eq!(
        changed("metric = \"flows.call.loss_rate\", cell", "metric = \"flows.call.rtp_jitter_ms\", cell")
            .len(),
        2
    );
    assert_eq!(changed("within = \"10%\"", "within = \"20%\""), Vec::<String>::new());
    let with_scenario = |text: &str| {
        let files = [Source::new("call.toml", text)];
        let study = load("test-1999", &Source::new("study.toml", STUDY), &files);
        not_covered(&study.unwrap_or_else(|mistakes| panic!("{mistakes}"))).len()
    };
    assert_eq!(with_scenario(&format!("# A comment.\n{SCENARIO}")), 0);
    assert_eq!(with_scenario(&SCENARIO.replace("1 s", "2 s")), 4);
}

#[test]
fn a_metric_that_is_computed_otherwise_runs_again() {
    let with_metric = |by: &str| {
        let metric =
            format!("[metric]\nhalf = {{ scaled = \"flows.call.loss_rate\", by = {by} }}\n\n[[claim]]");
        valid(&STUDY.replacen("[[claim]]", &metric, 1).replacen(
            "metric = \"flows.call.loss_rate\", c",
            "metric = \"half\", c",
            1,
        ))
    };
    let (before, selection) = (with_metric("0.5"), Selection::default());
    let mut runs: Vec<CellSamples> = samples(&before, &BEFORE);
    for sample in runs.iter_mut().flat_map(|cell| &mut cell.samples) {
        let half = sample.values["flows.call.loss_rate"] / 2.0;
        sample.values.insert("half".to_owned(), half);
    }
    let outcome = judge(&before, &selection, &runs);
    let covered = |study: &Study| {
        let earlier =
            EarlierRun::new(outcome.clone(), study, &selection).unwrap_or_else(|why| panic!("{why}"));
        selection.cells(study).into_iter().filter(|cell| earlier.covers(study, &selection, cell)).count()
    };
    assert_eq!((covered(&before), covered(&with_metric("0.6"))), (4, 2));
}

#[test]
fn a_bound_that_changed_is_judged_by_the_medians_and_counts_no_single_repetition() {
    let study = valid(&STUDY.replacen("value = 0.01", "value = 0.02", 1));
    let again = judge_with(&study, &Selection::default(), &[], Some(&earlier(&study)));
    let verdict = &again.claims[0].in_first_arena;
    assert_eq!((verdict.verdict, &verdict.holds_under[..]), (Verdict::Differs, &["slow".to_owned()][..]));
    let check = &verdict.by_assumption[0].checks[0];
    assert_eq!((check.single_hits, check.single_runs), (0, 0));
    assert_eq!(again.claims[1], kept().claims[1], "the other claim is as it was");
}

#[test]
fn the_seeds_of_an_unchanged_claim_stay_and_those_of_a_changed_one_go() {
    let mut run = kept();
    let mut other = run.clone();
    other.seed = Some(2);
    run.add_seeds(&[other]).unwrap_or_else(|why| panic!("{why}"));
    let seeds = |study: &Study| {
        let earlier = EarlierRun::new(run.clone(), study, &Selection::default());
        let earlier = earlier.unwrap_or_else(|why| panic!("{why}"));
        let again = judge_with(study, &Selection::default(), &[], Some(&earlier));
        again.claims.iter().map(|claim| claim.in_first_arena.by_seed.len()).collect::<Vec<_>>()
    };
    assert_eq!(seeds(&valid(STUDY)), [1, 1]);
    assert_eq!(seeds(&valid(&STUDY.replacen("value = 0.01", "value = 0.02", 1))), [0, 1]);
}

#[test]
fn an_earlier_run_of_something_else_is_refused() {
    let study = valid(STUDY);
    let refused = |run: Outcome, study: &Study, selection: &Selection| {
        EarlierRun::new(run, study, selection).expect_err("another run")
    };
    let selection = Selection::default();
    let emu = Selection { arenas: vec![ArenaName::Emu], ..Selection::default() };
    assert!(refused(kept(), &study, &emu).contains("--arena sim, and this run has emu"));
    let quick = Selection { is_quick: true, ..Selection::default() };
    assert!(refused(kept(), &study, &quick).contains("--quick false"));
    let other = Outcome { study: "other-2000".to_owned(), ..kept() };
    assert!(refused(other, &study, &selection).contains("the study other-2000"));
    let changes = Changes { seed: Some(2), ..Changes::default() };
    let files = [Source::new("call.toml", SCENARIO)];
    let seeded = load_with("test-1999", &Source::new("study.toml", STUDY), &files, &changes);
    let seeded = seeded.unwrap_or_else(|mistakes| panic!("{mistakes}"));
    assert!(refused(kept(), &seeded, &selection).contains("the seed of each scenario, and this run has 2"));
    assert!(refused(Outcome { valid: false, ..kept() }, &study, &selection).contains("not valid"));
    let old = Outcome { origins: std::collections::BTreeMap::new(), ..kept() };
    assert!(refused(old, &study, &selection).contains("`origins`"));
}

#[test]
fn a_figure_of_curves_is_that_of_the_earlier_run() {
    let figure = "[[figure]]\nnumber = \"7\"\ntitle = \"Queue\"\n\
                  trace = { series = \"queue\", entity = \"up\", cell = \"call-far\", seconds = [0.0, 1.0] }\n\n";
    let (study, selection) = (valid(&format!("{STUDY}\n{figure}")), Selection::default());
    let mut runs = samples(&study, &BEFORE);
    let line = TraceLine { entity: "up".to_owned(), kind: "queue".to_owned(), points: vec![(0.0, 9.0)] };
    let trace = StateTrace { lines: vec![line], ..StateTrace::default() };
    runs[1].traces.push(KeptTrace { repetition: 0, kinds: Vec::new(), trace });
    let whole = judge(&study, &selection, &runs);
    let panels_of = |run: Outcome| {
        let earlier = EarlierRun::new(run, &study, &selection).unwrap_or_else(|why| panic!("{why}"));
        let mut again = judge_with(&study, &selection, &[], Some(&earlier));
        let Drawing::Traces { panels, .. } = again.figures.remove(0).drawing else { panic!("no curves") };
        (panels[0].steps.len(), panels[0].runs.all, panels[0].is_elsewhere)
    };
    assert_eq!(panels_of(whole.clone()), (1, 6, false), "the run's directory has them");
    let other = valid(&format!("{STUDY}\n{}", figure.replace("[0.0, 1.0]", "[0.5, 1.0]")));
    let earlier = EarlierRun::new(whole.clone(), &other, &selection).unwrap_or_else(|why| panic!("{why}"));
    let far = other.cell("call-far", ArenaName::Sim, 0).expect("a cell");
    assert!(!earlier.covers(&other, &selection, far), "other seconds are drawn");
    assert_eq!(panels_of(whole.for_pages()), (0, 6, true), "a kept run has none");
}

#[test]
fn a_claim_that_compares_arenas_needs_the_base_alone_of_a_run_in_one_arena() {
    let claim = "[[claim]]\nid = \"E1\"\ntext = \"Alike\"\npublished = \"p\"\nexpected = \"reproduced\"\nwhy = \"w\"\n\
                 basis = \"predicted\"\ncheck = [{ name = \"p50\", metric = \"flows.call.rtp_jitter_ms\", cell = \"call-far\", agree = \"5%\" }]\n";
    let (study, selection) = (valid(&format!("{STUDY}\n{claim}")), Selection::default());
    let mut runs = samples(&study, &BEFORE);
    for sample in runs.iter_mut().flat_map(|cell| &mut cell.samples) {
        sample.values.insert("flows.call.rtp_jitter_ms".to_owned(), 1.0);
    }
    let run = judge(&study, &selection, &runs).for_pages();
    let earlier = EarlierRun::new(run, &study, &selection).unwrap_or_else(|why| panic!("{why}"));
    assert!(selection.cells(&study).into_iter().all(|cell| earlier.covers(&study, &selection, cell)));
}
