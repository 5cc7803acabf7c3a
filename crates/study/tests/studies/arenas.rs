//! How a study judges its claims in each arena, and what the shorter run of an arena decides.

use super::*;

fn with_arenas() -> Study {
    valid(&format!("{STUDY}{ARENAS}"))
}

#[test]
fn an_arena_has_its_own_shorter_form_under_its_own_sets() {
    let study = with_arenas();
    let far = study.cell("call-far", ArenaName::Emu, 0).unwrap();
    let quick = far.quick_runs.as_ref().unwrap();
    assert_eq!((far.full_runs.repeat, far.full_runs.scenario.duration.as_millis()), (3, 500));
    assert_eq!((quick.repeat, quick.scenario.duration.as_millis()), (1, 200));
    assert_eq!(study.cell("call-far", ArenaName::Emu, 1), None);
    let sim = study.cell("call-far", ArenaName::Sim, 0).unwrap();
    assert_eq!((sim.full_runs.repeat, sim.full_runs.scenario.duration.as_millis()), (6, 1000));
    assert_eq!(sim.kept, Kept::default());
    assert_eq!(sim.quick_runs.as_ref().unwrap().repeat, 2);
}

#[test]
fn claims_are_judged_in_each_arena_and_between_them() {
    let study = with_arenas();
    let selection = Selection { arenas: vec![ArenaName::Sim, ArenaName::Emu], ..Selection::default() };
    let emu_far = [0.0207, 0.0207, 0.0207, 0.0, 0.0, 0.0];
    let mut all = samples(&study, &[("call-near", "base", ONE), ("call-far", "base", TWO)]);
    all.extend(samples_in(
        &study,
        ArenaName::Emu,
        &selection,
        &[("call-near", "base", TWO), ("call-far", "base", emu_far)],
    ));
    let found = judge(&study, &selection, &all);
    let verdict = |id: usize| {
        let claim = &found.claims[id];
        claim.verdicts().map(|it| (it.arena.as_str(), it.verdict)).collect::<Vec<_>>()
    };
    assert_eq!(verdict(2), [("sim,emu", Verdict::Reproduced)]);
    let off = found.claims[2].in_first_arena.by_assumption[0].checks[0].figure.unwrap();
    assert!((off - (0.02 / 0.0207 - 1.0)).abs() < 1e-12);
    assert_eq!(verdict(3), [("sim", Verdict::Reproduced), ("emu", Verdict::Differs)]);
    let text = &found.claims[3].in_other_arenas[0].why;
    assert!(text.contains("ratio: 1.035") && text.contains("1.9 to 2.1"), "{text}");
    // With the simulator alone a comparison of arenas is left out, and no disagreement.
    let alone = judge(&study, &Selection::default(), &all);
    let third = &alone.claims[2].in_first_arena;
    assert_eq!((third.verdict, third.left_out), (Verdict::NotTested, true));
    assert!(third.why.contains("--arena sim,emu"), "{}", third.why);
    assert!(alone.unexpected().all(|(claim, _)| claim.id != "C3"));
}

#[test]
fn the_shorter_run_judges_a_claim_by_the_checks_that_it_has_in_an_arena() {
    let text = format!("{STUDY}{ARENAS}").replacen("within = \"10%\" }]", TWO_CHECKS, 1);
    let study = valid(&text);
    let verdict = |arena, quick| {
        let selection = Selection { arenas: vec![arena], is_quick: quick, claim_ids: vec!["C1".to_owned()] };
        let all =
            samples_in(&study, arena, &selection, &[("call-near", "base", TWO), ("call-far", "base", ONE)]);
        let cells: Vec<_> = selection.cells(&study).iter().map(|cell| cell.name.clone()).collect();
        let found = judge(&study, &selection, &all).claims.remove(0).in_first_arena;
        (found.verdict, found.reproduced.contains("1 more"), cells.contains(&"call-near".to_owned()))
    };
    assert_eq!(verdict(ArenaName::Sim, true), (Verdict::Differs, false, true));
    assert_eq!(verdict(ArenaName::Emu, true), (Verdict::PartlyJudged, true, false));
    assert_eq!(verdict(ArenaName::Emu, false), (Verdict::Differs, false, true));
    // Where it has none of them, the claim is left out.
    let none = text.replacen(
        "cell = \"call-far\", value = 0.01",
        "cell = \"call-far\", quick = [], value = 0.01",
        1,
    );
    let none = valid(&none);
    let selection =
        Selection { arenas: vec![ArenaName::Emu], is_quick: true, claim_ids: vec!["C1".to_owned()] };
    let found = judge(&none, &selection, &[]).claims.remove(0).in_first_arena;
    assert_eq!((found.verdict, found.left_out), (Verdict::NotTested, true));
}

#[test]
fn a_shorter_run_that_leaves_a_check_out_decides_nothing_in_favour() {
    let with = |expected: &str| {
        let text = STUDY.replacen("within = \"10%\" }]", NOT_IN_QUICK, 1);
        let text = text.replacen("expected = \"reproduced\"", &format!("expected = \"{expected}\""), 1);
        valid(&text)
    };
    let judged = |study: &Study, far: [f64; 6]| {
        let selection =
            Selection { is_quick: true, claim_ids: vec!["C1".to_owned()], ..Selection::default() };
        let all = samples_in(study, ArenaName::Sim, &selection, &[("call-far", "base", far)]);
        judge(study, &selection, &all)
    };
    let found = judged(&with("reproduced"), ONE);
    let first = &found.claims[0].in_first_arena;
    assert_eq!((first.verdict, first.checks_left_out), (Verdict::PartlyJudged, 1));
    // It may still fail there.
    assert_eq!(first.holds_under_base, None);
    let words = "1 of 2 checks judged: holds under base; 1 more set is judged without --quick";
    assert_eq!(first.under, words);
    assert!(first.why.starts_with("--quick leaves out what decides: near. "), "{}", first.why);
    // Neither what was expected nor a disagreement with it, whichever of the two it was.
    assert_eq!(found.unexpected().count(), 0);
    assert_eq!(judged(&with("differs"), ONE).unexpected().count(), 0);
    assert_eq!(judged(&with("not-tested"), ONE).unexpected().count(), 1);
    // What fails under every set that ran is reported as before.
    let found = judged(&with("reproduced"), TWO);
    assert_eq!(found.claims[0].in_first_arena.verdict, Verdict::Differs);
    assert_eq!(found.unexpected().count(), 1);
}

#[test]
fn sets_that_the_shorter_run_leaves_out_are_counted_and_take_nothing_back() {
    let study = study();
    let judged = |quick, losses: &[(&str, &str, [f64; 6])]| {
        let selection =
            Selection { is_quick: quick, claim_ids: vec!["C1".to_owned()], ..Selection::default() };
        let all = samples_in(&study, ArenaName::Sim, &selection, losses);
        judge(&study, &selection, &all).claims.remove(0).in_first_arena
    };
    let short = judged(true, &[("call-far", "base", ONE)]);
    assert_eq!(
        (short.verdict, short.sets_left_out.as_slice()),
        (Verdict::Reproduced, ["slow".to_owned()].as_slice())
    );
    assert_eq!(short.under, "holds under base; 1 more set is judged without --quick");
    let whole = judged(false, &[("call-far", "base", ONE), ("call-far", "slow", ONE_AGAIN)]);
    assert!(whole.sets_left_out.is_empty());
    assert_eq!(whole.under, "holds under base and slow");
}
