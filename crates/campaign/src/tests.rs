//! A campaign in virtual time: hosts that fail, a coordinator that is killed at every line of its journal.

use std::collections::BTreeMap;

use serde_json::json;
use talkpath_measure::summary::{MachineSummary, RunSummary, Summary};
use talkpath_scenario::Source;
use talkpath_scenario::campaign::Campaign;
use talkpath_units::{Duration, Instant};

use super::*;

const FILE: &str = r#"
between = { kind = "hub", hub = "cu" }
[host.cu]
local = true
[host.hk]
address = "192.0.2.1"
[host.au]
address = "192.0.2.2"
[host.uv]
address = "192.0.2.3"
[measure.call]
[schedule]
zone = "Europe/Berlin"
start = "2026-03-28 00:00"
every = "6 h"
days = 3
start_within = "20 min"
retry = "5 min"
window = "3 h"
"#;

fn campaign(text: &str) -> Campaign {
    Campaign::load(&Source::new("c.toml", text)).unwrap()
}

fn plan(text: &str) -> Plan {
    Plan::new(&campaign(text), "0".to_owned(), "0", Instant::ZERO).unwrap()
}

#[test]
fn times_follow_the_clocks_of_the_zone_into_summer_time() {
    // Central European Summer Time began on 2026-03-29 at 01:00 UTC (Directive 2000/84/EC).
    let slots = slots(&campaign(FILE).schedule, Instant::ZERO).unwrap();
    let hours: Vec<_> = slots.iter().map(|slot| slot.local[11..13].to_owned()).collect();
    assert_eq!(hours[..8], ["00", "06", "12", "18", "00", "06", "12", "18"]);
    let apart = |a: usize, b: usize| (slots[b].at.as_nanos() - slots[a].at.as_nanos()) / 3_600_000_000_000;
    assert_eq!((apart(3, 4), apart(4, 5), apart(5, 6)), (6, 5, 6));
    assert_eq!((slots.len(), slots[4].day, slots[11].day), (12, 2, 3));
}

#[test]
fn a_time_that_clocks_skip_is_taken_once() {
    let text = FILE.replace("\"6 h\"", "\"1 h\"").replace("window = \"3 h\"", "");
    let hourly = slots(&campaign(&text).schedule, Instant::ZERO).unwrap();
    // 72 hours on the calendar, of which 02:00 is skipped and then is 03:00.
    assert_eq!(hourly.len(), 71);
    assert!(hourly.windows(2).all(|two| two[0].at < two[1].at));
}

#[test]
fn a_plan_follows_from_the_file_and_its_seed() {
    let (first, again) = (plan(FILE), plan(FILE));
    assert_eq!(first, again);
    assert_eq!(first.measurements.len(), 36);
    let other = plan(&format!("seed = 2\n{FILE}"));
    assert_ne!(first.measurements[0].due_ms, other.measurements[0].due_ms);
    for measurement in &first.measurements {
        let late = measurement.until_ms - measurement.due_ms;
        assert!((160 * 60_000..=180 * 60_000).contains(&late), "{late}");
    }
    assert!(first.measurements.windows(2).all(|two| two[0].due_ms <= two[1].due_ms));
}

#[test]
fn a_fingerprint_is_of_names_pairs_what_runs_and_when() {
    let of = |text: &str, scenario: &str| fingerprint(&campaign(text), &[scenario.to_owned()]);
    let own = of(FILE, "a scenario");
    // A campaign that has begun ends with the version that gives another one.
    assert_eq!(own, "e849d5bbd63a3563");
    assert_eq!(of(&FILE.replace("192.0.2.3", "192.0.2.4"), "a scenario"), own);
    assert_ne!(of(FILE, "another"), own);
    for (from, to) in
        [("uv", "vu"), ("6 h", "8 h"), ("5 min", "6 min"), ("Berlin", "Paris"), ("03-28", "03-27")]
    {
        assert_ne!(of(&FILE.replace(from, to), "a scenario"), own, "{from}");
    }
}

