//! The workload `voice`: a call.
//!
//! - The *codec* makes a *frame* of speech every *ptime* (packetisation time).
//! - The *playout* is the receiver's jitter buffer: it tells when a frame is played.
//! - The *concealment* is what the receiver plays in place of a missing frame.

use talkpath_config::{Codec, FrameShape, SILENCE};
use talkpath_model::{VoiceConfig, VoiceHeaders, WorkloadConfig};
use talkpath_units::{Bytes, Duration};

use super::{ECHO, ECHO_WRITE_KEY, FlowTerms, MeasuredWorkload, Workload};
use crate::diagnostic::Log;
use crate::quantity::{Dimension, DimensionRange, Problem};
use crate::section::Section;
use crate::spec::{Default, Kind, SOME_DURATION, Tagged, Variant, VariantKey, Words, key, quantity, range};

pub(super) const VOICE: Workload = Workload {
    keys: Variant {
        name: "voice",
        doc: "a frame on the codec's clock, whatever the network does",
        keys: &[
            key("codec", Kind::Choice(&CODEC), Default::Is("\"g711\""), Codec::FRAMES_DOC),
            key(
                "ptime",
                quantity(PTIME),
                Default::Is("\"20 ms\""),
                "time between frames, a whole number of milliseconds; the frame grows with it",
            ),
            key("rtp", Kind::Flag, Default::Is("false"), RTP_DOC),
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
                Default::Absent(
                    "`adaptive`; the call is also judged with a buffer of 60 ms beyond its smallest delay, and where the two disagree, that is the answer",
                ),
                "when the receiver plays a frame: `adaptive`, or `{ kind = \"fixed\", delay = \"60 ms\" }`, where the first frame that \
                 comes waits for `delay`, and every other is played as long after it was due",
            ),
            key(
                "concealment",
                Kind::Choice(&CONCEALMENT),
                Default::Is("\"g711-appendix-i\""),
                Codec::CONCEALMENTS_DOC,
            ),
            key("floor", MOS, Default::Is("3.1"), "the least opinion score (MOS) of a usable call"),
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
            doc: "the wait follows the delay and its variation, and is chosen anew for each talkspurt (Ramjee et al. 1994, algorithm 4)",
            keys: &[],
        },
        Variant {
            name: "ramjee",
            doc: "the receiver of the studies: the wait is chosen anew for each talkspurt (Ramjee et al. 1994, algorithm 4)",
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

/// RFC 3551 §4.2: a receiver should accept packets of 0 to 200 ms of speech.
const PTIME: &[DimensionRange] = &[range(Dimension::Duration, 1_000_000, 200_000_000)];

const CODEC: Words = Words { noun: "a codec", known: Codec::OF_FLOWS, later: Codec::LATER, why: "" };

const RTP_DOC: &str = "whether each packet has the 12 B of RTP's header (RFC 3550 §5.1), and over a stream also its \
     length of 2 B (RFC 4571 §2); without it the headers are left out";

const SRTP_DOC: &str = "whether each packet has the authentication tag of SRTP, 10 B (RFC 3711 §4.2)";

/// From nothing to 1 kB. We chose 1 kB, because a packet of speech has room for more, and no sender uses it.
const EXTENSIONS: &[DimensionRange] = &[range(Dimension::Size, 0, 1000)];

fn read(section: &Section<'_>, terms: FlowTerms<'_>, log: &mut Log) -> Option<MeasuredWorkload> {
    let ptime = section.duration("ptime")?;
    if ptime.as_nanos() % NANOS_PER_MS != 0 {
        let message = format!("found {ptime}, expected a whole number of milliseconds");
        section.problem("ptime", Problem::new(message), log);
        return None;
    }
    let codec = Codec::named(section.choice("codec")?)?;
    let frames = codec.row().frames?;
    if let Err(message) = check_ptime(codec.name(), frames, ptime) {
        section.problem("ptime", Problem::new(message), log);
        return None;
    }
    if let Err(message) = check_concealment(codec, section.choice("concealment")?) {
        section.problem("concealment", Problem::new(message), log);
        return None;
    }
    let headers = read_headers(section, terms.is_stream, log)?;
    let voice = VoiceConfig { codec, ptime, size: frames.size(ptime) + headers.total(), headers };
    Some(MeasuredWorkload { workload: WorkloadConfig::Voice(voice), count_key: "ptime" })
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

/// Checks that a frame of `codec` can be as long as `ptime`.
fn check_ptime(codec: &str, frames: FrameShape, ptime: Duration) -> Result<(), String> {
    if frames.can_be(ptime) {
        return Ok(());
    }
    Err(format!("found {ptime}, expected a multiple of {}, the shortest frame of {codec}", frames.time))
}

/// Checks that a receiver of `codec` can use the concealment `word`.
fn check_concealment(codec: Codec, word: &str) -> Result<(), String> {
    if word != SILENCE || !codec.always_conceals() {
        return Ok(());
    }
    let (name, concealment) = (codec.name(), codec.row().concealed.name);
    Err(format!(
        "found {SILENCE:?}, but {name} conceals by itself: expected {concealment:?}, or leave it out"
    ))
}

const NANOS_PER_MS: u64 = 1_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_a_codec_does_not_support_is_refused_with_one_that_it_supports() {
        let silent = check_concealment(Codec::G729A, SILENCE).unwrap_err();
        assert_eq!(
            silent,
            "found \"none\", but g729a conceals by itself: expected \"g729a\", or leave it out"
        );
        assert_eq!(check_concealment(Codec::G729A, "g729a"), Ok(()));
        assert_eq!(check_concealment(Codec::G711, SILENCE), Ok(()));
        let time = Duration::from_millis(20);
        let gsm = FrameShape { bytes: 33, time, usual_time: time };
        assert_eq!(
            check_ptime("gsm-fr", gsm, Duration::from_millis(30)).unwrap_err(),
            "found 30 ms, expected a multiple of 20 ms, the shortest frame of gsm-fr"
        );
        assert_eq!(check_ptime("gsm-fr", gsm, Duration::from_millis(60)), Ok(()));
    }

    /// The keys' texts and defaults are written by hand; the table of codecs is not.
    #[test]
    fn the_keys_of_a_call_name_what_the_table_of_codecs_holds() {
        let usual = Codec::default();
        let key = |name: &str| VOICE.keys.keys.iter().find(|key| key.name == name).unwrap();
        let default = |name: &str| match key(name).default {
            Default::Is(text) => text,
            _ => panic!("{name} has a default"),
        };
        let frames = usual.row().frames.unwrap();
        assert_eq!(default("codec"), format!("\"{}\"", usual.name()));
        assert_eq!(default("ptime"), format!("\"{} ms\"", frames.usual_time.as_millis()));
        assert_eq!(default("concealment"), format!("\"{}\"", usual.concealment(true)));
        let doc = key("concealment").doc;
        for is_concealed in [true, false] {
            let (word, bpl) = (usual.concealment(is_concealed), usual.impairment(is_concealed).bpl);
            assert!(
                doc.contains(&format!("`{word}`")) && doc.contains(&bpl.to_string()),
                "{word}, {bpl}: {doc}"
            );
        }
        for word in Codec::CONCEALMENTS {
            assert!(doc.contains(&format!("`{word}`")), "{word}: {doc}");
        }
    }
}
