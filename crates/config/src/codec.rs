//! The table of voice codecs: their names, their frames, and the quality of speech.
//!
//! - A *frame* is the unit of coded speech. A packet carries the frames of one packetisation time.
//! - *Concealment* is the sound that a receiver plays in place of a missing frame. Without concealment it
//!   plays silence.
//! - *Ie* and *Bpl* are the codec's constants in the E-model (ITU-T G.107): the loss of quality without
//!   packet loss, and the robustness against packet loss.
//!
//! A new codec is a row here and a line in [`Codec::ALL`]. The keys of `voice`, the E-model, `talkpath mos`
//! and the report read the rows.
//!
//! | codec | frame | look-ahead | Ie | Bpl, silence | Bpl, concealed | source |
//! | --- | --- | --- | --- | --- | --- | --- |
//! | `g711` | 8 B per ms, 20 ms | 0 | 0 | 4.3 | 25.1 | ITU-T G.711; RFC 3551 §4.2 |
//! | `g729a` | no flow can use it | 5 ms | 11 | - | 19 | ITU-T G.729 Annexes A and B |
//!
//! Ie and Bpl are those of ITU-T G.113 Appendix I, Table I.3.

use core::fmt;

use talkpath_units::{Bytes, Duration};

/// A voice codec, as a reference to its row of the table.
#[derive(Clone, Copy)]
pub struct Codec(&'static CodecRow);

/// The facts about a codec.
#[derive(Debug)]
pub struct CodecRow {
    /// The name in scenarios, on the command line and in summary.json.
    pub name: &'static str,
    /// The name for people.
    pub title: &'static str,
    /// The standard and the bit rate, for the help of options.
    pub about: &'static str,
    /// The frames that a flow sends. `None` if no flow can use the codec. Then only `talkpath mos` can rate a
    /// call with it.
    pub frames: Option<FrameShape>,
    /// The length of the speech after a frame that the coder needs before it can code the frame.
    pub look_ahead: Duration,
    /// The quality if the receiver plays silence in place of a missing frame. `None` for a codec that always
    /// conceals.
    pub silence: Option<Impairment>,
    /// The concealment of the codec.
    pub concealed: CodecConcealment,
}

/// The frames of a codec of constant bit rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameShape {
    /// The size of the shortest frame in bytes.
    pub bytes: u64,
    /// The length of the shortest frame, in whole milliseconds. Every frame is a multiple of it.
    pub time: Duration,
    /// The usual time between frames.
    pub usual_time: Duration,
}

/// The concealment of a codec.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CodecConcealment {
    /// The name in scenarios and in summary.json.
    pub name: &'static str,
    /// The end of a sentence that begins with the name and says what the concealment does.
    pub about: &'static str,
    /// The words in parentheses behind "with concealment", for people.
    pub title: &'static str,
    /// The quality of speech with the concealment.
    pub impairment: Impairment,
}

/// The quality of speech through a codec, as constants of the E-model (ITU-T G.107 §7.5).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Impairment {
    /// The equipment impairment factor, which the codec subtracts from the rating R without packet loss.
    pub ie: f64,
    /// The packet-loss robustness factor: the loss in per cent that subtracts half of the remaining rating. A
    /// larger factor is better.
    pub bpl: f64,
}

impl Codec {
    /// ITU-T G.711: 8000 samples of one byte per second.
    pub const G711: Self = Self(&CodecRow {
        name: "g711",
        title: "G.711",
        about: "ITU-T G.711, 64 kb/s",
        frames: Some(G711_FRAMES),
        look_ahead: Duration::ZERO,
        silence: Some(Impairment { ie: 0.0, bpl: 4.3 }),
        concealed: CodecConcealment {
            name: "g711-appendix-i",
            about: "repeats and fades what was last heard (ITU-T G.711 Appendix I), as phones do",
            title: "Appendix I",
            impairment: Impairment { ie: 0.0, bpl: 25.1 },
        },
    });

    /// ITU-T G.729 Annex A with voice activity detection (Annex B). Its decoder always conceals.
    pub const G729A: Self = Self(&CodecRow {
        name: "g729a",
        title: "G.729A",
        about: "ITU-T G.729 Annex A with voice activity detection, 8 kb/s",
        frames: None,
        look_ahead: Duration::from_millis(5),
        silence: None,
        concealed: CodecConcealment {
            name: "g729a",
            about: "is the concealment of its decoder (ITU-T G.729)",
            title: "its own",
            impairment: Impairment { ie: 11.0, bpl: 19.0 },
        },
    });

    /// All codecs.
    pub const ALL: &[Self] = &[Self::G711, Self::G729A];