#[test]
fn a_campaign_without_a_start_begins_when_it_is_planned() {
    let text = FILE.replace("start = \"2026-03-28 00:00\"\n", "");
    let made = Instant::from_nanos(1_800_000_000_500_000_000);
    let plan = Plan::new(&campaign(&text), String::new(), "0", made).unwrap();
    assert!(plan.measurements[0].due_ms >= 1_800_000_001_000);
    assert!(plan.measurements[0].until_ms == 1_800_000_001_000 + 3 * 3_600_000);
}

/// What lies outside the coordinator: hosts, records, time.
struct World<'p> {
    plan: &'p Plan,
    now: Instant,
    journal: Vec<u8>,
    /// How often each measurement's records were written.
    records: BTreeMap<String, u64>,
    /// Lines that may still be written; then the coordinator is killed.
    lines: usize,
    /// Measurements at work: place and end.
    running: Vec<(usize, Instant)>,
    /// Most at the same time for a host.
    most: u64,
}

const MINUTE: Duration = Duration::from_secs(60);

impl<'p> World<'p> {
    fn new(plan: &'p Plan, lines: usize) -> Self {
        let now = plan.measurements[0].due();
        let (journal, records, running) = (Vec::new(), BTreeMap::new(), Vec::new());
        Self { plan, now, journal, records, lines, running, most: 0 }
    }

    /// `hk` is down for the second day, `au` refuses every first attempt.
    fn outcome(&self, at: usize, attempts: usize) -> Result<(), Fault> {
        let Measurement { far, day, .. } = &self.plan.measurements[at];
        let fault = |why: &str| Err(Fault { why: why.to_owned(), host: Some(far.clone()) });
        match far.as_str() {
            "hk" if *day == 2 => fault("hk: no answer"),
            "au" if attempts == 0 => fault("au: busy"),
            _ => Ok(()),
        }
    }

    /// Writes a line, or is killed.
    fn write(&mut self, at: usize, event: Event) -> Option<()> {
        self.lines = self.lines.checked_sub(1)?;
        let entry = Entry { at_ms: millis(self.now), id: self.plan.measurements[at].id.clone(), event };
        self.journal.extend(entry.line());
        Some(())
    }

    /// A coordinator, until it is done or killed. Returns whether it is done.
    fn coordinate(&mut self) -> bool {
        self.running.clear();
        // A line that a kill has torn is cut off, as the file of lines does when it is opened.
        let whole_lines = self.journal.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        self.journal.truncate(whole_lines);
        let mut entries = entries(&self.journal);
        // Records whose line is missing, as the program adds it when it starts.
        for id in self.records.keys() {
            if !entries.iter().any(|it| it.id == *id && it.event == Event::Done) {
                let entry = Entry { at_ms: millis(self.now), id: id.clone(), event: Event::Done };
                self.journal.extend(entry.line());
                entries.push(entry);
            }
        }
        let retry = Duration::from_secs(300);
        let mut scheduler = Scheduler::new(self.plan, &[1, 1, 1, 1], retry, &entries, self.now);
        self.work(&mut scheduler).is_some()
    }

    fn work(&mut self, scheduler: &mut Scheduler<'_>) -> Option<()> {
        loop {
            match scheduler.step(self.now) {
                Step::Finished => return Some(()),
                Step::Begin(at) => {
                    self.write(at, Event::Begun)?;
                    self.running.push((at, self.now.saturating_add(MINUTE)));
                    self.most = self.most.max(self.running.len() as u64);
                }
                Step::Abandon(at, why) => {
                    self.write(at, Event::Abandoned { why })?;
                    scheduler.set_abandoned(at);
                }
                Step::Wait(until) => {
                    let ends = self.running.iter().map(|it| it.1).min();
                    let next = [until, ends].into_iter().flatten().min().unwrap();
                    assert!(next > self.now, "time goes on");
                    self.now = next;
                    self.end_those_that_do(scheduler)?;
                }
            }
        }
    }

