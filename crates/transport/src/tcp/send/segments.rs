//! The stream cut into segments: which new segment may leave next, by flow control and Nagle's algorithm.
//!
//! ```text
//!        snd_una                 snd_max              written
//!   acked   │ in flight             │ unsent              │ FIN
//! ──────────┴───────────────────────┴─────────────────────┴─────►
//! ```
//!
//! Offsets count the SYN as 0. Unsent bytes have no boundaries, so small writes coalesce as in Linux. Sent
//! segments keep their boundaries, and are sent again unchanged.

use talkpath_wire::HoldCause;

use super::nagle::Nagle;
use super::window::SendWindow;
use crate::tcp::recovery::Scoreboard;

/// A segment that may leave, as far as flow control and Nagle's algorithm decide it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tcp) enum NextSegment {
    /// The next segment that has to be sent again.
    Retransmission,
    /// A new segment. It carries `payload` unsent bytes, and the FIN if `fin` is true.
    New { payload: u32, fin: bool },
}

/// Why no further segment leaves now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tcp) enum BlockedBy {
    /// All bytes that the application wrote were sent.
    NoData,
    /// The far end's window has no room, or so little that the sender's half of silly window avoidance waits
    /// (RFC 9293 §3.8.6.2.1).
    Receiver,
    /// Nagle's algorithm holds a small segment back.
    Nagle,
    /// `cwnd` has no room, or too little for a whole burst.
    CongestionWindow,
    /// The far end's window has room for less than a whole burst, and an acknowledgement is near.
    LargerBurst,
    /// The pause between two paced bursts is not over.
    Pacing,
}

impl BlockedBy {
    /// Returns what holds data back. Returns `None` if no data waits.
    #[inline]
    pub(in crate::tcp) const fn cause(self) -> Option<HoldCause> {
        match self {
            Self::NoData => None,
            Self::Receiver | Self::LargerBurst => Some(HoldCause::ReceiverWindow),
            Self::Nagle => Some(HoldCause::Nagle),
            Self::CongestionWindow => Some(HoldCause::CongestionWindow),
            Self::Pacing => Some(HoldCause::Pacing),
        }
    }
}

/// The bytes that the application writes, and the FIN behind them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stream {
    /// The offset one past the last byte that the application wrote.
    written: u64,
    /// Payload bytes of a full segment (SMSS).
    smss: u32,
    /// Payload bytes of a full segment beside the SACK blocks that it has to carry now.
    full: u32,
    /// True once the application has closed: a FIN follows its last byte.
    fin_queued: bool,
    fin_sent: bool,
}

impl Stream {
    pub(super) const fn new() -> Self {
        Self { written: 1, smss: 1, full: 1, fin_queued: false, fin_sent: false }
    }

    pub(super) fn on_established(&mut self, smss: u32) {
        self.smss = smss.max(1);
        self.full = self.smss;
    }

    #[inline]
    pub(super) const fn smss(&self) -> u32 {
        self.smss
    }

    /// Payload bytes of a full segment beside the SACK blocks that it has to carry now.
    #[inline]
    pub(super) const fn full(&self) -> u32 {
        self.full
    }

    /// Makes full segments smaller by `options` bytes.
    #[inline]
    pub(super) fn leave_room(&mut self, options: u32) {
        self.full = self.smss.saturating_sub(options).max(1);
    }

    pub(super) const fn write(&mut self, bytes: u64) {
        self.written += bytes;
    }

    pub(super) const fn queue_fin(&mut self) {
        self.fin_queued = true;
    }

    pub(super) const fn on_fin_sent(&mut self) {
        self.fin_sent = true;
    }

    #[inline]
    pub(super) const fn is_closing(&self) -> bool {
        self.fin_queued
    }

    #[inline]
    pub(super) const fn fin_is_acked(&self, scoreboard: &Scoreboard) -> bool {
        self.fin_sent && scoreboard.snd_una() == scoreboard.snd_max()
    }

    /// The number of bytes that were written and never sent.
    #[inline]
    pub(super) fn unsent(&self, scoreboard: &Scoreboard) -> u64 {
        self.written.saturating_sub(scoreboard.snd_max().max(1))
    }

    /// The number of bytes that were written and are not acknowledged.
    #[inline]
    pub(super) fn queued(&self, scoreboard: &Scoreboard) -> u64 {
        // A FIN that was sent and acknowledged is one above `written`.
        self.written.saturating_sub(scoreboard.snd_una().max(1))
    }

    /// Decides which segment may leave next. With `new_data_first` no retransmission is chosen. The error
    /// says why no segment may leave.
    #[inline]
    pub(super) fn plan(
        &self,
        scoreboard: &Scoreboard,
        window: &SendWindow,
        nagle: &Nagle,
        new_data_first: bool,
    ) -> Result<NextSegment, BlockedBy> {
        if scoreboard.has_retransmission() && !new_data_first {
            return Ok(NextSegment::Retransmission);
        }
        let unsent = self.unsent(scoreboard);
        let fin_due = self.fin_queued && !self.fin_sent;
        if unsent == 0 {
            return if fin_due {
                Ok(NextSegment::New { payload: 0, fin: true })
            } else {
                Err(BlockedBy::NoData)
            };
        }
        let full = u64::from(self.full);
        let usable = window.edge().saturating_sub(scoreboard.snd_max());
        let payload = unsent.min(full).min(usable);
        let is_tail = payload == unsent;
        if payload == full || (is_tail && fin_due) {
            let fin = is_tail && fin_due;
            return Ok(NextSegment::New { payload: payload as u32, fin });
        }
        // F-RTO's new data is not held back by Nagle's algorithm (tcp_xmit_recovery: TCP_NAGLE_OFF).
        if is_tail && !new_data_first && nagle.holds(scoreboard.snd_una(), scoreboard.snd_max()) {
            return Err(BlockedBy::Nagle);
        }
        // RFC 9293 §3.8.6.2.1: (2) the segment carries all unsent bytes, or (3) it fills at least half of the
        // largest window that the far end ever offered.
        if is_tail || (payload > 0 && payload >= window.max_offered() / 2) {
            return Ok(NextSegment::New { payload: payload as u32, fin: false });
        }
        Err(BlockedBy::Receiver)
    }
}

