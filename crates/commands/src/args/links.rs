//! The flags about the two links of a path, which `compare` and `shell` share.

use clap::Args;
use talkpath_scenario::Setting;

use super::mos::{self, Share};
use super::{OwnLine, OwnLink, heading, quoted};

/// Flags that describe the links of a path, or change them.
#[derive(Debug, Args)]
pub struct LinkArgs {
    /// Your line by its download and upload in Mb/s, and its one-way delay if you know it: 50/10 or
    /// 50/10/20ms. What is assumed is printed. --up and --down describe a line in full
    #[arg(help_heading = heading::PATH, long, value_name = "DOWN/UP[/DELAY]", value_parser = OwnLine::parse, conflicts_with_all = ["up", "down"])]
    pub line: Option<OwnLine>,
    /// The upload of your line: its rate, its one-way delay and its queue, as in 10Mbps/15ms/256kB or
    /// 10Mbps/15ms/fq_codel (default: a drop-tail queue of 1000 packets)
    #[arg(help_heading = heading::PATH, long, value_name = "RATE/DELAY[/LIMIT][/QUEUE]", value_parser = OwnLink::parse)]
    pub up: Option<OwnLink>,
    /// The download of your line, written like --up
    #[arg(help_heading = heading::PATH, long, value_name = "RATE/DELAY[/LIMIT][/QUEUE]", value_parser = OwnLink::parse)]
    pub down: Option<OwnLink>,
    /// The queue discipline of both directions, such as fq_codel
    #[arg(help_heading = heading::PATH, long, value_name = "KIND")]
    pub queue: Option<String>,
    /// The share of the packets that each direction loses at random: `1%` or `0.01`
    #[arg(help_heading = heading::PATH, long, value_name = "SHARE", value_parser = mos::parse_share)]
    pub loss: Option<Share>,
}

impl LinkArgs {
    /// Returns the flags that describe the links, each with its value. `--line` is two of them.
    pub fn flags(&self) -> Vec<(&'static str, String)> {
        let flags = [
            ("--up", self.up.as_ref().map(OwnLink::to_string)),
            ("--down", self.down.as_ref().map(OwnLink::to_string)),
            ("--queue", self.queue.clone()),
            ("--loss", self.loss.as_ref().map(Share::to_string)),
        ];
        flags.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }

    /// Returns the settings of the scenario's path. `--queue` and `--loss` win over what `--up` and `--down`
    /// say.
    pub fn settings(&self) -> Vec<Setting> {
        let mut settings = Vec::new();
        for (link, description) in [("up", &self.up), ("down", &self.down)] {
            settings.extend(description.iter().flat_map(|description| description.settings(link)));
        }
        for link in ["up", "down"] {
            if let Some(queue) = &self.queue {
                let key = format!("path.{link}.queue");
                settings.push(Setting::by(&format!("--queue {queue}"), &key, quoted(queue)));
            }
            if let Some(loss) = &self.loss {
                let key = format!("path.{link}.loss");
                settings.push(Setting::by(&format!("--loss {loss}"), &key, loss.as_toml()));
            }
        }
        settings
    }
}