    fn end_those_that_do(&mut self, scheduler: &mut Scheduler<'_>) -> Option<()> {
        let (ended, running): (Vec<_>, Vec<_>) = self.running.iter().partition(|it| it.1 <= self.now);
        self.running = running;
        for (at, _) in ended {
            let id = &self.plan.measurements[at].id;
            let failed = |it: &&Entry| it.id == *id && matches!(it.event, Event::Failed { .. });
            let attempts = entries(&self.journal).iter().filter(failed).count();
            let outcome = self.outcome(at, attempts);
            if outcome.is_ok() {
                *self.records.entry(id.clone()).or_default() += 1;
            }
            let event = scheduler.finish(at, outcome, self.now);
            self.write(at, event)?;
        }
        Some(())
    }

    fn abandoned(&self) -> BTreeMap<String, String> {
        let entries = entries(&self.journal);
        let reason = |entry: Entry| match entry.event {
            Event::Abandoned { why } => Some((entry.id, why)),
            _ => None,
        };
        entries.into_iter().filter_map(reason).collect()
    }

    /// The report, with a summary that follows from each measurement alone.
    fn report(&self) -> String {
        let summaries: Vec<_> = self
            .records
            .keys()
            .map(|id| summary(&self.plan.measurements[self.plan.position(id).unwrap()]))
            .collect();
        let measured: Vec<_> = self
            .records
            .keys()
            .zip(&summaries)
            .map(|(id, summary)| Recorded {
                measurement: &self.plan.measurements[self.plan.position(id).unwrap()],
                summary,
            })
            .collect();
        let entries = entries(&self.journal);
        let mut findings = findings(self.plan, &measured, &entries, self.now, "0");
        // How often it was tried is another matter after a kill.
        findings.missing.iter_mut().for_each(|it| it.why.clear());
        serde_json::to_string(&findings).unwrap()
    }
}

fn summary(of: &Measurement) -> Summary {
    let n = (of.seed % 1000) as f64;
    let delay = |p: f64| json!({"min": p, "mean": p + 2.0, "p50": p + 1.0, "p90": p + 5.0 + n / 100.0, "p95": p + 6.0, "p99": p + 7.0, "p999": p + 8.0, "max": p + 9.0});
    let flow = |transport: &str, base: f64, resent: Option<f64>| {
        let mut flow = serde_json::to_value(talkpath_measure::summary::FlowSummary::default()).unwrap();
        flow["transport"] = transport.into();
        flow["sent"] = 1000.into();
        flow["lost"] = (of.seed % 7).into();
        flow["round_trip_delay_ms"] = delay(base);
        flow["one_way_delay_ms"] = delay(base / 2.0);
        flow["retransmit_rate"] = resent.into();
        flow
    };
    let run = |cell: u64, transport: &str, base: f64, resent| {
        json!({"cell": cell, "sweep": {"flow.call.transport": transport}, "repetition": 0, "seed": of.seed,
               "flows": {"call": flow(transport, base, resent)}, "groups": {}, "links": {}})
    };
    serde_json::from_value(json!({
        "talkpath": "0", "name": "call", "arena": "live", "started": "", "wall_s": 0.0, "cpu_s": 0.0, "valid": true,
        "warnings": [], "percentiles": "exact",
        "clock": {"offset_ms": 0.0, "skew_ppm": 0.0, "uncertainty_ms": 0.0, "trusted": of.far != "hk", "why": "drift"},
        "runs": [run(0, "udp", 40.0, None), run(1, "tcp", 90.0, Some(0.01 + n / 1e5))], "cells": [],
    }))
    .unwrap()
}

fn undisturbed(plan: &Plan) -> World<'_> {
    let mut world = World::new(plan, usize::MAX);
    assert!(world.coordinate());
    world
}

