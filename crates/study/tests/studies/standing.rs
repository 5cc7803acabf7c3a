//! What the other assumption sets make of a verdict.

use talkpath_study::{ArenaName, Selection, Standing, Study, Verdict, format_requirement, judge};

use super::{ONE, ONE_AGAIN, STUDY, TWO, first_verdict, outcome, read, samples, samples_in, valid};

/// The medians' interval reaches over the bounds of `C1`.
const WIDE: [f64; 6] = [0.010, 0.017, 0.004, 0.0105, 0.0095, 0.010];

/// The study, whose first claim also has a check of the near cell that holds.
fn with_near_check() -> Study {
    let near = "}, { name = \"near\", metric = \"flows.call.loss_rate\", cell = \"call-near\", at_most = 0.5, one_sided = \"none\" }]";
    valid(&STUDY.replacen("}]", near, 1))
}

#[test]
fn a_set_that_changes_no_run_of_a_claim_s_cells_supports_nothing() {
    let found = outcome(&[("call-far", "base", ONE), ("call-far", "slow", ONE)]);
    let first = &found.claims[0].in_first_arena;
    assert_eq!((first.verdict, first.standing), (Verdict::Reproduced, None));
    assert_eq!(first.under, "holds under base; slow changes nothing here");
    assert_eq!(
        (&first.holds_under[..], &first.without_effect[..]),
        (&["base".to_owned()][..], &["slow".to_owned()][..])
    );
}

#[test]
fn a_set_within_whose_intervals_the_answer_changes_neither_holds_nor_fails() {
    let found = outcome(&[("call-far", "base", ONE), ("call-far", "slow", WIDE)]);
    let first = &found.claims[0].in_first_arena;
    assert!(first.by_assumption[1].checks[0].is_undecided());
    assert_eq!((first.verdict, first.standing), (Verdict::Reproduced, None));
    assert_eq!(first.under, "holds under base; undecided under slow");
    let found = outcome(&[("call-far", "base", WIDE), ("call-far", "slow", ONE)]);
    let first = &found.claims[0].in_first_arena;
    assert_eq!((first.verdict, first.standing), (Verdict::Reproduced, None));
    assert_eq!(first.under, "holds under base (undecided) and slow");
    // What fails for certain elsewhere is no less fragile for that.
    let found = outcome(&[("call-far", "base", WIDE), ("call-far", "slow", TWO)]);
    assert_eq!(found.claims[0].in_first_arena.standing, Some(Standing::Fragile));
}

#[test]
fn a_set_that_runs_some_of_the_cells_can_make_a_claim_fail() {
    let study = with_near_check();
    let under = |far: [f64; 6]| {
        let runs = [("call-near", "base", ONE), ("call-far", "base", ONE), ("call-far", "slow", far)];
        first_verdict(&study, &runs)
    };
    let found = under(TWO);
    assert_eq!((found.verdict, found.standing), (Verdict::Reproduced, Some(Standing::Fragile)));
    assert_eq!(found.under, "holds under base alone; fails under slow");
    // That it holds there takes the other cells too.
    assert_eq!((under(ONE_AGAIN).standing, under(ONE_AGAIN).holds_under.len()), (None, 1));
}

#[test]
fn a_set_may_name_the_cells_that_run_under_it_and_how_often() {
    let with_cells = |cells: &str| {
        STUDY.replacen("text = \"Slower.\"", &format!("text = \"Slower.\"\ncells = {cells}"), 1)
    };
    let study = valid(&with_cells("[\"*-far\"]"));
    let selection = Selection::default();
    let slow = selection.cells(&study).into_iter().filter(|cell| cell.assumption == 1);
    assert_eq!(slow.map(|cell| cell.name.as_str()).collect::<Vec<_>>(), ["call-far"]);
    let repetitions = |keys: &str| {
        let study = valid(&with_cells(keys));
        selection
            .cells(&study)
            .iter()
            .map(|cell| (cell.assumption, cell.full_runs.repeat))
            .collect::<Vec<_>>()
    };
    assert_eq!(repetitions("[\"*-far\"]\nrepeat = 4"), [(0, 6), (0, 6), (1, 4)]);
    assert_eq!(repetitions("[\"*-far\"]\nrepeat = 40"), [(0, 6), (0, 6), (1, 6)], "at most the cell's");
    let wrong = read(&with_cells("[\"*-far\", \"call-fat\"]")).expect_err("a mistake").to_string();
    assert!(wrong.contains("no cell is called \"call-fat\"") && wrong.contains("call-far"), "{wrong}");
}

