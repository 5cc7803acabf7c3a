//! The units of figures, and how numbers with these units are written for people.

use serde::{Deserialize, Serialize};

use super::text;
use crate::statistic::Statistic;

/// The unit of a number in summary.json.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "&'static str", try_from = "String")]
pub enum Unit {
    /// A count. The name of the figure says what is counted.
    Count,
    /// Packets in a window or a queue. A mean may have a fraction of a packet.
    Packets,
    /// Bytes.
    Bytes,
    /// Milliseconds.
    Ms,
    /// Seconds.
    Seconds,
    /// Bits per second.
    Bps,
    /// Messages per second.
    Pps,
    /// A share, 0 to 1.
    Share,
    /// A mean opinion score, 1 to 4.5 (ITU-T G.107, annex B).
    Score,
    /// A number without a unit.
    One,
    /// Parts per million.
    Ppm,
    /// The unit of the figure by which the flow is judged: an opinion score, a share, or bits per second.
    Judged,
}

/// How a number is written for people.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    /// The factor from the number in summary.json to the number that is shown.
    pub factor: f64,
    /// The unit that is shown. Empty if there is none.
    pub unit: &'static str,
    /// The number of decimals. `None` if it depends on the size of the number ([`text::decimals`]).
    pub decimals: Option<usize>,
}

/// Whether a larger or a smaller figure is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// A larger figure is better.
    More,
    /// A smaller figure is better.
    Less,
    /// Neither is better.
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

    /// Returns the unit with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|unit| unit.name() == name)
    }

    /// Returns the name of the unit in docs, in the schema and in study files. The name of [`Self::One`] is
    /// empty.
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

    /// Returns how a figure is written for people if it stands alone.
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

    /// Returns the statistic that represents a figure over repetitions. It is the median for sizes and times,
    /// because one repetition with a stall changes the median little. It is the mean for all other figures.
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

    /// Returns the smallest and the largest possible number with this unit.
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
    /// Milliseconds. The number of decimals depends on the size.
    pub const MS: Self = Self::new(1.0, "ms", None);
    /// Shares in per cent.
    pub const PERCENT: Self = Self::new(100.0, "%", Some(2));
    /// Rates of a call or a game.
    pub const KBPS: Self = Self::new(1e-3, "kb/s", Some(1));
    /// Rates of a transfer.
    pub const MBPS: Self = Self::new(1e-6, "Mb/s", Some(3));
    /// Numbers without a unit, such as Jain's index.
    pub const INDEX: Self = Self::new(1.0, "", Some(3));
    /// Whole bytes.
    pub const BYTES: Self = Self::new(1.0, "B", Some(0));
    /// Opinion scores.
    pub const SCORE: Self = Self::new(1.0, "", Some(2));

    const fn new(factor: f64, unit: &'static str, decimals: Option<usize>) -> Self {
        Self { factor, unit, decimals }
    }

    /// Returns a `value` of summary.json in this scale, without the unit. Returns [`text::UNKNOWN`] if it is
    /// unknown.
    pub fn text(&self, value: Option<f64>) -> String {
        let value = value.map(|value| value * self.factor);
        text::fixed(value, self.decimals.unwrap_or_else(|| value.map_or(1, text::decimals)))
    }

    /// Returns the difference of two values of summary.json in this scale and with its sign. A difference
    /// that rounds to zero has no sign.
    pub fn signed(&self, difference: f64) -> String {
        let difference = difference * self.factor;
        text::signed(difference, self.decimals.unwrap_or_else(|| text::decimals(difference)))
    }
}

impl Better {
    /// Returns `more`, `less`, or an empty text.
    pub const fn word(self) -> &'static str {
        match self {
            Self::More => "more",
            Self::Less => "less",
            Self::Neither => "",
        }
    }
}
