//! The command that copies one file of a campaign's records to a store.
//!
//! ```text
//! store_command = ["rclone", "copyto", "{file}", "lab:measurements/{key}"]
//! ```
//!
//! The command is a list of words: a program and its arguments. No shell reads it, so no word needs quotes.
//!
//! - `{file}` stands for the path of the file.
//! - `{key}` stands for the name of the file in the store, such as
//!   `sites/day=2026-12-01/.../packets.parquet`.
//!
//! The command has the coordinator's environment, which is where it finds its credentials.

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
    /// The time after which the copy of one file has failed.
    pub timeout: Duration,
}

impl StoreCommand {
    /// Checks that there is a program, and that both placeholders are in the words.
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

    /// Returns the program and its arguments for one file.
    pub fn words_for(&self, file: &OsStr, key: &str) -> Vec<OsString> {
        // `{key}` is replaced in the parts between `{file}`, so that a file whose name has `{key}` keeps its
        // name.
        let mut words = Vec::new();
        for word in &self.words {
            let mut filled_word = OsString::new();
            for (index, part) in word.split(FILE).enumerate() {
                if index > 0 {
                    filled_word.push(file);
                }
                filled_word.push(part.replace(KEY, key));
            }
            words.push(filled_word);
        }
        words
    }
}

/// Reports each of `entries`, whose keys are among [`OLD_KEYS`], and says what to write instead.
pub(crate) fn refuse_old_keys(entries: &[Entry], log: &mut Log) {
    // A text of these characters needs no escapes in TOML and is safe on a terminal. For any other text the
    // help is an example.
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.=/:[]".contains(c);
    let text = |name: &str| {
        let found = entries.iter().find(|entry| entry.name == name)?.node.as_text()?;
        found.chars().all(is_plain).then_some(found)
    };
    let endpoint = text("store_endpoint");
    for entry in entries {
        let help = match text("store") {
            Some(store) => format!("write `{}`", rclone_line(store, endpoint)),
            None => example(),
        };
        let message =
            format!("found {}; records are now copied by a command: `store_command`", entry.node.found());
        log.mistake(&entry.place, &entry.name, Problem::new(message).with_help(help));
    }
}

/// Returns the line that copies to the former `store` by rclone. `env_auth` reads the credentials from the
/// same environment variables as before.
fn rclone_line(store: &str, endpoint: Option<&str>) -> String {
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

/// The placeholder of the file's path.
const FILE: &str = "{file}";
/// The placeholder of the file's name in the store.
const KEY: &str = "{key}";
/// The keys of the S3 client that former versions of talkpath had.
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