#[test]
fn every_measurement_is_in_the_records_once_or_has_its_reason() {
    let plan = plan(FILE);
    let world = undisturbed(&plan);
    let missing = world.abandoned();
    // `hk` is down for a day of four times.
    assert_eq!((world.records.len(), missing.len()), (32, 4));
    assert!(world.records.values().all(|times| *times == 1));
    for (id, why) in &missing {
        assert!(id.contains(".hk.") && why.ends_with("hk: no answer"), "{id}: {why}");
    }
    assert_eq!(world.most, 1, "the hub takes one at a time");
    let entries = entries(&world.journal);
    let status = status(&plan, &entries, Duration::from_secs(300), world.now);
    assert_eq!((status.done, status.abandoned, status.planned), (32, 4, 36));
    assert_eq!((status.overdue, status.later, status.begun), (0, 0, 0));
    assert!(status.hosts[1].last_failure.as_deref() == Some("hk: no answer"));
}

#[test]
fn what_nobody_began_before_its_window_ended_is_missing_and_not_due() {
    let plan = plan(FILE);
    let [first, last] = [0, plan.measurements.len() - 1].map(|at| &plan.measurements[at]);
    let at = |now| {
        let found = status(&plan, &[], Duration::from_secs(300), now);
        (found.overdue, found.abandoned, found.later, found.missing.first().map(|it| it.why.clone()))
    };
    let (overdue, abandoned, _, _) = at(first.due());
    assert!(overdue > 0 && abandoned == 0);
    let why = "its window ended while no coordinator ran".to_owned();
    assert_eq!(at(last.until()), (0, 36, 0, Some(why)));
}

#[test]
fn measurements_that_a_machine_disturbed_are_counted_and_have_their_reason() {
    let plan = plan(FILE);
    let [mut sound, mut disturbed] = [0, 1].map(|at| summary(&plan.measurements[at]));
    disturbed.valid = false;
    disturbed.warnings = vec!["invalid: this host sent late".to_owned(), "slow".to_owned()];
    sound.warnings = vec!["slow".to_owned()];
    let all: Vec<_> = [(0, &sound), (1, &disturbed)]
        .map(|(at, summary)| Recorded { measurement: &plan.measurements[at], summary })
        .into();
    let found = findings(&plan, &all, &[], plan.measurements[0].due(), "0");
    let [it] = found.not_valid.as_slice() else { panic!("{:?}", found.not_valid) };
    assert_eq!(
        (it.measurement.id.as_str(), it.why.as_str()),
        (&*plan.measurements[1].id, "this host sent late")
    );
    let (valid, all) = found
        .matrix
        .iter()
        .filter(|row| row.transport == "udp")
        .fold((0, 0), |sum, row| (sum.0 + row.valid, sum.1 + row.measurements));
    assert_eq!((valid, all), (1, 2));
}

#[test]
fn repetitions_that_a_machine_disturbed_are_left_out_and_a_measurement_of_more_than_half_is_not_valid() {
    let plan = plan(FILE);
    let found = |disturbed: usize| {
        let mut summary = summary(&plan.measurements[0]);
        summary.valid = false;
        summary.warnings = vec!["invalid: this host sent late".to_owned()];
        let run = summary.runs[0].clone();
        summary.runs = (0..4).map(|repetition| RunSummary { repetition, ..run.clone() }).collect();
        for (at, run) in summary.runs.iter_mut().enumerate() {
            let machine = MachineSummary { valid: Some(at >= disturbed), ..MachineSummary::default() };
            run.machine = Some(Box::new(machine));
        }
        let all = [Recorded { measurement: &plan.measurements[0], summary: &summary }];
        let found = findings(&plan, &all, &[], plan.measurements[0].due(), "0");
        let why = found.left_out.first().map(|it| it.why.clone());
        let figures = found.matrix[0].delay_ms_p50.map(|it| it.n);
        (found.not_valid.len(), why, figures, found.matrix[0].valid)
    };
    let left_out = |some: u64| Some(format!("{some} of 4 repetitions: this host sent late"));
    assert_eq!(found(0), (0, None, Some(4), 1));
    assert_eq!(found(1), (0, left_out(1), Some(3), 1));
    assert_eq!(found(2), (0, left_out(2), Some(2), 1));
    // They are shown, and marked.
    assert_eq!(found(3), (1, None, Some(4), 0));
}

