//! What the machine did to repetitions, and what is judged of them.

use talkpath_study::{Sample, Selection, Verdict, judge};

use super::{ONE, samples, study};

#[test]
fn disturbed_repetitions_are_told_of_and_not_judged() {
    let study = study();
    let mut far = samples(&study, &[("call-far", "base", [0.01, 0.01, 0.01, 0.01, 0.5, 0.5])]);
    for sample in &mut far[0].samples[4..] {
        sample.disturbed = Some("late".to_owned());
    }
    let found = judge(&study, &Selection::default(), &far);
    let check = &found.claims[0].in_first_arena.by_assumption[0].checks[0];
    assert_eq!((check.holds, check.values[0].n, check.values[0].max), (Some(true), 4, 0.01));
    assert!(found.warnings.iter().any(|it| it.contains("call-far: 2 of 6") && it.ends_with("late")));
    // More than half of them: nothing is left to judge by.
    for sample in &mut far[0].samples[1..4] {
        sample.disturbed = Some("late".to_owned());
    }
    let found = judge(&study, &Selection::default(), &far);
    let first = &found.claims[0].in_first_arena;
    assert_eq!(first.verdict, Verdict::Disturbed);
    assert!(!found.valid && !first.left_out, "{}", first.why);
    assert!(first.why.contains("the machine disturbed"), "{}", first.why);
    // No disagreement: the other claim's cell did not run at all, and is one.
    assert_eq!(found.disturbed().map(|(claim, _)| claim.id.as_str()).collect::<Vec<_>>(), ["C1"]);
    assert_eq!(found.unexpected().map(|(claim, _)| claim.id.as_str()).collect::<Vec<_>>(), ["C2"]);
}

#[test]
fn a_figure_that_the_machine_bent_is_left_out_of_its_repetition_alone_and_in_most_of_them_has_no_verdict() {
    let study = study();
    let mut far = samples(&study, &[("call-far", "base", ONE)]);
    let bend = |sample: &mut Sample| {
        sample.bent = core::mem::take(&mut sample.values).into_keys().collect();
    };
    far[0].samples[1..3].iter_mut().for_each(bend);
    let found = judge(&study, &Selection::default(), &far);
    let check = &found.claims[0].in_first_arena.by_assumption[0].checks[0];
    assert_eq!((check.holds, check.values[0].n, check.values[0].max), (Some(true), 4, 0.01));
    assert!(
        found.warnings.iter().any(|it| it.contains("2 of 6 repetitions have no flows.call.loss_rate")),
        "{:?}",
        found.warnings
    );
    far[0].samples[3..5].iter_mut().for_each(bend);
    let found = judge(&study, &Selection::default(), &far);
    assert_eq!(
        found.claims[0].in_first_arena.verdict,
        Verdict::Disturbed,
        "{}",
        found.claims[0].in_first_arena.why
    );
    // A resumed run does them again.
    assert_eq!(far[0].samples.iter().filter(|sample| sample.is_whole()).count(), 2);
}
