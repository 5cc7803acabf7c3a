//! Writes the metrics of a monitor as text for Prometheus.
//!
//! A scraper that asks for OpenMetrics 1.0 gets that format. All others get the Prometheus text format 0.0.4,
//! which the textfile collector of node_exporter reads, too. Both have the same names and samples.
//!
//! - A *family* is a metric with one name, such as `talkpath_messages_sent`. [`FAMILIES`] lists all of them.
//! - A *sample* is one value of a family. Most families have a sample for each flow.
//!
//! The names are a promise to users (docs/guide/monitor.md). A test checks that the dashboard under
//! packaging/grafana uses no other names. Begin to read with [`render`].

use std::fmt::Write as _;

use talkpath_measure::figures::{FLOW, Figure, Unit};
use talkpath_measure::summary::{FlowSummary, ThresholdOutcome};
use talkpath_units::{Histogram, SignedDuration};

use super::Epoch;
use super::interval::Counts;
use super::totals::{FlowTotals, Totals};

/// A format of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// <https://prometheus.io/docs/specs/om/open_metrics_spec/>
    OpenMetrics,
    /// <https://prometheus.io/docs/instrumenting/exposition_formats/>
    Text,
}

impl Format {
    pub(crate) const fn content_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Text => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}

/// The kind of the samples of a family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FamilyKind {
    /// A number that never falls. The name of its sample ends in `_total`.
    Counter,
    Gauge,
    Histogram,
}

/// A family of metrics: the samples of one name.
struct Family {
    /// The name without `_total`.
    name: &'static str,
    kind: FamilyKind,
    /// The meaning, without a full stop. It is empty if the family shows a figure of summary.json, which has
    /// a definition.
    help: &'static str,
    /// The unit of the samples. A figure of summary.json has its own unit.
    unit: Unit,
    source: SampleSource,
}

