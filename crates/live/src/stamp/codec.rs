//! STAMP test packets as bytes: RFC 8762 §4.2.1 and §4.3.1 (unauthenticated mode), with the session's
//! identifier and the TLVs Extra Padding and Class of Service of RFC 8972 §3, §4.1 and §4.4.
//!
//! ```text
//!  byte        0      4      12      14     16     24      28     36      38  40    41     44
//!  sender      seq. │ T1   │ error │ SSID │ zero ....................................... │ TLVs
//!  reflector   seq. │ T3   │ error │ SSID │ T2   │ seq.  │ T1   │ error │ 0 │ TTL │ 0   │ TLVs
//!                                                └─ the sender's ───────┘
//! ```
//!
//! Left out: authenticated mode (RFC 8762 §4.2.2) and its HMAC TLV, and every other TLV, which a reflector
//! marks as unknown and sends back.

/// The size of a test packet without its TLVs, in both directions, bytes (RFC 8762 §4.2.1, §4.3.1).
pub(crate) const BASE: usize = 44;

/// A time stamp in 64 bits (RFC 8762 §4.2.1). It has NTP's format, which is seconds since 1900 and their
/// fraction (RFC 5905 §6), or PTP's format, which is seconds and nanoseconds (IEEE 1588, truncated). The
/// error estimate of the packet says which.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Timestamp(pub(crate) u64);

/// The largest error of a time stamp (RFC 4656 §4.1.2; the bit Z is from RFC 8186 §2.1).
///
/// ```text
///  │S│Z│ scale (6) │ multiplier (8) │     error = multiplier x 2^scale x 2^-32 s
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ErrorEstimate(pub(crate) u16);

/// The packet of a session-sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SenderPacket {
    pub(crate) sequence: u32,
    pub(crate) timestamp: Timestamp,
    pub(crate) error: ErrorEstimate,
    pub(crate) ssid: u16,
}

/// The packet of a session-reflector.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReflectorPacket {
    /// The sequence number. A stateless reflector copies the sender's number. A stateful reflector counts the
    /// packets of the session itself.
    pub(crate) sequence: u32,
    /// T3, when the reflector sent this packet.
    pub(crate) timestamp: Timestamp,
    pub(crate) error: ErrorEstimate,
    pub(crate) ssid: u16,
    /// T2, when the reflector received the sender's packet.
    pub(crate) received: Timestamp,
    pub(crate) sender_sequence: u32,
    /// T1, when the sender sent its packet.
    pub(crate) sender_timestamp: Timestamp,
    pub(crate) sender_error: ErrorEstimate,
    /// The TTL (or hop limit) with which the sender's packet arrived at the reflector.
    pub(crate) sender_ttl: u8,
}

impl Timestamp {
    /// Makes a time stamp in NTP's format from ns since 1970, rounded to the nearest fraction.
    pub(crate) fn from_unix_ns(unix_ns: i64) -> Self {
        let (seconds, ns) = (unix_ns.div_euclid(SECOND), unix_ns.rem_euclid(SECOND));
        // A fraction that is rounded up to a whole second adds to the seconds in the sum below.
        let fraction = ((i128::from(ns) << 32) + i128::from(SECOND / 2)) / i128::from(SECOND);
        let whole = i128::from(seconds + NTP_EPOCH) << 32;
        // A time stamp does not include the era, so the bits above 64 are dropped.
        Self((whole + fraction) as u64)
    }

    /// Returns the time stamp as ns since 1970. Takes the era in which the time is nearest to `near_ns` (RFC
    /// 5905 §6).
    pub(crate) fn to_unix_ns(self, error: ErrorEstimate, near_ns: i64) -> i64 {
        let (seconds, low) = ((self.0 >> 32) as i64, self.0 & 0xffff_ffff);
        let (seconds, ns) = if error.is_ptp() {
            (seconds, i64::try_from(low).unwrap_or(0).min(SECOND - 1))
        } else {
            let ns = ((u128::from(low) * SECOND as u128) + (1 << 31)) >> 32;
            (seconds - NTP_EPOCH, i64::try_from(ns).unwrap_or(0))
        };
        let near = near_ns.div_euclid(SECOND);
        let eras = (near - seconds + ERA / 2).div_euclid(ERA);
        (seconds + eras * ERA).saturating_mul(SECOND).saturating_add(ns)
    }
}

