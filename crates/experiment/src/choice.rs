//! Choices of a run that have a word: on a command line, in plan.json and in messages.

use talkpath_measure::series::SeriesDetail;

/// A choice among a few, each with its word.
pub trait Choice: Copy + 'static {
    /// All of them, in the order in which they are listed.
    const ALL: &'static [Self];

    /// Its word.
    fn word(self) -> &'static str;

    /// The one with this word.
    fn named(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|choice| choice.word() == word)
    }
}

/// Where a scenario runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArenaKind {
    /// Our protocol machines and our path model under a virtual clock.
    Sim,
    /// The kernel's protocols over our path model between two network namespaces.
    Emu,
    /// The kernel's protocols over the network, to a host that runs `talkpath serve`.
    Live,
}

/// Which record files a run leaves, the fewest first.
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
    fn each_choice_is_found_by_its_word_and_by_no_other() {
        fn found<T: Choice + PartialEq>() -> bool {
            T::ALL.iter().all(|choice| T::named(choice.word()) == Some(*choice)) && T::named("").is_none()
        }
        assert!(found::<ArenaKind>() && found::<Records>() && found::<SeriesDetail>());
    }
}
