//! Options with a few named values. Command lines, plan.json and messages use the same names.

use talkpath_measure::series::SeriesDetail;

/// A type whose values have names.
pub trait Choice: Copy + 'static {
    /// All values, in the order in which help and messages list them.
    const ALL: &'static [Self];

    /// Returns the name of the value.
    fn word(self) -> &'static str;

    /// Returns the value with the name `word`.
    fn find(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|choice| choice.word() == word)
    }
}

/// The arena in which a scenario runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArenaKind {
    /// Our protocol machines and our path model under a virtual clock.
    Sim,
    /// The kernel's protocols over our path model between two network namespaces.
    Emu,
    /// The kernel's protocols over the network, to a host that runs `talkpath serve`.
    Live,
}

/// The record files that a run writes. Each value writes the files of the value before and one more, so the
/// order of the values can be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Records {
    /// Neither packets.parquet nor series.parquet.
    None,
    /// series.parquet only.
    Summary,
    /// packets.parquet and series.parquet.
    All,
}

impl Choice for ArenaKind {
    const ALL: &'static [Self] = &[Self::Sim, Self::Emu, Self::Live];

    fn word(self) -> &'static str {
        match self {
            Self::Sim => "sim",
            Self::Emu => "emu",
            Self::Live => "live",
        }
    }
}

impl Choice for Records {
    const ALL: &'static [Self] = &[Self::None, Self::Summary, Self::All];

    fn word(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Summary => "summary",
            Self::All => "all",
        }
    }
}

impl Choice for SeriesDetail {
    const ALL: &'static [Self] = &[Self::Sampled, Self::Full];

    fn word(self) -> &'static str {
        match self {
            Self::Sampled => "sampled",
            Self::Full => "full",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_choice_is_found_by_its_own_word_only() {
        fn is_found<T: Choice + PartialEq>() -> bool {
            T::ALL.iter().all(|choice| T::find(choice.word()) == Some(*choice)) && T::find("").is_none()
        }
        assert!(is_found::<ArenaKind>() && is_found::<Records>() && is_found::<SeriesDetail>());
    }
}