#[test]
fn a_coordinator_that_is_killed_at_any_line_goes_on_to_the_same_report() {
    let plan = plan(FILE);
    let whole = undisturbed(&plan);
    let (report, lines) = (whole.report(), whole.journal.iter().filter(|byte| **byte == b'\n').count());
    assert!(lines > 100);
    for killed_at in 0..lines {
        let mut world = World::new(&plan, killed_at);
        assert!(!world.coordinate(), "{killed_at}");
        // What the kill left of a line.
        let torn = b"{\"at_ms\":1,\"id\":\"d01";
        world.journal.extend(&torn[..killed_at % torn.len()]);
        world.lines = usize::MAX;
        assert!(world.coordinate());
        assert!(world.records.values().all(|times| *times == 1), "{killed_at}: {:?}", world.records);
        assert_eq!(world.records.len() + world.abandoned().len(), plan.measurements.len(), "{killed_at}");
        assert_eq!(world.report(), report, "killed after {killed_at} lines");
    }
}

#[test]
fn what_a_coordinator_slept_through_has_its_reason() {
    let plan = plan(FILE);
    let mut world = World::new(&plan, 20);
    assert!(!world.coordinate());
    world.lines = usize::MAX;
    world.now = world.now.saturating_add(Duration::from_secs(24 * 3600));
    assert!(world.coordinate());
    let slept =
        world.abandoned().values().filter(|why| *why == "the coordinator did not run in its window").count();
    assert!(slept >= 9, "{:?}", world.abandoned());
    assert_eq!(world.records.len() + world.abandoned().len(), plan.measurements.len());
}

#[test]
fn a_host_that_is_down_delays_nobody() {
    let plan = plan(FILE);
    let world = undisturbed(&plan);
    let entries = entries(&world.journal);
    for entry in entries.iter().filter(|it| it.event == Event::Done && it.id.contains(".uv.")) {
        let due = plan.measurements[plan.position(&entry.id).unwrap()].due_ms;
        // Its own minute, and at most one of each other pair before it.
        assert!(entry.at_ms - due <= 4 * 60_000, "{}: {} ms", entry.id, entry.at_ms - due);
    }
    // A day of four windows of three hours, tried after 0, 5, 15, 35, 75 and 155 minutes at most.
    let tried = entries
        .iter()
        .filter(|it| it.event == Event::Begun && it.id.contains("d02.") && it.id.contains(".hk."));
    assert!((8..=24).contains(&tried.count()));
}

