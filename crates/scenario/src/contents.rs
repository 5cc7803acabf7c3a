//! The contents of files that a scenario names, and the kernel of this machine.
//!
//! - A *trace* is a file of a link's rates, losses or delays over time. Its text becomes a part of the plan.
//! - A *source* is a file whose bytes a flow sends. It stays where it is.
//! - The *resolved name* is the name in the resolved form of the scenario. A trace is then called
//!   `traces/NAME` ([`crate::Plan::traces`] has its text), and a source has its whole path. So the resolved
//!   form has the same meaning in every folder, if its traces are beside it.
//!
//! This crate reads no files. Whoever loads a scenario implements [`Files`].

use core::str::FromStr;
use std::collections::BTreeMap;

use talkpath_model::KernelProfile;
use talkpath_path::{ChangeTable, DelayTrace, LossTrace, RateTrace, TraceError};
use talkpath_units::Bytes;

use crate::quantity::Problem;
use crate::spec::FileKind;

/// Reads the files of a scenario, and the values of this machine's kernel. Names are as the scenario writes
/// them, relative to its folder.
pub trait Files {
    /// Reads the text of the file `name`.
    ///
    /// # Errors
    /// Returns the reason as a phrase: "no such file".
    fn text(&self, name: &str) -> Result<String, String>;

    /// Reads the file `name` as a path: a file with the tables `up` and `down`, or a table, trace or capture
    /// from which such a path is made.
    ///
    /// # Errors
    /// Returns the reason with the name of the file.
    fn path(&self, name: &str) -> Result<PathText, String> {
        Err(format!("{name}: no path file can be named here"))
    }

    /// Returns the whole path and the size of the file `name`.
    ///
    /// # Errors
    /// Returns the reason as a phrase.
    fn locate(&self, name: &str) -> Result<Located, String>;

    /// Returns the kernel of the machine that loads the scenario, for `kernel = "this"`.
    ///
    /// # Errors
    /// Returns the reason as a phrase.
    fn this_kernel(&self) -> Result<KernelProfile, String> {
        Err("this machine's kernel cannot be named here".to_owned())
    }
}

/// The path that a file describes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PathText {
    /// The tables `up` and `down`, and `[[change]]`.
    pub text: String,
    /// The file whose text this is, as messages name it. `None` if the text was made.
    pub file: Option<String>,
    /// What goes before the relative names of files in the text: the folder of the path file, with its slash.
    pub folder: String,
    /// Names and texts of the files that were made with the text, and that it names.
    pub made: Vec<(String, String)>,
    /// What is assumed, a sentence each.
    pub notes: Vec<String>,
    /// What is implausible in the file, a sentence each, apart from the tables and traces that the text
    /// names.
    pub doubts: Vec<String>,
    /// Whether the sizes of the queues are assumed.
    pub assumes_queues: bool,
    /// What to say if nothing else gives the path its rates. `None` if the text has them.
    pub lacks_rate: Option<String>,
}

/// A file whose bytes are sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Located {
    /// The whole path of the file.
    pub path: String,
    /// The size of the file.
    pub size: Bytes,
}

/// Refuses all files, for scenarios that name none.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoFiles;

/// A trace of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// The resolved name, `traces/NAME`.
    pub name: String,
    /// The text of the file.
    pub text: String,
}

/// The contents of a scenario's files. The maps are by resolved name.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    pub(crate) traces: Vec<Trace>,
    /// For each of `traces` the name in the scenario.
    names_in_scenario: Vec<String>,
    /// Texts that were made from a path's file, by their names in the scenario.
    supplied: BTreeMap<String, String>,
    rates: BTreeMap<String, RateTrace>,
    losses: BTreeMap<String, LossTrace>,
    delays: BTreeMap<String, DelayTrace>,
    changes: BTreeMap<String, ChangeTable>,
    sizes: BTreeMap<String, Bytes>,
    /// The kernel of this machine. It is read when a scenario first names it.
    kernel: Option<Result<KernelProfile, String>>,
}

impl Files for NoFiles {
    fn text(&self, _: &str) -> Result<String, String> {
        Err("files cannot be named here".to_owned())
    }

    fn locate(&self, _: &str) -> Result<Located, String> {
        Err("files cannot be named here".to_owned())
    }
}

impl Contents {
    /// Takes `text` as that of the file `name`, which is then not read.
    pub(crate) fn supply(&mut self, name: String, text: String) {
        self.supplied.insert(name, text);
    }

    pub(crate) fn rate(&self, name: &str) -> Option<&RateTrace> {
        self.rates.get(name)
    }

    pub(crate) fn loss(&self, name: &str) -> Option<&LossTrace> {
        self.losses.get(name)
    }

    pub(crate) fn delay(&self, name: &str) -> Option<&DelayTrace> {
        self.delays.get(name)
    }

    pub(crate) fn changes(&self, name: &str) -> Option<&ChangeTable> {
        self.changes.get(name)
    }

    pub(crate) fn size(&self, name: &str) -> Option<Bytes> {
        self.sizes.get(name).copied()
    }

