//! What is refused when a study is read, and where.

use super::{ARENAS, STUDY, mistakes, read, refused, valid};

#[test]
fn a_check_that_cannot_fail_is_a_mistake() {
    let check = |check: &str| {
        mistakes("metric = \"flows.call.loss_rate\", rising = [\"call-near\", \"call-far\"]", check)
    };
    let itself =
        check("metric = \"flows.call.loss_rate\", same = [\"call-far\", \"call-far\"], within = 0.1");
    assert!(itself.contains("compares flows.call.loss_rate of \"call-far\" with itself"), "{itself}");
    for line in ["slope", "r_squared"] {
        let cells = "cells = [\"call-near\", \"call-far\", \"call-near\", \"call-far\"]";
        let x = "x = \"flows.call.loss_rate\", y = \"flows.call.loss_rate\"";
        let line = check(&format!("{line} = {{ {x}, {cells} }}, between = [0.5, 0.9]"));
        assert!(line.contains("it draws flows.call.loss_rate over itself"), "{line}");
    }
    for bound in ["at_least = 0.0", "at_most = 1.0", "between = [0.0, 1.0]", "value = 0.5, within = 0.6"] {
        let all = check(&format!("metric = \"flows.call.loss_rate\", cell = \"call-far\", {bound}"));
        assert!(all.contains("no value lies outside its bound"), "{all}");
    }
    for other in [
        "call.mos\", cell = \"call-far\", at_least = 1.0",
        // The model's rating is held at 0.
        "call.r\", cell = \"call-far\", at_least = 0.0",
        "legs.forward.bursts.density\", cell = \"call-far\", at_most = 1.0",
    ] {
        let all = check(&format!("metric = \"flows.call.{other}"));
        assert!(all.contains("no value lies outside its bound"), "{all}");
    }
    // A far clock may be behind ours.
    let offset = STUDY.replace(
        "metric = \"flows.call.loss_rate\", rising = [\"call-near\", \"call-far\"]",
        "metric = \"clock.offset_ms\", cell = \"call-far\", at_least = 0.0, one_sided = \"no more is said\"",
    );
    valid(&offset);
    // Two names for one scenario.
    let twins =
        STUDY.replace("far = { \"path.up.delay\" = \"50 ms\" }", "far = { \"path.up.delay\" = \"1 ms\" }");
    let twins = refused(&twins);
    assert!(twins.contains("the same scenario with the same seeds"), "{twins}");
}

#[test]
fn a_number_that_is_none_and_a_line_through_three_points_are_mistakes() {
    for value in ["nan", "inf", "-inf", "1e400"] {
        let told = mistakes("value = 0.01", &format!("value = {value}"));
        assert!(told.contains(&format!("found {value}, expected a finite number")), "{told}");
    }
    valid(&STUDY.replacen("value = 0.01", "value = 0.010_0", 1));
    let line = "r_squared = { x = \"flows.call.loss_rate\", y = \"flows.call.loss_rate\", cells = [\"call-near\", \"call-far\", \"call-far\"] }, at_least = 0.8";
    let told = mistakes("metric = \"flows.call.loss_rate\", rising = [\"call-near\", \"call-far\"]", line);
    assert!(told.contains("expected at least four cells"), "{told}");
}

