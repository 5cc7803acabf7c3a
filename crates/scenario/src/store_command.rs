//! The command that copies one file of a campaign's records to a store.
//!
//! ```text
//! store_command = ["rclone", "copyto", "{file}", "lab:measurements/{key}"]
//! ```
//!
//! It is a list of words: a program and its arguments. No shell reads it, so no word needs quotes. `{file}`
//! is the path of the file, `{key}` its name in the store: `sites/day=2026-12-01/.../packets.parquet`.
//! Credentials are the command's own affair: it has the coordinator's environment.

use std::ffi::{OsStr, OsString};

use talkpath_units::Duration;

use crate::diagnostic::Log;
use crate::quantity::Problem;
use crate::tree::Entry;

/// A command that copies one file to a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreCommand {
    /// The program, then its arguments, with `{file}` and `{key}` in them.
    pub words: Vec<String>,
    /// How long the command may take for one file.
    pub timeout: Duration,
}

impl StoreCommand {
    /// The command of these words.
    pub(crate) fn new(words: Vec<String>, timeout: Duration) -> Result<Self, Problem> {
        let program = words.first().map_or("", String::as_str);
        if program.is_empty() || program.contains(FILE) || program.contains(KEY) {
            return Err(Problem::new("found no program in the first word").with_help(example()));
        }
        for (placeholder, meaning) in [(FILE, "the path of the file"), (KEY, "its name in the store")] {
            if !words.iter().any(|word| word.contains(placeholder)) {
                let message = format!("found no `{placeholder}` in it, expected it in place of {meaning}");
                return Err(Problem::new(message).with_help(example()));
            }
        }
        Ok(Self { words, timeout })
    }

    /// The program and its arguments for one file.
    pub fn words_for(&self, file: &OsStr, key: &str) -> Vec<OsString> {
        let filled = |word: &String| {
            let mut filled = OsString::new();
            for (at, part) in word.split(FILE).enumerate() {
                if at > 0 {
                    filled.push(file);
                }
                filled.push(part.replace(KEY, key));
            }
            filled
        };
        self.words.iter().map(filled).collect()
    }
}

/// Records a mistake for each of `entries`, whose keys are among [`OLD_KEYS`]: what to write instead.
pub(crate) fn refuse_old_keys(entries: &[Entry], log: &mut Log) {
    // What needs no quotes in TOML and is safe on a terminal; for the rest there is the example.
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.=/:[]".contains(c);
    let text = |name: &str| {
        let found = entries.iter().find(|entry| entry.name == name)?.node.as_text()?;
        found.chars().all(is_plain).then_some(found)
    };
    let endpoint = text("store_endpoint");
    for entry in entries {
        let help = match text("store") {
            Some(store) => format!("write `{}`", instead_of(store, endpoint)),
            None => example(),
        };
        let message =
            format!("found {}; records are now copied by a command: `store_command`", entry.node.found());
        log.mistake(&entry.place, &entry.name, message, Some(help));
    }
}

/// The line that does with rclone what `store = STORE` did. `env_auth` takes the credentials from the same
/// variables.
fn instead_of(store: &str, endpoint: Option<&str>) -> String {
    let target = match (store.strip_prefix("file://"), store.strip_prefix("s3://")) {
        (Some(folder), _) => folder.trim_end_matches('/').to_owned(),
        (None, Some(bucket)) => {
            let remote = match endpoint {
                Some(endpoint) => format!(":s3,env_auth,provider=Other,endpoint='{endpoint}'"),
                None => ":s3,env_auth,provider=AWS".to_owned(),
            };
            format!("{remote}:{}", bucket.trim_end_matches('/'))
        }
        (None, None) => "REMOTE:BUCKET".to_owned(),
    };
    format!("store_command = [\"rclone\", \"copyto\", \"{FILE}\", \"{target}/{KEY}\"]")
}

fn example() -> String {
    format!("such as [\"rclone\", \"copyto\", \"{FILE}\", \"REMOTE:BUCKET/{KEY}\"]")
}

/// Stands for the path of the file.
const FILE: &str = "{file}";
/// Stands for the file's name in the store.
const KEY: &str = "{key}";
/// Keys of files that were written for the S3 client that talkpath once had.
pub(crate) const OLD_KEYS: [&str; 2] = ["store", "store_endpoint"];

#[cfg(test)]
mod tests {
    use super::*;

    fn command(words: &[&str]) -> Result<StoreCommand, Problem> {
        let words = words.iter().map(|word| (*word).to_owned()).collect();
        StoreCommand::new(words, Duration::from_secs(1))
    }

    #[test]
    fn placeholders_are_filled_within_a_word_and_a_file_called_like_one_stays() {
        let command = command(&["cp", "--from={file}", "a{b}", "{key}/{key}", "x:{file}:{key}"]).unwrap();
        let words = command.words_for(OsStr::new("/r/{key} $(rm)"), "k");
        let expected = ["cp", "--from=/r/{key} $(rm)", "a{b}", "k/k", "x:/r/{key} $(rm):k"];
        assert_eq!(words, expected.map(OsString::from));
    }

    #[test]
    fn a_command_without_a_program_or_a_placeholder_is_a_mistake() {
        for (words, says) in [
            (&["", "{file}", "{key}"][..], "found no program"),
            (&["{file}", "{key}"], "found no program"),
            (&["cp", "{key}"], "found no `{file}`"),
            (&["cp", "{file}", "/share/{ key }"], "found no `{key}`"),
        ] {
            let found = command(words).unwrap_err();
            assert!(found.message.contains(says), "{words:?}: {}", found.message);
        }
    }
}
