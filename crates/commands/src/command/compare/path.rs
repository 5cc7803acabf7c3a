//! The path over which `compare` runs its transports: a network, the user's own line, a file, a table or a
//! preset.

use std::path::Path;

use talkpath_scenario::{Options, Plan, Source, preset, presets};

use super::table_path::TablePath;
use crate::args::{CompareArgs, HOME, LinkArgs, OwnLink};
use crate::failure::Failure;
use crate::scenario_file::{load_source, load_source_beside, read_text};
use talkpath_experiment::place::Place;

/// The file name that messages use for the part of the scenario that `compare` writes itself.
const WRITTEN_HERE: &str = "talkpath compare";

/// The link that an upload fills.
pub(super) const UPLINK: &str = "up";
/// The name of the upload beside the compared flow.
pub(super) const UPLOAD: &str = "upload";

/// The path over which the transports are compared.
pub(in crate::command) struct ComparedPath<'a> {
    name: String,
    /// The scenario text that describes the path.
    source: Source,
    /// The file that holds `source`, if the user gave a file.
    file: Option<&'a Path>,
    /// What is assumed about the path, in a sentence. `None` if nothing is.
    assumptions: Option<String>,
}

impl<'a> ComparedPath<'a> {
    /// Finds the path that the user chose.
    ///
    /// `--up` and `--down` describe a whole line if `--path` is not given. With `--path` they change that
    /// path: [`LinkArgs::settings`] applies them in both cases.
    pub(super) fn choose(args: &'a CompareArgs, place: &Place) -> Result<Self, Failure> {
        if let Some(host) = &place.to {
            return Self::network(host, args);
        }
        Self::described(args.path.as_deref(), &args.links)
    }

    /// Finds the path that the options `--path`, `--up` and `--down` describe.
    pub(in crate::command) fn described(path: Option<&'a str>, links: &LinkArgs) -> Result<Self, Failure> {
        if let Some(path) = path {
            return Self::file_or_preset(path);
        }
        match (&links.up, &links.down) {
            (Some(up), Some(down)) => Ok(Self::own_line(up, down)),
            (Some(_), None) => Err(missing_direction("--up", "--down")),
            (None, Some(_)) => Err(missing_direction("--down", "--up")),
            (None, None) => Self::file_or_preset(HOME),
        }
    }

    /// Returns the name of the path in the run's name.
    pub(in crate::command) fn name(&self) -> &str {
        &self.name
    }

    /// Says what is assumed about the path. Returns `None` if nothing is.
    pub(in crate::command) fn assumptions(&self) -> Option<&str> {
        self.assumptions.as_deref()
    }

    /// Reads the scenario of the path, changed by `options`.
    pub(in crate::command) fn load(&self, options: &Options) -> Result<Plan, Failure> {
        match self.file {
            Some(file) => load_source_beside(file, &self.source, options),
            None => load_source(&self.source, options),
        }
    }

    /// Describes the network between this host and `host`. Flags that would change a path are refused,
    /// because nobody can change the network.
    fn network(host: &str, args: &CompareArgs) -> Result<Self, Failure> {
        if let Some(option) = first_path_option(args) {
            return Err(Failure::Usage(format!(
                "{option} belongs to sim and emu: between two hosts the path is the network"
            )));
        }
        if args.alone {
            return Err(Failure::Usage(
                "--alone belongs to sim and emu: between two hosts there is no upload unless --load adds one"
                    .into(),
            ));
        }
        // The delay of a network is not known. So messages in flight at the end of the run have 5 s to
        // arrive.
        Ok(Self {
            name: host.to_owned(),
            source: Source::new(WRITTEN_HERE, "drain = \"5 s\""),
            file: None,
            assumptions: None,
        })
    }

    fn own_line(up: &OwnLink, down: &OwnLink) -> Self {
        Self {
            name: format!("{up} up and {down} down"),
            source: Source::path(WRITTEN_HERE, ""),
            file: None,
            assumptions: None,
        }
    }

    fn file_or_preset(path: &'a str) -> Result<Self, Failure> {
        if path.ends_with(".csv") {
            return Self::table(path);
        }
        if path.ends_with(".toml") || path.contains('/') {
            return Self::file(path);
        }
        let Some(preset) = preset(path) else {
            let known: Vec<_> = presets().iter().map(|preset| preset.name).collect();
            return Err(Failure::Usage(format!(
                "--path {path}: no such preset; the presets are {}; a file's name must end in .toml or .csv",
                known.join(", ")
            )));
        };
        Ok(Self {
            name: path.to_owned(),
            source: Source::path(preset.name, preset.text),
            file: None,
            assumptions: None,
        })
    }

    fn file(path: &'a str) -> Result<Self, Failure> {
        let file = Path::new(path);
        let name = file.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
        Ok(Self { name, source: Source::path(path, read_text(file)?), file: Some(file), assumptions: None })
    }

    /// Makes the path of a table of rates over time.
    fn table(path: &'a str) -> Result<Self, Failure> {
        let file = Path::new(path);
        let name = file.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        let TablePath { text, assumptions } =
            TablePath::new(&name, &read_text(file)?).map_err(Failure::Usage)?;
        let source = Source::path(WRITTEN_HERE, text);
        Ok(Self { name, source, file: Some(file), assumptions: Some(assumptions) })
    }
}

pub(super) fn is_path_key(key: &str) -> bool {
    key.split('.').next() == Some("path")
}

/// Returns the first flag or key that describes or changes the path, if the user gave one.
fn first_path_option(args: &CompareArgs) -> Option<&str> {
    if args.line.is_some() {
        return Some("--line");
    }
    if let Some((flag, _)) = args.links.flags().first() {
        return Some(flag);
    }
    let mut changed_keys = args.change.set.iter().chain(&args.change.sweep).map(|(key, _)| key.as_str());
    changed_keys.find(|key| is_path_key(key))
}

/// Returns the error for a line that has the flag `given`, but not the flag `missing`.
fn missing_direction(given: &str, missing: &str) -> Failure {
    Failure::Usage(format!(
        "{given} without {missing}: a line has an upload and a download; give {missing} too, or give --path for the direction that is missing"
    ))
}
