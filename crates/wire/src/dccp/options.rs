//! Options (RFC 4340 §5.8): a typed view of an area that is kept in the wire's own form.
//!
//! The order of options matters (Mandatory speaks of the next one) and a receiver has to keep each unknown
//! option as it came, so that the bytes are the densest faithful form: a packet is copied at each hop, and a
//! list of typed options would be several times as large. Reading and writing go through [`DccpOption`];
//! nothing else sees the bytes.
//!
//! A packet holds [`Options::ROOM`] bytes. What our ends send is made to fit; of a longer area that arrives
//! from the network the first options are read, which for an Ack Vector means the latest packets (see
//! docs/models/departures.md).

/// One option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DccpOption<'a> {
    /// The next option must be understood, or the connection is reset (§5.8.2).
    Mandatory,
    /// The receiver has trouble to keep up (§11.6).
    SlowReceiver,
    /// One step of a feature negotiation (§6).
    Feature(FeatureOption<'a>),
    /// A server's state, kept by the client during the handshake (§8.1.4).
    InitCookie(&'a [u8]),
    /// The number of packets without data that were sent just before this one (§7.7).
    NdpCount(u64),
    /// The state of packets from the acknowledgement number backwards, a run a byte (§11.4).
    AckVector {
        /// The sum of the nonces of the packets in state 0 (§12.2).
        nonce: bool,
        /// State in the upper two bits, run length less one in the lower six.
        runs: &'a [u8],
    },
    /// What became of data that did arrive (§11.7): blocks from the acknowledgement number backwards.
    DataDropped(&'a [u8]),
    /// A time of the sender's, for the peer to echo; our ends count in 10 us (§13.1).
    Timestamp(u32),
    /// The peer's Timestamp, and how long it was held, in 10 us; 0 if the option leaves that out (§13.3).
    TimestampEcho {
        /// The value echoed.
        value: u32,
        /// Time since the Timestamp arrived, in units of 10 us.
        elapsed: u32,
    },
    /// Time since the packet arrived whose number this packet acknowledges, in 10 us (§13.2).
    ElapsedTime(u32),
    /// CRC-32C of the application data (§9.3). On the wire the low byte is first: the algorithm is SCTP's,
    /// which transmits its CRC so (RFC 3309, appendix).
    DataChecksum(u32),
    /// An option of the CCID in use (§10.3): 128 to 191 from the sending half, 192 to 255 from the receiving
    /// half.
    Ccid {
        /// Option type.
        kind: u8,
        /// The bytes that follow the length.
        data: &'a [u8],
    },
    /// A type that is not known, or a known one with a length that it cannot have.
    Unknown {
        /// Option type.
        kind: u8,
        /// The bytes that follow the length.
        data: &'a [u8],
    },
}

/// A Change or Confirm option (RFC 4340 §6.1, §6.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeatureOption<'a> {
    /// The one of the four options that it is.
    pub kind: FeatureKind,
    /// Feature number (§6.4).
    pub number: u8,
    /// A preference list or a number (§6.3); empty in a Confirm that knows no such feature (§6.6.7).
    pub values: &'a [u8],
}

/// Who speaks of a feature's value: L is its location, R the other end (RFC 4340 §6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeatureKind {
    /// The location wants to change it.
    ChangeL,
    /// The location confirms.
    ConfirmL,
    /// The other end wants to change it.
    ChangeR,
    /// The other end confirms.
    ConfirmR,
}

impl FeatureKind {
    /// The option's type.
    #[inline]
    pub const fn option_type(self) -> u8 {
        CHANGE_L + self as u8
    }
}

/// A packet's options, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Zero beyond `size`, so that equal options are equal.
    bytes: [u8; Options::ROOM],
    size: u8,
}

impl Options {
    /// The bytes that a packet's options may take. We chose the number: CCID 4's feedback with nine loss
    /// intervals takes 129 (RFC 5622 §8), a Response that confirms all features with an Init Cookie less.
    pub const ROOM: usize = 132;

    /// No options.
    pub const EMPTY: Self = Self { bytes: [0; Self::ROOM], size: 0 };

