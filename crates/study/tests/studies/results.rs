//! The runs that are committed in `studies/NAME/results/`: they are of the studies as they stand, and a short
//! one says no more than the whole one.

use std::collections::BTreeSet;
use std::path::PathBuf;

use talkpath_study::{ArenaName, Changes, Outcome, Study, embedded, load_with};

#[expect(clippy::disallowed_methods, reason = "a test reads what is committed")]
fn kept(name: &str, length: &str) -> Option<Outcome> {
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../studies"));
    let path = folder.join(name).join("results").join(format!("{length}.json"));
    let text = std::fs::read_to_string(&path).ok()?;
    Some(serde_json::from_str(&text).unwrap_or_else(|why| panic!("{}: {why}", path.display())))
}

fn studies() -> Vec<Study> {
    let load = |entry: &talkpath_study::Embedded| {
        load_with(entry.name, &entry.source(), &entry.files(), &Changes::default())
            .unwrap_or_else(|mistakes| panic!("{mistakes}"))
    };
    embedded().iter().map(load).collect()
}

#[test]
fn every_publication_has_a_committed_run_and_it_is_of_the_study_as_it_stands() {
    let mut found = 0;
    for study in studies() {
        let runs: Vec<_> =
            ["full", "quick"].into_iter().filter_map(|length| kept(&study.name, length)).collect();
        let is_own = study.source == "this repository";
        assert!(!runs.is_empty() || is_own, "{} has no committed run", study.name);
        for run in runs {
            assert_eq!(run.study, study.name);
            assert!(run.set.is_empty() && run.seed.is_none(), "{}: the scenarios' own seeds", study.name);
            let length = if run.quick { "quick" } else { "full" };
            for claim in &study.claims {
                let place = format!("{}/{} in {length}.json: run the study again", study.name, claim.id);
                let of = run.claims.iter().find(|it| it.id == claim.id);
                let of = of.unwrap_or_else(|| panic!("{place}: no such claim"));
                let texts = (&claim.text, &claim.published);
                assert_eq!((&of.claim, &of.published), texts, "{place}");
                let expected = claim.expected.get(&ArenaName::Sim);
                assert!(expected.is_none_or(|it| *it == of.base.expected) || of.base.left_out, "{place}");
                let names: BTreeSet<&str> = claim.checks.iter().map(|check| check.name.as_str()).collect();
                let judged = of.base.by_assumption.iter().flat_map(|under| &under.checks);
                for check in judged {
                    assert!(names.contains(check.name.as_str()), "{place}: no check `{}`", check.name);
                    let own = claim.checks.iter().filter(|it| it.name == check.name);
                    let is_same = own.into_iter().any(|it| it.kind == check.must && it.basis == check.basis);
                    assert!(is_same, "{place}: `{}` asks for something else", check.name);
                }
            }
            found += run.claims.len();
        }
    }
    assert!(found >= 49, "{found} claims");
}

#[test]
fn a_committed_short_run_says_no_more_than_the_whole_one() {
    let mut pairs = 0;
    for study in studies() {
        let (Some(quick), Some(full)) = (kept(&study.name, "quick"), kept(&study.name, "full")) else {
            continue;
        };
        assert!(quick.quick && !full.quick, "{}", study.name);
        let better: Vec<&str> = quick.better_than(&full).collect();
        assert!(better.is_empty(), "{}: --quick says more of {}", study.name, better.join(", "));
        let changes = full.changes(&quick).unwrap_or_else(|why| panic!("{why}"));
        let wrong: Vec<_> = changes.into_iter().filter(|change| change.contradicts).collect();
        assert!(wrong.is_empty(), "{}: {wrong:?}", study.name);
        pairs += 1;
    }
    assert!(pairs >= 2, "{pairs} studies with both lengths");
}

/// What the test above would say if it had to.
#[test]
fn a_short_run_that_says_more_is_found() {
    use talkpath_study::{Standing, Verdict};
    let name = "foderaro-1995";
    let (Some(quick), Some(full)) = (kept(name, "quick"), kept(name, "full")) else { panic!("{name}") };
    let with = |outcome: &Outcome, verdict, standing| {
        let mut outcome = outcome.clone();
        outcome.claims[0].base.verdict = verdict;
        outcome.claims[0].base.standing = standing;
        outcome
    };
    let better = |quick: &Outcome, full: &Outcome| quick.better_than(full).count();
    let whole = with(&full, Verdict::Differs, Some(Standing::Robust));
    assert_eq!(better(&with(&quick, Verdict::Reproduced, None), &whole), 1);
    assert_eq!(better(&with(&quick, Verdict::PartlyJudged, None), &whole), 0);
    let fragile = with(&full, Verdict::Reproduced, Some(Standing::Fragile));
    assert_eq!(better(&with(&quick, Verdict::Reproduced, Some(Standing::Robust)), &fragile), 1);
    assert_eq!(better(&with(&quick, Verdict::Reproduced, None), &fragile), 0);
    assert_eq!(better(&with(&quick, Verdict::Reproduced, None), &with(&full, Verdict::Consistent, None)), 1);
    let mut other = with(&full, Verdict::Differs, None);
    other.claims[0].base.fails_under = vec!["host-jitter".to_owned()];
    let mut hit = with(&quick, Verdict::Differs, Some(Standing::OnlyUnder));
    hit.claims[0].base.holds_under = vec!["host-jitter".to_owned()];
    assert_eq!(better(&hit, &other), 1);
    hit.claims[0].base.checks_left_out = 1;
    assert_eq!(better(&hit, &other), 0);
}

#[test]
fn a_verdict_that_another_seed_contradicts_is_not_robust() {
    use talkpath_study::{Standing, Verdict};
    let Some(first) = kept("foderaro-1995", "full") else { panic!("no committed run") };
    let mut other = first.clone();
    other.seed = Some(2);
    let mut same = first.clone();
    same.add_seeds(&[other.clone()]).unwrap_or_else(|why| panic!("{why}"));
    assert!(same.claims.iter().all(|claim| claim.base.by_seed.iter().any(|it| it.seed == 2)));
    assert_eq!(same.claims[0].base.standing, first.claims[0].base.standing);
    other.claims[0].base.verdict = Verdict::Differs;
    let mut changed = first.clone();
    changed.add_seeds(&[other.clone()]).unwrap_or_else(|why| panic!("{why}"));
    assert_eq!(changed.claims[0].base.standing, Some(Standing::Fragile));
    let mut weaker = first.clone();
    weaker.seed = Some(3);
    (weaker.claims[1].base.verdict, weaker.claims[1].base.standing) =
        (first.claims[1].base.verdict, Some(Standing::Fragile));
    changed.add_seeds(&[weaker]).unwrap_or_else(|why| panic!("{why}"));
    assert_eq!(changed.claims[1].base.standing, Some(Standing::Fragile));
    assert_eq!(first.changes(&other).map(|all| all.len()), Ok(1));
    other.quick = true;
    assert!(changed.add_seeds(&[other]).is_err_and(|why| why.contains("--quick")));
    assert!(changed.add_seeds(&[first]).is_err());
}
