//! The lost and late messages of a flow that belong to the changes of the path, as summary.json has them.

use serde::{Deserialize, Serialize};

/// What belongs to a group of changes of the path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ByChange {
    /// [`super::PathChange::group`].
    pub change: String,
    /// Whether no packet leaves during the changes.
    pub is_silence: bool,
    /// How many changes the group has.
    pub times: u64,
    /// When the first change begins, in s from the start of the run.
    pub first_s: f64,
    /// When the group is over, in s from the start of the run
    /// ([`crate::path_changes::ChangeGroup::until_s`]).
    pub until_s: f64,
    /// The lost messages that belong to the group.
    pub lost: u64,
    /// The late messages that belong to the group.
    pub late: u64,
    /// The seconds in the time of the group, within the first hour of the run.
    pub seconds: u64,
    /// Whether the time of the group was compared with the rest of the run, over all repetitions, and has no
    /// more lost and no more late messages than chance puts there.
    #[serde(default)]
    pub is_free: bool,
}
