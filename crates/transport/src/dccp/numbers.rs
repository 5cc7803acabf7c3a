//! The sequence number variables of a connection, and the windows that decide whether a packet is valid (RFC
//! 4340 §7.5). W is the Sequence Window of the end that sent the numbers.
//!
//! ```text
//!             SWL           GSR                      SWH
//!   ───────────┼─────────────┼────────────────────────┼────►   the peer's sequence numbers
//!              │  W/4 numbers│      3 W/4 numbers     │
//!
//!             AWL                                    AWH = GSS
//!   ───────────┼──────────────────────────────────────┼────►   our numbers, which the peer acknowledges
//!              │             W numbers                │
//! ```
//!
//! | type | sequence number | acknowledgement number | if invalid |
//! | --- | --- | --- | --- |
//! | Request, Response, Data, Ack, DataAck | SWL to SWH | AWL to AWH, if it has one | Sync |
//! | CloseReq, Close, Reset | GSR + 1 to SWH | GAR to AWH | Sync |
//! | Sync, SyncAck | SWL to SWH; on a silent connection from SWL on | AWL to AWH | ignored |

use talkpath_units::{Duration, Instant};
use talkpath_wire::dccp::{DccpPacket, PacketKind, Seq};

/// The sequence number variables of a connection (RFC 4340 §7.1).
#[derive(Clone, Debug)]
pub(super) struct Numbers {
    /// The first number that was sent (ISS).
    iss: Seq,
    /// The greatest number that was sent (GSS).
    pub(super) gss: Seq,
    /// The first number that was received (ISR).
    isr: Seq,
    /// The greatest number that was received (GSR).
    pub(super) gsr: Seq,
    /// The greatest acknowledgement number that was received (GAR).
    pub(super) gar: Seq,
    /// The first number that was received in OPEN (OSR).
    pub(super) osr: Seq,
    /// When the last valid packet arrived. `None` before the first.
    last_valid: Option<Instant>,
    arrivals: Arrivals,
}

/// The result of the checks of a packet (RFC 4340 §7.5.3, §7.5.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Validity {
    Valid,
    /// The packet is ignored.
    Ignored,
    /// The packet is answered with a Sync that acknowledges this number.
    NeedsSync(Seq),
}

/// The widths of the windows: Sequence Window of the peer's half-connection and of ours (RFC 4340 §7.5.2).
#[derive(Clone, Copy, Debug)]
pub(super) struct Widths {
    pub(super) remote: u64,
    pub(super) local: u64,
}

impl Numbers {
    /// The numbers before any packet. The first packet will be `iss`.
    pub(super) fn new(iss: Seq) -> Self {
        let before = iss.wrapping_sub(1);
        Self {
            iss,
            gss: before,
            isr: Seq::new(0),
            gsr: Seq::new(0),
            gar: iss,
            osr: Seq::new(0),
            last_valid: None,
            arrivals: Arrivals::default(),
        }
    }

    /// Returns the number of the next packet that leaves.
    pub(super) fn take_next(&mut self) -> Seq {
        self.gss = self.gss.next();
        self.gss
    }

    /// Takes note of the first packet that arrives, `seq`. GSR is set to the number before it, so that the
    /// packet passes the checks, whatever its type (RFC 4340 §8.5 step 4): a Reset is valid only after GSR.
    pub(super) fn begin_receiving(&mut self, seq: Seq) {
        (self.isr, self.gsr) = (seq, seq.wrapping_sub(1));
        self.arrivals = Arrivals::default();
    }

    /// The numbers after a handshake without state, from those of the Response and of the Request that it
    /// answered.
    pub(super) fn restore(response: Seq, request: Seq) -> Self {
        Self { gss: response, isr: request, gsr: request, ..Self::new(response) }
    }

    /// True if the peer may acknowledge our packet `ack`: AWL <= ack <= AWH (RFC 4340 §7.5.1).
    pub(super) fn acknowledges(&self, ack: Seq, widths: Widths) -> bool {
        ack.is_within(self.awl(widths), self.gss)
    }

    /// Extends the short numbers of a packet to the nearest full ones (RFC 4340 §7.6).
    pub(super) fn extend(&self, packet: &mut DccpPacket) {
        packet.seq = packet.seq.extended(self.gsr);
        packet.ack = packet.ack.extended(self.gss);
        packet.short = false;
    }

