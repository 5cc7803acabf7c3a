//! The workload `voice`: a call.
//!
//! - The *codec* makes *frames* of speech. A packet carries the frames of one *ptime* (packetisation time).
//! - The *playout* is the receiver's jitter buffer: it tells when a frame is played.
//! - The *concealment* is what the receiver plays in place of a missing frame.

mod coding;
mod sender;

use talkpath_config::{Bandwidth, Codec, Coding, SILENCE};
use talkpath_model::{VoiceConfig, VoiceHeaders, WorkloadConfig};
use talkpath_units::Bytes;

use super::{ECHO, ECHO_WRITE_KEY, FlowTerms, MeasuredWorkload, Workload};
use crate::diagnostic::Log;
use crate::quantity::{Dimension, DimensionRange, Problem};
use crate::section::Section;
use crate::spec::{Default, Kind, SOME_DURATION, Tagged, Variant, VariantKey, Words, key, quantity, range};

pub(super) const VOICE: Workload = Workload {
    keys: Variant {
        name: "voice",
        doc: "a call: a packet of speech each `ptime`, whatever the network does",
        keys: &[
            key("codec", Kind::Choice(&CODEC), Default::Is("\"g711\""), Codec::FRAMES_DOC),
            key(
                "ptime",
                quantity(PTIME),
                Default::Is("\"20 ms\""),
                "time between packets; a packet has the speech of this time",
            ),
            key(
                "frames",
                Kind::Count { least: 1, most: 48 },
                Default::Absent("the fewest frames of the codec that fill `ptime`"),
                "number of the codec's frames in a packet: with `ptime = \"60 ms\"`, 3 frames of 20 ms or 1 of 60 ms",
            ),
            key(
                "bandwidth",
                Kind::Choice(&BANDWIDTH),
                Default::Absent("`swb`; the other codecs are narrowband"),
                "opus: the bandwidth of the speech, from narrowband (4 kHz) to full band (20 kHz); it decides the scale of the opinion score",
            ),
            key(
                "bitrate",
                quantity(BITRATE),
                Default::Absent("32 kbps; the other codecs have one bit rate"),
                "opus: the bits of speech per second, headers not counted",
            ),
            key(
                "vbr",
                Kind::Flag,
                Default::Absent("`true`; the other codecs have one size"),
                "opus: whether `bitrate` holds on average only; sizes are then drawn as libopus makes them",
            ),
            key(
                "fec",
                Kind::Flag,
                Default::Is("false"),
                "opus: whether each packet has the frame before it at a lower quality, within `bitrate` (in-band FEC)",
            ),
            key(
                "dtx",
                Kind::Flag,
                Default::Is("false"),
                "whether silence is suppressed: only talkspurts are sent, as long as those of ITU-T P.59, and what describes the silence between them",
            ),
            key(
                "red",
                Kind::Count { least: 0, most: 9 },
                Default::Is("0"),
                "number of earlier packets whose speech each packet repeats (RFC 2198); a lost packet then comes that much later",
            ),
            key(
                "copies",
                Kind::Count { least: 1, most: 4 },
                Default::Is("1"),
                "how often each packet is sent, at once",
            ),
            key("rtp", Kind::Flag, Default::Is("true"), RTP_DOC),
            key("srtp", Kind::Flag, Default::Is("false"), SRTP_DOC),
            key(
                "extensions",
                quantity(EXTENSIONS),
                Default::Is("\"0 B\""),
                "size of RTP's header extensions in each packet, a multiple of 4 B (RFC 3550 §5.3.1); a browser sends 8 to 20 B",
            ),
            key(
                "playout",
                Kind::Tagged(&PLAYOUT),
                Default::Is("\"adaptive\""),
                "how the receiver plays the frames: `adaptive`, the jitter buffer of browsers, with which the call is also judged with buffers of \
                 60 and 200 ms beyond its smallest delay, and the answer says where one of them would change it; `ramjee`, the receiver of the \
                 studies; or `{ kind = \"fixed\", delay = \"60 ms\" }`, where the first frame that comes waits for `delay`, and every other is \
                 played as long after it was due",
            ),
            key(
                "concealment",
                Kind::Choice(&CONCEALMENT),
                Default::Absent("the concealment of the codec"),
                Codec::CONCEALMENTS_DOC,
            ),
            key(
                "floor",
                MOS,
                Default::Absent(
                    "3.1; 2.4 for wideband, and 2.1 for super-wideband and full band, whose scales are longer",
                ),
                "the least opinion score (MOS) of a usable call",
            ),
            ECHO,
            ECHO_WRITE_KEY,
        ],
    },
    read,
};