    /// Reads the file that the scenario calls `name`, and returns its resolved name.
    ///
    /// # Errors
    /// Returns the reason if the file cannot be read, or if its content is wrong.
    pub(crate) fn read(&mut self, kind: FileKind, name: &str, files: &dyn Files) -> Result<String, Problem> {
        match kind {
            FileKind::Source => self.locate(name, files),
            FileKind::RateTrace | FileKind::LossTrace | FileKind::DelayTrace | FileKind::ChangeTable => {
                self.trace(kind, name, files)
            }
        }
    }

    /// Returns the kernel of the machine that loads the scenario. It is read once, because a sweep may name
    /// it often.
    ///
    /// # Errors
    /// Returns the reason as a phrase.
    pub(crate) fn this_kernel(&mut self, files: &dyn Files) -> Result<&KernelProfile, String> {
        self.kernel.get_or_insert_with(|| files.this_kernel()).as_ref().map_err(Clone::clone)
    }

    fn locate(&mut self, name: &str, files: &dyn Files) -> Result<String, Problem> {
        let refused = |why: String| Problem::new(format!("{name}: {why}"));
        let Located { path, size } = files.locate(name).map_err(refused)?;
        if size == Bytes::ZERO {
            return Err(refused("the file is empty".to_owned()));
        }
        self.sizes.insert(path.clone(), size);
        Ok(path)
    }

    fn trace(&mut self, kind: FileKind, name: &str, files: &dyn Files) -> Result<String, Problem> {
        let known = self.names_in_scenario.iter().position(|earlier| earlier == name);
        let place = match known {
            Some(place) => place,
            None => {
                let text = match self.supplied.get(name) {
                    Some(text) => Ok(text.clone()),
                    None => files.text(name),
                };
                let text = text.map_err(|why| Problem::new(format!("{name}: {why}")))?;
                let trace = Trace { name: self.free_name(name), text };
                self.traces.push(trace);
                self.names_in_scenario.push(name.to_owned());
                self.traces.len() - 1
            }
        };
        let Some(trace) = self.traces.get(place) else {
            return Err(Problem::new(format!("{name}: no such trace")));
        };
        let (new, text) = (trace.name.clone(), &trace.text);
        let parsed = match kind {
            FileKind::RateTrace => parse(name, &new, text, &mut self.rates),
            FileKind::LossTrace => parse(name, &new, text, &mut self.losses),
            FileKind::DelayTrace => parse(name, &new, text, &mut self.delays),
            FileKind::ChangeTable => parse(name, &new, text, &mut self.changes),
            FileKind::Source => Ok(()),
        };
        match parsed {
            Ok(()) => Ok(new),
            Err(why) => Err(Problem { message: why, help: form(kind).map(str::to_owned) }),
        }
    }

    /// Returns a resolved name that no other trace has: `traces/`, the name of the file with plain characters
    /// only, and a number if another trace has that name.
    fn free_name(&self, path: &str) -> String {
        let base = path.rsplit(['/', '\\']).next().unwrap_or(path);
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        let plain: String =
            base.chars().take(LONGEST_NAME).map(|c| if is_plain(c) { c } else { '-' }).collect();
        let plain = plain.trim_start_matches('.');
        let plain = if plain.is_empty() { "trace" } else { plain };
        let (stem, ending) =
            plain.rsplit_once('.').map_or((plain, ""), |(stem, _)| (stem, &plain[stem.len()..]));
        (1_u32..)
            .map(|number| match number {
                1 => format!("{FOLDER}/{plain}"),
                _ => format!("{FOLDER}/{stem}-{number}{ending}"),
            })
            .find(|name| !self.traces.iter().any(|trace| trace.name.eq_ignore_ascii_case(name)))
            .unwrap_or_default()
    }
}

/// Describes the lines of a trace, for messages.
const fn form(kind: FileKind) -> Option<&'static str> {
    match kind {
        FileKind::RateTrace => Some(
            "a rate trace has a line for each packet of 1500 B that the link can deliver: when, in whole \
             milliseconds from its beginning (mahimahi's format), as in 4, 4, 9 on three lines. A table of times \
             and rates belongs in [[change]] with file = \"FILE\"",
        ),
        FileKind::LossTrace => Some(
            "a loss trace has a mark for each packet: 0 if it arrives, 1 if it is lost; # begins a remark",
        ),
        FileKind::DelayTrace => Some(
            "a delay trace has a line for each packet: the milliseconds that are added to `delay`, as in 12.5; \
             # begins a remark",
        ),
        // The mistake says the columns.
        FileKind::ChangeTable | FileKind::Source => None,
    }
}

fn parse<T: FromStr<Err = TraceError>>(
    written: &str,
    name: &str,
    text: &str,
    into: &mut BTreeMap<String, T>,
) -> Result<(), String> {
    if !into.contains_key(name) {
        let trace =
            text.parse().map_err(|TraceError { line, mistake }| format!("{written}:{line}: {mistake}"))?;
        into.insert(name.to_owned(), trace);
    }
    Ok(())
}

/// The folder of the traces in a run directory.
const FOLDER: &str = "traces";
/// The largest number of characters in the name of a trace. We chose 60, which is well below the 255 bytes
/// that file systems allow.
const LONGEST_NAME: usize = 60;
