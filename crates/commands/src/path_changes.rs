//! The changes of a path, in words, for the time axes of a page.

use talkpath_measure::chart_data::CellChartData;
use talkpath_measure::summary::{MOST_CHANGES, PathChange, PathChanges, Summary};
use talkpath_path::{
    Change, LinkConfig, LinkState, LinkValues, LossModel, QueueLimit, RateModel, change_marks,
};
use talkpath_report::CellChanges;
use talkpath_scenario::{Plan, Scenario};
use talkpath_units::{Instant, Rate, Seed, counted};

/// Returns the changes of each cell in `chart_data`. A change with a random phase is where the drawn
/// repetition had it.
pub(crate) fn path_changes(plan: &Plan, summary: &Summary, chart_data: &[CellChartData]) -> Vec<CellChanges> {
    let of_cell = |drawn: &CellChartData| {
        let scenario = &plan.cell(drawn.cell)?.scenario;
        let is_drawn = |cell, repetition| (cell, repetition) == (drawn.cell, drawn.repetition);
        let run = summary.runs.iter().find(|run| is_drawn(run.cell, run.repetition))?;
        let changes = changes_of_run(scenario, Seed::new(run.seed));
        (!changes.is_empty()).then_some(CellChanges { cell: drawn.cell, changes })
    };
    chart_data.iter().filter_map(of_cell).collect()
}

/// Notes in each repetition of `summary` how the path of its cell in `plan` changes.
pub(crate) fn note_changes(plan: &Plan, summary: &mut Summary) {
    for run in &mut summary.runs {
        let Some(cell) = plan.cell(run.cell).filter(|cell| !cell.scenario.changes.is_empty()) else {
            continue;
        };
        let changes = changes_of_run(&cell.scenario, Seed::new(run.seed));
        run.changes = (changes.len() <= MOST_CHANGES).then(|| Box::new(PathChanges(changes)));
    }
}

/// How often the path of `scenario` changes, without the ends of outages and ramps.
pub(crate) fn number_of_changes(scenario: &Scenario) -> usize {
    changes_of_run(scenario, scenario.seed).len()
}

/// Returns the changes of a run with this seed. Links that change in the same manner at the same time are one
/// change.
fn changes_of_run(scenario: &Scenario, seed: Seed) -> Vec<PathChange> {
    struct Joined {
        from: Instant,
        until: Instant,
        what: String,
        links: Vec<u32>,
    }
    let mut all: Vec<Joined> = Vec::new();
    for mark in change_marks(&scenario.changes, seed, Instant::ZERO + scenario.duration) {
        let change = &scenario.changes[mark.change];
        let what = describe_change(change);
        // The marks are in order of time, so an equal one is among the last.
        let same = all.iter_mut().rev().take_while(|known| known.from == mark.at);
        let same = same.into_iter().find(|known| known.until == mark.until && known.what == what);
        match same {
            Some(known) => known.links.push(change.link),
            None => all.push(Joined { from: mark.at, until: mark.until, what, links: vec![change.link] }),
        }
    }
    let name = |link: &u32| scenario.links.get(*link as usize).map_or("", |link| link.name.as_str());
    let in_words = |change: &Joined| match change.links.len() < scenario.links.len() {
        true => {
            format!("{}: {}", change.links.iter().map(name).collect::<Vec<_>>().join(" and "), change.what)
        }
        false => change.what.clone(),
    };
    let path_change = |change: &Joined| PathChange {
        from_s: change.from.as_secs_f64(),
        until_s: change.until.as_secs_f64(),
        text: in_words(change),
    };
    all.iter().map(path_change).collect()
}

/// Describes what a change does to a link: `rate 12.4 Mb/s, delay 38 ms`.
fn describe_change(change: &Change) -> String {
    let outage = change.outage.map(|_| "outage".to_owned());
    let values = Some(describe_values(&change.to)).filter(|values| !values.is_empty());
    values.into_iter().chain(outage).collect::<Vec<_>>().join(", ")
}