#[test]
fn while_hosts_fail_status_says_when_each_measurement_is_tried_again() {
    let plan = plan(FILE);
    let first = plan.measurements.iter().find(|it| it.far == "hk").unwrap();
    let (id, at_ms) = (first.id.clone(), first.due_ms);
    let failed = |at_ms, host: Option<&str>| {
        let event = Event::Failed { why: "no answer".to_owned(), host: host.map(str::to_owned) };
        Entry { at_ms, id: id.clone(), event }
    };
    let entries = [failed(at_ms, Some("hk")), failed(at_ms + 300_000, None)];
    let now = Instant::from_nanos((at_ms + 301_000) * 1_000_000);
    let seen = status(&plan, &entries, Duration::from_secs(300), now);
    let [failing] = seen.failing.as_slice() else { panic!("{:?}", seen.failing) };
    // 5 min after the first failure, 10 min after the second.
    assert_eq!(failing.next_try_ms, Some(at_ms + 900_000));
    assert_eq!(failing.next_try.as_ref().unwrap().len(), "2026-03-28 00:15:00".len());
    assert!(failing.next_try.as_ref().unwrap().starts_with("2026-03-28 00:"), "{failing:?}");
    assert_eq!((seen.failures_elsewhere, seen.last_failure_elsewhere.as_deref()), (1, Some("no answer")));
    let hk = &seen.hosts[1];
    assert_eq!((hk.failures, hk.rests_until.is_some()), (1, false), "its rest is over");
    let then = Instant::from_nanos((at_ms + 299_000) * 1_000_000);
    let before = status(&plan, &entries[..1], Duration::from_secs(300), then);
    assert!(before.hosts[1].rests_until.as_ref().unwrap() > &first.local, "{:?}", before.hosts[1]);
    // A wait that ends after the window is no try.
    let late = status(&plan, &entries, Duration::from_secs(3 * 3600), now);
    assert_eq!((&late.failing[0].next_try, late.failing[0].next_try_ms), (&None, None));
}

#[test]
fn half_way_what_is_due_and_what_is_not_due_yet_are_counted_by_themselves() {
    let plan = plan(FILE);
    let measured = summary(&plan.measurements[0]);
    let recorded = [Recorded { measurement: &plan.measurements[0], summary: &measured }];
    let abandoned = Event::Abandoned { why: "down".to_owned() };
    let entries = [(0, Event::Done), (1, abandoned)].map(|(at, event)| Entry {
        at_ms: 1,
        id: plan.measurements[at].id.clone(),
        event,
    });
    // The second of twelve times is due, and the window of the first is over: nobody began its third
    // measurement.
    let now = plan.measurements[5].due();
    assert!(plan.measurements[2].until() <= now && plan.measurements[3].until() > now);
    let found = findings(&plan, &recorded, &entries, now, "0");
    assert_eq!((found.done, found.missing.len(), found.open, found.later), (1, 2, 3, 30));
}

#[test]
fn messages_that_were_unfinished_are_counted_in_their_row() {
    let plan = plan(FILE);
    let mut broken = summary(&plan.measurements[0]);
    for flow in broken.runs[0].flows.values_mut() {
        (flow.sent, flow.lost, flow.unfinished) = (1000, 0, 900);
    }
    let recorded = [Recorded { measurement: &plan.measurements[0], summary: &broken }];
    let found = findings(&plan, &recorded, &[], plan.measurements[0].due(), "0");
    let udp = found.matrix.iter().find(|row| row.transport == "udp").unwrap();
    assert_eq!((udp.loss_rate, udp.sent, udp.unfinished), (Some(0.0), 1000, 900));
}

#[test]
fn a_repetition_without_any_echo_gives_no_delay_among_round_trips() {
    let plan = plan(FILE);
    let whole = summary(&plan.measurements[0]);
    let mut deaf = whole.clone();
    for run in &mut deaf.runs {
        for flow in run.flows.values_mut() {
            (flow.round_trip_delay_ms, flow.lost_return) = (None, Some(1000));
        }
    }
    let recorded = [&whole, &deaf].map(|summary| Recorded { measurement: &plan.measurements[0], summary });
    let found = findings(&plan, &recorded, &[], plan.measurements[0].due(), "0");
    let udp = found.matrix.iter().find(|row| row.transport == "udp").unwrap();
    assert_eq!(udp.delay_ms_p50.map(|it| (it.median, it.n)), Some((41.0, 1)));
    // One way is the delay where nothing is sent back.
    for run in &mut deaf.runs {
        run.flows.values_mut().for_each(|flow| flow.lost_return = None);
    }
    let recorded = [Recorded { measurement: &plan.measurements[0], summary: &deaf }];
    let found = findings(&plan, &recorded, &[], plan.measurements[0].due(), "0");
    let udp = found.matrix.iter().find(|row| row.transport == "udp").unwrap();
    assert_eq!((udp.is_round_trip, udp.delay_ms_p50.map(|it| it.median)), (false, Some(21.0)));
}