    /// Returns true if there are no options.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.size == 0
    }

    /// The number of bytes that may still be pushed.
    #[inline]
    pub const fn room(&self) -> usize {
        Self::ROOM - self.size as usize
    }

    /// The length on the wire, padded to a multiple of four bytes (RFC 4340 §5.8).
    #[inline]
    pub const fn padded_size(&self) -> usize {
        (self.size as usize).next_multiple_of(4)
    }

    /// The bytes, without padding.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.size)]
    }

    /// The options in an area of a packet from the network: as many whole ones, from the first, as there is
    /// room for, without Padding. An Ack Vector that is too long is cut behind its latest packets. An option
    /// whose length makes no sense ends the area (RFC 4340 §5.8).
    #[inline]
    pub fn from_wire(area: &[u8]) -> Self {
        let mut options = Self::EMPTY;
        let mut rest = area;
        while let Some((raw, after)) = take_raw(rest) {
            rest = after;
            if raw.first() == Some(&PADDING) || options.append(raw) {
                continue;
            }
            if let [kind @ (ACK_VECTOR_0 | ACK_VECTOR_1), _, runs @ ..] = raw
                && options.room() > 2
            {
                let kept = &runs[..runs.len().min(options.room() - 2)];
                options.append_parts(*kind, &[kept]);
            }
            break;
        }
        options
    }

    /// Adds an option behind the others; false, and nothing added, if there is no room.
    #[must_use]
    #[inline]
    pub fn push(&mut self, option: DccpOption<'_>) -> bool {
        match option {
            DccpOption::Mandatory => self.append(&[MANDATORY]),
            DccpOption::SlowReceiver => self.append(&[SLOW_RECEIVER]),
            DccpOption::Feature(option) => {
                self.append_parts(option.kind.option_type(), &[&[option.number], option.values])
            }
            DccpOption::InitCookie(cookie) => self.append_parts(INIT_COOKIE, &[cookie]),
            DccpOption::NdpCount(count) => {
                let bytes = count.to_be_bytes();
                let zeros = (count.leading_zeros() as usize / 8).min(7);
                // At most six bytes (RFC 4340 §7.7): a count stops when the sequence numbers wrap.
                if zeros < 2 { false } else { self.append_parts(NDP_COUNT, &[&bytes[zeros..]]) }
            }
            DccpOption::AckVector { nonce, runs } => {
                self.append_parts(if nonce { ACK_VECTOR_1 } else { ACK_VECTOR_0 }, &[runs])
            }
            DccpOption::DataDropped(blocks) => self.append_parts(DATA_DROPPED, &[blocks]),
            DccpOption::Timestamp(value) => self.append_parts(TIMESTAMP, &[&value.to_be_bytes()]),
            DccpOption::TimestampEcho { value, elapsed } => {
                let bytes = elapsed.to_be_bytes();
                let skipped = if elapsed == 0 { 4 } else { span_bytes(elapsed) };
                self.append_parts(TIMESTAMP_ECHO, &[&value.to_be_bytes(), &bytes[skipped..]])
            }
            DccpOption::ElapsedTime(elapsed) => {
                self.append_parts(ELAPSED_TIME, &[&elapsed.to_be_bytes()[span_bytes(elapsed)..]])
            }
            DccpOption::DataChecksum(sum) => self.append_parts(DATA_CHECKSUM, &[&sum.to_le_bytes()]),
            DccpOption::Ccid { kind, data } => self.append_parts(kind, &[data]),
            DccpOption::Unknown { kind, data } if kind < FIRST_WITH_LENGTH => {
                data.is_empty() && self.append(&[kind])
            }
            DccpOption::Unknown { kind, data } => self.append_parts(kind, &[data]),
        }
    }

    /// The index in [`Self::as_bytes`] at which the value of a Data Checksum option begins, if there is one.
    pub(super) fn data_checksum_at(&self) -> Option<usize> {
        let mut rest = self.as_bytes();
        while let Some((raw, after)) = take_raw(rest) {
            if let [DATA_CHECKSUM, _, _, _, _, _] = raw {
                return Some(self.as_bytes().len() - rest.len() + 2);
            }
            rest = after;
        }
        None
    }

    /// The options, in order.
    #[inline]
    pub fn iter(&self) -> OptionIter<'_> {
        OptionIter { rest: self.as_bytes() }
    }

    fn append_parts(&mut self, kind: u8, parts: &[&[u8]]) -> bool {
        let length = 2 + parts.iter().map(|part| part.len()).sum::<usize>();
        let Ok(length_byte) = u8::try_from(length) else { return false };
        if length > self.room() {
            return false;
        }
        self.append(&[kind, length_byte]) && parts.iter().all(|part| self.append(part))
    }

    fn append(&mut self, bytes: &[u8]) -> bool {
        let start = usize::from(self.size);
        let Some(place) = self.bytes.get_mut(start..start + bytes.len()) else { return false };
        place.copy_from_slice(bytes);
        self.size += bytes.len() as u8;
        true
    }
}

impl Default for Options {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl<'a> IntoIterator for &'a Options {
    type Item = DccpOption<'a>;
    type IntoIter = OptionIter<'a>;

    fn into_iter(self) -> OptionIter<'a> {
        self.iter()
    }
}

/// Reads options one by one.
#[derive(Clone, Debug)]
pub struct OptionIter<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for OptionIter<'a> {
    type Item = DccpOption<'a>;

    fn next(&mut self) -> Option<DccpOption<'a>> {
        let (raw, rest) = take_raw(self.rest)?;
        self.rest = rest;
        Some(parse(raw))
    }
}

