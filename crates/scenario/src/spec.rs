//! The description of keys: the kind of their values, the default, and the text for the documentation.
//!
//! - A *kind* tells which values are right.
//! - A *range* is a dimension with its bounds ([`crate::quantity`]).
//! - A *tagged* table has a `kind` that determines its other keys. Each of its kinds is a *variant*.
//!
//! Begin to read with [`Key`]. The tables of keys are in `crate::keys`, and beside the code that reads the
//! keys.

use talkpath_config::LARGEST_WINDOW;

use crate::quantity::{Dimension, DimensionRange};

/// A table with a fixed set of keys.
#[derive(Debug)]
pub(crate) struct TableSpec {
    /// The noun for messages: "a link".
    pub(crate) noun: &'static str,
    pub(crate) keys: &'static [Key],
}

/// The description of one key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Key {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) default: Default,
    /// A line of Markdown without a full stop, for the documentation and for editors.
    pub(crate) doc: &'static str,
}

/// The value of a key that is absent.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Default {
    /// The key must not be absent.
    Required,
    /// The value is this TOML.
    Is(&'static str),
    /// The value depends on another key. The text says how.
    Follows(&'static str),
    /// There is no value. The text says what that means.
    Absent(&'static str),
}

/// The values that a key takes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    /// Any text of at most this many characters.
    Text { longest: usize },
    /// The name of a file.
    File(FileKind),
    /// `true` or `false`.
    Flag,
    /// A whole number.
    Count { least: u64, most: u64 },
    /// A whole number of 64 bits. It may be a text, because TOML's integers end at 2^63.
    Seed,
    /// A number from 0 to 1.
    Probability,
    /// A number above `above`, at most `most`.
    Number { above: f64, most: f64 },
    /// A quantity with its unit, or one of `words`.
    Quantity { ranges: &'static [DimensionRange], words: &'static [&'static str] },
    /// The rate of a link: a quantity, a word, or `{ trace = "FILE" }`.
    LinkRate { ranges: &'static [DimensionRange], words: &'static [&'static str] },
    /// One of these words.
    Choice(&'static Words),
    /// `true`, `false` or `"default"`.
    FlagOrDefault,
    /// The rule by which a receiver delays acknowledgements; see [`talkpath_config::DelayedAck`].
    DelayedAck(&'static [DimensionRange]),
    /// A duration, or `{ from, to }`.
    Start(&'static [DimensionRange]),
    /// A list of names, in order.
    Names(&'static Listed),
    /// A table of its own.
    Table(&'static TableSpec),
    /// A word, or a table whose `kind` is the word.
    Tagged(&'static Tagged),
    /// Tables whose names the user chooses.
    Map(&'static TableSpec),
    /// Tables in a list: `[[NAME]]`, in the order of the file. A key inside is named by the table's number,
    /// from 1.
    List(&'static TableSpec),
    /// The name of a preset, or a table.
    Path(&'static TableSpec),
    /// The table `[sweep]`: for each swept key a list of values.
    Sweep,
    /// The table `[thresholds]`: for each figure a bound (`crate::threshold`).
    Thresholds,
}

/// The content of a file that a scenario names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileKind {
    /// The rate of a link: mahimahi's packet-delivery trace (`talkpath_path::RateTrace`).
    RateTrace,
    /// The losses of a link, packet by packet (`talkpath_path::LossTrace`).
    LossTrace,
    /// The additions to the delay of a link, packet by packet (`talkpath_path::DelayTrace`).
    DelayTrace,
    /// Values of a link over time (`talkpath_path::ChangeTable`).
    ChangeTable,
    /// A file whose bytes are sent. Its content does not matter.
    Source,
}

/// The words that a key takes, and the words that it may take in a later version.
#[derive(Debug)]
pub(crate) struct Words {
    /// The noun for messages: "a congestion control".
    pub(crate) noun: &'static str,
    pub(crate) known: &'static [&'static str],
    pub(crate) later: &'static [&'static str],
    /// The reason why the words of `later` are not available. It may be empty.
    pub(crate) why: &'static str,
}

#[derive(Debug)]
pub(crate) struct Listed {
    /// The noun for one item: "a link".
    pub(crate) one: &'static str,
    /// The noun for several items: "links".
    pub(crate) many: &'static str,
    /// An example as TOML.
    pub(crate) example: &'static str,
    /// The largest number of items.
    pub(crate) most: usize,
}

/// A table whose `kind` determines its other keys.
#[derive(Debug)]
pub(crate) struct Tagged {
    /// The noun for messages: "a transport".
    pub(crate) noun: &'static str,
    pub(crate) variants: &'static [Variant],
    /// Kinds that are not available yet.
    pub(crate) later: &'static [&'static str],
    /// The key for which a bare number is a shorthand: `loss = 0.01`.
    pub(crate) number: Option<VariantKey>,
    /// The key by which a table without `kind` is of this variant: `loss = { mean = "1%", burst = 3 }`.
    pub(crate) by_key: Option<VariantKey>,
    /// The key that was probably meant by a quantity in place of the table: `jitter = "20 ms"`.
    pub(crate) quantity: Option<VariantKey>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct VariantKey {
    pub(crate) variant: &'static str,
    pub(crate) key: &'static str,
}

/// One kind of a tagged table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Variant {
    pub(crate) name: &'static str,
    pub(crate) doc: &'static str,
    pub(crate) keys: &'static [Key],
}

impl Kind {
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
    /// A tagged table without shorthands, to which a table adds its noun and its variants.
    pub(crate) const PLAIN: Self =
        Self { noun: "", variants: &[], later: &[], number: None, by_key: None, quantity: None };

    pub(crate) fn any_key(&self, name: &str) -> Option<&'static Key> {
        self.variants.iter().find_map(|variant| variant.key(name))
    }

    pub(crate) fn variant(&self, name: &str) -> Option<&'static Variant> {
        self.variants.iter().find(|variant| is_same_word(variant.name, name))
    }
}

impl Variant {
    pub(crate) fn key(&self, name: &str) -> Option<&'static Key> {
        self.keys.iter().find(|key| key.name == name)
    }
}

/// The key of a tagged table that names the variant.
pub(crate) const TAG: &str = "kind";

/// Whether two words are the same. A hyphen and an underscore are the same letter.
pub(crate) fn is_same_word(a: &str, b: &str) -> bool {
    let fold = |byte| if byte == b'-' { b'_' } else { byte };
    a.len() == b.len() && a.bytes().map(fold).eq(b.bytes().map(fold))
}

/// Makes a key. The function is short so that the key tables read as tables.
pub(crate) const fn key(name: &'static str, kind: Kind, default: Default, doc: &'static str) -> Key {
    Key { name, kind, default, doc }
}

pub(crate) const fn range(dimension: Dimension, least: u64, most: u64) -> DimensionRange {
    DimensionRange { dimension, least, most }
}

pub(crate) const fn quantity(ranges: &'static [DimensionRange]) -> Kind {
    Kind::Quantity { ranges, words: &[] }
}

/// The longest duration in ns, about eleven and a half days. We chose it so that a sum of a few durations
/// cannot overflow.
pub(crate) const LONGEST_NS: u64 = 1_000_000 * 1_000_000_000;

/// From no time at all to [`LONGEST_NS`].
pub(crate) const ANY_DURATION: &[DimensionRange] = &[range(Dimension::Duration, 0, LONGEST_NS)];

/// From 1 ns to [`LONGEST_NS`].
pub(crate) const SOME_DURATION: &[DimensionRange] = &[range(Dimension::Duration, 1, LONGEST_NS)];

/// From 1 bps to 100 Tbps. The fastest fibre is slower, and the serialiser computes exactly up to this rate.
pub(crate) const ANY_RATE: &[DimensionRange] = &[range(Dimension::Rate, 1, 100_000_000_000_000)];

/// At least one packet, at most [`LARGEST_WINDOW`].
pub(crate) const SOME_PACKETS: &[DimensionRange] = &[range(Dimension::Packets, 1, LARGEST_WINDOW.get())];

/// From one byte to [`LARGEST_SIZE`].
pub(crate) const SOME_SIZE: &[DimensionRange] = &[range(Dimension::Size, 1, LARGEST_SIZE)];

/// The largest number of flows in one cell, copies and directions counted. We chose 50,000; see
/// docs/reference/scenario.md.
pub(crate) const MOST_FLOWS: u64 = 50_000;

/// The largest number of characters in a scenario's name. We chose 200 because the name is the title of a
/// page.
pub(crate) const LONGEST_NAME: usize = 200;

/// The largest number of characters in the name of a file: PATH_MAX of Linux's limits.h.
pub(crate) const LONGEST_PATH: usize = 4096;

/// The largest size in bytes. We chose 1 TB, because no buffer is larger.
pub(crate) const LARGEST_SIZE: u64 = 1_000_000_000_000;
