//! Voice codecs, a row each: how a scenario names one, what its frames are, and how speech sounds through it.
//!
//! A new codec is a row here and its line in [`Codec::ALL`]. The keys of `voice`, the E-model, `talkpath mos`
//! and the report read the rows.
//!
//! | row | a frame | look-ahead | Ie | Bpl, silence | Bpl, concealed | source |
//! | --- | --- | --- | --- | --- | --- | --- |
//! | `g711` | 8 B a ms, 20 ms | 0 | 0 | 4.3 | 25.1 | ITU-T G.711; RFC 3551 §4.2 |
//! | `g729a` | no flow has it | 5 ms | 11 | - | 19 | ITU-T G.729 Annexes A and B |
//!
//! Ie and Bpl are those of ITU-T G.113 Appendix I, Table I.3.

use core::fmt;

use talkpath_units::{Bytes, Duration};

/// A voice codec: one of the table's rows.
#[derive(Clone, Copy)]
pub struct Codec(&'static CodecRow);

/// What is known of a codec.
#[derive(Debug)]
pub struct CodecRow {
    /// Its word in scenarios, on the command line and in summary.json.
    pub name: &'static str,
    /// Its name for people.
    pub title: &'static str,
    /// The standard and the bit rate, for help.
    pub about: &'static str,
    /// The frames that a flow sends; `None` if no flow has this codec, so that a call with it is rated by
    /// hand alone.
    pub frames: Option<FrameShape>,
    /// How much of the speech after a frame the coder waits for.
    pub look_ahead: Duration,
    /// How speech sounds if the receiver plays silence where a frame is missing; `None` for a codec that
    /// always conceals.
    pub silence: Option<Impairment>,
    /// The receiver's own concealment.
    pub concealed: Concealed,
}

/// The frames of a codec of constant bit rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameShape {
    /// Bytes of the shortest frame.
    pub bytes: u64,
    /// How long the shortest frame is, in whole milliseconds. Every frame is a multiple of it.
    pub time: Duration,
    /// The usual time between frames.
    pub usual_time: Duration,
}

/// What a receiver plays where a frame is missing, besides silence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Concealed {
    /// Its word in scenarios and in summary.json.
    pub name: &'static str,
    /// What it does, as the end of a sentence that begins with its word.
    pub about: &'static str,
    /// The words in parentheses behind "with concealment", for people.
    pub title: &'static str,
    /// How speech sounds with it.
    pub impairment: Impairment,
}

/// How speech sounds through a codec without loss, and how it bears loss (ITU-T G.107 §7.5).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Impairment {
    /// Equipment impairment factor: what the codec takes from R without loss.
    pub ie: f64,
    /// Packet-loss robustness factor: the percentage of loss that takes half of what is left. More is better.
    pub bpl: f64,
}

impl Codec {
    /// ITU-T G.711: a byte for each of 8000 samples a second.
    pub const G711: Self = Self(&CodecRow {
        name: "g711",
        title: "G.711",
        about: "ITU-T G.711, 64 kb/s",
        frames: Some(G711_FRAMES),
        look_ahead: Duration::ZERO,
        silence: Some(Impairment { ie: 0.0, bpl: 4.3 }),
        concealed: Concealed {
            name: "g711-appendix-i",
            about: "repeats and fades what was last heard (ITU-T G.711 Appendix I), as phones do",
            title: "Appendix I",
            impairment: Impairment { ie: 0.0, bpl: 25.1 },
        },
    });

    /// ITU-T G.729 Annex A with voice activity detection (Annex B), which conceals by itself.
    pub const G729A: Self = Self(&CodecRow {
        name: "g729a",
        title: "G.729A",
        about: "ITU-T G.729 Annex A with voice activity detection, 8 kb/s",
        frames: None,
        look_ahead: Duration::from_millis(5),
        silence: None,
        concealed: Concealed {
            name: "g729a",
            about: "is the concealment of its decoder (ITU-T G.729)",
            title: "its own",
            impairment: Impairment { ie: 11.0, bpl: 19.0 },
        },
    });

    /// Every codec.
    pub const ALL: &[Self] = &[Self::G711, Self::G729A];

    /// Words of codecs that people ask for and that no flow has yet.
    pub const LATER: &[&str] = &["g729", "g726", "amr-wb", "opus"];

    /// The words of the codecs that a flow may have.
    pub const OF_FLOWS: &[&str] = &OF_FLOWS;

    /// The words of what a flow's receiver may play where a frame is missing: silence, then each codec's own.
    pub const CONCEALMENTS: &[&str] = &CONCEALMENTS;

    /// The frames of each codec that a flow may have, for the pages that list a scenario's keys.
    pub const FRAMES_DOC: &str = FRAMES_TEXT.as_str();

    /// What the receivers of flows may play where a frame is missing, and what that means in the opinion
    /// score, for the pages that list a scenario's keys.
    pub const CONCEALMENTS_DOC: &str = CONCEALMENTS_TEXT.as_str();

