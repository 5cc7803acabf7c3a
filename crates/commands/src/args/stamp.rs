//! The command line of `talkpath stamp`.

use std::net::SocketAddr;

use clap::builder::FalseyValueParser;
use clap::{Args, ValueHint};
use talkpath_scenario::parse_duration;
use talkpath_system::ports::STAMP_PORT;
use talkpath_units::Duration;

use super::{heading, socket_address};

#[derive(Debug, Args)]
pub struct StampArgs {
    /// The host with a session-reflector; port 862 unless given
    #[arg(help_heading = heading::SENDER, long, value_name = "HOST[:PORT]", value_hint = ValueHint::Hostname, required_unless_present = "reflect")]
    pub to: Option<String>,
    /// Be a session-reflector, until Ctrl-C
    #[arg(help_heading = heading::REFLECTOR, long, conflicts_with = "to")]
    pub reflect: bool,
    /// How many packets
    #[arg(help_heading = heading::SENDER, long, value_name = "N", default_value = "100", conflicts_with = "reflect",
          value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub count: u32,
    /// From one packet to the next
    #[arg(help_heading = heading::SENDER, long, value_name = "TIME", default_value = "100ms", conflicts_with = "reflect", value_parser = interval)]
    pub interval: Duration,
    /// UDP payload of each packet in bytes; what is more than its fields is Extra Padding (default: what they
    /// need, 44, or 52 with --dscp)
    #[arg(help_heading = heading::SENDER, long, value_name = "BYTES", conflicts_with = "reflect",
          value_parser = clap::value_parser!(u64).range(STAMP_SIZE..=MAX_PAYLOAD))]
    pub size: Option<u64>,
    /// DSCP of the packets, and of their answers if it is another; a Class of Service TLV requests that
    #[arg(help_heading = heading::SENDER, long, value_name = "DSCP[/BACK]", conflicts_with = "reflect", value_parser = dscp)]
    pub dscp: Option<(u8, u8)>,
    /// How long to wait for answers after the last packet
    #[arg(help_heading = heading::SENDER, long, value_name = "TIME", default_value = "2s", conflicts_with = "reflect", value_parser = wait)]
    pub wait: Duration,
    /// Both hosts' clocks are kept by GPS or PTP, so stamps are compared as they are
    #[arg(help_heading = heading::SENDER, long, env = "TALKPATH_CLOCKS_SYNCHRONISED", value_parser = FalseyValueParser::new())]
    pub clocks_synchronised: bool,
    /// The reflector numbers each session's packets by itself; as a reflector, do so. Losses are then known
    /// each way
    #[arg(long)]
    pub stateful: bool,
    /// Address to reflect at, at port 862 unless given (default: every address)
    #[arg(help_heading = heading::REFLECTOR, long, value_name = "ADDR[:PORT]", requires = "reflect", value_parser = |text: &str| socket_address(text, STAMP_PORT))]
    pub bind: Option<SocketAddr>,
    /// Answer everybody who can reach this port; without it only loopback is answered
    #[arg(help_heading = heading::REFLECTOR, long, requires = "reflect")]
    pub open: bool,
    /// Packets that are answered within a second; one address has half of them
    #[arg(help_heading = heading::REFLECTOR, long, value_name = "N", default_value = "10000", requires = "reflect",
          value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub max_packets: u32,
    /// Sessions at a time of a stateful reflector
    #[arg(help_heading = heading::REFLECTOR, long, value_name = "N", default_value = "1024", requires = "reflect",
          value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub max_sessions: u32,
}

fn interval(text: &str) -> Result<Duration, String> {
    let interval = parse_duration(text, LONGEST)?;
    if interval >= SHORTEST { Ok(interval) } else { Err("expected at least 1 ms".to_owned()) }
}

fn wait(text: &str) -> Result<Duration, String> {
    parse_duration(text, LONGEST)
}

/// A code point of six bits (RFC 2474 §3), or two.
fn dscp(text: &str) -> Result<(u8, u8), String> {
    let point = |text: &str| text.trim().parse::<u8>().ok().filter(|point| *point < 64);
    let (out, back) = text.split_once('/').unwrap_or((text, text));
    point(out)
        .zip(point(back))
        .ok_or_else(|| "expected a DSCP from 0 to 63, as in 46, or two, as in 46/0".to_owned())
}

/// A thousand packets a second are as many as a path should be asked for by a probe (chosen).
const SHORTEST: Duration = Duration::from_millis(1);
/// A packet without TLVs (RFC 8762 §4.2.1).
pub const STAMP_SIZE: u64 = 44;
/// The largest payload of UDP over IPv4 (RFC 768, RFC 791: 65,535 less both headers).
const MAX_PAYLOAD: u64 = 65_507;
/// Chosen.
const LONGEST: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dscp_is_one_for_both_ways_or_one_for_each() {
        assert_eq!((dscp("46"), dscp("46/0")), (Ok((46, 46)), Ok((46, 0))));
        for wrong in ["", "64", "-1", "46/", "ef", "1/2/3"] {
            assert!(dscp(wrong).is_err(), "{wrong}");
        }
    }
}
