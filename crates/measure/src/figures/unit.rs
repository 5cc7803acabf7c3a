//! The units of figures, and how their numbers are written for people.

use serde::{Deserialize, Serialize};

use super::text;
use crate::statistic::Statistic;

/// The unit of a number in summary.json.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "&'static str", try_from = "String")]
pub enum Unit {
    /// A count of what the figure's name says.
    Count,
    /// Packets in a window or a queue, also parts of one in the mean.
    Packets,
    /// Bytes.
    Bytes,
    /// Milliseconds.
    Ms,
    /// Seconds.
    Seconds,
    /// Bits a second.
    Bps,
    /// Messages a second.
    Pps,
    /// A share, 0 to 1.
    Share,
    /// A mean opinion score, 1 to 4.5 (ITU-T G.107, annex B).
    Score,
    /// A number without a unit.
    One,
    /// Parts per million.
    Ppm,
    /// In the unit of what the flow is judged by: an opinion score, a share or bits a second.
    Judged,
}

/// How numbers of a unit are written for people.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    /// What the number in summary.json is multiplied by.
    pub factor: f64,
    /// The unit that it then has; empty if it has none.
    pub unit: &'static str,
    /// Decimals; `None` for as many as its size needs ([`text::decimals`]).
    pub decimals: Option<usize>,
}

/// Which way a figure is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// The more, the better.
    More,
    /// The less, the better.
    Less,
    /// Neither: it describes.
    Neither,
}

impl Unit {
    /// Every unit.
    pub const ALL: [Self; 12] = [
        Self::Count,
        Self::Packets,
        Self::Bytes,
        Self::Ms,
        Self::Seconds,
        Self::Bps,
        Self::Pps,
        Self::Share,
        Self::Score,
        Self::One,
        Self::Ppm,
        Self::Judged,
    ];

    /// The unit that has this name; `None` if none has.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|unit| unit.name() == name)
    }

    /// As it is written in docs, in the schema and in study files; empty if there is none.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Count => "count",
            Self::Packets => "packets",
            Self::Bytes => "bytes",
            Self::Ms => "ms",
            Self::Seconds => "s",
            Self::Bps => "bit/s",
            Self::Pps => "messages/s",
            Self::Share => "share",
            Self::Score => "MOS",
            Self::One => "",
            Self::Ppm => "ppm",
            Self::Judged => "as judged",
        }
    }

    /// How a figure is written for people by itself.
    pub const fn scale(self) -> Scale {
        match self {
            Self::Count => Scale::new(1.0, "", Some(0)),
            Self::Packets => Scale::new(1.0, "packets", Some(1)),
            Self::Bytes => Scale::new(1e-3, "kB", Some(1)),
            Self::Ms => Scale::MS,
            Self::Seconds => Scale::new(1.0, "s", Some(0)),
            Self::Bps => Scale::KBPS,
            Self::Pps => Scale::new(1.0, "messages/s", Some(2)),
            Self::Share => Scale::PERCENT,
            Self::Score => Scale::SCORE,
            Self::One | Self::Judged => Scale::INDEX,
            Self::Ppm => Scale::new(1.0, "ppm", Some(3)),
        }
    }

    /// The statistic over repetitions that represents such a figure: the median of sizes, which one
    /// repetition with a stop moves little, and the mean of all else.
    pub const fn statistic(self) -> Statistic {
        match self {
            Self::Packets | Self::Bytes | Self::Ms | Self::Seconds => Statistic::Median,
            Self::Count
            | Self::Bps
            | Self::Pps
            | Self::Share
            | Self::Score
            | Self::One
            | Self::Ppm
            | Self::Judged => Statistic::Mean,
        }
    }

    pub(super) const fn range(self) -> (f64, f64) {
        match self {
            Self::Share => (0.0, 1.0),
            Self::Score => (1.0, 4.5),
            Self::Count
            | Self::Packets
            | Self::Bytes
            | Self::Ms
            | Self::Seconds
            | Self::Bps
            | Self::Pps
            | Self::One
            | Self::Ppm
            | Self::Judged => (0.0, f64::INFINITY),
        }
    }
}

impl From<Unit> for &'static str {
    fn from(unit: Unit) -> Self {
        unit.name()
    }
}

impl TryFrom<String> for Unit {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        Self::named(&name).ok_or_else(|| format!("no unit is called {name}"))
    }
}

impl Scale {
    /// Milliseconds, with as many decimals as their size needs.
    pub const MS: Self = Self::new(1.0, "ms", None);
    /// Shares, in per cent.
    pub const PERCENT: Self = Self::new(100.0, "%", Some(2));
    /// Rates of a call or a game.
    pub const KBPS: Self = Self::new(1e-3, "kb/s", Some(1));
    /// Rates of a transfer.
    pub const MBPS: Self = Self::new(1e-6, "Mb/s", Some(3));
    /// Numbers without a unit, as Jain's index.
    pub const INDEX: Self = Self::new(1.0, "", Some(3));
    /// Whole bytes.
    pub const BYTES: Self = Self::new(1.0, "B", Some(0));
    /// Opinion scores.
    pub const SCORE: Self = Self::new(1.0, "", Some(2));

    const fn new(factor: f64, unit: &'static str, decimals: Option<usize>) -> Self {
        Self { factor, unit, decimals }
    }

    /// `value` of summary.json in this scale, without its unit; [`text::UNKNOWN`] if it is not known.
    pub fn text(&self, value: Option<f64>) -> String {
        let value = value.map(|value| value * self.factor);
        text::fixed(value, self.decimals.unwrap_or_else(|| value.map_or(1, text::decimals)))
    }

    /// A difference of two values of summary.json in this scale, with its sign; what rounds to zero has none.
    pub fn signed(&self, difference: f64) -> String {
        let difference = difference * self.factor;
        text::signed(difference, self.decimals.unwrap_or_else(|| text::decimals(difference)))
    }
}

impl Better {
    /// `more`, `less`, or nothing.
    pub const fn word(self) -> &'static str {
        match self {
            Self::More => "more",
            Self::Less => "less",
            Self::Neither => "",
        }
    }
}
