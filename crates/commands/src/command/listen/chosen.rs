//! Which calls of a run to listen to, and their records.

use std::collections::BTreeMap;

use talkpath_experiment::part::PACKETS;
use talkpath_experiment::run_dir::{PartId, RunDir};
use talkpath_measure::FlowRecord;
use talkpath_measure::RunRecord;
use talkpath_measure::summary::{CallSummary, RunSummary, Summary};
use talkpath_scenario::{Flow, Plan, Scenario};

use crate::again::Repetitions;
use crate::arenas::Arenas;
use crate::args::ListenArgs;
use crate::command::report::{has_trusted_clock, needs_new_run, stored_records};
use crate::failure::Failure;

/// A call of one repetition of a cell.
pub(super) struct ChosenCall<'a> {
    pub(super) id: PartId,
    pub(super) scenario: &'a Scenario,
    pub(super) flow: &'a Flow,
    /// The transport as the user wrote it.
    pub(super) transport: &'a str,
    /// The figures of the call. `None` if the summary has none.
    pub(super) rated: Option<&'a CallSummary>,
}

/// Chooses the calls that the command line asks for: one of each transport.
pub(super) fn choose<'a>(
    args: &ListenArgs,
    plan: &'a Plan,
    summary: &'a Summary,
) -> Result<Vec<ChosenCall<'a>>, Failure> {
    let unusable = |why: String| Failure::Usage(format!("{}: {why}", args.source.display()));
    let flows = || plan.cells.iter().flat_map(|cell| &cell.scenario.flows);
    let calls: Vec<&str> = {
        let mut names: Vec<&str> =
            flows().filter(|flow| flow.workload.voice().is_some()).map(|flow| flow.name.as_str()).collect();
        let mut known = std::collections::BTreeSet::new();
        names.retain(|name| known.insert(*name));
        names
    };
    let Some(first) = calls.first() else {
        return Err(unusable("no call to listen to: no flow has the workload `voice`".to_owned()));
    };
    let name = args.flow.as_deref().unwrap_or(first);
    if !calls.contains(&name) {
        return Err(unusable(format!("--flow {name}: no call of this name; the calls are {}", list(&calls))));
    }
    let shown = summary.shown_repetitions();
    let mut chosen: Vec<ChosenCall<'a>> = Vec::new();
    let mut transports: Vec<&str> = Vec::new();
    for cell in &plan.cells {
        let Some(flow) = cell.scenario.flows.iter().find(|flow| flow.name == name) else { continue };
        let transport = flow.transport_name.as_str();
        if !transports.contains(&transport) {
            transports.push(transport);
        }
        let is_wanted = match args.cell {
            Some(wanted) => wanted == cell.index,
            None => chosen.iter().all(|call| call.transport != transport),
        };
        let is_named = args.transports.is_empty() || args.transports.iter().any(|it| it == transport);
        if !is_wanted || !is_named {
            continue;
        }
        let repetition = args.repetition.or_else(|| shown.get(&cell.index).copied()).unwrap_or_default();
        let id = PartId { cell: cell.index, repetition };
        let run = find(summary, id).ok_or_else(|| {
            unusable(format!("--repetition {repetition}: cell {} has no such repetition", cell.index))
        })?;
        let rated = run.flows.get(name).and_then(|flow| flow.call.as_deref());
        chosen.push(ChosenCall { id, scenario: &cell.scenario, flow, transport, rated });
    }
    if let Some(unknown) = args.transports.iter().find(|it| !transports.contains(&it.as_str())) {
        let why = format!("--transports {unknown}: the run has `{name}` over {}", list(&transports));
        return Err(unusable(why));
    }
    match (args.cell, chosen.is_empty()) {
        (Some(cell), true) => {
            let last = plan.cells.len().saturating_sub(1);
            Err(unusable(format!("--cell {cell}: no such call in it; the cells are 0 to {last}")))
        }
        _ => Ok(chosen),
    }
}

fn list(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

fn find(summary: &Summary, id: PartId) -> Option<&RunSummary> {
    summary.runs.iter().find(|run| (run.cell, run.repetition) == (id.cell, id.repetition))
}

/// Returns the record of each chosen call: from the rows of the run, or from a new run if there are none.
pub(super) fn records<'c, 'a>(
    dir: &RunDir,
    summary: &Summary,
    calls: &'c [ChosenCall<'a>],
    arenas: &dyn Arenas,
) -> Result<Vec<(FlowRecord, &'c ChosenCall<'a>)>, Failure> {
    let wanted: BTreeMap<u64, u64> = calls.iter().map(|call| (call.id.cell, call.id.repetition)).collect();
    let mut runs: Vec<RunRecord> = Vec::new();
    let is_new = needs_new_run(dir)?;
    if is_new {
        let mut repetitions = Repetitions::open(dir, &dir.file(PACKETS), arenas)?;
        repetitions.each(
            |id| wanted.get(&id.cell) == Some(&id.repetition),
            |record| {
                runs.push(record);
                Ok(())
            },
        )?;
    } else {
        runs = stored_records(dir, &wanted)?;
    }
    let mut records = Vec::new();
    for call in calls {
        let id = |run: &&mut RunRecord| (run.cell, run.repetition) == (call.id.cell, call.id.repetition);
        let flow = runs.iter_mut().find(id).and_then(|run| {
            let at = run.flows.iter().position(|flow| flow.info.name == call.flow.name)?;
            Some(run.flows.remove(at))
        });
        let Some(mut flow) = flow else {
            return Err(Failure::Usage(format!(
                "{}: {PACKETS} has no messages of `{}` in cell {}, repetition {}; --records all keeps them",
                dir.path().display(),
                call.flow.name,
                call.id.cell,
                call.id.repetition
            )));
        };
        if !is_new {
            // The rows do not say what the flow is.
            let figures = find(summary, call.id).and_then(|run| run.flows.get(&call.flow.name));
            let is_trusted = has_trusted_clock(summary, figures.map(Box::as_ref));
            flow.info = arenas.flow_info(call.flow, is_trusted);
        }
        records.push((flow, call));
    }
    Ok(records)
}
