//! What the machine did to one repetition.

use talkpath_measure::summary::RunSummary;

use super::titles::short;
use crate::columns::Columns;
use crate::grid::{Column, Grid};
use crate::number::{count, counted, fixed, percent};

/// What the machine did to one repetition; `None` in `sim`.
pub(crate) fn machine(run: &RunSummary) -> Option<Grid> {
    let machine = run.machine.as_ref()?;
    let late = [
        ("emulator's writes", &machine.emulator_late_ms),
        ("emulator's backlog", &machine.emulator_backlog_ms),
        ("senders here", &machine.senders_late_ms),
        ("senders at the far host", &machine.far_senders_late_ms),
    ];
    let mut columns: Columns<'_, (String, [f64; 3])> = Columns::new();
    columns.add(Column::words("late on this machine"), |(name, _)| name.clone());
    columns.add(Column::numbers("ms", "p50"), |(_, [p50, ..])| fixed(Some(*p50), 3));
    columns.add(Column::numbers("ms", "p99"), |(_, [_, p99, _])| fixed(Some(*p99), 3));
    columns.add(Column::numbers("ms", "max"), |(_, [.., max])| fixed(Some(*max), 3));
    let rows = late.iter().filter_map(|(name, late)| {
        let late = late.as_ref()?;
        Some(((*name).to_owned(), [late.p50, late.p99, late.max]))
    });
    let turns = run.flows.iter().filter_map(|(name, flow)| {
        let turns = flow.turn_round_ms.as_ref()?;
        Some((format!("turn-round of {}", short(name)), [turns.p50, turns.p99, turns.max]))
    });
    let grid = columns.grid(rows.chain(turns));
    (!grid.rows.is_empty()).then_some(grid)
}

/// What else the machine did to one repetition, in a sentence.
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
