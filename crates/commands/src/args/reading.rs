//! The options with which a capture is read.

use clap::Args;
use talkpath_capture::Encoding;
use talkpath_measure::Codec;
use talkpath_scenario::parse_duration;
use talkpath_units::Duration;

use super::heading;
use super::mos::codec_parser;

/// What a capture does not say.
#[derive(Debug, Args)]
pub struct ReadingArgs {
    /// What a payload type means, if the capture does not say it: 97=opus, or with the rate of the timestamps
    /// 97=L16/16000. The flag may be given several times
    #[arg(help_heading = heading::CAPTURE, long, value_name = "NUMBER=NAME[/RATE]", value_parser = parse_payload_type)]
    pub payload_type: Vec<(u8, Encoding)>,
    /// The codec of streams whose payload type nothing explains
    #[arg(help_heading = heading::CAPTURE, long, value_parser = codec_parser())]
    pub codec: Option<Codec>,
    /// The one-way delay of the fastest packet, from the sender to the place of the capture. A capture does
    /// not have it (default: half of RTCP's smallest round trip if both ends report, or else 50 ms)
    #[arg(help_heading = heading::CAPTURE, long, value_name = "TIME", value_parser = parse_one_way)]
    pub one_way: Option<Duration>,
}

impl ReadingArgs {
    /// Returns the first of these options that was given.
    pub fn first_given(&self) -> Option<&'static str> {
        let given = [
            (!self.payload_type.is_empty(), "--payload-type"),
            (self.codec.is_some(), "--codec"),
            (self.one_way.is_some(), "--one-way"),
        ];
        given.into_iter().find_map(|(is_given, option)| is_given.then_some(option))
    }
}

fn parse_payload_type(text: &str) -> Result<(u8, Encoding), String> {
    let expected = || "expected NUMBER=NAME or NUMBER=NAME/RATE, as in 97=opus/48000".to_owned();
    let (number, encoding) = text.split_once('=').ok_or_else(expected)?;
    let Ok(number @ 0..=127) = number.trim().parse() else {
        return Err("a payload type is a number from 0 to 127 (RFC 3550)".to_owned());
    };
    Ok((number, Encoding::parse(encoding).ok_or_else(expected)?))
}

/// The longest one-way delay that is accepted. We chose a minute to refuse only values in the wrong unit.
const MAX_ONE_WAY: Duration = Duration::from_secs(60);

pub(super) fn parse_one_way(text: &str) -> Result<Duration, String> {
    parse_duration(text, MAX_ONE_WAY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_type_is_a_number_with_a_name() {
        let (number, encoding) = parse_payload_type("97=opus").unwrap();
        assert_eq!((number, encoding.name.as_str(), encoding.clock_rate), (97, "opus", Some(48_000)));
        for wrong in ["97", "97=", "128=opus", "x=opus", "97=opus/0", "97=a b"] {
            assert!(parse_payload_type(wrong).is_err(), "{wrong}");
        }
    }
}