    /// The row.
    pub const fn row(self) -> &'static CodecRow {
        self.0
    }

    /// Its word in scenarios and in summary.json.
    pub const fn name(self) -> &'static str {
        self.0.name
    }

    /// The codec of this word.
    pub fn named(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|codec| codec.name() == word)
    }

    /// How speech sounds through it if the receiver conceals missing frames, or else plays silence. A codec
    /// that always conceals does so here, too.
    pub fn impairment(self, is_concealed: bool) -> Impairment {
        self.0.silence.filter(|_| !is_concealed).unwrap_or(self.0.concealed.impairment)
    }

    /// Whether its receiver conceals in any case, so that silence is no choice.
    pub const fn always_conceals(self) -> bool {
        self.0.silence.is_none()
    }

    /// The word of what the receiver plays where a frame is missing.
    pub fn concealment(self, is_concealed: bool) -> &'static str {
        let is_silent = !is_concealed && self.0.silence.is_some();
        if is_silent { SILENCE } else { self.0.concealed.name }
    }
}

impl Default for Codec {
    fn default() -> Self {
        Self::G711
    }
}

impl PartialEq for Codec {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Codec {}

impl fmt::Debug for Codec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FrameShape {
    /// The bit rate, in tenths of 1 kb/s.
    const fn kbps_tenths(self) -> u64 {
        self.bytes * 80 / self.time.as_millis()
    }

    /// Whether a frame can be this long: a multiple of the shortest frame.
    pub const fn can_be(self, time: Duration) -> bool {
        time.as_nanos().is_multiple_of(self.time.as_nanos())
    }

    /// Bytes of a frame of `time`, which is a multiple of the shortest frame's.
    pub const fn size(self, time: Duration) -> Bytes {
        Bytes::new(time.as_nanos() / self.time.as_nanos() * self.bytes)
    }
}

/// The word of a receiver that plays silence where a frame is missing.
pub const SILENCE: &str = "none";

/// ITU-T G.711: 8000 samples of one byte a second; RFC 3551 §4.2: 20 ms a packet.
pub const G711_FRAMES: FrameShape =
    FrameShape { bytes: 8, time: Duration::from_millis(1), usual_time: Duration::from_millis(20) };

/// How many codecs a flow may have.
const FLOW_CODECS: usize = {
    let (mut count, mut at) = (0, 0);
    while at < Codec::ALL.len() {
        if Codec::ALL[at].row().frames.is_some() {
            count += 1;
        }
        at += 1;
    }
    count
};

const OF_FLOWS: [&str; FLOW_CODECS] = {
    let mut words = [""; FLOW_CODECS];
    let (mut count, mut at) = (0, 0);
    while at < Codec::ALL.len() {
        if Codec::ALL[at].row().frames.is_some() {
            words[count] = Codec::ALL[at].name();
            count += 1;
        }
        at += 1;
    }
    words
};

const CONCEALMENTS: [&str; FLOW_CODECS + 1] = {
    let mut words = [SILENCE; FLOW_CODECS + 1];
    let (mut count, mut at) = (1, 0);
    while at < Codec::ALL.len() {
        if Codec::ALL[at].row().frames.is_some() {
            words[count] = Codec::ALL[at].row().concealed.name;
            count += 1;
        }
        at += 1;
    }
    words
};

const FRAMES_TEXT: ConstText = {
    let (mut text, mut at) = (ConstText { bytes: [0; ConstText::MOST], length: 0 }, 0);
    while at < Codec::ALL.len() {
        if let Some(frames) = Codec::ALL[at].row().frames {
            let begin = if text.length == 0 { "`" } else { "; `" };
            text = text.and(begin).and(Codec::ALL[at].name());
            text = text.and("`: ").and_tenths(frames.kbps_tenths()).and(" kbps, ");
            text = text.and_number(frames.size(frames.usual_time).get()).and(" B every ");
            text = text.and_number(frames.usual_time.as_millis()).and(" ms");
        }
        at += 1;
    }
    text
};

/// The text of the key `concealment`.
const CONCEALMENTS_TEXT: ConstText = {
    let mut text = ConstText { bytes: [0; ConstText::MOST], length: 0 };
    text = text.and("what is played where a frame is missing: ");
    let mut at = 0;
    while at < Codec::ALL.len() {
        let row = Codec::ALL[at].row();
        if row.frames.is_some() {
            text = text.and("`").and(row.concealed.name).and("` ").and(row.concealed.about).and(", ");
        }
        at += 1;
    }
    text = text.and("`").and(SILENCE).and("` is silence. In the opinion score, Bpl is ");
    let (mut count, mut at) = (0, 0);
    while at < Codec::ALL.len() {
        let row = Codec::ALL[at].row();
        if row.frames.is_some() {
            if count > 0 {
                text = text.and(", of `").and(row.name).and("` ");
            }
            text = text.and_tenths(tenths(row.concealed.impairment.bpl));
            text = match row.silence {
                Some(silence) => text.and(" or ").and_tenths(tenths(silence.bpl)),
                None => text.and(" alone: it always conceals"),
            };
            count += 1;
        }
        at += 1;
    }
    text.and(" (ITU-T G.113)")
};

/// A factor of ITU-T G.113, which has at most one decimal, in tenths.
const fn tenths(factor: f64) -> u64 {
    (factor * 10.0 + 0.5) as u64
}

/// A text that is put together when the program is compiled.
struct ConstText {
    bytes: [u8; Self::MOST],
    length: usize,
}

impl ConstText {
    /// Room for five codecs (chosen). A text that is longer does not compile.
    const MOST: usize = 1024;