    /// Checks a packet by the table above (RFC 4340 §8.5 steps 5 and 6). Changes nothing.
    pub(super) fn check(&self, packet: &DccpPacket, widths: Widths, rtt: Duration, now: Instant) -> Validity {
        let (swl, swh) = (self.swl(widths), self.swh(widths));
        let is_ack_in_window = packet.ack.is_within(self.awl(widths), self.gss);
        match packet.kind {
            PacketKind::Sync | PacketKind::SyncAck => {
                let in_sequence = if self.is_active(rtt, now) {
                    packet.seq.is_within(swl, swh)
                } else {
                    !packet.seq.is_before(swl)
                };
                if in_sequence && is_ack_in_window { Validity::Valid } else { Validity::Ignored }
            }
            PacketKind::CloseReq | PacketKind::Close | PacketKind::Reset(_) => {
                if packet.seq.is_within(self.gsr.next(), swh) && packet.ack.is_within(self.gar, self.gss) {
                    Validity::Valid
                } else if matches!(packet.kind, PacketKind::Reset(_)) {
                    Validity::NeedsSync(self.gsr)
                } else {
                    Validity::NeedsSync(packet.seq)
                }
            }
            PacketKind::Request { .. }
            | PacketKind::Response { .. }
            | PacketKind::Data
            | PacketKind::Ack
            | PacketKind::DataAck => {
                let is_ack_valid = !packet.kind.has_ack() || is_ack_in_window;
                if packet.seq.is_within(swl, swh) && is_ack_valid {
                    Validity::Valid
                } else {
                    Validity::NeedsSync(packet.seq)
                }
            }
        }
    }

    /// Moves GSR and GAR to a valid packet. The acknowledgement number of a Sync does not count, because it
    /// may be that of a packet of ours which the peer has found invalid (RFC 4340 §8.5 step 6).
    pub(super) fn on_valid(&mut self, packet: &DccpPacket, now: Instant) {
        self.arrivals.on_packet(packet.seq.distance_from(self.gsr));
        self.gsr = self.gsr.max(packet.seq);
        if packet.kind.has_ack() && packet.kind != PacketKind::Sync {
            self.gar = self.gar.max(packet.ack);
        }
        self.last_valid = Some(now);
    }

    /// Returns the number of the peer's packets that were found lost since the last call.
    pub(super) fn take_lost(&mut self) -> u64 {
        core::mem::take(&mut self.arrivals.lost)
    }

    /// Returns the number of packets that were sent since the greatest one that the peer has acknowledged.
    pub(super) fn in_flight(&self) -> u64 {
        self.gss.distance_from(self.gar).max(0) as u64
    }

    /// True if a valid packet has arrived within the last three round trips (RFC 4340 §7.5.3).
    fn is_active(&self, rtt: Duration, now: Instant) -> bool {
        self.last_valid.is_some_and(|last| now.since(last) <= rtt.saturating_mul(3))
    }

    /// SWL. At the beginning of the connection the window begins with ISR. GSR is the number before ISR until
    /// the first packet is checked.
    fn swl(&self, widths: Widths) -> Seq {
        let quarter = widths.remote / 4;
        let received = self.gsr.distance_from(self.isr);
        let is_young = (-1..quarter as i64).contains(&received);
        if is_young { self.isr } else { self.gsr.next().wrapping_sub(quarter) }
    }

    fn swh(&self, widths: Widths) -> Seq {
        self.gsr.wrapping_add(widths.remote.saturating_mul(3).div_ceil(4))
    }

    fn awl(&self, widths: Widths) -> Seq {
        let sent = self.gss.distance_from(self.iss);
        if (0..widths.local as i64).contains(&sent) {
            self.iss
        } else {
            self.gss.next().wrapping_sub(widths.local)
        }
    }
}

/// Which of the peer's last 64 packets have arrived. A packet is lost once three later packets have arrived
/// (NUMDUPACK; RFC 4341 §6.1.1).
#[derive(Clone, Debug, Default)]
struct Arrivals {
    /// Bit n is set if the packet n before the greatest has arrived. Zero before the first packet.
    arrived: u64,
    /// The number of packets, counted from the greatest down, that are not yet known to have arrived or to be
    /// lost.
    undecided: u32,
    /// The number of packets that were found lost.
    lost: u64,
}