#[test]
fn text_that_would_steer_a_terminal_is_a_mistake() {
    for sequence in [r"\u001b[2J", r"\u009b2J", r"\u0007", r"\rover"] {
        let told = mistakes("title = \"", &format!("title = \"{sequence}"));
        assert!(told.contains("title: found the control character"), "{told}");
        assert!(!told.contains(|c: char| c.is_control() && c != '\n'), "{told:?}");
    }
    let claim = mistakes("[[claim]]\n", "[[claim]]\n\"a\\u001b[2J\" = 1\n");
    assert!(claim.contains(r"found the control character '\u{1b}'"), "{claim}");
    // A long text has lines.
    read(&STUDY.replacen("title = \"", r#"title = "one\n\ttwo "#, 1)).unwrap_or_else(|it| panic!("{it}"));
}

#[test]
fn a_magnitude_has_bounds_on_both_sides_or_a_reason() {
    let of = |check: &str| {
        STUDY.replace("metric = \"flows.call.loss_rate\", rising = [\"call-near\", \"call-far\"]", check)
    };
    let delay = "metric = \"flows.call.one_way_delay_ms.p90\", cell = \"call-far\", at_least = 2.0";
    let open = refused(&of(delay));
    assert!(
        open.contains("`at_least` alone lets any larger value pass") && open.contains("one_sided"),
        "{open}"
    );
    let difference =
        "metric = \"flows.call.loss_rate\", difference = [\"call-near\", \"call-far\"], at_most = 0.1";
    assert!(read(&of(difference)).is_err());
    let reason = "one_sided = \"the sentence says no more\"";
    let study = valid(&of(&format!("{delay}, {reason}")));
    assert_eq!(study.claims[1].checks[0].one_sided.as_deref(), Some("the sentence says no more"));
    // A share, and what cannot be negative, have the other end of their own.
    for closed in ["at_least = 0.2", "at_most = 0.2"] {
        valid(&of(&format!("metric = \"flows.call.loss_rate\", cell = \"call-far\", {closed}")));
    }
}

#[test]
fn a_metric_that_no_run_has_is_a_mistake_with_the_list_of_those_there_are() {
    let read_of = |metric: &str| {
        mistakes("metric = \"flows.call.loss_rate\", cell", &format!("metric = \"{metric}\", cell"))
    };
    let leaf = read_of("flows.call.los_rate");
    assert!(leaf.starts_with("study.toml:"), "{leaf}");
    assert!(
        leaf.contains("flows.call has no \"los_rate\"") && leaf.contains("loss_rate, duplicates"),
        "{leaf}"
    );
    let flow = read_of("flows.cal.loss_rate");
    assert!(flow.contains("flows has no \"cal\"") && flow.contains("flows has: call"), "{flow}");
    assert!(read_of("flows.call.one_way_delay_ms").contains("is a table"));
    assert!(read_of("flows.call.verdict").contains("is a word"));
    assert!(read_of("flows.call.sent=3").contains("is a number"));
    assert!(read_of("excess").contains("no metric \"excess\""));
    let also = mistakes("repeat = 6", "repeat = 6\nalso = [\"links.wan.dropped\"]");
    assert!(also.contains("also: there is no metric") && also.contains("links has: "), "{also}");
    let derived =
        STUDY.replace("[axis.delay]", "[metric]\nd = { sum = [\"flows.call-*.lost\"] }\n\n[axis.delay]");
    let derived = derived.replacen("flows.call.loss_rate", "d", 1).replacen("value = 0.01", "value = 1.0", 1);
    let derived = refused(&derived);
    assert!(derived.contains("flows has no \"call-*\""), "{derived}");
}

#[test]
fn what_no_run_under_the_base_could_judge_is_a_mistake() {
    let quick = mistakes("assumptions = [\"base\"] }", "assumptions = [\"slow\"] }");
    assert!(
        quick.starts_with("study.toml:8:") && quick.contains("the first set, \"base\", is missing"),
        "{quick}"
    );
    let cell = mistakes(
        "axes = { delay = [\"near\", \"far\"] }",
        "axes = { delay = [\"near\", \"far\"] }\nassumptions = [\"slow\"]",
    );
    assert!(cell.contains("\"call-far\" does not run under the first set, \"base\", in sim"), "{cell}");
}

#[test]
fn mistakes_stand_at_their_line_and_column() {
    let unknown_key = mistakes("year = 1999", "yeer = 1999");
    assert!(unknown_key.starts_with("study.toml:3:1: ") && unknown_key.contains("yeer"), "{unknown_key}");
    let wrong_type = mistakes("repeat = 6", "repeat = \"six\"");
    assert!(wrong_type.starts_with("study.toml:7:10: "), "{wrong_type}");
    let no_axis =
        mistakes("axes = { delay = [\"near\", \"far\"] }", "axes = { delay = [\"near\", \"fat\"] }");
    assert!(no_axis.contains(":27:27: ") && no_axis.contains("no value \"fat\""), "{no_axis}");
    let no_cell = mistakes("cell = \"call-far\"", "cell = \"call-fat\"");
    assert!(no_cell.contains("no cell called \"call-fat\""), "{no_cell}");
    let no_form = mistakes("value = 0.01, within = \"10%\"", "value = 0.01");
    assert!(no_form.contains("expected one of: `cell`, `ratio`"), "{no_form}");
    let order = "rising = [\"call-near\", \"call-far\"]";
    let two_bounds = mistakes(order, &format!("{order}, at_most = 1.0, at_least = 0.0"));
    assert!(two_bounds.contains("expected one of: `cell`, `ratio`"), "{two_bounds}");
    let no_set = mistakes("sensitivity = [\"slow\"]", "sensitivity = [\"slo\"]");
    assert!(no_set.contains(":9:16: ") && no_set.contains("there are: base, slow"), "{no_set}");
}

#[test]
fn a_mistake_in_a_scenario_key_stands_where_the_study_sets_it() {
    let unknown = mistakes("\"path.up.rate\" = \"1 Mbps\"", "\"path.up.rat\" = \"1 Mbps\"");
    assert!(unknown.starts_with("study.toml:18:") && unknown.contains("rate"), "{unknown}");
    let wrong = mistakes("\"path.up.delay\" = \"50 ms\"", "\"path.up.delay\" = \"50 miles\"");
    assert!(wrong.starts_with("study.toml:22:"), "{wrong}");
}

#[test]
fn every_entry_tells_its_own_mistake_of_form() {
    let text = STUDY
        .replace("year = 1999", "yeer = 1999")
        .replace("text = \"Slower.\"", "tex = \"Slower.\"")
        .replace("scenario = \"call.toml\"", "scenarios = \"call.toml\"")
        .replace("value = 0.01,", "valu = 0.01,")
        .replace("expected = \"differs\"", "expected = \"maybe\"");
    let all = refused(&text);
    for (place, name) in
        [(":3:", "yeer"), (":17:", "tex"), (":26:", "scenarios"), (":36:", "valu"), (":42:", "")]
    {
        let told =
            all.lines().any(|line| line.starts_with(&format!("study.toml{place}")) && line.contains(name));
        assert!(told, "{place} {name}: {all}");
    }
    // A value of another type, with its key.
    let number = mistakes("repeat = 6", "repeat = -6");
    assert!(number.contains("repeat: found -6, expected a whole number, 0 or more"), "{number}");
    let text = mistakes("value = 0.01", "value = \"1 %\"");
    assert!(text.contains("value: found string \"1 %\", expected a number"), "{text}");
    // With what the rest says against it.
    let both = STUDY.replace("text = \"Slower.\"", "tex = \"Slower.\"").replace("\"50 ms\"", "\"50 miles\"");
    let both = refused(&both);
    assert!(both.contains("tex: unknown key (did you mean `text`?)") && both.contains("miles"), "{both}");
    let broken = refused("title = \nyear = = 3\n");
    assert!(broken.contains("study.toml:1:") && broken.contains("study.toml:2:"), "{broken}");
}

#[test]
fn a_claim_without_a_why_is_a_mistake() {
    for (from, to) in [("why = \"The loss rate is fitted.\"\n", ""), ("The loss rate is fitted.", " ")] {
        let found = mistakes(from, to);
        assert!(found.starts_with("study.toml:30:6: claim.why: "), "{found}");
        assert!(found.contains("C1 needs a `why`"), "{found}");
    }
}

#[test]
fn a_claim_cannot_expect_to_be_partly_judged() {
    for expected in ["\"partly-judged\"", "{ sim = \"partly-judged\", emu = \"differs\" }"] {
        let found = mistakes("expected = \"reproduced\"", &format!("expected = {expected}"));
        assert!(found.contains("claim.expected: ") && found.contains("a whole, undisturbed run"), "{found}");
    }
}

#[test]
fn mistakes_of_several_arenas_and_metrics_are_told_too() {
    let mistakes = |from: &str, to: &str| {
        let text = format!("{STUDY}{ARENAS}");
        assert!(text.contains(from), "{from}");
        refused(&text.replacen(from, to, 1))
    };
    let arena = mistakes("[arena.emu]", "[arena.ems]");
    assert!(arena.contains("ems"), "{arena}");
    let key = mistakes("duration = \"500 ms\"", "duration = \"500 miles\"");
    assert!(key.contains("miles") || key.contains("unit"), "{key}");
    let metric = mistakes("difference = [", "sum = \"x\", difference = [");
    assert!(metric.contains("metric.spared"), "{metric}");
    let stray = mistakes("difference = [", "cap = 1.0, difference = [");
    assert!(stray.contains("metric.spared"), "{stray}");
    let unit = mistakes("difference = [", "unit = \"miles\", difference = [");
    assert!(unit.contains("metric.spared.unit: found \"miles\", expected one of ms, s, bit/s"), "{unit}");
    let other = mistakes("difference = [", "unit = \"ms\", difference = [");
    assert!(other.contains("metric.spared.unit: found \"ms\", but it is made of"), "{other}");
    let ratio = mistakes("ratio = [\"call-far\", \"call-near\"]", "ratio = [\"call-far\"]");
    assert!(ratio.contains("expected two"), "{ratio}");
    let expected = mistakes("{ sim = \"reproduced\", emu = \"differs\" }", "{ sim = \"reproduced\" }");
    assert!(expected.contains("no verdict for emu"), "{expected}");
    // All at once: an unknown cell is reported beside a mistake in a scenario key.
    let text = format!("{STUDY}{ARENAS}")
        .replace("\"50 ms\"", "\"50 miles\"")
        .replace("cell = \"call-far\", agree", "cell = \"x\", agree");
    let both = refused(&text);
    assert!(both.contains("miles") && both.contains("no cell called"), "{both}");
}