impl ErrorEstimate {
    /// Makes the estimate of a time stamp in NTP's format whose error is at most `error_ns`, rounded up. The
    /// multiplier is at least 1, because zero is not allowed.
    pub(crate) fn new(error_ns: u64, is_synchronised: bool) -> Self {
        let mut units = ((u128::from(error_ns) << 32).div_ceil(SECOND as u128)).max(1);
        let mut scale: u16 = 0;
        while units > 0xff && scale < 0x3f {
            units = units.div_ceil(2);
            scale += 1;
        }
        let multiplier = u16::try_from(units).unwrap_or(0xff).min(0xff);
        Self(u16::from(is_synchronised) << 15 | scale << 8 | multiplier)
    }

    /// Returns true if the clock is synchronised to UTC by an outer source (S).
    pub(crate) const fn is_synchronised(self) -> bool {
        self.0 & 0x8000 != 0
    }

    /// Returns true if the time stamp has PTP's format (Z).
    pub(crate) const fn is_ptp(self) -> bool {
        self.0 & 0x4000 != 0
    }

    /// Returns the largest error in ns, rounded down. Returns `None` if the multiplier is zero, which means
    /// that the estimate must not be used.
    pub(crate) fn error_ns(self) -> Option<u64> {
        let (scale, multiplier) = (u32::from(self.0 >> 8 & 0x3f), u128::from(self.0 & 0xff));
        let ns = (multiplier * SECOND as u128) << scale >> 32;
        (multiplier > 0).then(|| u64::try_from(ns).unwrap_or(u64::MAX))
    }
}

impl SenderPacket {
    pub(crate) fn write(self) -> [u8; BASE] {
        let mut bytes = [0; BASE];
        put(&mut bytes, 0, &self.sequence.to_be_bytes());
        put(&mut bytes, 4, &self.timestamp.0.to_be_bytes());
        put(&mut bytes, 12, &self.error.0.to_be_bytes());
        put(&mut bytes, 14, &self.ssid.to_be_bytes());
        bytes
    }

    /// Parses the packet of a sender. Returns `None` if the packet is too short, or if it is the packet of a
    /// reflector. A sender's packet has zeros where a reflector's packet has T2 and the sender's fields.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.first_chunk::<BASE>()?;
        (at::<20>(bytes, 16) == [0; 20]).then(|| Self {
            sequence: u32::from_be_bytes(at(bytes, 0)),
            timestamp: Timestamp(u64::from_be_bytes(at(bytes, 4))),
            error: ErrorEstimate(u16::from_be_bytes(at(bytes, 12))),
            ssid: u16::from_be_bytes(at(bytes, 14)),
        })
    }
}

impl ReflectorPacket {
    pub(crate) fn write(self) -> [u8; BASE] {
        let mut bytes = [0; BASE];
        put(&mut bytes, 0, &self.sequence.to_be_bytes());
        put(&mut bytes, 4, &self.timestamp.0.to_be_bytes());
        put(&mut bytes, 12, &self.error.0.to_be_bytes());
        put(&mut bytes, 14, &self.ssid.to_be_bytes());
        put(&mut bytes, 16, &self.received.0.to_be_bytes());
        put(&mut bytes, 24, &self.sender_sequence.to_be_bytes());
        put(&mut bytes, 28, &self.sender_timestamp.0.to_be_bytes());
        put(&mut bytes, 36, &self.sender_error.0.to_be_bytes());
        bytes[40] = self.sender_ttl;
        bytes
    }

    /// Parses the packet of a reflector. Returns `None` if the packet is too short.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.first_chunk::<BASE>()?;
        Some(Self {
            sequence: u32::from_be_bytes(at(bytes, 0)),
            timestamp: Timestamp(u64::from_be_bytes(at(bytes, 4))),
            error: ErrorEstimate(u16::from_be_bytes(at(bytes, 12))),
            ssid: u16::from_be_bytes(at(bytes, 14)),
            received: Timestamp(u64::from_be_bytes(at(bytes, 16))),
            sender_sequence: u32::from_be_bytes(at(bytes, 24)),
            sender_timestamp: Timestamp(u64::from_be_bytes(at(bytes, 28))),
            sender_error: ErrorEstimate(u16::from_be_bytes(at(bytes, 36))),
            sender_ttl: bytes[40],
        })
    }
}

