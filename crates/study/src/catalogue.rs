//! The studies that are built into the program. Their files are in the folder `studies` of the repository.

use talkpath_scenario::Source;

/// The files of a built-in study.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Embedded {
    /// The name of the study, which is the name of its folder.
    pub name: &'static str,
    /// The text of `study.toml`.
    pub text: &'static str,
    /// The scenarios and tables of the study, as (name, text).
    pub files: &'static [(&'static str, &'static str)],
}

impl Embedded {
    /// Returns `study.toml` with the name that messages have for it.
    pub fn source(&self) -> Source {
        Source::new(format!("studies/{}/study.toml", self.name), self.text)
    }

    /// Returns the scenarios and tables of the study.
    pub fn files(&self) -> Vec<Source> {
        self.files.iter().map(|(name, text)| Source::new(*name, *text)).collect()
    }
}

/// Lists every built-in study.
pub const fn embedded() -> &'static [Embedded] {
    STUDIES
}

macro_rules! study {
    ($name:literal, [$($file:literal),*]) => {
        Embedded {
            name: $name,
            text: include_str!(concat!("../../../studies/", $name, "/study.toml")),
            files: &[$(($file, include_str!(concat!("../../../studies/", $name, "/", $file)))),*],
        }
    };
}

const STUDIES: &[Embedded] = &[
    study!("foderaro-1995", ["link.toml", "paper.csv"]),
    study!("sawashima-1997", ["tcp-alone.toml", "with-voice.toml", "paper.csv"]),
    study!(
        "nor-2010",
        ["streams.toml", "voice.toml", "thresholds.toml", "senders.toml", "loss.toml", "paper.csv"]
    ),
    study!("spoor-2014", ["transfer.toml", "file.toml", "paper.csv"]),
    study!("dccp-friendliness", ["pairs.toml"]),
    study!("quic-media", ["call.toml", "beside.toml", "shared.toml", "first.toml"]),
    study!(
        "zhang-schulzrinne-2004",
        [
            "adsl.toml",
            "adsl-ways.toml",
            "changing.toml",
            "congested.toml",
            "steady.toml",
            "unsteady.toml",
            "paper.csv"
        ]
    ),
    study!(
        "conformance",
        ["echo.toml", "states.toml", "bulk.toml", "bulk-bbr.toml", "mixed.toml", "quic.toml"]
    ),
];