#[cfg(test)]
mod tests {
    use talkpath_units::{Bytes, Instant};

    use super::*;
    use crate::tcp::send::{NewSegment, Sender};
    use talkpath_config::{NagleKind, Stack, TcpConfig};

    /// A sender with segments of 1000 B, and what it has in flight.
    struct Sending {
        sender: Sender,
        scoreboard: Scoreboard,
    }

    impl Sending {
        fn new(nagle: NagleKind, window: u16) -> Self {
            let config = TcpConfig { nagle, ..TcpConfig::preset(Stack::Linux, false) };
            let (mut sender, mut scoreboard) = (Sender::new(&config, false), Scoreboard::new());
            scoreboard.on_syn_sent();
            sender.on_far_syn(window, 0);
            scoreboard.on_established();
            sender.on_established(1000);
            Self { sender, scoreboard }
        }

        fn write(&mut self, bytes: u64) {
            self.sender.write(Bytes::new(bytes), &self.scoreboard);
        }

        fn plan(&self) -> Result<NextSegment, BlockedBy> {
            self.sender.plan(&self.scoreboard, false)
        }

        fn send(&mut self, payload: u32, fin: bool) {
            let segment = NewSegment { payload, fin, in_burst: false };
            self.sender.send_new(segment, &mut self.scoreboard, Instant::ZERO);
        }

        fn send_all(&mut self) -> Vec<u32> {
            let mut sent = Vec::new();
            while let Ok(NextSegment::New { payload, fin }) = self.plan() {
                self.send(payload, fin);
                sent.push(payload);
            }
            sent
        }
    }

    #[test]
    fn small_writes_coalesce_while_they_wait() {
        let mut sending = Sending::new(NagleKind::Minshall, 60_000);
        for _ in 0..9 {
            sending.write(160);
        }
        assert_eq!(sending.send_all(), [1000, 440]);
        sending.write(160);
        assert_eq!(sending.plan(), Err(BlockedBy::Nagle));
        sending.scoreboard.on_ack(1441);
        assert_eq!(sending.send_all(), [160]);
    }

    /// RFC 9293 §3.8.6.2.1.
    #[test]
    fn a_small_window_waits_for_the_persist_timer() {
        let mut sending = Sending::new(NagleKind::Off, 3000);
        sending.write(3400);
        assert_eq!(sending.send_all(), [1000, 1000, 1000]);
        sending.scoreboard.on_ack(3001);
        sending.sender.update_window(300, 1, 3001);
        assert_eq!(sending.plan(), Err(BlockedBy::Receiver));
        assert_eq!(sending.sender.plan_forced(&sending.scoreboard), Some(300));
        sending.sender.update_window(400, 1, 3001);
        assert_eq!(sending.plan(), Ok(NextSegment::New { payload: 400, fin: false }));
    }

    #[test]
    fn after_a_timeout_segments_are_sent_again_as_they_were() {
        let mut sending = Sending::new(NagleKind::Off, 60_000);
        sending.write(1300);
        assert_eq!(sending.send_all(), [1000, 300]);
        sending.scoreboard.go_back();
        assert_eq!(
            (sending.plan(), sending.scoreboard.in_flight_bytes()),
            (Ok(NextSegment::Retransmission), 0)
        );
        assert_eq!(sending.scoreboard.retransmit(Instant::ZERO).unwrap().end(), 1001);
        assert_eq!(
            (sending.scoreboard.in_flight_bytes(), sending.scoreboard.in_flight_segments()),
            (1000, 1)
        );
        let acked = sending.scoreboard.on_ack(1301);
        assert_eq!((acked.bytes, acked.segments, acked.sample_from), (1300, 2, None));
        let queued = sending.sender.queued(&sending.scoreboard);
        assert_eq!((sending.plan(), queued), (Err(BlockedBy::NoData), 0));
    }

    #[test]
    fn the_fin_rides_on_the_last_segment_or_alone() {
        let mut sending = Sending::new(NagleKind::Classic, 60_000);
        sending.write(100);
        sending.sender.queue_fin();
        assert_eq!(sending.plan(), Ok(NextSegment::New { payload: 100, fin: true }));
        sending.send(100, true);
        assert_eq!(sending.plan(), Err(BlockedBy::NoData));
        sending.scoreboard.on_ack(102);
        assert!(sending.sender.fin_is_acked(&sending.scoreboard));
        let (queued, unsent) =
            (sending.sender.queued(&sending.scoreboard), sending.sender.unsent(&sending.scoreboard));
        assert_eq!((queued, unsent), (0, 0));
    }
}
