//! What a scenario names outside itself: traces, whose text becomes part of the plan; files to be sent, which
//! stay where they are; and the kernel of this machine.
//!
//! | key | what the file is |
//! | --- | --- |
//! | `trace` of a `rate` | mahimahi's packet-delivery trace |
//! | `file` of a `loss` or a `jitter` | a trace by packet (`talkpath_path::LossTrace`, `DelayTrace`) |
//! | `source` of a `workload` | anything: `file` sends its bytes |
//!
//! Nothing is read here: whoever loads the scenario gives a [`Files`]. In the resolved form a trace is called
//! `traces/NAME`, under which [`crate::Plan::traces`] has its text, and a file to be sent by its whole path:
//! so the resolved form means the same wherever it lies, beside its traces.

use core::str::FromStr;
use std::collections::BTreeMap;

use talkpath_model::KernelProfile;
use talkpath_path::{DelayTrace, LossTrace, RateTrace, TraceError};
use talkpath_units::Bytes;

use crate::diagnostic::{Log, Place};
use crate::keys::KERNEL;
use crate::quantity::Problem;
use crate::spec::is_same_word;
use crate::tree::{Node, Table, Value, parse_value, split};

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

/// Reads every file that `root` names, and gives each the name of the resolved form in its place.
pub(crate) fn read_files(mut root: Table, files: &dyn Files, log: &mut Log) -> (Table, Contents) {
    let mut contents = Contents::default();
    contents.table(&mut root, &mut Vec::new(), files, log);
    (root, contents)
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

    pub(crate) fn size(&self, name: &str) -> Option<Bytes> {
        self.sizes.get(name).copied()
    }

    fn table(&mut self, table: &mut Table, above: &mut Vec<String>, files: &dyn Files, log: &mut Log) {
        for entry in &mut table.entries {
            // A sweep's keys are paths in themselves.
            let names: Vec<_> = split(&entry.name).into_iter().map(str::to_owned).collect();
            let depth = above.len();
            above.extend(names);
            self.node(&mut entry.node, above, files, log);
            above.truncate(depth);
        }
    }

    fn node(&mut self, node: &mut Node, at: &mut Vec<String>, files: &dyn Files, log: &mut Log) {
        if is_kernel(at) && is_this(node) {
            return self.this_kernel(node, files, log);
        }
        match &mut node.value {
            Value::Table(table) => self.table(table, at, files, log),
            Value::List(list) => list.iter_mut().for_each(|node| self.node(node, at, files, log)),
            Value::Text(name) => {
                if let Some(new) = self.file(name, &node.place, at, files, log) {
                    *name = new;
                }
            }
            Value::Number(_) | Value::Flag(_) | Value::Date(_) => {}
        }
    }

    fn this_kernel(&mut self, node: &mut Node, files: &dyn Files, log: &mut Log) {
        // A sweep may name it more than once.
        match self.kernel.get_or_insert_with(|| files.this_kernel()) {
            Ok(profile) => replace_this(node, profile),
            Err(why) => {
                let help = format!("there are: {}", kernel_names().collect::<Vec<_>>().join(", "));
                log.mistake(&node.place, "kernel", why.clone(), Some(help));
            }
        }
    }

    /// The name that the resolved form has for the file `name`, if the key `at` names a file.
    fn file(
        &mut self,
        name: &str,
        place: &Place,
        at: &[String],
        files: &dyn Files,
        log: &mut Log,
    ) -> Option<String> {
        let [.., parent, key] = at else { return None };
        let kind = match (parent.as_str(), key.as_str()) {
            ("rate", "trace") => Kind::Rate,
            ("loss", "file") => Kind::Loss,
            ("jitter", "file") => Kind::Delay,
            ("workload", "source") => Kind::Source,
            _ => return None,
        };
        let found = match kind {
            Kind::Source => self.located(name, files),
            Kind::Rate | Kind::Loss | Kind::Delay => self.trace(kind, name, files),
        };
        found.map_err(|Problem { message, help }| log.mistake(place, &at.join("."), message, help)).ok()
    }

    fn located(&mut self, name: &str, files: &dyn Files) -> Result<String, Problem> {
        let refused = |why: String| Problem::new(format!("{name}: {why}"));
        let Located { path, size } = files.locate(name).map_err(refused)?;
        if size == Bytes::ZERO {
            return Err(refused("the file is empty".to_owned()));
        }
        self.sizes.insert(path.clone(), size);
        Ok(path)
    }

    fn trace(&mut self, kind: Kind, name: &str, files: &dyn Files) -> Result<String, Problem> {
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
            Kind::Rate => parse(name, &new, text, &mut self.rates),
            Kind::Loss => parse(name, &new, text, &mut self.losses),
            Kind::Delay => parse(name, &new, text, &mut self.delays),
            Kind::Source => Ok(()),
        };
        match parsed {
            Ok(()) => Ok(new),
            Err(why) => Err(Problem { message: why, help: kind.form().map(str::to_owned) }),
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

/// True if `at` is the key `kernel`: at the top, or among a sweep's values.
fn is_kernel(at: &[String]) -> bool {
    matches!(at, [key] if key == "kernel")
        || matches!(at, [sweep, key] if sweep == "sweep" && key == "kernel")
}

/// True if `node`, the value of `kernel`, is the machine's own kernel.
fn is_this(node: &Node) -> bool {
    let kind = node.as_table().map_or(Some(node), |table| table.get("kind"));
    kind.and_then(Node::as_text).is_some_and(|kind| is_same_word(kind, "this"))
}

/// Replaces `this` by the values of `profile`. Keys that the file has beside `this` win.
fn replace_this(node: &mut Node, profile: &KernelProfile) {
    let mut table = Table::default();
    table.set("kind", Node::text("measured", node.place.clone()));
    for (key, text) in profile.values() {
        if let Some(value) = parse_value(&text, &node.place) {
            table.set(key, value);
        }
    }
    for entry in node.as_table().into_iter().flat_map(|written| &written.entries) {
        if entry.name != "kind" {
            table.set(&entry.name, entry.node.clone());
        }
    }
    node.value = Value::Table(table);
}

/// The names of the profiles that need no machine, for messages.
fn kernel_names() -> impl Iterator<Item = &'static str> {
    KERNEL.variants.iter().map(|variant| variant.name).filter(|name| !matches!(*name, "this" | "measured"))
}

/// What a key's file is.
#[derive(Clone, Copy)]
enum Kind {
    Rate,
    Loss,
    Delay,
    Source,
}

impl Kind {
    /// What a trace of this kind has in its lines.
    const fn form(self) -> Option<&'static str> {
        match self {
            Self::Rate => Some(
                "a rate trace has a line for each packet of 1500 B that the link can deliver: when, in whole \
                 milliseconds from its beginning (mahimahi's format), as in 4, 4, 9 on three lines. A table of times \
                 and rates is not read yet (docs/reference/not-yet.md)",
            ),
            Self::Loss => Some(
                "a loss trace has a mark for each packet: 0 if it arrives, 1 if it is lost; # begins a remark",
            ),
            Self::Delay => Some(
                "a delay trace has a line for each packet: the milliseconds that are added to `delay`, as in 12.5; \
                 # begins a remark",
            ),
            Self::Source => None,
        }
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
