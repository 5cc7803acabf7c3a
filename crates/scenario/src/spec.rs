//! How a key is described: its kind, default, bounds and meaning.

use talkpath_config::LARGEST_WINDOW;

use crate::quantity::{Dimension, Measure};

/// A table with a fixed set of keys.
#[derive(Debug)]
pub(crate) struct TableSpec {
    /// What messages call it: "a link".
    pub(crate) noun: &'static str,
    pub(crate) keys: &'static [Key],
}

/// One key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Key {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) default: Default,
    /// One line of Markdown for the documentation and the editor.
    pub(crate) doc: &'static str,
}

/// What holds if a key is absent.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Default {
    /// Nothing: its absence is a mistake.
    Required,
    /// This, as TOML.
    Is(&'static str),
    /// What another key chooses, as this says.
    Follows(&'static str),
    /// Nothing, which means what this says.
    Absent(&'static str),
}

/// What a value may be.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    /// Any text of at most this many characters.
    Text { longest: usize },
    /// The name of a file that belongs to the scenario.
    File(FileKind),
    /// `true` or `false`.
    Flag,
    /// A whole number.
    Count { least: u64, most: u64 },
    /// A whole number of 64 bits; as text, too, because TOML's integers end at 2^63.
    Seed,
    /// A number from 0 to 1.
    Probability,
    /// A number above `above`, at most `most`.
    Number { above: f64, most: f64 },
    /// A quantity with its unit, or one of `words`.
    Quantity { measures: &'static [Measure], words: &'static [&'static str] },
    /// The rate of a link: a quantity, a word, or `{ trace = "FILE" }`.
    LinkRate { measures: &'static [Measure], words: &'static [&'static str] },
    /// One of these words.
    Choice(&'static Words),
    /// `true`, `false` or `"default"`.
    FlagOrDefault,
    /// When the receiver acknowledges; see [`talkpath_config::DelayedAck`].
    DelayedAck(&'static [Measure]),
    /// A duration, or `{ from, to }`.
    Start(&'static [Measure]),
    /// A list of names, in order.
    Names(&'static Listed),
    /// A table of its own.
    Table(&'static TableSpec),
    /// A word, or a table whose `kind` is the word and has the word's keys.
    Tagged(&'static Tagged),
    /// Tables by a name that the user chooses.
    Map(&'static TableSpec),
    /// Tables in a list: `[[NAME]]`, in the order of the file. A key inside is named by the table's number,
    /// from 1.
    List(&'static TableSpec),
    /// The name of a preset, or a table.
    Path(&'static TableSpec),
    /// Lists of values by the key that they are for.
    Sweep,
    /// Bounds by the figure that they are for (`threshold`).
    Thresholds,
}

/// What a file is that a scenario names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileKind {
    /// A link's rate: mahimahi's packet-delivery trace (`talkpath_path::RateTrace`).
    RateTrace,
    /// What a link loses, packet by packet (`talkpath_path::LossTrace`).
    LossTrace,
    /// What a link adds to its delay, packet by packet (`talkpath_path::DelayTrace`).
    DelayTrace,
    /// Values of a link over time (`talkpath_path::ChangeTable`).
    ChangeTable,
    /// Anything: its bytes are sent.
    Source,
}

/// Words that a key takes, and words that it will take some day.
#[derive(Debug)]
pub(crate) struct Words {
    /// What messages call one: "a congestion control".
    pub(crate) noun: &'static str,
    pub(crate) known: &'static [&'static str],
    pub(crate) later: &'static [&'static str],
    /// Why those of `later` are not there; empty if there is no more to say.
    pub(crate) why: &'static str,
}

/// What a list of names holds.
#[derive(Debug)]
pub(crate) struct Listed {
    /// What messages call one: "a link".
    pub(crate) one: &'static str,
    /// What they call several: "links".
    pub(crate) many: &'static str,
    /// A list, as TOML.
    pub(crate) example: &'static str,
    /// How many a list has at most.
    pub(crate) most: usize,
}

/// A table whose `kind` says which other keys it has.
#[derive(Debug)]
pub(crate) struct Tagged {
    /// What messages call it: "a transport".
    pub(crate) noun: &'static str,
    pub(crate) variants: &'static [Variant],
    /// Kinds that are not available yet.
    pub(crate) later: &'static [&'static str],
    /// A bare number is short for the variant and key named here.
    pub(crate) number: Option<(&'static str, &'static str)>,
    /// A quantity in place of the table was probably meant for the variant and key named here.
    pub(crate) quantity: Option<(&'static str, &'static str)>,
}

/// One kind of a tagged table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Variant {
    pub(crate) name: &'static str,
    pub(crate) doc: &'static str,
    pub(crate) keys: &'static [Key],
}

impl Kind {
    /// Whether a value is a share of 1.
    pub(crate) const fn is_share(&self) -> bool {
        match self {
            Self::Probability => true,
            Self::Number { above, most } => *above >= 0.0 && *most <= 1.0,
            _ => false,
        }
    }
}

impl TableSpec {
    pub(crate) fn key(&self, name: &str) -> Option<&'static Key> {
        self.keys.iter().find(|key| key.name == name)
    }
}

impl Tagged {
    pub(crate) fn variant(&self, name: &str) -> Option<&'static Variant> {
        self.variants.iter().find(|variant| is_same_word(variant.name, name))
    }
}

impl Variant {
    pub(crate) fn key(&self, name: &str) -> Option<&'static Key> {
        self.keys.iter().find(|key| key.name == name)
    }
}

/// Whether two words are the same; a hyphen and an underscore are.
pub(crate) fn is_same_word(a: &str, b: &str) -> bool {
    let fold = |byte| if byte == b'-' { b'_' } else { byte };
    a.len() == b.len() && a.bytes().map(fold).eq(b.bytes().map(fold))
}

/// A key's shorthand, so that the tables read as tables.
pub(crate) const fn key(name: &'static str, kind: Kind, default: Default, doc: &'static str) -> Key {
    Key { name, kind, default, doc }
}

pub(crate) const fn measure(dimension: Dimension, least: u64, most: u64) -> Measure {
    Measure { dimension, least, most }
}

pub(crate) const fn quantity(measures: &'static [Measure]) -> Kind {
    Kind::Quantity { measures, words: &[] }
}

/// The longest duration: about eleven days and a half, in ns. Chosen, so that sums of a few never overflow.
pub(crate) const LONGEST_NS: u64 = 1_000_000 * 1_000_000_000;

/// From no time at all to [`LONGEST_NS`].
pub(crate) const ANY_DURATION: &[Measure] = &[measure(Dimension::Duration, 0, LONGEST_NS)];

/// From 1 ns to [`LONGEST_NS`].
pub(crate) const SOME_DURATION: &[Measure] = &[measure(Dimension::Duration, 1, LONGEST_NS)];

/// From 1 bps to 100 Tbps: past the fastest fibre, and exact in the serialiser's arithmetic.
pub(crate) const ANY_RATE: &[Measure] = &[measure(Dimension::Rate, 1, 100_000_000_000_000)];

/// At least one packet, at most [`LARGEST_WINDOW`].
pub(crate) const SOME_PACKETS: &[Measure] = &[measure(Dimension::Packets, 1, LARGEST_WINDOW.get())];

/// From one byte to [`LARGEST_SIZE`].
pub(crate) const SOME_SIZE: &[Measure] = &[measure(Dimension::Size, 1, LARGEST_SIZE)];

/// Flows of one cell, copies and directions counted. Chosen; see docs/reference/scenario.md.
pub(crate) const MOST_FLOWS: u64 = 50_000;

/// Characters of a scenario's name. Chosen: it is a page's title.
pub(crate) const LONGEST_NAME: usize = 200;

/// Characters of a file's name: PATH_MAX of Linux's limits.h.
pub(crate) const LONGEST_PATH: usize = 4096;

/// Up to 1 TB, in bytes: past any buffer. Chosen.
pub(crate) const LARGEST_SIZE: u64 = 1_000_000_000_000;
