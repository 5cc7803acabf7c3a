//! How well the machine kept up with real time in one repetition.

use talkpath_measure::summary::{LateMs, RunSummary, TurnRoundMs};

use super::titles::short_name;
use crate::columns::Columns;
use crate::grid::{Column, Grid};
use crate::metric::Metric;
use crate::number::{count, counted, fixed, percent};
use crate::term::Topic;

/// Quantiles of one kind of lateness.
struct LatenessRow {
    name: String,
    p50_ms: f64,
    p99_ms: f64,
    max_ms: f64,
}

/// Makes the table of how late the machine was, with one row for each kind of lateness. Returns `None` for a
/// run in `sim`, and if nothing was measured.
pub(crate) fn machine(run: &RunSummary) -> Option<Grid> {
    let machine = run.machine.as_ref()?;
    let kinds = [
        ("emulator's writes", &machine.emulator_late_ms),
        ("emulator's backlog", &machine.emulator_backlog_ms),
        ("senders here", &machine.senders_late_ms),
        ("senders at the far host", &machine.far_senders_late_ms),
    ];
    let mut rows = Vec::new();
    for (name, lateness) in kinds {
        if let Some(LateMs { p50, p99, max }) = *lateness {
            rows.push(LatenessRow { name: name.to_owned(), p50_ms: p50, p99_ms: p99, max_ms: max });
        }
    }
    let mut head = Column::words("late on this machine");
    for (name, flow) in &run.flows {
        if let Some(TurnRoundMs { p50, p99, max, .. }) = flow.turn_round_ms {
            let name = format!("turn-round of {}", short_name(name));
            rows.push(LatenessRow { name, p50_ms: p50, p99_ms: p99, max_ms: max });
            head = head.explained(Metric::TURN_ROUND_P99.term("turn-round").about(Topic::Delay));
        }
    }
    if rows.is_empty() {
        return None;
    }
    let mut columns: Columns<'_, LatenessRow> = Columns::new();
    columns.add(head, |row| row.name.clone());
    columns.add(Column::numbers("ms", "p50"), |row| fixed(Some(row.p50_ms), 3));
    columns.add(Column::numbers("ms", "p99"), |row| fixed(Some(row.p99_ms), 3));
    columns.add(Column::numbers("ms", "max"), |row| fixed(Some(row.max_ms), 3));
    Some(columns.grid(rows))
}

/// Says in one sentence how else the machine may have disturbed the repetition. Returns `None` if nothing is
/// known.
pub(crate) fn machine_line(run: &RunSummary) -> Option<String> {
    let machine = run.machine.as_ref()?;
    let mut parts = Vec::new();
    if let Some(real_time) = machine.real_time {
        parts.push(if real_time { "real-time priority" } else { "no real-time priority" }.to_owned());
    }
    if machine.stolen_share.is_some_and(|share| share > 0.0) {
        parts.push(format!(
            "{} % of its processors' time taken by a hypervisor",
            percent(machine.stolen_share)
        ));
    }
    if let (Some(stops @ 1..), Some(longest)) = (machine.stops, machine.longest_stop_ms) {
        let times = if stops == 1 { "once".to_owned() } else { format!("{} times", count(stops)) };
        parts.push(format!("the path stood still {times}, {longest:.1} ms at most"));
    }
    if let Some(packets) = machine.packets {
        let share = percent(machine.emulator_cpu_share);
        parts
            .push(format!("{} through the emulator on {share} % of a processor", counted(packets, "packet")));
    }
    if let Some(drops) = machine.device_drops {
        parts.push(format!("{} dropped by its devices", count(drops)));
    }
    if let Some(drops) = machine.socket_drops {
        parts.push(format!("{} dropped by receiving sockets", count(drops)));
    }
    let damaged = [(machine.checksum_errors, "here"), (machine.far_checksum_errors, "at the far host")];
    for (errors, place) in damaged {
        if let Some(errors @ 1..) = errors {
            parts.push(format!("{} UDP datagrams {place} with a wrong checksum", count(errors)));
        }
    }
    (!parts.is_empty()).then(|| format!("Machine: {}.", parts.join(", ")))
}