/// The Class of Service TLV (RFC 8972 §4.4).
///
/// ```text
///  │ DSCP1 (6) │ DSCP2 (6) │ ECN (2) │ RP (2) │ zero (16) │
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ClassOfService {
    /// The DSCP with which the reflector is to send its packet.
    pub(crate) dscp1: u8,
    /// The DSCP with which the sender's packet arrived at the reflector.
    pub(crate) dscp2: u8,
    /// The ECN field with which the sender's packet arrived at the reflector.
    pub(crate) ecn: u8,
    /// 1 if the reflector does not send with DSCP1.
    pub(crate) reverse_path: u8,
}

impl ClassOfService {
    /// The size of the TLV's value, bytes.
    pub(crate) const SIZE: usize = 4;

    pub(crate) const fn write(self) -> [u8; Self::SIZE] {
        let Self { dscp1, dscp2, ecn, reverse_path } = self;
        [dscp1 << 2 | dscp2 >> 4, dscp2 << 4 | (ecn & 3) << 2 | reverse_path & 3, 0, 0]
    }

    pub(crate) const fn parse([high, low, ..]: [u8; Self::SIZE]) -> Self {
        let dscp2 = (high & 3) << 4 | low >> 4;
        Self { dscp1: high >> 2, dscp2, ecn: low >> 2 & 3, reverse_path: low & 3 }
    }
}

/// Appends a TLV to a sender's packet. The flag U is set, and a reflector that recognises the TLV clears it.
pub(crate) fn put_tlv(packet: &mut Vec<u8>, kind: u8, value: &[u8]) {
    packet.extend([UNRECOGNISED, kind]);
    packet.extend(u16::try_from(value.len()).unwrap_or(u16::MAX).to_be_bytes());
    packet.extend(value);
}

/// Marks the TLVs of a packet in place, as a reflector does (RFC 8972 §4). `tlvs` holds everything that
/// follows the base. Known TLVs lose the flag U, and all others have it. A TLV that is longer than the packet
/// gets the flag M, and the TLVs end with it. `class` is called for a Class of Service, and its result is
/// written back.
pub(crate) fn reflect_tlvs(tlvs: &mut [u8], mut class: impl FnMut(ClassOfService) -> ClassOfService) {
    let mut rest = tlvs;
    while let Some((header, after)) = rest.split_first_chunk_mut::<TLV_HEADER>() {
        let length = usize::from(u16::from_be_bytes([header[2], header[3]]));
        let Some((value, next)) = after.split_at_mut_checked(length) else {
            header[0] = header[0] & !(UNRECOGNISED | INTEGRITY) | MALFORMED;
            return;
        };
        header[0] &= !(MALFORMED | INTEGRITY);
        match (header[1], value.first_chunk_mut::<{ ClassOfService::SIZE }>()) {
            (EXTRA_PADDING, _) => header[0] &= !UNRECOGNISED,
            (CLASS_OF_SERVICE, Some(bytes)) if length == ClassOfService::SIZE => {
                header[0] &= !UNRECOGNISED;
                *bytes = class(ClassOfService::parse(*bytes)).write();
            }
            (CLASS_OF_SERVICE, _) => header[0] = header[0] & !UNRECOGNISED | MALFORMED,
            _ => header[0] |= UNRECOGNISED,
        }
        rest = next;
    }
}

/// Returns the Class of Service among the `tlvs` of an answer, if the reflector recognised it.
pub(crate) fn class_of_service(tlvs: &[u8]) -> Option<ClassOfService> {
    let mut rest = tlvs;
    while let Some((header, after)) = rest.split_first_chunk::<TLV_HEADER>() {
        let length = usize::from(u16::from_be_bytes([header[2], header[3]]));
        let (value, next) = after.split_at_checked(length)?;
        if header[1] == CLASS_OF_SERVICE {
            let is_known = header[0] & (UNRECOGNISED | MALFORMED) == 0;
            return Some(ClassOfService::parse(*value.first_chunk()?)).filter(|_| is_known);
        }
        rest = next;
    }
    None
}

