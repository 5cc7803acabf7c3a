//! Reads what the sender of a call does besides sending each packet once: silence suppression, variable
//! sizes, RED and copies.

use talkpath_config::Coding;
use talkpath_model::{Silence, SizeSpread, VoiceHeaders, VoiceSender};
use talkpath_units::{Bytes, Rate};

use crate::diagnostic::Log;
use crate::quantity::Problem;
use crate::section::Section;

/// Reads the sender. `Some(None)` is a sender that sends all packets with the same size, each once.
pub(super) fn read(
    section: &Section<'_>,
    coding: &Coding,
    headers: VoiceHeaders,
    log: &mut Log,
) -> Option<Option<VoiceSender>> {
    let has_dtx = section.flag("dtx")?;
    let red = u8::try_from(section.count("red")?).ok()?;
    let copies = u8::try_from(section.count("copies")?).ok()?;
    if headers.rtp == Bytes::ZERO {
        let of_rtp = [("dtx", has_dtx), ("red", red > 0), ("copies", copies > 1), ("fec", coding.has_fec)];
        for (key, is_set) in of_rtp {
            if is_set {
                let problem = Problem::new("found it beside `rtp = false`, expected `rtp = true`");
                let help = "without RTP a receiver cannot know which speech a packet has";
                section.problem(key, problem.with_help(help), log);
                return None;
            }
        }
        if coding.is_vbr {
            let message = "found `false` with packets of varying size, expected `true`";
            section.problem("rtp", Problem::new(message).with_help("or `vbr = false`"), log);
            return None;
        }
    }
    let silence = coding.codec.row().silence;
    let sender = VoiceSender {
        headers: headers.total(),
        spread: spread(coding),
        silence: has_dtx.then_some(Silence { descriptor: silence.descriptor, every: silence.every }),
        red,
        copies,
    };
    if let Err(message) = check_red(coding, &sender) {
        section.problem("red", Problem::new(message), log);
        return None;
    }
    let is_plain = sender.spread == SizeSpread::Constant && !has_dtx && red == 0 && copies == 1;
    Some((!is_plain).then_some(sender))
}

fn spread(coding: &Coding) -> SizeSpread {
    if !coding.is_vbr {
        SizeSpread::Constant
    } else if coding.can_have_fec() && coding.bit_rate < TRANSFORM_FROM {
        SizeSpread::OpusSpeech
    } else {
        SizeSpread::OpusTransform
    }
}

/// Checks that the earlier speech fits into the fields of its header (RFC 2198 §3): 14 bits for how many
/// ticks of the clock it is older, and 10 bits for its size.
fn check_red(coding: &Coding, sender: &VoiceSender) -> Result<(), String> {
    if sender.red == 0 {
        return Ok(());
    }
    let ticks_per_packet =
        u128::from(coding.packet_time().as_nanos()) * u128::from(coding.codec.row().clock_hz) / 1_000_000_000;
    let most_packets = OLDEST_TICKS / ticks_per_packet.max(1);
    if u128::from(sender.red) > most_packets {
        return Err(format!(
            "found {}, expected at most {most_packets}: RED reaches back {OLDEST_TICKS} ticks of the clock (RFC 2198 §3)",
            sender.red
        ));
    }
    let largest = sender.spread.size(coding.packet_size(), talkpath_model::LAST_DRAW);
    if largest > LARGEST_BLOCK {
        return Err(format!(
            "found it with packets of up to {largest} of speech, expected at most {LARGEST_BLOCK} (RFC 2198 §3)"
        ));
    }
    Ok(())
}

/// The bit rate from which on CELT codes the larger part of full-band speech in packets of 20 ms: libopus
/// 1.6.1 codes 28 % of the packets by CELT at 64 kb/s, and all of them at 96 kb/s.
const TRANSFORM_FROM: Rate = Rate::from_bps(64_000);

const OLDEST_TICKS: u128 = (1 << 14) - 1;
const LARGEST_BLOCK: Bytes = Bytes::new((1 << 10) - 1);
