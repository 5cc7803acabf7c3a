//! What a scenario names outside itself: traces, whose text becomes part of the plan; files to be sent, which
//! stay where they are; and the kernel of this machine.
//!
//! Nothing is read here: whoever loads the scenario gives a [`Files`]. In the resolved form a trace is called
//! `traces/NAME`, under which [`crate::Plan::traces`] has its text, and a file to be sent by its whole path:
//! so the resolved form means the same wherever it lies, beside its traces.

use core::str::FromStr;
use std::collections::BTreeMap;

use talkpath_model::KernelProfile;
use talkpath_path::{ChangeTable, DelayTrace, LossTrace, RateTrace, TraceError};
use talkpath_units::Bytes;

use crate::quantity::Problem;
use crate::spec::FileKind;

/// Where a scenario's files are, and this machine's kernel. Names are as the scenario writes them, relative
/// to its own folder.
pub trait Files {
    /// The text of the file `name`.
    ///
    /// # Errors
    /// Why it cannot be had, as a phrase: "no such file".
    fn text(&self, name: &str) -> Result<String, String>;

    /// Where the file `name` is, and how large.
    ///
    /// # Errors
    /// Why it cannot be had, as a phrase.
    fn locate(&self, name: &str) -> Result<Located, String>;

    /// The kernel of the machine that loads the scenario: `kernel = "this"`.
    ///
    /// # Errors
    /// Why its values cannot be had, as a phrase.
    fn this_kernel(&self) -> Result<KernelProfile, String> {
        Err("this machine's kernel cannot be named here".to_owned())
    }
}

/// A file to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Located {
    /// Its whole path.
    pub path: String,
    /// Its size.
    pub size: Bytes,
}

/// A scenario without files of its own.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoFiles;

/// A trace that a plan uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// `traces/NAME`, as the resolved form calls it.
    pub name: String,
    /// What is in it.
    pub text: String,
}

/// What the files of a scenario hold, by the names of the resolved form.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    pub(crate) traces: Vec<Trace>,
    /// As the scenario called each of `traces`.
    written: Vec<String>,
    rates: BTreeMap<String, RateTrace>,
    losses: BTreeMap<String, LossTrace>,
    delays: BTreeMap<String, DelayTrace>,
    changes: BTreeMap<String, ChangeTable>,
    sizes: BTreeMap<String, Bytes>,
    /// Read at the first `this`.
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

    /// Reads the file that the scenario calls `name`. Returns the name that the resolved form has for it.
    ///
    /// # Errors
    /// Why it cannot be had, or what is wrong in it.
    pub(crate) fn read(&mut self, kind: FileKind, name: &str, files: &dyn Files) -> Result<String, Problem> {
        match kind {
            FileKind::Source => self.locate(name, files),
            FileKind::RateTrace | FileKind::LossTrace | FileKind::DelayTrace | FileKind::ChangeTable => {
                self.trace(kind, name, files)
            }
        }
    }

    /// The kernel of the machine that loads the scenario, read once: a sweep may name it more than once.
    ///
    /// # Errors
    /// Why its values cannot be had, as a phrase.
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
        let known = self.written.iter().position(|written| written == name);
        let place = match known {
            Some(place) => place,
            None => {
                let text = files.text(name).map_err(|why| Problem::new(format!("{name}: {why}")))?;
                let trace = Trace { name: self.free_name(name), text };
                self.traces.push(trace);
                self.written.push(name.to_owned());
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

    /// `traces/` and the file's own name, with plain characters only, and with a number if the name is
    /// already taken.
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

/// What a trace of this kind has in its lines.
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

/// Where a run directory has its traces.
const FOLDER: &str = "traces";
/// Characters of a trace's name. Chosen: well under the 255 bytes that file systems allow.
const LONGEST_NAME: usize = 60;