    /// The names of codecs that people ask for and that are not available yet.
    pub const LATER: &[&str] = &["g729", "g726", "amr-wb", "opus"];

    /// The names of the codecs that a flow can use.
    pub const OF_FLOWS: &[&str] = &OF_FLOWS;

    /// The values of the key `concealment`: silence, and then the concealment of each codec that a flow can
    /// use.
    pub const CONCEALMENTS: &[&str] = &CONCEALMENTS;

    /// The text of the key `codec` in the documentation: the frames of each codec that a flow can use.
    pub const FRAMES_DOC: &str = FRAMES_TEXT.as_str();

    /// The text of the key `concealment` in the documentation: each concealment, and its effect on the
    /// opinion score.
    pub const CONCEALMENTS_DOC: &str = CONCEALMENTS_TEXT.as_str();

    /// Returns the facts about the codec.
    pub const fn row(self) -> &'static CodecRow {
        self.0
    }

    /// Returns the name in scenarios and in summary.json.
    pub const fn name(self) -> &'static str {
        self.0.name
    }

    /// Returns the codec called `word`.
    pub fn named(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|codec| codec.name() == word)
    }

    /// Returns the quality of speech with concealment, or else with silence in place of missing frames. A
    /// codec that always conceals has only the quality with concealment.
    pub fn impairment(self, is_concealed: bool) -> Impairment {
        match self.0.silence {
            Some(silence) if !is_concealed => silence,
            _ => self.0.concealed.impairment,
        }
    }

    /// Whether the decoder always conceals, so that a receiver cannot play silence.
    pub const fn always_conceals(self) -> bool {
        self.0.silence.is_none()
    }

    /// Returns the value of the key `concealment` for a receiver that conceals, or else plays silence.
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
    /// Returns the bit rate in tenths of 1 kb/s. A byte has 8 bits, so it is 80 tenths of a kilobit per ms.
    const fn kbps_tenths(self) -> u64 {
        self.bytes * 80 / self.time.as_millis()
    }

    /// Whether a frame can have this length, which must be a multiple of the shortest frame.
    pub const fn can_be(self, time: Duration) -> bool {
        time.as_nanos().is_multiple_of(self.time.as_nanos())
    }

    /// Returns the size of a frame of this length, which must be a multiple of the shortest frame.
    pub const fn size(self, time: Duration) -> Bytes {
        Bytes::new(time.as_nanos() / self.time.as_nanos() * self.bytes)
    }
}

/// The value of the key `concealment` for a receiver that plays silence in place of a missing frame.
pub const SILENCE: &str = "none";

/// ITU-T G.711: 8000 samples of one byte per second. RFC 3551 §4.2: 20 ms in a packet.
pub const G711_FRAMES: FrameShape =
    FrameShape { bytes: 8, time: Duration::from_millis(1), usual_time: Duration::from_millis(20) };

/// The number of codecs that a flow can use.
const FLOW_CODECS: usize = {
    let (mut count, mut index) = (0, 0);
    while index < Codec::ALL.len() {
        if Codec::ALL[index].row().frames.is_some() {
            count += 1;
        }
        index += 1;
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
    let (mut text, mut at) = (ConstText { bytes: [0; ConstText::MAX_LEN], length: 0 }, 0);
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
    let mut text = ConstText { bytes: [0; ConstText::MAX_LEN], length: 0 };
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

/// Converts a factor of ITU-T G.113, which has at most one decimal, to tenths.
const fn tenths(factor: f64) -> u64 {
    (factor * 10.0 + 0.5) as u64
}

/// A text that is built when the program is compiled.
struct ConstText {
    bytes: [u8; Self::MAX_LEN],
    length: usize,
}

impl ConstText {
    /// The longest text in bytes. We chose 1024, which is enough for five codecs. A longer text does not
    /// compile.
    const MAX_LEN: usize = 1024;

    /// Appends a text.
    const fn and(mut self, text: &str) -> Self {
        let (bytes, mut index) = (text.as_bytes(), 0);
        while index < bytes.len() {
            self.bytes[self.length] = bytes[index];
            self.length += 1;
            index += 1;
        }
        self
    }

    /// Appends a number of tenths: `64`, `13.2`.
    const fn and_tenths(self, tenths: u64) -> Self {
        let whole = self.and_number(tenths / 10);
        if tenths.is_multiple_of(10) { whole } else { whole.and(".").and_number(tenths % 10) }
    }

    /// Appends a whole number.
    const fn and_number(self, number: u64) -> Self {
        let higher_digits = if number >= 10 { self.and_number(number / 10) } else { self };
        let digit = [b'0' + (number % 10) as u8];
        match core::str::from_utf8(&digit) {
            Ok(digit) => higher_digits.and(digit),
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
