//! How long frames of 802.11n take (802.11-2016 clauses 17 and 19: HT-mixed format, one spatial stream, long
//! guard interval).
//!
//! ```text
//!  preamble 36 us | service 16 bit, PSDU, tail 6 bit, in symbols of 4 us |  SIFS  | acknowledgement |
//! ```
//!
//! The times are those of the 5 GHz band. In the 2.4 GHz band a SIFS is 10 us and each PPDU is followed by a
//! signal extension of 6 us, so the sums are the same.

use talkpath_units::{Duration, Rate};

/// aSlotTime and aSIFSTime (802.11-2016 table 17-21).
pub(super) const SLOT: Duration = Duration::from_micros(9);
pub(super) const SIFS: Duration = Duration::from_micros(16);

/// The time for which a sender waits for an acknowledgement after its frame: a SIFS, a slot, and
/// aRxPHYStartDelay of 20 us (802.11-2016 §10.3.2.9; table 17-21).
pub(super) const ACK_TIMEOUT: Duration = Duration::from_micros(45);

/// What others wait after a frame that they could not read, in addition to the AIFS: a SIFS and an
/// acknowledgement at 6 Mb/s (EIFS - DIFS: 802.11-2016 §10.3.2.3.7, table 10-5).
pub(super) const AFTER_ILLEGIBLE: Duration = Duration::from_micros(16 + 44);

/// The longest PPDU that an 802.11n preamble can announce to older stations: L-SIG has a length of at most
/// 4095 B, read at 6 Mb/s. That is 20 us and 1366 symbols of 4 us.
pub(super) const LONGEST_PPDU: Duration = Duration::from_micros(5_484);

/// The frames that a compressed block acknowledgement reports in its bitmap.
pub(super) const BLOCK_ACK_WINDOW: usize = 64;

/// What a frame adds to an IP packet, in bytes: LLC and SNAP 8, the QoS data header 26, the frame check
/// sequence 4. There is no fourth address and no HT control field.
pub(super) const FRAME_HEADER: u64 = 8 + 26 + 4;

/// The bytes of a frame in an A-MPDU: a delimiter of 4 B, and padding to a multiple of 4 B.
pub(super) const fn subframe(frame: u64) -> u64 {
    (DELIMITER + frame).next_multiple_of(4)
}

/// How long a PPDU takes whose PSDU has this many `bytes`. `rate` is above zero.
pub(super) fn ppdu(bytes: u64, rate: Rate) -> Duration {
    PREAMBLE.saturating_add(symbols(SERVICE_BITS + 8 * bytes + TAIL_BITS, rate))
}

/// When the first `bytes` of a PSDU are received, counted from the beginning of the PPDU.
pub(super) fn received_after(bytes: u64, rate: Rate) -> Duration {
    PREAMBLE.saturating_add(symbols(SERVICE_BITS + 8 * bytes, rate))
}

/// How long the acknowledgement of `frames` frames takes, at the highest of the basic rates 6, 12 and 24 Mb/s
/// that is not above the data's. One frame has an Ack frame, more have a BlockAck.
pub(super) fn acknowledgement(frames: usize, rate: Rate) -> Duration {
    let bytes = if frames > 1 { BLOCK_ACK } else { ACK };
    let basic = [24_000_000, 12_000_000].into_iter().find(|&basic| basic <= rate.as_bps());
    let rate = Rate::from_bps(basic.unwrap_or(6_000_000));
    LEGACY_PREAMBLE.saturating_add(symbols(SERVICE_BITS + 8 * bytes + TAIL_BITS, rate))
}

/// The time of the symbols that carry `bits` bits. Each lasts 4 us, and the last one is padded.
fn symbols(bits: u64, rate: Rate) -> Duration {
    let symbol_us = SYMBOL.as_micros();
    let count = (u128::from(bits) * 1_000_000).div_ceil(u128::from(rate.as_bps().max(1) * symbol_us));
    SYMBOL.saturating_mul(u64::try_from(count).unwrap_or(u64::MAX))
}

/// L-STF 8, L-LTF 8, L-SIG 4, HT-SIG 8, HT-STF 4, HT-LTF 4.
const PREAMBLE: Duration = Duration::from_micros(36);
/// Short and long training 16, SIGNAL 4.
const LEGACY_PREAMBLE: Duration = Duration::from_micros(20);
const SYMBOL: Duration = Duration::from_micros(4);
const SERVICE_BITS: u64 = 16;
const TAIL_BITS: u64 = 6;
/// In bytes. The bitmap of a block acknowledgement is compressed.
const ACK: u64 = 14;
const BLOCK_ACK: u64 = 32;
/// Of a frame in an A-MPDU, in bytes.
const DELIMITER: u64 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_of_1500_bytes_at_mcs_7_takes_48_symbols_and_its_acknowledgement_2() {
        // 65 Mb/s is 260 bit in a symbol; 16 + 8 * 1538 + 6 = 12,326 bit are 47.4 symbols.
        let rate = Rate::from_bps(65_000_000);
        assert_eq!(ppdu(1500 + FRAME_HEADER, rate), Duration::from_micros(36 + 48 * 4));
        // 24 Mb/s is 96 bit in a symbol; 16 + 112 + 6 = 134 bit are 2 symbols, and 278 bit are 3.
        assert_eq!(acknowledgement(1, rate), Duration::from_micros(28));
        assert_eq!(acknowledgement(2, rate), Duration::from_micros(32));
        // 6 Mb/s is 24 bit in a symbol; 134 bit are 6 symbols.
        assert_eq!(acknowledgement(1, Rate::from_bps(6_500_000)), Duration::from_micros(44));
        assert_eq!(subframe(1538), 1544);
    }
}