    const fn and(mut self, more: &str) -> Self {
        let (more, mut at) = (more.as_bytes(), 0);
        while at < more.len() {
            self.bytes[self.length] = more[at];
            (self.length, at) = (self.length + 1, at + 1);
        }
        self
    }

    /// A number of tenths: `64`, `13.2`.
    const fn and_tenths(self, tenths: u64) -> Self {
        let whole = self.and_number(tenths / 10);
        if tenths.is_multiple_of(10) { whole } else { whole.and(".").and_number(tenths % 10) }
    }

    const fn and_number(self, number: u64) -> Self {
        let begun = if number >= 10 { self.and_number(number / 10) } else { self };
        let digit = [b'0' + (number % 10) as u8];
        match core::str::from_utf8(&digit) {
            Ok(digit) => begun.and(digit),
            Err(_) => unreachable!(),
        }
    }

    const fn as_str(&self) -> &str {
        match core::str::from_utf8(self.bytes.split_at(self.length).0) {
            Ok(text) => text,
            Err(_) => unreachable!(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_codec_has_a_word_of_its_own_and_is_found_by_it() {
        for &codec in Codec::ALL {
            assert_eq!(Codec::named(codec.name()), Some(codec));
            assert!(!Codec::LATER.contains(&codec.name()), "{codec:?} is here");
        }
        assert_eq!(Codec::named("opus"), None);
        assert_ne!(Codec::G711, Codec::G729A);
    }

    #[test]
    fn a_flow_has_the_codecs_with_frames_and_their_concealments() {
        assert_eq!(Codec::OF_FLOWS, ["g711"]);
        assert_eq!(Codec::FRAMES_DOC, "`g711`: 64 kbps, 160 B every 20 ms");
        assert_eq!(Codec::CONCEALMENTS, ["none", "g711-appendix-i"]);
        assert_eq!(
            Codec::CONCEALMENTS_DOC,
            "what is played where a frame is missing: `g711-appendix-i` repeats and fades what was last heard (ITU-T \
             G.711 Appendix I), as phones do, `none` is silence. In the opinion score, Bpl is 25.1 or 4.3 (ITU-T G.113)"
        );
        assert_eq!(G711_FRAMES.size(Duration::from_millis(30)), Bytes::new(240));
    }

    #[test]
    fn a_frame_may_be_no_whole_number_of_bytes_a_millisecond() {
        // GSM full rate (RFC 3551 §4.5.8).
        let time = Duration::from_millis(20);
        let gsm = FrameShape { bytes: 33, time, usual_time: time };
        assert_eq!(gsm.size(Duration::from_millis(60)), Bytes::new(99));
        assert_eq!([20, 30, 60].map(|ms| gsm.can_be(Duration::from_millis(ms))), [true, false, true]);
        assert_eq!((gsm.kbps_tenths(), G711_FRAMES.kbps_tenths()), (132, 640));
    }

    #[test]
    fn the_python_package_has_the_default_codec_and_says_which_always_conceal() {
        let calls = include_str!("../../../python/talkpath/_calls.py");
        let parameter = format!("codec: Codec = \"{}\",", Codec::default().name());
        assert!(calls.contains(&parameter), "python/talkpath/_calls.py: `mos` takes {parameter}");
        for codec in Codec::ALL.iter().filter(|codec| codec.row().silence.is_none()) {
            let says = format!("`{}` always conceals it", codec.name());
            assert!(calls.contains(&says), "python/talkpath/_calls.py: {says}");
        }
    }

    /// Ie and Bpl of ITU-T G.113 Appendix I, Table I.3.
    #[test]
    fn a_codec_that_always_conceals_has_one_impairment() {
        let bpl = |codec: Codec| [false, true].map(|is_concealed| codec.impairment(is_concealed).bpl);
        assert_eq!(bpl(Codec::G711), [4.3, 25.1]);
        assert_eq!(bpl(Codec::G729A), [19.0; 2]);
        let words = |codec: Codec| [false, true].map(|is_concealed| codec.concealment(is_concealed));
        assert_eq!(words(Codec::G711), ["none", "g711-appendix-i"]);
        assert_eq!(words(Codec::G729A), ["g729a"; 2]);
    }
}
