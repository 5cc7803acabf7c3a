//! `talkpath play` writes a page on which the packets of a simulated run move over its network.

use std::io::Write as _;

use talkpath_commands::again::Again;
use talkpath_commands::arenas::interrupted;
use talkpath_commands::args::PlayArgs;
use talkpath_commands::failure::Failure;
use talkpath_commands::interrupt;
use talkpath_commands::network::network;
use talkpath_commands::output_file::write_named;
use talkpath_commands::output_file::{PLAY, refuse_records};
use talkpath_commands::summary_file::head_of;
use talkpath_commands::terminal::Terminal;
use talkpath_experiment::run_dir::{PartId, RunDir};
use talkpath_measure::series::SeriesDetail;
use talkpath_measure::{DropCause, Series, SeriesKind};
use talkpath_model::Scenario;
use talkpath_report::{Animation, PlayFate, PlayHop, play_page};
use talkpath_sim::journey::{Hop, HopFate, Journeys, journeys};
use talkpath_units::{Instant, counted};

/// Runs the simulation again and writes the page.
pub(crate) fn run(args: &PlayArgs, terminal: Terminal) -> Result<(), Failure> {
    let dir = RunDir::open(&args.run)?;
    if let Some(path) = &args.output {
        refuse_records("-o", path, &[dir.path()], Some(PLAY))?;
    }
    let id = PartId { cell: args.cell, repetition: args.repetition };
    let again = Again::load(&dir, &head_of(&dir)?, &args.run, id)?;
    let window = again.window(&args.from, Some(&args.length))?;
    let stop = interrupt::install()?;
    let plan = again.plan(Some(SeriesDetail::Full), &stop);
    let journeys = journeys(&again.scenario, &plan, window, MOST_HOPS).ok_or_else(interrupted)?;
    let mut animation = animation(&again.scenario, &journeys);
    animation.about = format!(
        "cell {}, repetition {}, {} to {} s of run time",
        id.cell,
        id.repetition,
        journeys.window.0.as_secs_f64(),
        journeys.window.1.as_secs_f64()
    );
    if journeys.is_cut {
        animation.warnings.push(format!(
            "A page holds {MOST_HOPS} hops of packets at most: this one ends at {:.3} s; --from begins later",
            journeys.window.1.as_secs_f64()
        ));
    }
    let path = args.output.clone().unwrap_or_else(|| dir.file(PLAY));
    write_named(&path, |writer| {
        let page = play_page(&animation, env!("CARGO_PKG_VERSION"));
        writer.write_all(page.as_bytes()).map_err(|why| Failure::write(&path, why))
    })?;
    terminal.result(&format!("{} of packets: {}\n", counted(animation.hops.len(), "hop"), path.display()))
}

/// Makes the animation of the packets of a run of `scenario`.
fn animation(scenario: &Scenario, journeys: &Journeys) -> Animation {
    let from = micros(journeys.window.0);
    let mut animation = network(scenario);
    let length = micros(journeys.window.1).saturating_sub(from).max(1);
    animation.hops = journeys.hops.iter().map(|hop| play_hop(hop, from, length)).collect();
    (animation.from, animation.length) = (from, length);
    for flow in &mut animation.flows {
        let is_cwnd = |series: &&Series| series.kind == SeriesKind::Cwnd && series.entity == flow.name;
        let line = journeys.series.iter().find(is_cwnd);
        let mut points: Vec<(u64, f64)> = Vec::new();
        for (at, value) in line.iter().flat_map(|line| &line.points) {
            let at = micros(*at).saturating_sub(from);
            // Points before the beginning of the page have the time 0. Only the last of them is kept.
            if at == 0 {
                points.clear();
            }
            points.push((at, (100.0 * value).round() / 100.0));
        }
        flow.cwnd = points;
    }
    animation
}

/// Makes a hop on a page that begins at `from` and is `length` long, both in µs. A packet that was on its way
/// when the run ended stays on its link until the page ends.
fn play_hop(hop: &Hop, from: u64, length: u64) -> PlayHop {
    let at = |at: Instant| micros(at) as i64 - from as i64;
    let fate = match hop.fate {
        HopFate::Passed | HopFate::UnderWay => PlayFate::Passed,
        HopFate::Gone(DropCause::Loss) => PlayFate::Lost,
        HopFate::Gone(_) => PlayFate::Dropped,
    };
    let (mut began, mut sent, mut left) = (at(hop.began), at(hop.sent), at(hop.left));
    if hop.fate == HopFate::UnderWay {
        left = left.max(length as i64 + 1);
        if hop.began == hop.left {
            (began, sent) = (left, left);
        }
    }
    PlayHop {
        flow: hop.flow,
        link: hop.link,
        fate,
        size: u32::try_from(hop.size.get()).unwrap_or(u32::MAX),
        entered: at(hop.entered),
        began,
        sent,
        left,
    }
}

fn micros(at: Instant) -> u64 {
    at.as_nanos() / 1000
}

/// How many hops a page has at most (chosen). Each takes about 30 bytes, so a page has a few MB.
const MOST_HOPS: usize = 200_000;

#[cfg(test)]
mod tests {
    use super::*;
    use talkpath_path::Direction;
    use talkpath_units::Bytes;

    #[test]
    fn a_packet_that_waits_when_the_run_ends_waits_on_the_page_up_to_its_end() {
        let at = Instant::from_millis;
        let (entered, end, size) = (at(9), at(10), Bytes::new(1500));
        let (packet, flow, link, direction, fate) = (0, 0, 0, Direction::Out, HopFate::UnderWay);
        let waits =
            Hop { packet, flow, direction, link, size, entered, began: end, sent: end, left: end, fate };
        // The page has the run's last 4 ms.
        let hop = play_hop(&waits, 6000, 4000);
        assert_eq!((hop.entered, hop.fate), (3000, PlayFate::Passed));
        assert!(hop.began > 4000 && hop.sent == hop.began && hop.left == hop.began, "{hop:?}");
        let travels = Hop { began: at(9), sent: at(9), left: at(20), ..waits };
        let hop = play_hop(&travels, 6000, 4000);
        assert_eq!((hop.began, hop.sent, hop.left), (3000, 3000, 14_000));
    }
}
