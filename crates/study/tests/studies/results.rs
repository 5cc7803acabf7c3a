//! The runs that are committed in `studies/NAME/results/`: they are of the studies as they stand, and a short
//! one says no more than the whole one.

use std::io::Read;
use std::path::PathBuf;

use flate2::read::GzDecoder;
use talkpath_study::{ArenaName, Changes, Outcome, Selection, Study, Verdict, embedded, load_with};

fn kept(name: &str, length: &str) -> Option<Outcome> {
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../studies"));
    let path = folder.join(name).join("results").join(format!("{length}.json.gz"));
    let file = std::fs::File::open(&path).ok()?;
    let mut text = String::new();
    let read = GzDecoder::new(file).read_to_string(&mut text);
    read.unwrap_or_else(|why| panic!("{}: {why}", path.display()));
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
        let runs: Vec<_> = ["full", "quick", "emu", "campaign"]
            .into_iter()
            .filter_map(|file| kept(&study.name, file))
            .collect();
        let is_own = study.source == "this repository";
        assert!(!runs.is_empty() || is_own, "{} has no committed run", study.name);
        for run in runs {
            let differences = differences(&study, &run);
            assert!(differences.is_empty(), "run the study again:\n{}", differences.join("\n"));
            found += run.claims.len();
        }
    }
    assert!(found >= 49, "{found} claims");
}

#[test]
fn a_committed_run_in_real_time_is_valid_and_has_its_day() {
    let runs: Vec<_> = studies().iter().filter_map(|study| kept(&study.name, "emu")).collect();
    assert!(!runs.is_empty());
    for run in runs {
        assert_eq!(run.arenas, [ArenaName::Emu], "{}", run.study);
        assert!(run.valid && run.day.is_some(), "{}: valid: {}, day: {:?}", run.study, run.valid, run.day);
    }
}

/// In what `run` is not a run of `study` as it stands: what one of them has and the other has not, and what
/// both have and differs.
fn differences(study: &Study, run: &Outcome) -> Vec<String> {
    let place = format!("{}, quick: {}, in {}", study.name, run.quick, run.arena);
    let mut differences = Vec::new();
    let mut compare = |what: &str, run: Vec<String>, study: Vec<String>| {
        let only = |these: &[String], those: &[String]| -> Vec<String> {
            these.iter().filter(|it| !those.contains(it)).cloned().collect()
        };
        if run != study {
            let (run_only, study_only) = (only(&run, &study), only(&study, &run));
            differences.push(format!(
                "{place}: {what}: the run alone has {run_only:#?}, the study alone {study_only:#?}, or their order differs"
            ));
        }
    };
    let selection = Selection { is_quick: run.quick, arenas: run.arenas.clone(), claim_ids: Vec::new() };
    compare("name", vec![run.study.clone()], vec![study.name.clone()]);
    compare("seed and keys set", vec![format!("{:?} {:?}", run.seed, run.set)], vec!["None []".to_owned()]);
    let sets = study.assumptions.iter().map(|it| format!("{}: {}", it.name, it.text));
    compare("sets", run.assumptions.iter().map(|it| format!("{}: {}", it.0, it.1)).collect(), sets.collect());
    let cells = selection.cells(study).into_iter().filter(|cell| cell.assumption == 0);
    let mut own: Vec<String> = cells.map(|cell| format!("{} in {}", cell.name, cell.arena)).collect();
    let mut ran: Vec<String> = run.cells.iter().map(|it| format!("{} in {}", it.cell, it.arena)).collect();
    // A campaign may lack measurements, or have some that the machine disturbed.
    own.retain(|name| run.arena != ArenaName::Campaign || ran.contains(name));
    own.sort();
    ran.sort();
    compare("cells under the base", ran, own);
    let rows = run.tables.iter().flat_map(|table| &table.rows).map(|it| format!("{:?}", it.published_row));
    // A table of which no cell ran is left out.
    let ran = |name: &str| run.cells.iter().any(|it| it.cell == name);
    let tables = study.tables.iter().filter(|table| table.rows.iter().any(|row| ran(&row.cell)));
    let own = tables.flat_map(|table| &table.rows).map(|row| format!("{row:?}"));
    compare("printed figures", rows.collect(), own.collect());
    let ids = run.claims.iter().map(|claim| claim.id.clone());
    compare("claims", ids.collect(), study.claims.iter().map(|claim| claim.id.clone()).collect());
    for (of, claim) in run.claims.iter().zip(&study.claims) {
        let texts = vec![of.claim.clone(), of.published.clone()];
        compare(&claim.id, texts, vec![claim.text.clone(), claim.published.clone()]);
        if !of.in_first_arena.left_out {
            let own = claim.expected.get(&run.arena).map(ToString::to_string);
            compare(
                &format!("{}, expected", claim.id),
                vec![of.in_first_arena.expected.to_string()],
                own.into_iter().collect(),
            );
        }
        let own = selection.checks(claim, &selection.arenas_of(claim)).judged;
        let own = own.into_iter().map(|it| format!("{} {:?} {:?}", it.name, it.kind, it.basis));
        let own: Vec<String> = own.collect();
        for under in &of.in_first_arena.by_assumption {
            let judged = under.checks.iter().map(|it| format!("{} {:?} {:?}", it.name, it.must, it.basis));
            compare(
                &format!("{}, checks under {}", claim.id, under.assumption),
                judged.collect(),
                own.clone(),
            );
        }
        let is_judged = !matches!(of.in_first_arena.verdict, Verdict::NotTested | Verdict::Disturbed);
        if of.in_first_arena.by_assumption.is_empty() && is_judged {
            compare(&format!("{}, checks", claim.id), Vec::new(), own);
        }
    }
    differences
}

