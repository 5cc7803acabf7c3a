//! `talkpath stamp` is a session-sender or a session-reflector of STAMP (RFC 8762).

use std::net::{Ipv6Addr, SocketAddr};
use std::sync::atomic::Ordering;

use serde::Serialize;
use talkpath_commands::arenas;
use talkpath_commands::args::{Common, StampArgs};
use talkpath_commands::failure::Failure;
use talkpath_commands::interrupt;
use talkpath_commands::terminal::{self, Terminal};
use talkpath_experiment::Error;
use talkpath_experiment::json::json;
use talkpath_live::stamp::{self, Dscps, PORT, ReflectOptions, Reflector, StampOptions, StampRun};
use talkpath_measure::metrics::delay::{sorted_delays, statistics};
use talkpath_measure::metrics::histogram::delay_ms;
use talkpath_measure::metrics::trip::one_way_trips;
use talkpath_measure::summarise::summarise_flow;
use talkpath_measure::summary::{Clock, DelayMs, IpdvMs};
use talkpath_measure::{FlowRecord, LegRecord};
use talkpath_units::{Bytes, Histogram, counted};

/// Runs the sender or the reflector.
pub(crate) fn run(args: &StampArgs, common: &Common, terminal: Terminal) -> Result<(), Failure> {
    match &args.to {
        Some(to) => send(to, args, common, terminal),
        None => reflect(args, terminal),
    }
}

/// Sends packets to a reflector, and prints the figures.
fn send(to: &str, args: &StampArgs, common: &Common, terminal: Terminal) -> Result<(), Failure> {
    let dscps = args.dscp.map(|(packets, answers)| Dscps { packets, answers });
    let min_size = StampOptions::min_size(dscps);
    let size = args.size.unwrap_or(min_size);
    if size < min_size {
        return Err(Failure::Usage(format!(
            "--size {size} has no room for a Class of Service TLV: {min_size} B are needed"
        )));
    }
    let options = StampOptions {
        host: to.to_owned(),
        ip: args.family.only()?,
        interval: args.interval,
        count: args.count,
        size: Bytes::new(size),
        dscps,
        is_stateful: args.stateful,
        clocks_synchronised: args.clocks_synchronised,
        wait: args.wait,
    };
    let stop = interrupt::install()?;
    let run = stamp::send(&options, &stop).map_err(|why| arenas::failure(why).1);
    let printed = run.and_then(|run| print_figures(to, &run, common, terminal));
    // A run that was interrupted may still have figures. They are printed, and the command ends as
    // interrupted.
    let is_interrupted = matches!(printed, Err(Failure::Experiment { error: Error::Interrupted(_), .. }));
    let stopped = (stop.load(Ordering::Relaxed) && !is_interrupted).then(arenas::interrupted);
    terminal.end_with([stopped, printed.err()])
}

/// Prints the figures of the run.
fn print_figures(to: &str, run: &StampRun, common: &Common, terminal: Terminal) -> Result<(), Failure> {
    let figures = Figures::new(to, run).ok_or_else(|| Failure::far_end(format!("{to}: no record")))?;
    for warning in &run.record.warnings {
        terminal.warning(warning);
    }
    if common.json() { terminal::print(&json(&figures)) } else { terminal.result(&figures.for_person()) }
}

/// The object that `--json` prints.
#[derive(Serialize)]
struct Figures<'a> {
    to: &'a str,
    sent: u64,
    received: u64,
    lost: u64,
    /// The losses of each direction, or `None` if only their sum is known.
    lost_forward: Option<u64>,
    lost_return: Option<u64>,
    /// True if the reflector numbers its answers itself. `None` if that is not known. It is never false.
    stateful: Option<bool>,
    duplicates: u64,
    reordered: u64,
    round_trip_delay_ms: Option<DelayMs>,
    one_way_delay_ms: Option<DelayMs>,
    return_delay_ms: Option<DelayMs>,
    turn_round_ms: Option<DelayMs>,
    ipdv_ms: Option<IpdvMs>,
    clock: Clock,
    far_clock_synchronised: Option<bool>,
    far_clock_error_ms: Option<f64>,
    ttl: Option<(u8, u8)>,
    class_of_service: Option<Class>,
    odd_answers: u64,
    warnings: &'a [String],
}

#[derive(Serialize)]
struct Class {
    dscp_there: u8,
    ecn_there: u8,
    refused: bool,
    dscp_back: Option<u8>,
}

