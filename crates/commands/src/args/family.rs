//! The flags about the version of IP.

use clap::{ArgAction, Args};
use talkpath_scenario::IpVersion;

use super::heading;

/// The flags that every command with `--to` has.
#[derive(Clone, Copy, Debug, Args)]
pub struct FamilyArgs {
    /// live: reach the far host over IPv4 only (default: the first of its addresses that answers, RFC 8305)
    #[arg(help_heading = heading::WHERE, long, short = '4', action = ArgAction::SetTrue, conflicts_with = "ipv6")]
    pub ipv4: bool,
    /// live: reach the far host over IPv6 only
    #[arg(help_heading = heading::WHERE, long, short = '6', action = ArgAction::SetTrue)]
    pub ipv6: bool,
}

impl FamilyArgs {
    /// Returns the version of IP that the user asks for.
    pub fn version(self) -> Option<IpVersion> {
        match (self.ipv4, self.ipv6) {
            (true, _) => Some(IpVersion::V4),
            (false, true) => Some(IpVersion::V6),
            (false, false) => None,
        }
    }
}