/// What the test above would say if it had to, in both directions.
#[test]
fn what_only_the_study_or_only_the_run_has_is_a_difference() {
    let study = studies().into_iter().find(|study| study.name == "foderaro-1995").expect("built in");
    let run = kept(&study.name, "quick").expect("a committed run");
    let says = |what: &str, study: &Study, run: &Outcome| {
        let found = differences(study, run);
        assert!(found.len() == 1 && found[0].contains(what), "{what}: {found:?}");
    };
    let at = run
        .claims
        .iter()
        .position(|claim| !claim.in_first_arena.by_assumption.is_empty())
        .expect("one judged");
    let id = study.claims[at].id.clone();
    let mut changed = run.clone();
    changed.claims[at].in_first_arena.by_assumption[0].checks.pop();
    says(&format!("{id}, checks under"), &study, &changed);
    let mut changed = study.clone();
    let last = changed.claims[at].checks.last().expect("a check").clone();
    changed.claims[at].checks.push(last);
    assert!(!differences(&changed, &run).is_empty(), "a check that did not run");
    let mut changed = run.clone();
    changed.cells.pop();
    says("cells under the base", &study, &changed);
    let mut changed = run.clone();
    changed.claims.pop();
    says("claims", &study, &changed);
    let mut changed = study.clone();
    changed.claims.pop();
    says("claims", &changed, &run);
    let mut changed = run;
    changed.assumptions.pop();
    says("sets", &study, &changed);
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
    use talkpath_study::Standing;
    let name = "foderaro-1995";
    let (Some(quick), Some(full)) = (kept(name, "quick"), kept(name, "full")) else { panic!("{name}") };
    let with = |outcome: &Outcome, verdict, standing| {
        let mut outcome = outcome.clone();
        outcome.claims[0].in_first_arena.verdict = verdict;
        outcome.claims[0].in_first_arena.standing = standing;
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
    other.claims[0].in_first_arena.fails_under = vec!["host-jitter".to_owned()];
    let mut hit = with(&quick, Verdict::Differs, Some(Standing::OnlyUnder));
    hit.claims[0].in_first_arena.holds_under = vec!["host-jitter".to_owned()];
    assert_eq!(better(&hit, &other), 1);
    hit.claims[0].in_first_arena.checks_left_out = 1;
    assert_eq!(better(&hit, &other), 0);
}

#[test]
fn a_verdict_that_another_seed_contradicts_is_not_robust() {
    use talkpath_study::Standing;
    let Some(first) = kept("foderaro-1995", "full") else { panic!("no committed run") };
    let mut other = first.clone();
    other.seed = Some(2);
    let mut same = first.clone();
    same.add_seeds(&[other.clone()]).unwrap_or_else(|why| panic!("{why}"));
    assert!(same.claims.iter().all(|claim| claim.in_first_arena.by_seed.iter().any(|it| it.seed == 2)));
    assert_eq!(same.claims[0].in_first_arena.standing, first.claims[0].in_first_arena.standing);
    other.claims[0].in_first_arena.verdict = Verdict::Differs;
    let mut changed = first.clone();
    changed.add_seeds(&[other.clone()]).unwrap_or_else(|why| panic!("{why}"));
    assert_eq!(changed.claims[0].in_first_arena.standing, Some(Standing::Fragile));
    let mut weaker = first.clone();
    weaker.seed = Some(3);
    (weaker.claims[1].in_first_arena.verdict, weaker.claims[1].in_first_arena.standing) =
        (first.claims[1].in_first_arena.verdict, Some(Standing::Fragile));
    changed.add_seeds(&[weaker]).unwrap_or_else(|why| panic!("{why}"));
    assert_eq!(changed.claims[1].in_first_arena.standing, Some(Standing::Fragile));
    assert_eq!(first.changes(&other).map(|all| all.len()), Ok(1));
    other.quick = true;
    assert!(changed.add_seeds(&[other]).is_err_and(|why| why.contains("--quick")));
    assert!(changed.add_seeds(&[first]).is_err());
}

#[test]
fn two_runs_of_one_arena_each_judge_what_compares_arenas() {
    let mut judged = 0;
    for study in studies() {
        let (Some(mut sim), Some(emu)) = (kept(&study.name, "full"), kept(&study.name, "emu")) else {
            continue;
        };
        let before = sim.clone();
        talkpath_study::judge_across(&mut sim, &emu);
        for (claim, old) in sim.claims.iter().zip(&before.claims) {
            let verdict = &claim.in_first_arena;
            if !study.claims.iter().any(|it| it.id == claim.id && it.compares_arenas()) {
                assert_eq!(claim, old, "{} compares no arenas", claim.id);
                continue;
            }
            judged += 1;
            assert_eq!(verdict.arena, "sim,emu", "{}/{}", study.name, claim.id);
            assert!(matches!(verdict.verdict, Verdict::Reproduced | Verdict::Differs), "{verdict:?}");
            let checks = &verdict.by_assumption[0].checks;
            assert_eq!(checks.len(), old.in_first_arena.not_judged.len(), "{}", claim.id);
            for check in checks {
                let [model, measured] = check.values.as_slice() else { panic!("{check:?}") };
                assert_eq!((model.arena, measured.arena), (ArenaName::Sim, ArenaName::Emu));
                // Of nothing that was measured there is no share.
                let off = (measured.median != 0.0)
                    .then(|| (model.median - measured.median) / measured.median.abs());
                assert_eq!(check.figure, off, "{check:?}");
            }
        }
        // A run in the same arena compares nothing.
        let mut again = before.clone();
        talkpath_study::judge_across(&mut again, &before);
        assert_eq!(again, before);
    }
    assert!(judged >= 4, "{judged} claims compare arenas");
}