const CONCEALMENT: Words = Words { noun: "a concealment", known: Codec::CONCEALMENTS, later: &[], why: "" };

static PLAYOUT: Tagged = Tagged {
    noun: "a playout",
    variants: &[
        Variant {
            name: "adaptive",
            doc: "the jitter buffer of browsers (NetEq of libwebrtc): its delay follows the largest delays, and it changes within speech",
            keys: &[],
        },
        Variant {
            name: "ramjee",
            doc: "the receiver of the studies: the wait is chosen anew for each talkspurt (Ramjee et al. 1994, algorithm 4), and the call is rated as a whole",
            keys: &[],
        },
        Variant {
            name: "fixed",
            doc: "the first frame that comes waits for `delay`, and every other is played as long after it was due as the first",
            keys: &[key(
                "delay",
                quantity(SOME_DURATION),
                Default::Required,
                "how long the first frame waits",
            )],
        },
    ],
    later: &[],
    number: None,
    by_key: None,
    quantity: Some(VariantKey { variant: "fixed", key: "delay" }),
};

/// The range of opinion scores of the E-model (ITU-T G.107, Annex B).
const MOS: Kind = Kind::Number { above: 1.0, most: 4.5 };

/// RFC 3551 §4.2: a receiver should accept packets of 0 to 200 ms of speech. Opus has the shortest frame.
const PTIME: &[DimensionRange] = &[range(Dimension::Duration, 2_500_000, 200_000_000)];

/// The bit rates of Opus. No other codec has a choice.
const BITRATE: &[DimensionRange] = &[range(Dimension::Rate, 6_000, 128_000)];

const BANDWIDTH: Words = Words { noun: "a bandwidth", known: Bandwidth::WORDS, later: &[], why: "" };

const CODEC: Words = Words { noun: "a codec", known: Codec::NAMES, later: Codec::LATER, why: "" };

const RTP_DOC: &str = "whether each packet has the 12 B of RTP's header (RFC 3550 §5.1), and over a stream also its \
     length of 2 B (RFC 4571 §2); without it the headers are left out";

const SRTP_DOC: &str = "whether each packet has the authentication tag of SRTP, 10 B (RFC 3711 §4.2)";

/// From nothing to 1 kB. We chose 1 kB, because a packet of speech has room for more, and no sender uses it.
const EXTENSIONS: &[DimensionRange] = &[range(Dimension::Size, 0, 1000)];

fn read(section: &Section<'_>, terms: FlowTerms<'_>, log: &mut Log) -> Option<MeasuredWorkload> {
    let coding = coding::read(section, log)?;
    if section.node("concealment").is_some()
        && let Err(message) = check_concealment(coding.codec, section.choice("concealment")?)
    {
        section.problem("concealment", Problem::new(message), log);
        return None;
    }
    let headers = read_headers(section, terms.is_stream, log)?;
    let sender = sender::read(section, &coding, headers, log)?;
    let size = coding.packet_size() + headers.total();
    warn_without_score(section, &coding, log);
    let voice = VoiceConfig { coding, ptime: coding.packet_time(), size, headers, sender };
    Some(MeasuredWorkload { workload: WorkloadConfig::Voice(voice), count_key: "ptime" })
}

/// Warns of a coding whose impairment nobody published. Only Opus has such codings.
fn warn_without_score(section: &Section<'_>, coding: &Coding, log: &mut Log) {
    if coding.rated(true).is_none() {
        let message = format!(
            "the call has no score, because nobody published the impairment of {} in this form: it is judged by the share of \
             speech that is not concealed; published are {}",
            coding.codec.name(),
            Codec::OPUS_PUBLISHED
        );
        section.warning("codec", &message, log);
    }
}