/// The first option of `area` with its type and length, and what follows. `None` at the end or if a length
/// makes no sense, from which on all is ignored (RFC 4340 §5.8).
fn take_raw(area: &[u8]) -> Option<(&[u8], &[u8])> {
    let kind = *area.first()?;
    let length = if kind < FIRST_WITH_LENGTH { 1 } else { usize::from(*area.get(1)?) };
    if kind >= FIRST_WITH_LENGTH && length < 2 {
        return None;
    }
    area.split_at_checked(length)
}

fn parse(raw: &[u8]) -> DccpOption<'_> {
    let (kind, data) = match raw {
        [kind, _, data @ ..] => (*kind, data),
        [kind] => (*kind, &[][..]),
        [] => (PADDING, &[][..]),
    };
    let unknown = DccpOption::Unknown { kind, data };
    match (kind, data) {
        (MANDATORY, []) => DccpOption::Mandatory,
        (SLOW_RECEIVER, []) => DccpOption::SlowReceiver,
        (CHANGE_L..=CONFIRM_R, [number, values @ ..]) => {
            let kind = match kind - CHANGE_L {
                0 => FeatureKind::ChangeL,
                1 => FeatureKind::ConfirmL,
                2 => FeatureKind::ChangeR,
                _ => FeatureKind::ConfirmR,
            };
            DccpOption::Feature(FeatureOption { kind, number: *number, values })
        }
        (INIT_COOKIE, [_, ..]) => DccpOption::InitCookie(data),
        (NDP_COUNT, [_, ..]) if data.len() <= 6 => {
            DccpOption::NdpCount(data.iter().fold(0, |count, &byte| count << 8 | u64::from(byte)))
        }
        (ACK_VECTOR_0 | ACK_VECTOR_1, runs) => DccpOption::AckVector { nonce: kind == ACK_VECTOR_1, runs },
        (DATA_DROPPED, blocks) => DccpOption::DataDropped(blocks),
        (TIMESTAMP, &[a, b, c, d]) => DccpOption::Timestamp(u32::from_be_bytes([a, b, c, d])),
        (TIMESTAMP_ECHO, &[a, b, c, d, ref elapsed @ ..]) => match span(elapsed) {
            Some(elapsed) => DccpOption::TimestampEcho { value: u32::from_be_bytes([a, b, c, d]), elapsed },
            None if elapsed.is_empty() => {
                DccpOption::TimestampEcho { value: u32::from_be_bytes([a, b, c, d]), elapsed: 0 }
            }
            None => unknown,
        },
        (ELAPSED_TIME, elapsed) => span(elapsed).map_or(unknown, DccpOption::ElapsedTime),
        (DATA_CHECKSUM, &[a, b, c, d]) => DccpOption::DataChecksum(u32::from_le_bytes([a, b, c, d])),
        (FIRST_CCID_SPECIFIC.., data) => DccpOption::Ccid { kind, data },
        _ => unknown,
    }
}

/// RFC 4340 §13.2: two or four bytes.
fn span(bytes: &[u8]) -> Option<u32> {
    match *bytes {
        [a, b] => Some(u32::from(u16::from_be_bytes([a, b]))),
        [a, b, c, d] => Some(u32::from_be_bytes([a, b, c, d])),
        _ => None,
    }
}

/// The number of leading bytes of a span that are left out, which is two if the rest is enough (RFC 4340
/// §13.2).
const fn span_bytes(elapsed: u32) -> usize {
    if elapsed <= u16::MAX as u32 { 2 } else { 0 }
}

