//! The flags about the version of IP.

use clap::{ArgAction, Args};
use talkpath_experiment::place::Versions;
use talkpath_scenario::IpVersion;

use super::heading;
use crate::failure::Failure;

/// The flags that every command with `--to` has.
#[derive(Clone, Copy, Debug, Args)]
pub struct FamilyArgs {
    /// live: reach the far host over IPv4 only (default: the first of its addresses that answers, RFC 8305).
    /// `compare` and `run` with -4 -6 measure over both, one beside the other
    #[arg(help_heading = heading::WHERE, long, short = '4', action = ArgAction::SetTrue)]
    pub ipv4: bool,
    /// live: reach the far host over IPv6 only
    #[arg(help_heading = heading::WHERE, long, short = '6', action = ArgAction::SetTrue)]
    pub ipv6: bool,
}

impl FamilyArgs {
    /// Returns the versions of IP that the user asks for.
    pub const fn versions(self) -> Versions {
        match (self.ipv4, self.ipv6) {
            (true, true) => Versions::Each,
            (true, false) => Versions::Only(IpVersion::V4),
            (false, true) => Versions::Only(IpVersion::V6),
            (false, false) => Versions::First,
        }
    }

    /// Returns the version of IP that the user asks for, of a command that measures over one.
    ///
    /// # Errors
    /// Returns [`Failure::Usage`] if the user asks for both versions.
    pub fn only(self) -> Result<Option<IpVersion>, Failure> {
        match self.versions() {
            Versions::First => Ok(None),
            Versions::Only(version) => Ok(Some(version)),
            Versions::Each => Err(Failure::Usage(
                "-4 with -6: `compare` and `run` measure over both versions of IP, this command over one; leave one of \
                 them out"
                    .to_owned(),
            )),
        }
    }
}