/// Where the samples of a family come from.
enum SampleSource {
    /// One sample for the whole monitor.
    Monitor(fn(&MonitorState<'_>) -> Option<f64>),
    /// One sample for each flow: the count at this path of summary.json, added up over all intervals.
    Sum(&'static str, fn(&Counts) -> u64),
    /// One sample for each flow: the figure at this path of summary.json, in the last interval.
    Last(&'static str),
    /// One sample for each flow: the payload that was delivered, in bytes.
    Payload,
    Delays(fn(&FlowTotals) -> &Histogram),
    /// One sample for each threshold: 1 if it has this outcome over the last intervals, else 0.
    Threshold(ThresholdOutcome),
}

/// The state of a monitor at the time at which its metrics are written.
pub(crate) struct MonitorState<'a> {
    pub(crate) totals: &'a Totals,
    pub(crate) epoch: Epoch,
    /// The host that is measured, as the user wrote it.
    pub(crate) to: &'a str,
    /// Whether messages are due at this time.
    pub(crate) is_up: bool,
    /// This time, in ns of CLOCK_MONOTONIC.
    pub(crate) now_ns: i64,
}

/// Returns a family with one sample.
const fn single(
    name: &'static str,
    kind: FamilyKind,
    help: &'static str,
    value: fn(&MonitorState<'_>) -> Option<f64>,
) -> Family {
    Family { name, kind, help, unit: Unit::One, source: SampleSource::Monitor(value) }
}

const fn sum(name: &'static str, path: &'static str, count: fn(&Counts) -> u64) -> Family {
    Family {
        name,
        kind: FamilyKind::Counter,
        help: "",
        unit: Unit::Count,
        source: SampleSource::Sum(path, count),
    }
}

/// Returns a family with the last value of the figure at `path`.
const fn last(name: &'static str, path: &'static str) -> Family {
    Family { name, kind: FamilyKind::Gauge, help: "", unit: Unit::One, source: SampleSource::Last(path) }
}

const fn delays(name: &'static str, help: &'static str, value: fn(&FlowTotals) -> &Histogram) -> Family {
    Family {
        name,
        kind: FamilyKind::Histogram,
        help,
        unit: Unit::Seconds,
        source: SampleSource::Delays(value),
    }
}

const fn threshold(name: &'static str, help: &'static str, outcome: ThresholdOutcome) -> Family {
    let source = SampleSource::Threshold(outcome);
    Family { name, kind: FamilyKind::Gauge, help, unit: Unit::One, source }
}

impl Family {
    const fn seconds(self) -> Self {
        Self { unit: Unit::Seconds, ..self }
    }

    /// Returns the figure of summary.json that the family shows, if it shows one.
    fn figure(&self) -> Option<&'static Figure<FlowSummary>> {
        match self.source {
            SampleSource::Sum(path, _) | SampleSource::Last(path) => Some(FLOW.row(path)),
            SampleSource::Monitor(_)
            | SampleSource::Payload
            | SampleSource::Delays(_)
            | SampleSource::Threshold(_) => None,
        }
    }

    fn help(&self) -> String {
        let Some(figure) = self.figure() else { return self.help.to_owned() };
        if let SampleSource::Last(_) = self.source {
            return format!("In the last interval: {}", figure.definition);
        }
        // The help is a sentence, so it begins with a capital.
        let mut letters = figure.definition.chars();
        letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect()
    }

    fn base_unit(&self) -> BaseUnit {
        BaseUnit::of_unit(self.figure().map_or(self.unit, |figure| figure.unit))
    }
}

/// The unit in which a metric is written (OpenMetrics 1.0, "Units and Base Units").
struct BaseUnit {
    /// The factor that converts a number of summary.json to this unit.
    factor: f64,
    /// The name, or `None` for a number without a unit.
    name: Option<&'static str>,
}

impl BaseUnit {
    const fn of_unit(unit: Unit) -> Self {
        let (factor, name) = match unit {
            Unit::Ms => (1e-3, Some("seconds")),
            Unit::Seconds => (1.0, Some("seconds")),
            Unit::Bytes => (1.0, Some("bytes")),
            Unit::Share => (1.0, Some("ratio")),
            Unit::Count
            | Unit::Packets
            | Unit::Bps
            | Unit::Pps
            | Unit::Score
            | Unit::One
            | Unit::Ppm
            | Unit::Judged => (1.0, None),
        };
        Self { factor, name }
    }
}

/// All families, in the order of the text.
const FAMILIES: [Family; 32] = [
    single("talkpath_up", FamilyKind::Gauge, "1 while messages are due, 0 in an outage", |state| {
        Some(f64::from(u8::from(state.is_up)))
    }),
    single(
        "talkpath_start_time_seconds",
        FamilyKind::Gauge,
        "When the monitor began, seconds since 1970",
        |state| Some(state.epoch.wall.timestamp_millis() as f64 / 1e3),
    )
    .seconds(),
    single("talkpath_intervals", FamilyKind::Counter, "Intervals that are over", |state| {
        Some(state.totals.intervals as f64)
    }),
    single(
        "talkpath_invalid_intervals",
        FamilyKind::Counter,
        "Intervals that a host disturbed past the stated limits, or without figures",
        |state| Some(state.totals.invalid_intervals as f64),
    ),
    single("talkpath_measured_seconds", FamilyKind::Counter, "Length of all intervals", |state| {
        Some(state.totals.measured.as_secs_f64())
    })
    .seconds(),
    single("talkpath_outages", FamilyKind::Counter, "Times in which nothing was measured", |state| {
        Some(state.totals.outages as f64)
    }),
    single(
        "talkpath_outage_seconds",
        FamilyKind::Counter,
        "Length of all outages, the present one among them",
        |state| Some(state.totals.outage_counter_s(state.now_ns)),
    )
    .seconds(),
    single(
        "talkpath_unrecorded_sessions",
        FamilyKind::Counter,
        "Sessions whose records could not be written",
        |state| Some(state.totals.unrecorded as f64),
    ),
    single(
        "talkpath_last_interval_timestamp_seconds",
        FamilyKind::Gauge,
        "When the last interval ended, seconds since 1970",
        |state| Some(state.epoch.wall(state.totals.last_end_ns?).timestamp_millis() as f64 / 1e3),
    )
    .seconds(),
    single(
        "talkpath_clock_uncertainty_seconds",
        FamilyKind::Gauge,
        "How far the comparison of both clocks may be wrong, either way",
        |state| Some(state.totals.clock_uncertainty_ms? / 1e3),
    )
    .seconds(),
    sum("talkpath_messages_sent", "sent", |counts| counts.sent),
    sum("talkpath_messages_received", "received", |counts| counts.received),
    sum("talkpath_messages_lost", "lost", |counts| counts.lost),
    sum("talkpath_messages_lost_forward", "lost_forward", |counts| counts.lost_forward),
    sum("talkpath_messages_lost_return", "lost_return", |counts| counts.lost_return),
    sum("talkpath_messages_unfinished", "unfinished", |counts| counts.unfinished),
    sum("talkpath_messages_refused", "refused", |counts| counts.refused),
    sum("talkpath_messages_no_network", "ledger.no_network", |counts| counts.no_network),
    sum("talkpath_messages_not_open", "ledger.not_open", |counts| counts.not_open),
    sum("talkpath_messages_duplicate", "duplicates", |counts| counts.duplicates),
    sum("talkpath_messages_reordered", "reordered", |counts| counts.reordered),
    Family {
        name: "talkpath_payload_bytes",
        kind: FamilyKind::Counter,
        help: "Payload delivered",
        unit: Unit::Bytes,
        source: SampleSource::Payload,
    },
    delays(
        "talkpath_round_trip_seconds",
        "From due to the echo's read, without the far host's turn-round",
        |flow| &flow.round_trips,
    ),
    delays(
        "talkpath_one_way_delay_seconds",
        "From due to read at the far host, while the clocks are trusted",
        |flow| &flow.one_way,
    ),
    last("talkpath_opening_seconds", "opening_ms"),
    last("talkpath_handshake_seconds", "opening.handshake_ms"),
    last("talkpath_first_message_seconds", "opening.first_delivered_ms"),
    last("talkpath_mos", "call.mos"),
    last("talkpath_in_time_ratio", "in_time"),
    last("talkpath_rtp_jitter_seconds", "rtp_jitter_ms"),
    threshold(
        "talkpath_threshold_fails",
        "1 while the threshold fails over the last intervals, else 0",
        ThresholdOutcome::Fails,
    ),
    threshold(
        "talkpath_threshold_undecided",
        "1 while the last intervals do not decide the threshold, else 0",
        ThresholdOutcome::Undecided,
    ),
];

/// The upper bounds of the buckets, in s. We chose steps of 1, 2 and 5 from the delay of a local network to
/// ten seconds, and added the 150 ms and the 400 ms of ITU-T G.114.
const BUCKET_BOUNDS_S: [f64; 16] =
    [0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.4, 1.0, 2.0, 5.0, 10.0];

/// Writes all families.
pub(crate) fn render(state: &MonitorState<'_>, format: Format) -> String {
    let mut text = String::new();
    for family in &FAMILIES {
        write_heading(&mut text, family, format);
        write_samples(&mut text, family, state);
    }
    if format == Format::OpenMetrics {
        text.push_str("# EOF\n");
    }
    text
}

fn write_heading(text: &mut String, family: &Family, format: Format) {
    let (kind, suffix) = match (family.kind, format) {
        (FamilyKind::Counter, Format::OpenMetrics) => ("counter", ""),
        // In this format a family has the name of its samples.
        (FamilyKind::Counter, Format::Text) => ("counter", "_total"),
        (FamilyKind::Gauge, _) => ("gauge", ""),
        (FamilyKind::Histogram, _) => ("histogram", ""),
    };
    let name = format!("{}{suffix}", family.name);
    // Writing to a String cannot fail.
    let _ = writeln!(text, "# HELP {name} {}.", family.help());
    let _ = writeln!(text, "# TYPE {name} {kind}");
    if format == Format::OpenMetrics
        && let Some(unit) = family.base_unit().name
    {
        let _ = writeln!(text, "# UNIT {name} {unit}");
    }
}

fn write_samples(text: &mut String, family: &Family, state: &MonitorState<'_>) {
    let name = match family.kind {
        FamilyKind::Counter => format!("{}_total", family.name),
        FamilyKind::Gauge | FamilyKind::Histogram => family.name.to_owned(),
    };
    let to = escaped(state.to);
    if let SampleSource::Monitor(value) = family.source {
        if let Some(value) = value(state) {
            write_sample(text, &name, &format!("to=\"{to}\""), value);
        }
        return;
    }
    if let SampleSource::Threshold(outcome) = family.source {
        for threshold in &state.totals.thresholds {
            let labels = format!("to=\"{to}\",threshold=\"{}\"", escaped(&threshold.threshold));
            // A figure that does not exist does not hold.
            let is_unknown = threshold.outcome == Some(ThresholdOutcome::Unknown);
            let found = if is_unknown { Some(ThresholdOutcome::Fails) } else { threshold.outcome };
            write_sample(text, &name, &labels, f64::from(u8::from(found == Some(outcome))));
        }
        return;
    }
    for (flow_name, flow) in &state.totals.flows {
        let (flow_label, transport) = (escaped(flow_name), escaped(&flow.transport));
        let labels = format!("to=\"{to}\",flow=\"{flow_label}\",transport=\"{transport}\"");
        let value = match family.source {
            SampleSource::Monitor(_) | SampleSource::Threshold(_) => None,
            SampleSource::Sum(_, count) => Some(count(&flow.counts) as f64),
            SampleSource::Last(path) => {
                let value = FLOW.row(path).number(&flow.last);
                value.map(|value| value * family.base_unit().factor)
            }
            SampleSource::Payload => Some(flow.counts.bytes as f64),
            SampleSource::Delays(delays) => {
                write_histogram(text, &name, &labels, delays(flow));
                None
            }
        };
        if let Some(value) = value {
            write_sample(text, &name, &labels, value);
        }
    }
}

fn write_sample(text: &mut String, name: &str, labels: &str, value: f64) {
    let _ = writeln!(text, "{name}{{{labels}}} {value}");
}

/// Writes a histogram. A bucket counts the delays up to its bound. The buckets of [`Histogram`] are narrower
/// than these. If a bound lies inside of a narrow bucket, the delays of that bucket count as above the bound.
/// This shifts the bound by at most 0.1 %, or by half a microsecond.
fn write_histogram(text: &mut String, name: &str, labels: &str, delays: &Histogram) {
    let mut narrow_buckets = delays.buckets().peekable();
    let mut count_up_to_bound = 0;
    for bound in BUCKET_BOUNDS_S {
        let largest_allowed = SignedDuration::from_nanos((bound * 1e9) as i64);
        while let Some((_, count)) = narrow_buckets.next_if(|(largest, _)| *largest <= largest_allowed) {
            count_up_to_bound += count;
        }
        let labels = format!("{labels},le=\"{bound:?}\"");
        write_sample(text, &format!("{name}_bucket"), &labels, count_up_to_bound as f64);
    }
    let count = delays.count() as f64;
    write_sample(text, &format!("{name}_bucket"), &format!("{labels},le=\"+Inf\""), count);
    write_sample(text, &format!("{name}_count"), labels, count);
    write_sample(text, &format!("{name}_sum"), labels, delays.mean_ns().unwrap_or(0.0) * count / 1e9);
}

/// Escapes the value of a label.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use chrono::DateTime;
    use talkpath_measure::summary::Ledger;
    use talkpath_units::Duration;

    use super::*;
    use crate::monitor::alerts::ThresholdState;
    use crate::monitor::interval::split;
    use crate::monitor::interval::tests::session;

    fn rendered(format: Format) -> String {
        let mut totals = Totals::default();
        for interval in split(&session(0, 0, 2_000, 10), Duration::from_secs(1)) {
            totals.add(&interval);
        }
        totals.go_down(2_000_000_000);
        totals.thresholds.push(ThresholdState {
            threshold: "call.mos >= 3.6".to_owned(),
            outcome: Some(ThresholdOutcome::Fails),
            has_failed: true,
            text: String::new(),
        });
        let wall = DateTime::from_timestamp(1_764_000_000, 0).unwrap();
        let epoch = Epoch::at(0, wall);
        let to = "a\"b\\c";
        render(&MonitorState { totals: &totals, epoch, to, is_up: false, now_ns: 3_000_000_000 }, format)
    }

    #[test]
    fn each_family_is_headed_in_the_words_of_its_format() {
        let (open, text) = (rendered(Format::OpenMetrics), rendered(Format::Text));
        assert!(open.contains("# TYPE talkpath_messages_sent counter\n"));
        assert!(text.contains("# TYPE talkpath_messages_sent_total counter\n"));
        assert!(open.contains("# UNIT talkpath_round_trip_seconds seconds\n"));
        assert!(open.ends_with("# EOF\n") && !text.contains("EOF") && !text.contains("UNIT"));
        let samples = |text: &str| -> Vec<String> {
            text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect()
        };
        assert_eq!(samples(&open), samples(&text));
        let flow = r#"{to="a\"b\\c",flow="call",transport="udp"}"#;
        for line in [
            format!("talkpath_messages_sent_total{flow} 100"),
            format!("talkpath_messages_lost_total{flow} 10"),
            format!("talkpath_one_way_delay_seconds_count{flow} 90"),
            r#"talkpath_outage_seconds_total{to="a\"b\\c"} 1"#.to_owned(),
            r#"talkpath_threshold_fails{to="a\"b\\c",threshold="call.mos >= 3.6"} 1"#.to_owned(),
            r#"talkpath_threshold_undecided{to="a\"b\\c",threshold="call.mos >= 3.6"} 0"#.to_owned(),
        ] {
            assert!(samples(&open).contains(&line), "no `{line}` in\n{open}");
        }
    }

    #[test]
    fn the_unit_of_a_family_ends_its_name_and_no_other_name_ends_like_one() {
        for family in &FAMILIES {
            let end = ["seconds", "bytes", "ratio"]
                .into_iter()
                .find(|unit| family.name.ends_with(&format!("_{unit}")));
            assert_eq!(family.base_unit().name, end, "{}", family.name);
        }
    }

    #[test]
    fn a_counter_sums_the_figure_whose_row_it_names() {
        let ledger = Ledger { no_network: 12, not_open: 13, ..Ledger::default() };
        let figures = FlowSummary {
            sent: 1,
            received: 2,
            lost: 3,
            lost_forward: Some(4),
            lost_return: Some(5),
            unfinished: 6,
            refused: 7,
            duplicates: 8,
            reordered: 9,
            ledger: Some(ledger),
            ..FlowSummary::default()
        };
        let counts = Counts::from_figures(&figures, 0);
        for family in &FAMILIES {
            if let SampleSource::Sum(path, count) = family.source {
                assert_eq!(Some(count(&counts) as f64), FLOW.row(path).number(&figures), "{}", family.name);
            }
        }
    }

    #[test]
    fn a_histograms_buckets_add_up_from_bound_to_bound() {
        let text = rendered(Format::Text);
        let buckets: Vec<(&str, u64)> = text
            .lines()
            .filter_map(|line| line.strip_prefix("talkpath_one_way_delay_seconds_bucket"))
            .map(|line| {
                let le = line.split("le=\"").nth(1).unwrap().split('"').next().unwrap();
                (le, line.rsplit(' ').next().unwrap().parse().unwrap())
            })
            .collect();
        assert_eq!(buckets.len(), BUCKET_BOUNDS_S.len() + 1);
        // Every delay is 3 ms.
        let at = |le: &str| buckets.iter().find(|bucket| bucket.0 == le).unwrap().1;
        assert_eq!((at("0.002"), at("0.005"), at("+Inf")), (0, 90, 90));
    }

    /// The names that `text` mentions.
    fn names(text: &str) -> BTreeSet<String> {
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let words = text.split(|c: char| !is_name(c));
        words.filter(|word| word.starts_with("talkpath_")).map(str::to_owned).collect()
    }

    fn read_project_file(path: &str) -> String {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
        std::fs::read_to_string(&path).unwrap_or_else(|why| panic!("{}: {why}", path.display()))
    }

    #[test]
    fn the_dashboard_asks_for_metrics_that_exist() {
        let dashboard: serde_json::Value =
            serde_json::from_str(&read_project_file("packaging/grafana/talkpath.json")).unwrap();
        let samples: BTreeSet<String> = rendered(Format::Text)
            .lines()
            .filter(|line| !line.starts_with('#'))
            .filter_map(|line| Some(line.split('{').next()?.to_owned()))
            .chain(
                FAMILIES
                    .iter()
                    .filter(|family| family.kind == FamilyKind::Gauge)
                    .map(|family| family.name.to_owned()),
            )
            .collect();
        let panels = dashboard["panels"].as_array().unwrap();
        let queries: Vec<&str> = panels
            .iter()
            .flat_map(|panel| panel["targets"].as_array().into_iter().flatten())
            .map(|target| target["expr"].as_str().unwrap())
            .collect();
        assert!(queries.len() >= panels.len(), "each panel asks for something");
        for query in &queries {
            let asked = names(query);
            assert!(!asked.is_empty(), "{query}");
            assert!(asked.is_subset(&samples), "{query}: {:?}", asked.difference(&samples));
        }
    }

    #[test]
    fn the_guide_lists_every_metric() {
        let guide = names(&read_project_file("docs/guide/monitor.md"));
        for family in &FAMILIES {
            let suffix = if family.kind == FamilyKind::Counter { "_total" } else { "" };
            let name = format!("{}{suffix}", family.name);
            assert!(guide.contains(&name), "docs/guide/monitor.md does not have {name}");
        }
    }
}