impl Arrivals {
    /// Takes note of a packet that is this number `ahead` of the greatest, or behind it if the number is
    /// negative.
    fn on_packet(&mut self, ahead: i64) {
        if self.arrived == 0 {
            (self.arrived, self.undecided) = (1, 0);
            return;
        }
        if ahead <= 0 {
            self.arrived |= 1_u64.checked_shl(ahead.unsigned_abs().min(64) as u32).unwrap_or(0);
        } else {
            let ahead = ahead as u64;
            // The bits hold 64 packets. An undecided packet that falls out of them and has not arrived is
            // lost.
            let pushed = (u64::from(self.undecided) + ahead).saturating_sub(64);
            if pushed > 0 {
                let old = u64::from(self.undecided).min(pushed) as u32;
                let high = self.arrived.checked_shr(self.undecided - old).unwrap_or(0) & low_bits(old);
                self.lost += pushed - u64::from(high.count_ones());
            }
            self.undecided = (u64::from(self.undecided) + ahead - pushed) as u32;
            self.arrived = self.arrived.checked_shl(ahead.min(64) as u32).unwrap_or(0) | 1;
        }
        self.find_losses();
    }

    /// Decides on the packets before the third greatest that has arrived: those that have not arrived are
    /// lost.
    fn find_losses(&mut self) {
        let without_greatest = self.arrived & self.arrived.wrapping_sub(1);
        let third = without_greatest & without_greatest.wrapping_sub(1);
        if third == 0 {
            return;
        }
        let place = third.trailing_zeros();
        if place < self.undecided {
            let decided = low_bits(self.undecided) & !low_bits(place);
            self.lost += u64::from((decided & !self.arrived).count_ones());
            self.undecided = place;
        }
    }
}

/// Returns a number whose lowest `count` bits are set.
const fn low_bits(count: u32) -> u64 {
    if count >= 64 { u64::MAX } else { (1 << count) - 1 }
}

#[cfg(test)]
mod tests {
    use talkpath_wire::dccp::{Reset, ResetCode, ServiceCode};

    use super::*;

    const WIDTHS: Widths = Widths { remote: 100, local: 100 };
    const RTT: Duration = Duration::from_millis(200);

    fn numbers(gss: u64, gsr: u64) -> Numbers {
        let mut numbers = Numbers::new(Seq::new(0));
        numbers.begin_receiving(Seq::new(0));
        (numbers.gss, numbers.gsr) = (Seq::new(gss), Seq::new(gsr));
        numbers
    }

    fn check(numbers: &Numbers, kind: PacketKind, seq: u64, ack: u64) -> Validity {
        let packet = DccpPacket::new(kind, Seq::new(seq), Seq::new(ack));
        numbers.check(&packet, WIDTHS, RTT, Instant::from_secs(9))
    }

    /// RFC 4340 §7.5.1: a quarter of the window up to GSR, three quarters above; §7.5.3: the table.
    #[test]
    fn packets_are_valid_inside_the_windows_alone() {
        let numbers = numbers(1000, 5000);
        for (seq, valid) in [(4975, false), (4976, true), (5075, true), (5076, false)] {
            let expected = if valid { Validity::Valid } else { Validity::NeedsSync(Seq::new(seq)) };
            assert_eq!(check(&numbers, PacketKind::Data, seq, 0), expected, "{seq}");
        }
        for (ack, valid) in [(900, false), (901, true), (1000, true), (1001, false)] {
            let expected = if valid { Validity::Valid } else { Validity::NeedsSync(Seq::new(5001)) };
            assert_eq!(check(&numbers, PacketKind::Ack, 5001, ack), expected, "{ack}");
        }
    }