/// Describes values of a link: `rate 12.4 Mb/s, delay 38 ms`.
fn describe_values(values: &LinkValues) -> String {
    let LinkValues { rate: to_rate, delay, loss, limit, state } = values;
    let to_rate = to_rate.as_ref().map(|to| match to {
        RateModel::Fixed(to) if to.as_bps() == 0 => "rate 0".to_owned(),
        RateModel::Fixed(to) => format!("rate {}", rate(*to)),
        RateModel::Unlimited => "unlimited rate".to_owned(),
        RateModel::Trace(_) => "rate of a trace".to_owned(),
    });
    let delay = delay.map(|delay| format!("delay {} ms", delay.as_millis_f64()));
    let loss = loss.as_ref().map(|loss| match loss {
        LossModel::None => "no loss".to_owned(),
        // Nine digits hide what the multiplication by 100 adds to a decimal number.
        loss => format!("loss {} %", (loss.mean() * 1e9).round() / 1e7),
    });
    let limit = limit.map(|limit| match limit {
        QueueLimit::Packets(count) => format!("queue {}", counted(count.get(), "packet")),
        QueueLimit::Bytes(bytes) => format!("queue {} B", bytes.get()),
    });
    let state = state.map(|state| match state {
        LinkState::Up => "up again".to_owned(),
        LinkState::Down { .. } => "down".to_owned(),
    });
    [to_rate, delay, loss, limit, state].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Describes a link as it begins: `15 Mb/s, 20 ms, queue 187500 B`.
pub(crate) fn describe_link(config: &LinkConfig) -> String {
    let values = LinkValues {
        rate: Some(config.rate.clone()),
        delay: Some(config.delay),
        loss: Some(config.loss.clone()).filter(|loss| *loss != LossModel::None),
        limit: Some(config.queue.limit()),
        state: None,
    };
    describe_values(&values)
}

/// Writes a rate in Mb/s, or below 1 Mb/s in kb/s.
pub(crate) fn rate(rate: Rate) -> String {
    if rate.as_bps() >= 1_000_000 {
        format!("{} Mb/s", rate.as_bps() as f64 / 1e6)
    } else {
        format!("{} kb/s", rate.as_bps() as f64 / 1e3)
    }
}

#[cfg(test)]
mod tests {
    use talkpath_scenario::{Options, Source, load};

    use super::*;

    fn changes(text: &str) -> Vec<(f64, f64, String)> {
        let text = format!(
            "duration = \"60 s\"\npath = \"home-adsl\"\n[flow.call]\ntransport = \"udp\"\nworkload = \"voice\"\n{text}"
        );
        let plan = load(&Source::new("x.toml", text), &Options::default()).unwrap();
        let changes = changes_of_run(&plan.cells[0].scenario, Seed::new(1)).into_iter();
        changes.map(|change| (change.from_s, change.until_s, change.text)).collect()
    }

    #[test]
    fn a_change_is_told_with_its_values_and_with_its_link_if_not_all_change() {
        let both = "[[change]]\nat = \"15 s\"\ndelay = \"38 ms\"\nloss = \"2%\"\n";
        assert_eq!(changes(both), [(15.0, 15.0, "delay 38 ms, loss 2 %".to_owned())]);
        let up = "[[change]]\nlink = \"up\"\nat = \"30 s\"\noutage = \"2.5 s\"\n";
        assert_eq!(changes(up), [(30.0, 32.5, "up: outage".to_owned())]);
        let ramp = "[[change]]\nlink = \"down\"\nat = \"5 s\"\nrate = \"500 kbps\"\nover = \"2 s\"\n";
        assert_eq!(changes(ramp), [(5.0, 7.0, "down: rate 500 kb/s".to_owned())]);
    }

    #[test]
    fn a_period_is_a_change_each_time() {
        let often = changes("[[change]]\nevery = \"15 s\"\nqueue.limit = \"1 packet\"\n");
        let times: Vec<f64> = often.iter().map(|change| change.0).collect();
        assert_eq!((times, often[0].2.as_str()), (vec![15.0, 30.0, 45.0], "queue 1 packet"));
    }
}
