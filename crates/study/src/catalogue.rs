//! The studies that are built in: `studies/<author>-<year>/`, and the simulator's own against the kernel, as
//! texts.

use talkpath_scenario::Source;

/// One study's files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Embedded {
    /// Its folder's name.
    pub name: &'static str,
    /// `study.toml`.
    pub text: &'static str,
    /// The scenarios beside it: name and text.
    pub files: &'static [(&'static str, &'static str)],
}

impl Embedded {
    /// `study.toml` under the name that messages call it by.
    pub fn source(&self) -> Source {
        Source::new(format!("studies/{}/study.toml", self.name), self.text)
    }

    /// The scenarios.
    pub fn files(&self) -> Vec<Source> {
        self.files.iter().map(|(name, text)| Source::new(*name, *text)).collect()
    }
}

/// Every built-in study, by year.
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
    study!("spoor-2014", ["transfer.toml", "paper.csv"]),
    study!("dccp-friendliness", ["pairs.toml"]),
    study!("quic-media", ["call.toml", "beside.toml", "shared.toml", "first.toml"]),
    study!(
        "zhang-schulzrinne-2004",
        [
            "adsl.toml",
            "adsl-ways.toml",
            "congested.toml",
            "steady.toml",
            "unsteady.toml",
            "paper.csv",
            "figure-4.3.csv"
        ]
    ),
    study!(
        "conformance",
        ["echo.toml", "states.toml", "bulk.toml", "bulk-bbr.toml", "mixed.toml", "quic.toml"]
    ),
];
