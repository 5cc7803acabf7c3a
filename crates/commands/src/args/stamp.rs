//! The flags of `talkpath stamp`.

use std::net::SocketAddr;

use clap::builder::FalseyValueParser;
use clap::{Args, ValueHint};
use talkpath_scenario::parse_duration;
use talkpath_system::ports::STAMP_PORT;
use talkpath_units::Duration;

use super::{FamilyArgs, heading, parse_socket_address};

/// The shortest interval. We chose 1 ms because a probe should not send more than a thousand packets a second
/// into a path.
const MIN_INTERVAL: Duration = Duration::from_millis(1);
/// The size of a packet without TLVs, in bytes (RFC 8762 §4.2.1).
pub const STAMP_SIZE: u64 = 44;
/// The largest payload of UDP over IPv4, in bytes (RFC 768, RFC 791: 65,535 minus both headers).
const MAX_PAYLOAD: u64 = 65_507;
/// The longest interval, and the longest wait for answers. We chose a minute because no round trip takes
/// longer.
const MAX_INTERVAL: Duration = Duration::from_secs(60);

#[derive(Debug, Args)]
pub struct StampArgs {
    /// The host with a session-reflector; port 862 unless given
    #[arg(help_heading = heading::SENDER, long, value_name = "HOST[:PORT]", value_hint = ValueHint::Hostname, required_unless_present = "reflect")]
    pub to: Option<String>,
    #[command(flatten)]
    pub family: FamilyArgs,
    /// Be a session-reflector, until Ctrl-C
    #[arg(help_heading = heading::REFLECTOR, long, conflicts_with = "to")]
    pub reflect: bool,
    /// How many packets
    #[arg(help_heading = heading::SENDER, long, value_name = "N", default_value = "100", conflicts_with = "reflect",
          value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub count: u32,
    /// The time from one packet to the next
    #[arg(help_heading = heading::SENDER, long, value_name = "TIME", default_value = "100ms", conflicts_with = "reflect", value_parser = parse_interval)]
    pub interval: Duration,
    /// The UDP payload of each packet in bytes. Bytes that the fields do not need are Extra Padding (default:
    /// what the fields need: 44, or 52 with --dscp)
    #[arg(help_heading = heading::SENDER, long, value_name = "BYTES", conflicts_with = "reflect",
          value_parser = clap::value_parser!(u64).range(STAMP_SIZE..=MAX_PAYLOAD))]
    pub size: Option<u64>,
    /// The DSCP of the packets, and after the slash the DSCP of the answers if it differs. A Class of Service
    /// TLV asks the reflector for the latter
    #[arg(help_heading = heading::SENDER, long, value_name = "DSCP[/BACK]", conflicts_with = "reflect", value_parser = parse_dscp)]
    pub dscp: Option<(u8, u8)>,
    /// How long to wait for answers after the last packet
    #[arg(help_heading = heading::SENDER, long, value_name = "TIME", default_value = "2s", conflicts_with = "reflect", value_parser = parse_wait)]
    pub wait: Duration,
    /// Take the clocks of both hosts as equal, because GPS or PTP keeps them
    #[arg(help_heading = heading::SENDER, long, env = "TALKPATH_CLOCKS_SYNCHRONISED", value_parser = FalseyValueParser::new())]
    pub clocks_synchronised: bool,
    /// Sender: the reflector numbers the packets of each session itself, so losses are known for each
    /// direction. Reflector: number the packets so
    #[arg(long)]
    pub stateful: bool,
    /// The address to reflect at; port 862 unless given (default: every address)
    #[arg(help_heading = heading::REFLECTOR, long, value_name = "ADDR[:PORT]", requires = "reflect", value_parser = |text: &str| parse_socket_address(text, STAMP_PORT))]
    pub bind: Option<SocketAddr>,
    /// Answer everybody who can reach this port. Without this flag only this machine is answered
    #[arg(help_heading = heading::REFLECTOR, long, requires = "reflect")]
    pub open: bool,
    /// How many packets are answered within a second. One address gets at most half of the answers
    #[arg(help_heading = heading::REFLECTOR, long, value_name = "N", default_value = "10000", requires = "reflect",
          value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub max_packets: u32,
    /// How many sessions a stateful reflector keeps at the same time
    #[arg(help_heading = heading::REFLECTOR, long, value_name = "N", default_value = "1024", requires = "reflect",
          value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub max_sessions: u32,
}

fn parse_interval(text: &str) -> Result<Duration, String> {
    let interval = parse_duration(text, MAX_INTERVAL)?;
    if interval >= MIN_INTERVAL { Ok(interval) } else { Err("expected at least 1 ms".to_owned()) }
}

fn parse_wait(text: &str) -> Result<Duration, String> {
    parse_duration(text, MAX_INTERVAL)
}

/// Reads one code point of six bits (RFC 2474 §3) for both directions, or one for the packets and one for the
/// answers.
fn parse_dscp(text: &str) -> Result<(u8, u8), String> {
    let code_point = |text: &str| text.trim().parse::<u8>().ok().filter(|point| *point < 64);
    let (packets, answers) = text.split_once('/').unwrap_or((text, text));
    match (code_point(packets), code_point(answers)) {
        (Some(packets), Some(answers)) => Ok((packets, answers)),
        _ => Err("expected a DSCP from 0 to 63, as in 46, or two, as in 46/0".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dscp_is_one_for_both_directions_or_one_for_each() {
        assert_eq!((parse_dscp("46"), parse_dscp("46/0")), (Ok((46, 46)), Ok((46, 0))));
        for wrong in ["", "64", "-1", "46/", "ef", "1/2/3"] {
            assert!(parse_dscp(wrong).is_err(), "{wrong}");
        }
    }
}