#[test]
fn a_check_that_fails_under_the_base_decides_whatever_another_one_lacks() {
    let study = with_near_check();
    let verdict = |far: [f64; 6]| {
        let runs = samples(&study, &[("call-far", "base", far)]);
        judge(&study, &Selection::default(), &runs).claims.remove(0).in_first_arena.verdict
    };
    assert_eq!((verdict(TWO), verdict(ONE)), (Verdict::Differs, Verdict::NotTested));
}

#[test]
fn a_set_that_changes_none_of_those_cells_that_it_runs_supports_nothing() {
    let study = with_near_check();
    let runs = [("call-near", "base", ONE), ("call-far", "base", TWO), ("call-far", "slow", TWO)];
    let found = first_verdict(&study, &runs);
    assert_eq!((found.verdict, found.standing), (Verdict::Differs, None));
    assert_eq!(found.without_effect, ["slow"]);
}

#[test]
fn an_order_whose_cells_did_not_run_names_both_sides() {
    let order = "}, { name = \"order\", metric = \"flows.call.loss_rate\", falling = [\"call-near\", \"call-far\"] }]";
    let study = valid(&STUDY.replacen("}]", order, 1));
    let found = first_verdict(&study, &[]);
    assert_eq!(found.verdict, Verdict::NotTested);
    let asked: Vec<String> = found.not_judged.iter().map(format_requirement).collect();
    assert_eq!(asked, ["1 % ± 10 %", "call-far less than call-near"]);
}

#[test]
fn a_claim_that_was_not_tested_says_what_it_would_compare() {
    let found = outcome(&[("call-near", "base", ONE)]);
    let first = &found.claims[0].in_first_arena;
    assert_eq!((first.verdict, first.by_assumption.len()), (Verdict::NotTested, 0));
    let asked: Vec<String> = first.not_judged.iter().map(format_requirement).collect();
    assert_eq!(asked, ["1 % ± 10 %"]);
    let run = outcome(&[("call-far", "base", ONE)]);
    assert!(run.claims[0].in_first_arena.not_judged.is_empty());
}

#[test]
fn a_set_whose_cells_ran_and_give_no_figure_is_not_called_unfinished() {
    let of_one = "cell = \"call-far\", value = 0.01, within = \"10%\"";
    let ratio = "ratio = [\"call-far\", \"call-near\"], between = [1.5, 2.5]";
    let study = valid(&STUDY.replacen(of_one, ratio, 1));
    let judged = |near: [[f64; 6]; 2]| {
        let runs = [
            ("call-near", "base", near[0]),
            ("call-far", "base", TWO),
            ("call-near", "slow", near[1]),
            ("call-far", "slow", TWO),
        ];
        let mut found = judge(&study, &Selection::default(), &samples(&study, &runs));
        assert!(found.valid, "every cell ran");
        found.claims.remove(0).in_first_arena
    };
    let base_has_none = judged([[0.0; 6], ONE]);
    assert_eq!(base_has_none.verdict, Verdict::NotTested);
    let why = "loss: its cells ran, and give no figure: a division by zero, or no spread";
    assert!(base_has_none.why.starts_with(why), "{}", base_has_none.why);
    assert_eq!(base_has_none.under, "base not judged; holds under slow; 1 more set gives no figure");
    // The standing stays open: the set says nothing.
    let other_has_none = judged([ONE, [0.0; 6]]);
    assert_eq!((other_has_none.verdict, other_has_none.standing), (Verdict::Reproduced, None));
    assert_eq!(other_has_none.under, "holds under base; 1 more set gives no figure");
    for (found, set) in [(base_has_none, "base"), (other_has_none, "slow")] {
        assert!(found.sets_not_run.is_empty(), "{:?}", found.sets_not_run);
        assert_eq!(found.sets_without_figure, [set]);
    }
}

#[test]
fn a_claim_is_consistent_where_all_checks_that_are_judged_were_fitted() {
    let two = "within = \"10%\", basis = \"fitted\" }, { name = \"near\", metric = \"flows.call.loss_rate\", \
               cell = \"call-near\", at_most = 0.5, one_sided = \"none\", arenas = [\"emu\"] }]";
    let study = STUDY.replacen("within = \"10%\" }]", two, 1);
    let study = valid(&study);
    let verdict = |arena| {
        let selection = Selection { arenas: vec![arena], ..Selection::default() };
        let runs = [("call-near", "base", ONE), ("call-far", "base", ONE)];
        let all = samples_in(&study, arena, &selection, &runs);
        judge(&study, &selection, &all).claims.remove(0).in_first_arena.verdict
    };
    assert_eq!(verdict(ArenaName::Sim), Verdict::Consistent);
    assert_eq!(verdict(ArenaName::Emu), Verdict::Reproduced);
}