    /// RFC 4340 §7.5.3: no number at or below GSR, no acknowledgement below GAR; §7.5.4: a Reset is answered
    /// with GSR.
    #[test]
    fn packets_that_end_a_connection_are_checked_harder() {
        let mut numbers = numbers(1000, 5000);
        numbers.gar = Seq::new(990);
        assert_eq!(check(&numbers, PacketKind::Close, 5000, 995), Validity::NeedsSync(Seq::new(5000)));
        assert_eq!(check(&numbers, PacketKind::Close, 5001, 989), Validity::NeedsSync(Seq::new(5001)));
        assert_eq!(check(&numbers, PacketKind::Close, 5001, 990), Validity::Valid);
        let reset = PacketKind::Reset(Reset { code: ResetCode::CLOSED, data: [0; 3] });
        assert_eq!(check(&numbers, reset, 7, 7), Validity::NeedsSync(Seq::new(5000)));
    }

    /// RFC 4340 §7.5.3: a Sync is checked loosely, unless the connection is active; §7.5.4: a bad one is
    /// ignored.
    #[test]
    fn syncs_are_checked_loosely_on_a_silent_connection() {
        let mut numbers = numbers(1000, 5000);
        assert_eq!(check(&numbers, PacketKind::Sync, 1_000_000, 950), Validity::Valid);
        assert_eq!(check(&numbers, PacketKind::Sync, 1_000_000, 1001), Validity::Ignored);
        numbers.last_valid = Some(Instant::from_millis(8400));
        assert_eq!(check(&numbers, PacketKind::Sync, 1_000_000, 950), Validity::Ignored);
        assert_eq!(check(&numbers, PacketKind::SyncAck, 5075, 950), Validity::Valid);
    }

    /// RFC 4340 §7.5.1: at the beginning the windows stop at the initial numbers, and they work across the
    /// wrap.
    #[test]
    fn windows_stop_at_the_initial_numbers_and_cross_the_wrap() {
        let mut numbers = Numbers::new(Seq::new(u64::MAX));
        numbers.begin_receiving(Seq::new(u64::MAX - 1));
        numbers.take_next();
        numbers.take_next();
        assert_eq!(numbers.gss, Seq::new(0));
        assert_eq!((numbers.swl(WIDTHS), numbers.awl(WIDTHS)), (numbers.isr, numbers.iss));
        let first = DccpPacket::new(PacketKind::Data, numbers.isr, Seq::new(0));
        numbers.on_valid(&first, Instant::ZERO);
        assert_eq!(numbers.swl(WIDTHS), numbers.isr);
        assert_eq!(numbers.swh(WIDTHS), Seq::new(73));
    }

    /// RFC 4340 §8.5 step 4: the variables are set so that the first packet passes step 6. The one before it
    /// does not.
    #[test]
    fn the_first_packet_is_valid_whatever_its_type() {
        let reset = Reset::with_code(ResetCode::BAD_SERVICE_CODE);
        let service = ServiceCode::NONE;
        for kind in [PacketKind::Response { service }, PacketKind::Reset(reset)] {
            for first in [0, 5000] {
                let mut numbers = Numbers::new(Seq::new(30));
                let request = numbers.take_next();
                numbers.begin_receiving(Seq::new(first));
                assert_eq!(check(&numbers, kind, first, request.get()), Validity::Valid, "{kind:?}");
                let before = Seq::new(first).wrapping_sub(1);
                assert_ne!(check(&numbers, kind, before.get(), request.get()), Validity::Valid, "{kind:?}");
            }
        }
    }

    #[test]
    fn a_packet_is_lost_once_three_later_ones_have_arrived() {
        let lost_after = |order: &[u64]| {
            let mut numbers = numbers(0, order[0]);
            for &seq in order {
                let packet = DccpPacket::new(PacketKind::Data, Seq::new(seq), Seq::new(0));
                numbers.on_valid(&packet, Instant::ZERO);
            }
            numbers.take_lost()
        };
        assert_eq!(lost_after(&[1, 2, 4, 5]), 0);
        assert_eq!(lost_after(&[1, 2, 4, 5, 6]), 1);
        assert_eq!(lost_after(&[1, 2, 4, 5, 3, 6]), 0);
        assert_eq!(lost_after(&[1, 4, 8, 9, 10, 11]), 5);
        assert_eq!(lost_after(&[1, 200, 201, 202, 203, 204]), 198);
        assert_eq!(lost_after(&(1..500).filter(|n| n % 10 != 0).collect::<Vec<_>>()), 49);
    }
}
