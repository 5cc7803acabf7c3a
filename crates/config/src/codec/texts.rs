//! Texts of the documentation that are built from the table of codecs when the program is compiled.

use talkpath_units::Duration;

use super::{Codec, Frames, SILENCE};

const COUNT: usize = Codec::ALL.len();

pub(super) const NAMES: [&str; COUNT] = {
    let mut words = [""; COUNT];
    let mut at = 0;
    while at < COUNT {
        words[at] = Codec::ALL[at].name();
        at += 1;
    }
    words
};

pub(super) const CONCEALMENTS: [&str; COUNT + 1] = {
    let mut words = [SILENCE; COUNT + 1];
    let mut at = 0;
    while at < COUNT {
        words[at + 1] = Codec::ALL[at].row().concealment.name;
        at += 1;
    }
    words
};

/// The text of the key `codec`.
pub(super) const FRAMES: ConstText = {
    let (mut text, mut at) = (ConstText::EMPTY, 0);
    while at < COUNT {
        let row = Codec::ALL[at].row();
        text = text.and(if at == 0 { "`" } else { "; `" }).and(row.name).and("`: ");
        text = match row.frames {
            Frames::OneSize(shape) => {
                text = text.and_tenths(shape.kbps_tenths()).and(" kbps, ");
                text = text.and_number(shape.size(shape.usual_time).get()).and(" B every ");
                text.and_number(shape.usual_time.as_millis()).and(" ms")
            }
            Frames::Chosen(chosen) => {
                text = text.and_number(chosen.least_rate.as_bps() / 1000).and(" to ");
                text =
                    text.and_number(chosen.most_rate.as_bps() / 1000).and(" kbps by `bitrate`, frames of ");
                text = text.and_milliseconds(chosen.times[0]).and(" to ");
                text.and_milliseconds(chosen.times[chosen.times.len() - 1]).and(" ms")
            }
        };
        at += 1;
    }
    text
};

/// The text of the key `concealment`.
pub(super) const CONCEALMENT: ConstText = {
    let mut text = ConstText::EMPTY.and("what is played where a frame is missing: ");
    let mut at = 0;
    while at < COUNT {
        let concealment = Codec::ALL[at].row().concealment;
        text = text.and("`").and(concealment.name).and("` ").and(concealment.about).and(", ");
        at += 1;
    }
    text = text.and("`").and(SILENCE).and("` is silence, which only ");
    let (mut count, mut at) = (0, 0);
    while at < COUNT {
        if Codec::ALL[at].row().concealment.is_optional {
            text = text.and(if count == 0 { "`" } else { " and `" }).and(Codec::ALL[at].name()).and("`");
            count += 1;
        }
        at += 1;
    }
    text.and(" can have")
};

/// A text that is built when the program is compiled.
pub(super) struct ConstText {
    bytes: [u8; Self::MAX_LEN],
    length: usize,
}

impl ConstText {
    /// The longest text in bytes. We chose 1024, which is enough for five codecs. A longer text does not
    /// compile.
    const MAX_LEN: usize = 1024;

    const EMPTY: Self = Self { bytes: [0; Self::MAX_LEN], length: 0 };

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

    /// Appends a duration in milliseconds, with at most one decimal.
    const fn and_milliseconds(self, time: Duration) -> Self {
        self.and_tenths(time.as_nanos() / 100_000)
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

    pub(super) const fn as_str(&self) -> &str {
        match core::str::from_utf8(self.bytes.split_at(self.length).0) {
            Ok(text) => text,
            Err(_) => unreachable!(),
        }
    }
}
