//! Totals as text for Prometheus: OpenMetrics 1.0 for who asks for it, else the Prometheus text format 0.0.4,
//! which node_exporter's textfile collector reads. Both have the same names and samples.
//!
//! The names are a promise (docs/guide/monitor.md); [`FAMILIES`] is the list, and the dashboard under
//! packaging/grafana is held against it.

use std::fmt::Write as _;

use talkpath_units::{Histogram, SignedDuration};

use super::Epoch;
use super::interval::Counts;
use super::totals::{FlowTotals, Totals};

/// Which of the two texts.
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

/// What kind of samples a family has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Its sample's name ends in `_total`.
    Counter,
    Gauge,
    Histogram,
}

/// A name, what it is, and what it says.
struct Family {
    /// Without `_total`.
    name: &'static str,
    kind: Kind,
    help: &'static str,
    value: Value,
}

/// Where a family's samples come from.
enum Value {
    /// One sample.
    One(fn(&Shown<'_>) -> Option<f64>),
    /// One a flow.
    Flow(fn(&FlowTotals) -> Option<f64>),
    /// One a flow.
    Delays(fn(&FlowTotals) -> &Histogram),
}

/// What is shown, and when.
pub(crate) struct Shown<'a> {
    pub(crate) totals: &'a Totals,
    pub(crate) epoch: Epoch,
    /// The host that is measured, as the user wrote it.
    pub(crate) to: &'a str,
    /// Whether messages are due now.
    pub(crate) is_up: bool,
    /// CLOCK_MONOTONIC, ns.
    pub(crate) now_ns: i64,
}

const fn one(
    name: &'static str,
    kind: Kind,
    help: &'static str,
    value: fn(&Shown<'_>) -> Option<f64>,
) -> Family {
    Family { name, kind, help, value: Value::One(value) }
}

const fn of_flow(
    name: &'static str,
    kind: Kind,
    help: &'static str,
    value: fn(&FlowTotals) -> Option<f64>,
) -> Family {
    Family { name, kind, help, value: Value::Flow(value) }
}

/// A sum of messages.
const fn count(name: &'static str, help: &'static str, value: fn(&FlowTotals) -> Option<f64>) -> Family {
    of_flow(name, Kind::Counter, help, value)
}

macro_rules! counted {
    ($field:ident) => {
        |flow| {
            let Counts { $field, .. } = flow.counts;
            Some($field as f64)
        }
    };
}

/// Every family, in order.
const FAMILIES: [Family; 27] = [
    one("talkpath_up", Kind::Gauge, "1 while messages are due, 0 in an outage", |shown| {
        Some(f64::from(u8::from(shown.is_up)))
    }),
    one("talkpath_start_time_seconds", Kind::Gauge, "When the monitor began, seconds since 1970", |shown| {
        Some(shown.epoch.wall.timestamp_millis() as f64 / 1e3)
    }),
    one("talkpath_intervals", Kind::Counter, "Intervals that are over", |shown| {
        Some(shown.totals.intervals as f64)
    }),
    one(
        "talkpath_invalid_intervals",
        Kind::Counter,
        "Intervals that a host disturbed past the stated limits, or without figures",
        |shown| Some(shown.totals.invalid_intervals as f64),
    ),
    one("talkpath_measured_seconds", Kind::Counter, "Length of all intervals", |shown| {
        Some(shown.totals.measured.as_secs_f64())
    }),
    one("talkpath_outages", Kind::Counter, "Times in which nothing was measured", |shown| {
        Some(shown.totals.outages as f64)
    }),
    one(
        "talkpath_outage_seconds",
        Kind::Counter,
        "Length of all outages, the present one among them",
        |shown| Some(shown.totals.outage_counter_s(shown.now_ns)),
    ),
    one(
        "talkpath_unrecorded_sessions",
        Kind::Counter,
        "Sessions whose records could not be written",
        |shown| Some(shown.totals.unrecorded as f64),
    ),
    one(
        "talkpath_last_interval_timestamp_seconds",
        Kind::Gauge,
        "When the last interval ended, seconds since 1970",
        |shown| Some(shown.epoch.wall(shown.totals.last_end_ns?).timestamp_millis() as f64 / 1e3),
    ),
    one(
        "talkpath_clock_uncertainty_seconds",
        Kind::Gauge,
        "How far the comparison of both clocks may be wrong, either way",
        |shown| Some(shown.totals.clock_uncertainty_ms? / 1e3),
    ),
    count("talkpath_messages_sent", "Messages sent", counted!(sent)),
    count("talkpath_messages_received", "Messages delivered; with an echo, back again", counted!(received)),
    count("talkpath_messages_lost", "Messages missing on either way", counted!(lost)),
    count("talkpath_messages_lost_forward", "Messages missing on the way out", counted!(lost_forward)),
    count("talkpath_messages_lost_return", "Echoes missing on the way back", counted!(lost_return)),
    count(
        "talkpath_messages_unfinished",
        "Messages still on their way when their session ended",
        counted!(unfinished),
    ),
    count("talkpath_messages_refused", "Messages that the transport would not take", counted!(refused)),
    count(
        "talkpath_messages_no_network",
        "Messages lost because their host had no network for them",
        counted!(no_network),
    ),
    count(
        "talkpath_messages_not_open",
        "Messages lost because the connection was not open when they were due",
        counted!(not_open),
    ),
    count("talkpath_messages_duplicate", "Extra copies that arrived", counted!(duplicates)),
    count("talkpath_messages_reordered", "Arrivals behind later messages (RFC 4737)", counted!(reordered)),
    count("talkpath_payload_bytes", "Payload delivered", counted!(bytes)),
    Family {
        name: "talkpath_round_trip_seconds",
        kind: Kind::Histogram,
        help: "From due to the echo's read, without the far host's turn-round",
        value: Value::Delays(|flow| &flow.round_trips),
    },
    Family {
        name: "talkpath_one_way_delay_seconds",
        kind: Kind::Histogram,
        help: "From due to read at the far host, while the clocks are trusted",
        value: Value::Delays(|flow| &flow.one_way),
    },
    of_flow(
        "talkpath_mos",
        Kind::Gauge,
        "Opinion score of the last interval (ITU-T G.107), by the playout of the scenario, else adaptive",
        |flow| flow.last.call.as_ref().map(|call| call.mos),
    ),
    of_flow(
        "talkpath_in_time_ratio",
        Kind::Gauge,
        "Share of the last interval's messages within their deadline",
        |flow| flow.last.in_time,
    ),
    of_flow(
        "talkpath_rtp_jitter_seconds",
        Kind::Gauge,
        "Interarrival jitter at the end of the last interval (RFC 3550)",
        |flow| flow.last.rtp_jitter_ms.map(|ms| ms / 1e3),
    ),
];

/// Bounds of the buckets, seconds (chosen: 1-2-5 from a local network to ten seconds, and G.114's 150 ms and
/// 400 ms).
const BOUNDS: [f64; 16] =
    [0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.4, 1.0, 2.0, 5.0, 10.0];

/// All of it as text.
pub(crate) fn render(shown: &Shown<'_>, format: Format) -> String {
    let mut text = String::new();
    let to = escaped(shown.to);
    for family in &FAMILIES {
        heading(&mut text, family, format);
        let sample = if family.kind == Kind::Counter {
            format!("{}_total", family.name)
        } else {
            family.name.to_owned()
        };
        match family.value {
            Value::One(value) => {
                if let Some(value) = value(shown) {
                    put(&mut text, &sample, &format!("to=\"{to}\""), value);
                }
            }
            Value::Flow(value) => {
                for (name, flow) in &shown.totals.flows {
                    if let Some(value) = value(flow) {
                        put(&mut text, &sample, &labels(&to, name, flow), value);
                    }
                }
            }
            Value::Delays(delays) => {
                for (name, flow) in &shown.totals.flows {
                    histogram(&mut text, &sample, &labels(&to, name, flow), delays(flow));
                }
            }
        }
    }
    if format == Format::OpenMetrics {
        text.push_str("# EOF\n");
    }
    text
}

fn heading(text: &mut String, family: &Family, format: Format) {
    let (kind, suffix) = match (family.kind, format) {
        (Kind::Counter, Format::OpenMetrics) => ("counter", ""),
        // There the family has the sample's name.
        (Kind::Counter, Format::Text) => ("counter", "_total"),
        (Kind::Gauge, _) => ("gauge", ""),
        (Kind::Histogram, _) => ("histogram", ""),
    };
    let name = format!("{}{suffix}", family.name);
    let _ = writeln!(text, "# HELP {name} {}.", family.help);
    let _ = writeln!(text, "# TYPE {name} {kind}");
    if format == Format::OpenMetrics && name.ends_with("_seconds") {
        let _ = writeln!(text, "# UNIT {name} seconds");
    }
}

fn labels(to: &str, name: &str, flow: &FlowTotals) -> String {
    format!("to=\"{to}\",flow=\"{}\",transport=\"{}\"", escaped(name), escaped(&flow.transport))
}

fn put(text: &mut String, name: &str, labels: &str, value: f64) {
    let _ = writeln!(text, "{name}{{{labels}}} {value}");
}

/// A bucket has what is at most its bound. Our own buckets are narrower, and one that a bound divides counts
/// as above it: at most 0.1 % of the value, or half a microsecond.
fn histogram(text: &mut String, name: &str, labels: &str, delays: &Histogram) {
    let mut held = delays.buckets().peekable();
    let mut below = 0;
    for bound in BOUNDS {
        let most = SignedDuration::from_nanos((bound * 1e9) as i64);
        while let Some((_, more)) = held.next_if(|(largest, _)| *largest <= most) {
            below += more;
        }
        put(text, &format!("{name}_bucket"), &format!("{labels},le=\"{bound:?}\""), below as f64);
    }
    let all = delays.count() as f64;
    put(text, &format!("{name}_bucket"), &format!("{labels},le=\"+Inf\""), all);
    put(text, &format!("{name}_count"), labels, all);
    put(text, &format!("{name}_sum"), labels, delays.mean_ns().unwrap_or(0.0) * all / 1e9);
}

/// A label's value.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use chrono::DateTime;
    use talkpath_units::Duration;

    use super::*;
    use crate::monitor::interval::split;
    use crate::monitor::interval::tests::session;

    fn rendered(format: Format) -> String {
        let mut totals = Totals::default();
        for interval in split(&session(0, 0, 2_000, 10), Duration::from_secs(1)) {
            totals.add(&interval);
        }
        totals.go_down(2_000_000_000);
        let wall = DateTime::from_timestamp(1_764_000_000, 0).unwrap();
        let epoch = Epoch::at(0, wall);
        let to = "a\"b\\c";
        render(&Shown { totals: &totals, epoch, to, is_up: false, now_ns: 3_000_000_000 }, format)
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
        ] {
            assert!(samples(&open).contains(&line), "no `{line}` in\n{open}");
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
        assert_eq!(buckets.len(), BOUNDS.len() + 1);
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

    fn of_project(path: &str) -> String {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
        std::fs::read_to_string(&path).unwrap_or_else(|why| panic!("{}: {why}", path.display()))
    }

    #[test]
    fn the_dashboard_asks_for_metrics_that_exist() {
        let dashboard: serde_json::Value =
            serde_json::from_str(&of_project("packaging/grafana/talkpath.json")).unwrap();
        let samples: BTreeSet<String> = rendered(Format::Text)
            .lines()
            .filter(|line| !line.starts_with('#'))
            .filter_map(|line| Some(line.split('{').next()?.to_owned()))
            .chain(FAMILIES.iter().filter(|it| it.kind == Kind::Gauge).map(|it| it.name.to_owned()))
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
        let guide = names(&of_project("docs/guide/monitor.md"));
        for family in &FAMILIES {
            let suffix = if family.kind == Kind::Counter { "_total" } else { "" };
            let name = format!("{}{suffix}", family.name);
            assert!(guide.contains(&name), "docs/guide/monitor.md does not have {name}");
        }
    }
}