impl<'a> Figures<'a> {
    fn new(to: &'a str, run: &'a StampRun) -> Option<Self> {
        let record = &run.record;
        let flow = record.flows.first()?;
        let echo = flow.echo.as_ref()?;
        let window = record.window_start..record.window_end;
        let figures = summarise_flow(flow, &window);
        let is_trusted = flow.info.clock_trusted;
        let back = one_way_trips(echo, &(window.start..talkpath_units::Instant::MAX));
        Some(Self {
            to,
            sent: figures.sent,
            received: figures.received,
            lost: figures.lost,
            lost_forward: run.losses.map(|losses| losses.forward),
            lost_return: run.losses.map(|losses| losses.back),
            stateful: run.is_stateful.then_some(true),
            duplicates: figures.duplicates,
            reordered: figures.reordered,
            round_trip_delay_ms: figures.round_trip_delay_ms,
            one_way_delay_ms: figures.one_way_delay_ms,
            return_delay_ms: statistics(&sorted_delays(&back)).filter(|_| is_trusted),
            turn_round_ms: delay_ms(&turn_rounds(flow, echo)),
            ipdv_ms: figures.ipdv_ms,
            clock: Clock::from(&record.clock),
            far_clock_synchronised: run.reflector.clock.map(|clock| clock.is_synchronised),
            far_clock_error_ms: run
                .reflector
                .clock
                .and_then(|clock| clock.max_error_ns)
                .map(|error_ns| error_ns as f64 / 1e6),
            ttl: run.reflector.ttl.map(|ttl| (ttl.min, ttl.max)),
            class_of_service: run.reflector.class_of_service.map(|class| Class {
                dscp_there: class.packet_dscp,
                ecn_there: class.packet_ecn,
                refused: class.is_refused,
                dscp_back: class.answer_dscp,
            }),
            odd_answers: run.unmatched_answers,
            warnings: &record.warnings,
        })
    }

    /// Writes the figures for a person.
    fn for_person(&self) -> String {
        let by_direction = match (self.lost_forward, self.lost_return) {
            (Some(there), Some(back)) => format!(": {there} there, {back} back"),
            _ => "; which way is not known: the reflector numbers no packets of its own, or --stateful is needed"
                .to_owned(),
        };
        let mut text = format!(
            "{}: {} sent, {} received, {} lost{}\n\n{:<14}{:>10}{:>10}{:>10}{:>10}{:>10}  ms\n",
            self.to,
            self.sent,
            self.received,
            self.lost,
            if self.lost == 0 { String::new() } else { by_direction },
            "",
            "min",
            "p50",
            "p95",
            "p99",
            "max"
        );
        let rows = [
            ("round trip", &self.round_trip_delay_ms),
            ("there", &self.one_way_delay_ms),
            ("back", &self.return_delay_ms),
            ("turn-round", &self.turn_round_ms),
        ];
        for (name, delays) in rows {
            match delays {
                Some(delay) => text.push_str(&format!(
                    "{name:<14}{:>10.3}{:>10.3}{:>10.3}{:>10.3}{:>10.3}\n",
                    delay.min, delay.p50, delay.p95, delay.p99, delay.max
                )),
                None => text.push_str(&format!("{name:<14}{:>10}\n", "-")),
            }
        }
        text.push_str(&format!("\nClocks: {}\n", self.clock.why));
        if let Some(class) = &self.class_of_service {
            let back = class.dscp_back.map_or_else(|| "?".to_owned(), |dscp| dscp.to_string());
            let refused = if class.refused { ", which was refused" } else { "" };
            text.push_str(&format!(
                "Class of service: DSCP {} came there, {back} came back{refused}\n",
                class.dscp_there
            ));
        } else if self.odd_answers > 0 {
            text.push_str(&format!("{} to no packet of this test\n", counted(self.odd_answers, "answer")));
        }
        text
    }
}

/// How long the reflector held each packet before it answered.
fn turn_rounds(flow: &FlowRecord, echo: &LegRecord) -> Histogram {
    let mut turns = Histogram::new();
    let mut held = flow.forward.messages.iter().filter(|row| row.received.is_some());
    for back in &echo.messages {
        let there = held.find(|row| row.seq == back.seq).and_then(|row| row.received);
        if let Some(there) = there {
            turns.record_unsigned(back.due.since(there));
        }
    }
    turns
}

/// Reflects packets until Ctrl-C, which is the normal end of a reflector.
fn reflect(args: &StampArgs, terminal: Terminal) -> Result<(), Failure> {
    let bind = args.bind.unwrap_or_else(|| SocketAddr::from((Ipv6Addr::UNSPECIFIED, PORT)));
    if !args.open && !bind.ip().to_canonical().is_loopback() {
        return Err(Failure::Usage(format!(
            "who may be answered on {bind}? Add --open for everybody who can reach the port, or --bind 127.0.0.1 for this host \
             alone; STAMP without authentication knows no key"
        )));
    }
    let stop = interrupt::install()?;
    let options = ReflectOptions {
        bind,
        is_stateful: args.stateful,
        packets_per_s: args.max_packets,
        sessions: args.max_sessions as usize,
    };
    let unavailable = |why: std::io::Error| {
        let how = "--bind ADDR:PORT chooses another port; those below 1024 need more rights";
        Failure::unavailable(format!("cannot reflect on {bind}: {why}"), how)
    };
    let mut reflector = Reflector::bind(options).map_err(unavailable)?;
    let address = reflector.local_addr().map_err(unavailable)?;
    for what in reflector.unreported() {
        terminal.warning(&format!("this host's kernel {what}"));
    }
    terminal.result(&format!("reflecting on {address}\n"))?;
    let counts = reflector.run(&stop);
    terminal.note(&format!(
        "answered {}; passed over {} that were no test packets, and {} beyond a bound",
        counted(counts.answered, "packet"),
        counts.ignored,
        counts.over_limit
    ));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use talkpath_commands::args::STAMP_SIZE;

    #[test]
    fn the_command_line_takes_the_smallest_packet_that_can_be_sent() {
        assert_eq!(StampOptions::min_size(None), STAMP_SIZE);
    }
}
