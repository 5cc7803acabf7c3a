//! `voice`: a call.

use talkpath_config::{Codec, FrameShape, SILENCE};
use talkpath_model::WorkloadConfig;
use talkpath_units::Duration;

use super::{Counted, ECHO, ECHO_WRITE_KEY, FileTerms, Workload};
use crate::diagnostic::Log;
use crate::quantity::{Dimension, Measure, Problem};
use crate::section::Section;
use crate::spec::{Default, Kind, SOME_DURATION, Tagged, Variant, Words, key, measure, quantity};

/// A call.
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

/// What a receiver of speech plays where a frame is missing.
const CONCEALMENT: Words = Words { noun: "a concealment", known: Codec::CONCEALMENTS, later: &[], why: "" };

/// When the receiver of a call plays its frames.
static PLAYOUT: Tagged = Tagged {
    noun: "a playout",
    variants: &[
        Variant {
            name: "adaptive",
            doc: "the wait follows the delay and its variation, and is chosen anew for each talkspurt (Ramjee et al. 1994, algorithm 4)",
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
    quantity: Some(("fixed", "delay")),
};

/// From the least to the most that the E-model gives (ITU-T G.107, Annex B).
const MOS: Kind = Kind::Number { above: 1.0, most: 4.5 };

/// What G.711 and receivers in general can do: RFC 3551 §4.2 has receivers accept 0 to 200 ms.
const PTIME: &[Measure] = &[measure(Dimension::Duration, 1_000_000, 200_000_000)];

const CODEC: Words = Words { noun: "a codec", known: Codec::OF_FLOWS, later: Codec::LATER, why: "" };

fn read(section: &Section<'_>, _: FileTerms<'_>, log: &mut Log) -> Option<Counted> {
    let ptime = section.duration("ptime")?;
    if ptime.as_nanos() % NANOS_PER_MS != 0 {
        let message = format!("found {ptime}, expected a whole number of milliseconds");
        section.problem("ptime", Problem::new(message), log);
        return None;
    }
    let codec = Codec::named(section.choice("codec")?)?;
    let frames = codec.row().frames?;
    if let Some(message) = wrong_time(codec.name(), frames, ptime) {
        section.problem("ptime", Problem::new(message), log);
        return None;
    }
    if let Some(message) = wrong_concealment(codec, section.choice("concealment")?) {
        section.problem("concealment", Problem::new(message), log);
        return None;
    }
    let size = frames.size(ptime);
    Some(Counted { workload: WorkloadConfig::Voice { codec, ptime, size }, by: "ptime" })
}

/// Why no frame of `codec` is as long as `ptime`.
fn wrong_time(codec: &str, frames: FrameShape, ptime: Duration) -> Option<String> {
    (!frames.can_be(ptime)).then(|| {
        format!("found {ptime}, expected a multiple of {}, the shortest frame of {codec}", frames.time)
    })
}

/// Why a receiver of `codec` cannot play this where a frame is missing.
fn wrong_concealment(codec: Codec, word: &str) -> Option<String> {
    let (name, own) = (codec.name(), codec.row().concealed.name);
    (word == SILENCE && codec.always_conceals()).then(|| {
        format!("found {SILENCE:?}, but {name} conceals by itself: expected {own:?}, or leave it out")
    })
}

const NANOS_PER_MS: u64 = 1_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_codec_cannot_do_is_refused_with_what_it_can() {
        let silent = wrong_concealment(Codec::G729A, SILENCE).unwrap();
        assert_eq!(
            silent,
            "found \"none\", but g729a conceals by itself: expected \"g729a\", or leave it out"
        );
        assert_eq!(wrong_concealment(Codec::G729A, "g729a"), None);
        assert_eq!(wrong_concealment(Codec::G711, SILENCE), None);
        let time = Duration::from_millis(20);
        let gsm = FrameShape { bytes: 33, time, usual_time: time };
        assert_eq!(
            wrong_time("gsm-fr", gsm, Duration::from_millis(30)).unwrap(),
            "found 30 ms, expected a multiple of 20 ms, the shortest frame of gsm-fr"
        );
        assert_eq!(wrong_time("gsm-fr", gsm, Duration::from_millis(60)), None);
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
