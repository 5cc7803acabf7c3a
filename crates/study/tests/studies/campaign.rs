//! Which measurements of a campaign stand for which cells, and what is wrong with an entry that says so.

use talkpath_study::{ArenaName, Selection, Study};

use super::{STUDY, refused, valid};

const CAMPAIGN: &str = r#"
[[campaign]]
cell = "call-{delay}"
each = { "delay/host" = ["near/a", "far/b"] }
near = "hub"
far = "{host}"
measure = "m"
day = "2"
flows = { call = "udp" }
"#;

/// The study with C1 judged in a campaign, too.
fn text() -> String {
    let judged = r#"expected = { sim = "reproduced", emu = "reproduced", campaign = "reproduced" }"#;
    STUDY.replacen(r#"expected = "reproduced""#, judged, 1) + CAMPAIGN
}

fn study() -> Study {
    valid(&text())
}

#[track_caller]
fn says(from: &str, to: &str, what: &str) {
    let text = text();
    assert!(text.contains(from), "{from}");
    let said = refused(&text.replacen(from, to, 1));
    assert!(said.contains(what), "{said}");
}

#[test]
fn a_campaign_s_cells_are_judged_and_run_nowhere() {
    let study = study();
    let named: Vec<_> = study.campaign.iter().map(|it| (it.cell.as_str(), it.far.as_str(), it.day)).collect();
    assert_eq!(named, [("call-near", "a", Some(2)), ("call-far", "b", Some(2))]);
    let claim = &study.claims[0];
    assert!(claim.arenas.contains(&ArenaName::Campaign));
    assert!(!study.claims[1].arenas.contains(&ArenaName::Campaign), "its expectation does not name it");
    let in_campaign = Selection { arenas: vec![ArenaName::Campaign], ..Selection::default() };
    let cells: Vec<_> = in_campaign.cells(&study).iter().map(|cell| cell.name.clone()).collect();
    assert_eq!(cells, ["call-far"], "what C1 reads");
    let elsewhere = Selection::default().cells(&study);
    assert!(elsewhere.iter().all(|cell| cell.arena == ArenaName::Sim));
}

#[test]
fn what_a_campaign_s_entry_has_wrong_is_said_at_its_place() {
    says("\"call-{delay}\"\neach", "\"call-{delay}x\"\neach", "no cell called \"call-nearx\"");
    says("\"far/b\"", "\"near/b\"", "duplicate cell \"call-near\"");
    says("[\"near/a\", \"far/b\"]", "[\"near/a\", \"far\"]", "between slashes: found 1, expected 2");
    for (from, to, key) in [
        ("far = \"{host}\"", "far = \"{hots}\"", "campaign.far"),
        ("near = \"hub\"", "near = \"{hots}\"", "campaign.near"),
        ("measure = \"m\"", "measure = \"{hots}\"", "campaign.measure"),
        ("call = \"udp\"", "call = \"{hots}\"", "campaign.flows"),
    ] {
        says(from, to, &format!("{key}: \"{{hots}}\": `each` has no axis called \"hots\""));
        says(from, to, "there are: delay, host");
    }
    says("day = \"2\"", "day = \"0\"", "found \"0\", expected a day from 1");
    says("flows = { call", "flows = { cal", "no flow called \"cal\"");
    says("[\"near/a\", \"far/b\"]", "[\"near/a\"]", "no [[campaign]] measures \"call-far\"");
    says(
        "quick = { repeat = 2",
        "arena.campaign = { repeat = 1 }\nquick = { repeat = 2",
        "by a file of its own",
    );
    says(
        "within = \"10%\" }",
        "within = \"10%\", arenas = [\"live\"] }",
        "found \"live\", expected one of sim, emu, campaign",
    );
    let alone = "arenas = [\"sim\", \"campaign\"]\nexpected = { sim";
    let text = text().replacen("expected = { sim", alone, 1);
    let text = text.replacen("within = \"10%\" }", "within = \"10%\", arenas = [\"emu\"] }", 1);
    let said = refused(&text);
    assert!(said.contains("the claim is not judged in emu"), "{said}");
}