/// Reads which headers a packet of speech has.
fn read_headers(section: &Section<'_>, is_stream: bool, log: &mut Log) -> Option<VoiceHeaders> {
    let has_rtp = section.flag("rtp")?;
    let has_tag = section.flag("srtp")?;
    let extensions = section.bytes("extensions")?;
    if !has_rtp {
        for (key, is_set) in [("srtp", has_tag), ("extensions", extensions > Bytes::ZERO)] {
            if is_set {
                let problem = Problem::new("found it beside `rtp = false`, expected `rtp = true`");
                section.problem(key, problem.with_help("only a packet of RTP has it"), log);
                return None;
            }
        }
        return Some(VoiceHeaders::default());
    }
    if !extensions.get().is_multiple_of(RTP_WORD) {
        let message = format!("found {extensions}, expected a multiple of {RTP_WORD} B (RFC 3550 §5.3.1)");
        section.problem("extensions", Problem::new(message), log);
        return None;
    }
    Some(VoiceHeaders {
        length: if is_stream { RTP_LENGTH } else { Bytes::ZERO },
        rtp: RTP_HEADER,
        extensions,
        tag: if has_tag { SRTP_TAG } else { Bytes::ZERO },
    })
}

/// The fixed header of RTP (RFC 3550 §5.1).
const RTP_HEADER: Bytes = Bytes::new(12);

/// The unit of RTP's header extensions, B (RFC 3550 §5.3.1).
const RTP_WORD: u64 = 4;

/// The length before each packet of RTP on a stream (RFC 4571 §2).
const RTP_LENGTH: Bytes = Bytes::new(2);

/// The authentication tag of SRTP with the default of 80 bits (RFC 3711 §5.2).
const SRTP_TAG: Bytes = Bytes::new(10);

/// Checks that a receiver of `codec` can use the concealment `word`.
fn check_concealment(codec: Codec, word: &str) -> Result<(), String> {
    let (name, own) = (codec.name(), codec.row().concealment.name);
    if word == own || (word == SILENCE && !codec.always_conceals()) {
        return Ok(());
    }
    let why = if word == SILENCE { "conceals by itself" } else { "has another concealment" };
    Err(format!("found {word:?}, but {name} {why}: expected {own:?}, or leave it out"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_concealment_that_a_codec_does_not_have_is_refused_with_its_own() {
        let refused = |codec, word| check_concealment(codec, word).unwrap_err();
        assert_eq!(
            refused(Codec::G729A, SILENCE),
            "found \"none\", but g729a conceals by itself: expected \"g729a\", or leave it out"
        );
        assert_eq!(
            refused(Codec::OPUS, "g711-appendix-i"),
            "found \"g711-appendix-i\", but opus has another concealment: expected \"opus\", or leave it out"
        );
        assert_eq!(check_concealment(Codec::G729A, "g729a"), Ok(()));
        assert_eq!(check_concealment(Codec::G711, SILENCE), Ok(()));
    }

    /// The keys' texts and defaults are written by hand; the table of codecs is not.
    #[test]
    fn the_keys_of_a_call_name_what_the_table_of_codecs_holds() {
        let usual = Codec::default();
        let key = |name: &str| VOICE.keys.keys.iter().find(|key| key.name == name).unwrap();
        let default = |name: &str| match key(name).default {
            Default::Is(text) | Default::Absent(text) => text,
            _ => panic!("{name} has a default"),
        };
        assert_eq!(default("codec"), format!("\"{}\"", usual.name()));
        assert_eq!(default("ptime"), format!("\"{} ms\"", usual.row().frames.usual_time().as_millis()));
        let opus = Coding::usual(Codec::OPUS);
        assert!(default("bandwidth").starts_with(&format!("`{}`", opus.bandwidth.name())));
        assert!(default("bitrate").starts_with(&format!("{} kbps", opus.bit_rate.as_bps() / 1000)));
        for word in Codec::CONCEALMENTS {
            assert!(key("concealment").doc.contains(&format!("`{word}`")), "{word}");
        }
    }
}