/// The entries of a journal that has whole lines only.
fn entries(journal: &[u8]) -> Vec<Entry> {
    journal.split_inclusive(|byte| *byte == b'\n').map(|line| Entry::parse(line).unwrap()).collect()
}

#[test]
fn an_entry_is_read_from_its_line_and_a_line_that_nobody_knows_is_an_error() {
    let entry =
        Entry { at_ms: 1, id: "d01".to_owned(), event: Event::Failed { why: "x".to_owned(), host: None } };
    assert_eq!(Entry::parse(&entry.line()), Ok(entry));
    let why = Entry::parse(b"{\"at_ms\":2,\"id\":\"d01\",\"event\":\"paused\"}\n").unwrap_err();
    assert!(why.contains("paused"), "{why}");
    assert!(Entry::parse(b"\0\0\n").is_err());
}

#[test]
fn the_tables_name_hosts_and_days() {
    let plan = plan(FILE);
    let world = undisturbed(&plan);
    let findings: Findings = serde_json::from_str(&world.report()).unwrap();
    assert_eq!(findings.matrix.len(), 6, "three pairs, two transports");
    let hk = findings.matrix.iter().find(|row| row.far == "hk" && row.transport == "udp").unwrap();
    assert_eq!((hk.near.as_str(), hk.measurements, hk.clock_trusted), ("cu", 8, 0));
    assert_eq!(hk.delay_ms_p50, Some(Estimate { median: 41.0, ci95: Some((41.0, 41.0)), n: 8 }));
    // Day 2 of `hk` is missing.
    assert_eq!(findings.days.len(), 16);
    let row =
        findings.days.iter().find(|row| row.far == "uv" && row.day == 3 && row.transport == "tcp").unwrap();
    assert_eq!(row.delay_ms_p95.unwrap().n, 4);
    assert_eq!(findings.hours.iter().filter(|row| row.transport == "udp").count(), 4);
    assert_eq!(findings.missing.len(), 4);
}

#[test]
fn a_measurement_lies_in_the_partition_of_its_day_and_pair() {
    let plan = plan(FILE);
    let first = plan.measurements.iter().find(|it| it.far == "hk").unwrap();
    let (day, id) = (&first.local[..10], &first.id);
    assert_eq!(partition(first), format!("day={day}/pair=cu-to-hk/measurement={id}"));
    let mut folders: Vec<_> = plan.measurements.iter().map(partition).collect();
    folders.sort_unstable();
    folders.dedup();
    assert_eq!(folders.len(), plan.measurements.len(), "no two measurements share a folder");
}

#[test]
fn notes_of_another_store_and_a_line_that_was_cut_off_count_for_nothing() {
    let note = |id: &str, store: &str, why: Option<&str>| {
        let (id, store) = (id.to_owned(), store.to_owned());
        Upload { at_ms: 1, id, store, why: why.map(str::to_owned) }.line()
    };
    let mut notes =
        [note("a", "cp x", None), note("b", "cp y", None), note("c", "cp x", Some("down"))].concat();
    let cut = note("d", "cp x", None);
    notes.extend(&cut[..cut.len() / 2]);
    let uploads = Uploads::parse(&notes, "cp x");
    assert_eq!(
        (uploads.there.into_iter().collect::<Vec<_>>(), uploads.failing.as_deref()),
        (vec!["a".to_owned()], Some("down"))
    );
    // The next process begins a line of its own.
    notes.push(b'\n');
    notes.extend(note("c", "cp x", None));
    let uploads = Uploads::parse(&notes, "cp x");
    assert_eq!((uploads.there.len(), uploads.failing), (2, None));
}
