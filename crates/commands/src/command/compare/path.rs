//! The path over which `compare` runs its transports: a network, the user's own line, a file or a preset.

use std::path::Path;

use talkpath_scenario::{Options, Plan, Setting, Source};

use crate::args::{CompareArgs, HOME, LinkArgs, OwnLink};
use crate::failure::Failure;
use crate::scenario_file::{load_source_beside, path_setting};
use talkpath_experiment::place::Place;

/// The file name that messages use for the part of the scenario that `compare` writes itself.
const WRITTEN_HERE: &str = "talkpath compare";

/// The link that an upload fills.
pub(super) const UPLINK: &str = "up";
/// The name of the upload beside the compared flow.
pub(super) const UPLOAD: &str = "upload";

/// The path over which the transports are compared.
pub(in crate::command) struct ComparedPath {
    name: String,
    /// The part of the scenario that is no setting.
    source: Source,
    /// The path, if it is a file or a preset.
    path: Option<Setting>,
}

impl ComparedPath {
    /// Finds the path that the user chose.
    ///
    /// `--up` and `--down` describe a whole line if `--path` is not given. With `--path` they change that
    /// path: [`LinkArgs::settings`] applies them in both cases.
    pub(super) fn choose(args: &CompareArgs, place: &Place) -> Result<Self, Failure> {
        if let Some(host) = &place.to {
            return Self::network(host, args);
        }
        Self::described(args.path.as_deref(), &args.links)
    }

    /// Finds the path that the options `--path`, `--up` and `--down` describe.
    pub(in crate::command) fn described(path: Option<&str>, links: &LinkArgs) -> Result<Self, Failure> {
        if let Some(path) = path {
            return Ok(Self::file_or_preset(path));
        }
        match (&links.up, &links.down) {
            (Some(up), Some(down)) => Ok(Self::own_line(up, down)),
            (Some(_), None) => Err(missing_direction("--up", "--down")),
            (None, Some(_)) => Err(missing_direction("--down", "--up")),
            (None, None) => Ok(Self::file_or_preset(HOME)),
        }
    }

    /// Returns the name of the path in the run's name.
    pub(in crate::command) fn name(&self) -> &str {
        &self.name
    }

    /// Reads the scenario of the path, changed by `options`.
    pub(in crate::command) fn load(&self, options: &Options) -> Result<Plan, Failure> {
        let set = self.path.iter().chain(&options.set).cloned().collect();
        // The files that the path names are relative to the working directory.
        load_source_beside(Path::new(""), &self.source, &Options { set, ..options.clone() })
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
        Ok(Self { name: host.to_owned(), source: Source::new(WRITTEN_HERE, "drain = \"5 s\""), path: None })
    }

    fn own_line(up: &OwnLink, down: &OwnLink) -> Self {
        Self { name: format!("{up} up and {down} down"), source: Source::path(WRITTEN_HERE, ""), path: None }
    }

    fn file_or_preset(path: &str) -> Self {
        let file_name = path.rsplit('/').next().unwrap_or(path);
        let name = file_name.strip_suffix(".toml").unwrap_or(file_name).to_owned();
        Self {
            name,
            source: Source::new(WRITTEN_HERE, "drain = \"5 s\""),
            path: Some(path_setting(path, None)),
        }
    }
}

/// Refuses `--line` beside a path that has rates of its own, and marks the queues of the plan whose size is
/// assumed. `chooses_queue` says that the user chose a queue.
pub(in crate::command) fn apply_line(
    path: Option<&str>,
    links: &LinkArgs,
    chooses_queue: bool,
    plan: &mut Plan,
) -> Result<(), Failure> {
    let has_line = links.line.is_some();
    if let Some(path) = path.filter(|_| has_line && !plan.understood.path_lacks_rate) {
        return Err(Failure::Usage(format!(
            "--line with --path {path}, which has rates of its own; give one of them. --up and --down change a path"
        )));
    }
    if (has_line || plan.understood.assumes_queues) && !chooses_queue && links.queue.is_none() {
        plan.understood.assumed_queues = ["up", "down"].map(str::to_owned).into();
    }
    Ok(())
}

pub(super) fn is_path_key(key: &str) -> bool {
    key.split('.').next() == Some("path")
}

/// Returns the first flag or key that describes or changes the path, if the user gave one.
fn first_path_option(args: &CompareArgs) -> Option<&str> {
    if args.links.line.is_some() {
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