fn put(into: &mut [u8; BASE], at: usize, bytes: &[u8]) {
    into[at..at + bytes.len()].copy_from_slice(bytes);
}

/// Returns the `N` bytes of the base that begin at `from`.
fn at<const N: usize>(bytes: &[u8; BASE], from: usize) -> [u8; N] {
    core::array::from_fn(|index| bytes[from + index])
}

/// The size of a TLV's header, bytes: flags, type and length (RFC 8972 §4).
pub(crate) const TLV_HEADER: usize = 4;
/// The flag U (RFC 8972 §5.1 table 2).
const UNRECOGNISED: u8 = 0x80;
/// The flag M (RFC 8972 §5.1 table 2).
const MALFORMED: u8 = 0x40;
/// The flag I (RFC 8972 §5.1 table 2).
const INTEGRITY: u8 = 0x20;
/// The number of bits by which the DSCP is shifted in the byte of the IP header that it shares with the ECN
/// field (RFC 2474 §3, RFC 3168 §5).
pub(crate) const DSCP_SHIFT: u8 = 2;
/// The type of the TLV Extra Padding (RFC 8972 §5.1).
pub(crate) const EXTRA_PADDING: u8 = 1;
/// The type of the TLV Class of Service (RFC 8972 §5.1).
pub(crate) const CLASS_OF_SERVICE: u8 = 4;
/// The time from 1900 to 1970, s (RFC 5905 §6 figure 4).
const NTP_EPOCH: i64 = 2_208_988_800;
/// The length of an era of NTP, s.
const ERA: i64 = 1 << 32;
/// The number of ns in a second.
const SECOND: i64 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 8762 figure 2, each field with bytes that name its place.
    #[test]
    fn a_senders_packet_is_laid_out_as_in_figure_2() {
        let packet = SenderPacket {
            sequence: 0x0001_0203,
            timestamp: Timestamp(0x0405_0607_0809_0a0b),
            error: ErrorEstimate(0x0c0d),
            ssid: 0x0e0f,
        };
        let mut expected: Vec<u8> = (0..16).collect();
        expected.resize(44, 0);
        assert_eq!(packet.write().to_vec(), expected);
        assert_eq!(SenderPacket::parse(&expected), Some(packet));
        assert_eq!(SenderPacket::parse(&expected[..43]), None);
    }

    /// RFC 8762 figure 5, with the SSID of RFC 8972 figure 2.
    #[test]
    fn a_reflectors_packet_is_laid_out_as_in_figure_5() {
        let packet = ReflectorPacket {
            sequence: 0x0001_0203,
            timestamp: Timestamp(0x0405_0607_0809_0a0b),
            error: ErrorEstimate(0x0c0d),
            ssid: 0x0e0f,
            received: Timestamp(0x1011_1213_1415_1617),
            sender_sequence: 0x1819_1a1b,
            sender_timestamp: Timestamp(0x1c1d_1e1f_2021_2223),
            sender_error: ErrorEstimate(0x2425),
            sender_ttl: 0x28,
        };
        let mut expected: Vec<u8> = (0..44).collect();
        expected[38..40].fill(0);
        expected[41..].fill(0);
        assert_eq!(packet.write().to_vec(), expected);
        assert_eq!(ReflectorPacket::parse(&expected), Some(packet));
    }

    /// RFC 5905 §6 figure 4: 1970 is 2,208,988,800; the second era begins on 8 February 2036.
    #[test]
    fn stamps_are_ntps_and_keep_their_era() {
        let ntp = ErrorEstimate(1);
        assert_eq!(Timestamp::from_unix_ns(0), Timestamp(2_208_988_800 << 32));
        assert_eq!(Timestamp::from_unix_ns(500_000_000).0 & 0xffff_ffff, 1 << 31);
        assert_eq!(Timestamp::from_unix_ns(2_085_978_496 * SECOND), Timestamp(0));
        for unix_ns in [1, 999_999_999, 1_764_000_000_123_456_789, 2_085_978_496 * SECOND + 7, -5] {
            for off in [-3_600 * SECOND, 0, 86_400 * SECOND] {
                assert_eq!(Timestamp::from_unix_ns(unix_ns).to_unix_ns(ntp, unix_ns + off), unix_ns);
            }
        }
        let ptp = ErrorEstimate(0x4001);
        let stamp = Timestamp(1_764_000_000 << 32 | 42);
        assert_eq!(stamp.to_unix_ns(ptp, 1_764_000_000 * SECOND), 1_764_000_000 * SECOND + 42);
    }

    /// RFC 4656 §4.1.2.
    #[test]
    fn an_error_estimate_is_never_less_than_the_error() {
        for error_ns in [0, 1, 233, 1_000, 60_000, 15_000_000, 16_000_000_000, u64::MAX] {
            let estimate = ErrorEstimate::new(error_ns, true);
            assert!(estimate.is_synchronised() && !estimate.is_ptp());
            let told = estimate.error_ns().unwrap();
            // Rounded up by one part in 128, and down by 1 ns when it is read.
            assert!(
                told.saturating_add(1) >= error_ns && told as f64 <= error_ns as f64 * 1.008 + 1.0,
                "{error_ns}: {told}"
            );
        }
        assert_eq!(ErrorEstimate::new(1_000_000_000, false), ErrorEstimate(25 << 8 | 0x80));
        assert_eq!(ErrorEstimate(0).error_ns(), None);
    }

    /// RFC 8972 §4.4 figure 9: DSCP1 46, DSCP2 10, ECN 2, RP 1.
    #[test]
    fn a_class_of_service_is_laid_out_as_in_its_figure() {
        let class = ClassOfService { dscp1: 46, dscp2: 10, ecn: 2, reverse_path: 1 };
        assert_eq!(class.write(), [0b1011_1000, 0b1010_1001, 0, 0]);
        assert_eq!(ClassOfService::parse(class.write()), class);
    }

    #[test]
    fn a_reflector_marks_what_it_does_not_know_and_what_is_cut_off() {
        let mut tlvs = Vec::new();
        put_tlv(&mut tlvs, EXTRA_PADDING, &[7; 5]);
        put_tlv(&mut tlvs, 200, &[9]);
        put_tlv(&mut tlvs, CLASS_OF_SERVICE, &ClassOfService { dscp1: 46, ..Default::default() }.write());
        let cut = tlvs.len();
        tlvs.extend([0x80, EXTRA_PADDING, 0, 9, 1, 2]);
        let sent = tlvs.clone();
        reflect_tlvs(&mut tlvs, |class| ClassOfService { dscp2: 10, ecn: 1, ..class });
        assert_eq!(tlvs.len(), sent.len());
        assert_eq!((tlvs[0], &tlvs[1..9]), (0, &sent[1..9]), "padding comes back as it was");
        assert_eq!(&tlvs[9..14], &[0x80, 200, 0, 1, 9]);
        assert_eq!(&tlvs[14..22], &[0, CLASS_OF_SERVICE, 0, 4, 0b1011_1000, 0b1010_0100, 0, 0]);
        assert_eq!(&tlvs[cut..], &[0x40, EXTRA_PADDING, 0, 9, 1, 2]);
        let class = class_of_service(&tlvs).unwrap();
        assert_eq!((class.dscp1, class.dscp2, class.ecn), (46, 10, 1));
        assert_eq!(class_of_service(&sent), None, "a reflector that does not know it leaves U set");
        // A Class of Service of another length is malformed.
        let mut short = vec![0x80, CLASS_OF_SERVICE, 0, 2, 1, 2];
        reflect_tlvs(&mut short, |_| panic!("it has no class"));
        assert_eq!(short[0], 0x40);
    }

    #[test]
    fn bytes_of_any_kind_are_reflected_without_a_panic() {
        let mut seed = 1_u64;
        for length in 0..200 {
            let mut bytes: Vec<u8> = (0..length)
                .map(|_| {
                    seed =
                        seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    // Small numbers make lengths that fit.
                    ((seed >> 33) % 7) as u8
                })
                .collect();
            reflect_tlvs(&mut bytes, |class| class);
            let _ = (class_of_service(&bytes), SenderPacket::parse(&bytes), ReflectorPacket::parse(&bytes));
            assert_eq!(bytes.len(), length);
        }
    }
}