// Option types (RFC 4340 §5.8, table 3). Change L to Confirm R follow each other as in `FeatureKind`.
const PADDING: u8 = 0;
const MANDATORY: u8 = 1;
const SLOW_RECEIVER: u8 = 2;
const CHANGE_L: u8 = 32;
const CONFIRM_R: u8 = 35;
const INIT_COOKIE: u8 = 36;
const NDP_COUNT: u8 = 37;
const ACK_VECTOR_0: u8 = 38;
const ACK_VECTOR_1: u8 = 39;
const DATA_DROPPED: u8 = 40;
const TIMESTAMP: u8 = 41;
const TIMESTAMP_ECHO: u8 = 42;
const ELAPSED_TIME: u8 = 43;
const DATA_CHECKSUM: u8 = 44;
/// Types below are one byte long, those from here on have a length (RFC 4340 §5.8).
const FIRST_WITH_LENGTH: u8 = 32;
/// RFC 4340 §10.3.
const FIRST_CCID_SPECIFIC: u8 = 128;

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes_of(option: DccpOption<'_>) -> Vec<u8> {
        let mut options = Options::EMPTY;
        assert!(options.push(option));
        options.as_bytes().to_vec()
    }

    /// RFC 4340 §6.1, §7.7, §11.4, §13.1 to §13.3: the pictures of the options.
    #[test]
    fn options_are_laid_out_as_in_the_pictures() {
        let change = FeatureOption { kind: FeatureKind::ChangeR, number: 1, values: &[2, 3] };
        assert_eq!(bytes_of(DccpOption::Feature(change)), [34, 5, 1, 2, 3]);
        assert_eq!(bytes_of(DccpOption::NdpCount(0)), [37, 3, 0]);
        assert_eq!(bytes_of(DccpOption::NdpCount(0x1_0203)), [37, 5, 1, 2, 3]);
        assert_eq!(bytes_of(DccpOption::AckVector { nonce: true, runs: &[0xc1] }), [39, 3, 0xc1]);
        assert_eq!(bytes_of(DccpOption::ElapsedTime(0x0102)), [43, 4, 1, 2]);
        assert_eq!(bytes_of(DccpOption::ElapsedTime(0x01_0203)), [43, 6, 0, 1, 2, 3]);
        assert_eq!(bytes_of(DccpOption::TimestampEcho { value: 7, elapsed: 0 }), [42, 6, 0, 0, 0, 7]);
        assert_eq!(bytes_of(DccpOption::TimestampEcho { value: 7, elapsed: 9 }), [42, 8, 0, 0, 0, 7, 0, 9]);
        assert_eq!(bytes_of(DccpOption::DataChecksum(0x0102_0304)), [44, 6, 4, 3, 2, 1]);
    }

    #[test]
    fn what_was_pushed_is_read_again_in_order() {
        let list = [
            DccpOption::Mandatory,
            DccpOption::Feature(FeatureOption { kind: FeatureKind::ConfirmL, number: 6, values: &[1, 1] }),
            DccpOption::SlowReceiver,
            DccpOption::InitCookie(&[9; 40]),
            DccpOption::NdpCount((1 << 48) - 1),
            DccpOption::DataDropped(&[0x80]),
            DccpOption::Timestamp(u32::MAX),
            DccpOption::TimestampEcho { value: 1, elapsed: 70_000 },
            DccpOption::DataChecksum(5),
            DccpOption::Ccid { kind: 192, data: &[0, 0, 0, 1] },
            DccpOption::Unknown { kind: 77, data: &[1] },
            DccpOption::Unknown { kind: 12, data: &[] },
        ];
        let mut options = Options::EMPTY;
        for option in list {
            assert!(options.push(option));
        }
        assert_eq!(options.iter().collect::<Vec<_>>(), list);
        assert_eq!(Options::from_wire(options.as_bytes()), options);
    }

    #[test]
    fn an_option_that_does_not_fit_leaves_the_others_as_they_were() {
        let mut options = Options::EMPTY;
        assert!(options.push(DccpOption::InitCookie(&[1; Options::ROOM - 20])));
        let before = options;
        assert!(!options.push(DccpOption::AckVector { nonce: false, runs: &[0; 17] }));
        assert!(!options.push(DccpOption::NdpCount(1 << 48)));
        assert_eq!(options, before);
        assert!(options.push(DccpOption::AckVector { nonce: false, runs: &[0; 16] }));
    }

    /// RFC 4340 §5.8: from a length below two or past the end, all that follows is ignored.
    #[test]
    fn nonsensical_lengths_end_the_area() {
        for wrong in [&[38, 1][..], &[38, 0], &[38], &[38, 9, 0]] {
            let area = [&[0, 2][..], wrong].concat();
            assert_eq!(Options::from_wire(&area).iter().collect::<Vec<_>>(), [DccpOption::SlowReceiver]);
        }
    }

    #[test]
    fn a_known_option_of_the_wrong_length_is_not_read_as_one() {
        for area in
            [&[41, 5, 1, 2, 3][..], &[43, 5, 1, 2, 3], &[37, 2], &[37, 9, 1, 2, 3, 4, 5, 6, 7], &[32, 2]]
        {
            let found = Options::from_wire(area);
            assert_eq!(found.iter().next(), Some(DccpOption::Unknown { kind: area[0], data: &area[2..] }));
        }
    }

    #[test]
    fn an_ack_vector_that_is_too_long_keeps_its_latest_packets() {
        let mut area = vec![38, 253];
        area.extend(0..=250_u8);
        let cut: Vec<u8> = (0..Options::ROOM as u8 - 2).collect();
        let found = Options::from_wire(&area);
        assert_eq!(found.iter().next(), Some(DccpOption::AckVector { nonce: false, runs: &cut }));
        assert_eq!(found.room(), 0);
    }
}
