//! Every figure of every flow of one repetition: flows across, figures down. For the page, if there is room.

use std::collections::BTreeMap;

use talkpath_measure::summary::{
    Basis, CallSummary, DelayMs, Direction, EcnSummary, FlowSummary, IpSeen, IpdvMs, Ledger, MinMeanMax,
    MultipathSummary, RtpStream, RunSummary, TurnRoundMs,
};

use crate::grid::{Column, Grid, Role, Row, printable};
use crate::number::{UNKNOWN, count, decimals, fixed, percent};

/// The grid; one column a flow.
pub(crate) fn details(run: &RunSummary) -> Grid {
    let flows: Vec<&FlowSummary> = run.flows.values().map(Box::as_ref).collect();
    let mut columns = vec![Column::words("figure")];
    columns.extend(run.flows.keys().map(|name| Column::numbers("", &printable(name), 0)));
    let row = |(name, text): &(&str, fn(&FlowSummary) -> String)| Row {
        cells: [(*name).to_owned()].into_iter().chain(flows.iter().map(|flow| text(flow))).collect(),
        role: Role::Plain,
        display: None,
    };
    Grid { columns, rows: FIGURES.iter().map(row).collect() }
}

/// A figure's name with its unit, and its text.
type FigureText = (&'static str, fn(&FlowSummary) -> String);

/// In the order of summary.json.
const FIGURES: [FigureText; 91] = [
    ("transport", |f| printable(&f.transport)),
    ("congestion control", |f| f.cc.as_deref().map_or_else(unknown, printable)),
    ("messages due", |f| ledger(f, |it| it.due)),
    ("messages due, not refused", |f| count(f.sent)),
    ("messages received", |f| count(f.received)),
    ("messages lost", |f| count(f.lost)),
    ("lost on the way out", |f| f.lost_forward.map_or_else(unknown, count)),
    ("lost on the way back", |f| f.lost_return.map_or_else(unknown, count)),
    ("loss, %", |f| percent(f.loss_rate)),
    ("duplicates", |f| count(f.duplicates)),
    ("reordered", |f| count(f.reordered)),
    ("unfinished", |f| count(f.unfinished)),
    ("refused", |f| count(f.refused)),
    ("lost: expired", |f| ledger(f, |it| it.expired)),
    ("lost: never sent, no network", |f| ledger(f, |it| it.no_network)),
    ("lost: never sent, connection not open", |f| ledger(f, |it| it.not_open)),
    ("opened after, ms", |f| ms(f.opening_ms)),
    ("longest run of missing messages", |f| count(f.loss_runs.max)),
    ("mean run of missing messages", |f| fixed(f.loss_runs.mean, 2)),
    ("in time, %", |f| percent(f.in_time)),
    ("deadline, ms", |f| ms(f.deadline_ms)),
    ("opinion score (MOS)", |f| fixed(f.call.as_ref().map(|call| call.mos), 2)),
    ("mouth to ear p50, ms", |f| {
        ms(f.call.as_ref().and_then(|call| Some(call.mouth_to_ear_ms.as_ref()?.p50)))
    }),
    ("frames late for playout", |f| f.call.as_ref().map_or_else(unknown, |call| count(call.late))),
    ("opinion score (MOS) with the second receiver", |f| {
        fixed(f.call.as_ref().and_then(|call| Some(call.other_receiver.as_ref()?.mos)), 2)
    }),
    ("longest gap, ms", |f| ms(f.call.as_ref().and_then(|call| call.longest_gap_ms))),
    ("gaps of 200 ms or more within a minute", |f| {
        f.call.as_ref().and_then(|call| call.gaps_in_a_minute).map_or_else(unknown, count)
    }),
    ("usable as a call", |f| yes_or_no(f.call.as_ref().and_then(|call| call.usable))),
    ("outside the E-model's table", |f| f.call.as_ref().map_or_else(unknown, |call| outside(call))),
    ("the call's figures rest on", |f| f.call.as_deref().map_or_else(unknown, basis)),
    ("age of the newest state p50, ms", |f| ms(f.state_age_ms.as_ref().map(|age| age.p50))),
    ("age of the newest state p99, ms", |f| ms(f.state_age_ms.as_ref().map(|age| age.p99))),
    ("round trip min, ms", |f| rtt(f, |d| d.min)),
    ("round trip mean, ms", |f| rtt(f, |d| d.mean)),
    ("round trip p50, ms", |f| rtt(f, |d| d.p50)),
    ("round trip p90, ms", |f| rtt(f, |d| d.p90)),
    ("round trip p95, ms", |f| rtt(f, |d| d.p95)),
    ("round trip p99, ms", |f| rtt(f, |d| d.p99)),
    ("round trip p99.9, ms", |f| rtt(f, |d| d.p999)),
    ("round trip max, ms", |f| rtt(f, |d| d.max)),
    ("turn-round p50, ms", |f| turns(f, |t| t.p50)),
    ("turn-round p90, ms", |f| turns(f, |t| t.p90)),
    ("turn-round p99, ms", |f| turns(f, |t| t.p99)),
    ("turn-round max, ms", |f| turns(f, |t| t.max)),
    ("one way min, ms", |f| owd(f, |d| d.min)),
    ("one way mean, ms", |f| owd(f, |d| d.mean)),
    ("one way p50, ms", |f| owd(f, |d| d.p50)),
    ("one way p90, ms", |f| owd(f, |d| d.p90)),
    ("one way p95, ms", |f| owd(f, |d| d.p95)),
    ("one way p99, ms", |f| owd(f, |d| d.p99)),
    ("one way p99.9, ms", |f| owd(f, |d| d.p999)),
    ("one way max, ms", |f| owd(f, |d| d.max)),
    ("IPDV p50, ms", |f| ipdv(f, |d| d.p50)),
    ("IPDV p90, ms", |f| ipdv(f, |d| d.p90)),
    ("IPDV p95, ms", |f| ipdv(f, |d| d.p95)),
    ("IPDV p99, ms", |f| ipdv(f, |d| d.p99)),
    ("IPDV max, ms", |f| ipdv(f, |d| d.max)),
    ("RTP jitter (RFC 3550 §A.8), ms", |f| ms(f.rtp_jitter_ms)),
    ("RTP delta min / mean / max, ms", |f| rtp(f, |stream| stream.delta_ms)),
    ("RTP jitter min / mean / max, ms", |f| rtp(f, |stream| stream.jitter_ms)),
    ("goodput, kb/s", |f| fixed(f.goodput_bps.map(|bps| bps / 1e3), 1)),
    ("net rate, messages/s", |f| fixed(f.net_rate_pps, 2)),
    ("error adjusted rate, messages/s", |f| fixed(f.error_adjusted_rate_pps, 2)),
    ("first sent to last received, ms", |f| ms(f.first_sent_to_last_received_ms)),
    ("first to last received, ms", |f| ms(f.first_to_last_received_ms)),
    ("blocked, ms", |f| ms(f.blocked_ms)),
    ("resent, %", |f| percent(f.retransmit_rate)),
    ("resent, packets", |f| f.retransmissions.map(|count| count.to_string()).unwrap_or_default()),
    ("timeouts", |f| f.timeouts.map(|count| count.to_string()).unwrap_or_default()),
    ("mean cwnd, packets", |f| fixed(f.cwnd_packets, 1)),
    ("mean of the smaller of cwnd and receiver's window, packets", |f| fixed(f.window_packets, 1)),
    ("mean send buffer, kB", |f| fixed(f.send_buffer_bytes.as_ref().map(|buffer| buffer.mean / 1e3), 1)),
    ("largest send buffer, kB", |f| fixed(f.send_buffer_bytes.as_ref().map(|buffer| buffer.max / 1e3), 1)),
    ("takes marks (ECN)", |f| yes_or_no(f.ecn.and_then(|ecn| ecn.capable))),
    ("marked on the way out, packets", |f| marks(f, |ecn| ecn.marked_forward)),
    ("marked on the way back, packets", |f| marks(f, |ecn| ecn.marked_return)),
    ("delivered under an echoed mark, out, packets", |f| marks(f, |ecn| ecn.echoed_forward)),
    ("delivered under an echoed mark, back, packets", |f| marks(f, |ecn| ecn.echoed_return)),
    ("DSCP asked for", |f| f.ip.as_ref().and_then(|ip| ip.dscp.clone()).unwrap_or_default()),
    ("DSCP seen on the way out, datagrams", |f| seen(f.ip.as_ref().map(|ip| &ip.forward), by_dscp)),
    ("DSCP seen on the way back, datagrams", |f| {
        seen(f.ip.as_ref().and_then(|ip| ip.back.as_ref()), by_dscp)
    }),
    ("ECN field seen on the way out, datagrams", |f| seen(f.ip.as_ref().map(|ip| &ip.forward), by_ecn)),
    ("ECN field seen on the way back, datagrams", |f| {
        seen(f.ip.as_ref().and_then(|ip| ip.back.as_ref()), by_ecn)
    }),
    ("hops left (TTL) out, back", |f| both_ways(f, hops)),
    ("path MTU out, back, B", |f| {
        both_ways(f, |way| way.path_mtu_bytes.map_or_else(unknown, |bytes| count(bytes.into())))
    }),
    ("Multipath TCP: subflows at most", |f| match f.multipath {
        None => String::new(),
        Some(MultipathSummary { fell_back: Some(true), .. }) => "none: plain TCP".to_owned(),
        Some(seen) => seen.subflows_max.map_or_else(unknown, |most| count(most.into())),
    }),
    ("loss runs by length from 1", |f| histogram(&f.loss_runs.histogram)),
    ("in words (Foderaro 1995)", |f| f.verdict.as_deref().map_or_else(unknown, printable)),
    ("file bytes received", |f| {
        f.file.as_ref().and_then(|file| file.received_bytes).map_or_else(unknown, count)
    }),
    ("file intact", |f| yes_or_no(f.file.as_ref().and_then(|file| file.intact))),
    ("missing byte ranges of the file", |f| {
        f.file.as_ref().map_or_else(unknown, |file| count(file.missing_ranges))
    }),
];

fn ledger(flow: &FlowSummary, of: fn(&Ledger) -> u64) -> String {
    flow.ledger.as_ref().map_or_else(unknown, |ledger| count(of(ledger)))
}

fn yes_or_no(what: Option<bool>) -> String {
    match what {
        Some(true) => "yes".to_owned(),
        Some(false) => "no".to_owned(),
        None => unknown(),
    }
}

/// The inputs of the E-model that its table does not have.
fn outside(call: &CallSummary) -> String {
    let each = call.outside_model.iter().map(|it| format!("{} {}", it.input.name(), it.input.text(it.value)));
    let each = each.collect::<Vec<_>>().join(", ");
    if each.is_empty() { "nothing".to_owned() } else { each }
}

/// Lengths that a cell shows.
const HISTOGRAM: usize = 8;

/// Along which way, and what its receiver does.
fn basis(call: &CallSummary) -> String {
    let way = match (call.basis, call.direction) {
        (Basis::HalfRoundTrip, _) => "half the round trip",
        (_, Some(Direction::Return)) => "the way back",
        (_, _) => "the way out",
    };
    let concealment = match call.concealment.as_str() {
        "" | "none" => "nothing concealed".to_owned(),
        kind => format!("concealment {}", printable(kind)),
    };
    format!("{way}, {} playout, {concealment}", printable(&call.playout))
}

fn marks(flow: &FlowSummary, pick: fn(&EcnSummary) -> Option<u64>) -> String {
    flow.ecn.as_ref().and_then(pick).map_or_else(unknown, count)
}

/// What `write` makes of one direction's headers.
fn seen(way: Option<&IpSeen>, write: fn(&IpSeen) -> String) -> String {
    way.map(write).filter(|text| !text.is_empty()).unwrap_or_default()
}

fn by_dscp(way: &IpSeen) -> String {
    way.dscp.as_ref().map_or_else(unknown, counts)
}

fn by_ecn(way: &IpSeen) -> String {
    way.ecn.as_ref().map_or_else(unknown, counts)
}

/// Names and their counts, the first few of them.
fn counts(of: &BTreeMap<String, u64>) -> String {
    let each =
        of.iter().take(HISTOGRAM).map(|(name, number)| format!("{} {}", printable(name), count(*number)));
    each.collect::<Vec<_>>().join(", ")
}

fn hops(way: &IpSeen) -> String {
    match (way.ttl_min, way.ttl_max) {
        (Some(least), Some(most)) if least == most => least.to_string(),
        (Some(least), Some(most)) => format!("{least} to {most}"),
        _ => unknown(),
    }
}

/// What `write` makes of each direction; empty if nothing is known.
fn both_ways(flow: &FlowSummary, write: fn(&IpSeen) -> String) -> String {
    let Some(ip) = &flow.ip else { return String::new() };
    let ways: Vec<_> = core::iter::once(&ip.forward).chain(&ip.back).map(write).collect();
    if ways.iter().all(|way| *way == unknown()) { String::new() } else { ways.join(", ") }
}

fn rtt(flow: &FlowSummary, pick: fn(&DelayMs) -> f64) -> String {
    ms(flow.round_trip_delay_ms.as_ref().map(pick))
}

fn owd(flow: &FlowSummary, pick: fn(&DelayMs) -> f64) -> String {
    ms(flow.one_way_delay_ms.as_ref().map(pick))
}

/// With as many decimals as the lateness of the sender, which is listed beside it.
fn turns(flow: &FlowSummary, pick: fn(&TurnRoundMs) -> f64) -> String {
    fixed(flow.turn_round_ms.as_ref().map(pick), 3)
}

fn ipdv(flow: &FlowSummary, pick: fn(&IpdvMs) -> f64) -> String {
    ms(flow.ipdv_ms.as_ref().map(pick))
}

/// With as many decimals as tshark's `-z rtp,streams` has, so that the two can be laid side by side.
fn rtp(flow: &FlowSummary, pick: fn(&RtpStream) -> MinMeanMax) -> String {
    flow.rtp_stream.as_ref().map(pick).map_or_else(unknown, |figures| {
        format!("{:.3} / {:.3} / {:.3}", figures.min, figures.mean, figures.max)
    })
}

fn ms(value: Option<f64>) -> String {
    fixed(value, value.map_or(1, decimals))
}

fn histogram(counts: &[u64]) -> String {
    let mut shown: Vec<String> = counts.iter().take(HISTOGRAM).map(|n| count(*n)).collect();
    if counts.len() > HISTOGRAM {
        shown.push("…".to_owned());
    }
    if shown.is_empty() { "none".to_owned() } else { shown.join(", ") }
}

fn unknown() -> String {
    UNKNOWN.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn each_figure_stands_once_with_the_flows_own_value() {
        let mut summary = fixture::summary(1);
        let run = &mut summary.runs[0];
        let stream = |min, max| MinMeanMax { min, mean: 20.0, max };
        let call = run.flows.get_mut("call").unwrap();
        call.turn_round_ms = Some(TurnRoundMs { p50: 0.05, p90: 0.1, p99: 0.25, max: 991.0 });
        call.rtp_stream = Some(RtpStream { delta_ms: stream(17.25, 24.0), jitter_ms: stream(0.0004, 31.0) });
        let run = &*run;
        let grid = details(run);
        let row = |name: &str| {
            let mut rows = grid.rows.iter().filter(|row| row.cells[0] == name);
            let found = rows.next().unwrap();
            assert!(rows.next().is_none());
            found.cells[1..].to_vec()
        };
        let call = &run.flows["call"];
        assert_eq!(row("messages lost")[0], call.lost.to_string());
        let delay = call.round_trip_delay_ms.as_ref().unwrap();
        assert_eq!(row("round trip p99.9, ms"), [format!("{:.1}", delay.p999), "–".to_owned()]);
        assert_eq!(row("turn-round p99, ms"), ["0.250", "–"]);
        assert_eq!(row("turn-round max, ms")[0], "991.000");
        assert_eq!(row("one way max, ms"), ["–", "300.0"]);
        assert_eq!(row("RTP delta min / mean / max, ms")[0], "17.250 / 20.000 / 24.000");
        assert_eq!(row("RTP jitter min / mean / max, ms")[0], "0.000 / 20.000 / 31.000");
        for (index, (name, _)) in FIGURES.iter().enumerate() {
            assert!(FIGURES[..index].iter().all(|(other, _)| other != name));
        }
    }
}
