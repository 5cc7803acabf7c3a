//! Opening a connection: SYN, SYN-ACK, and the options that both ends agree on (RFC 9293 §3.5, RFC 7323 §2).
//!
//! ```text
//!   active                               passive
//!   SYN, MSS, scale, SACK, timestamps ──►
//!                                    ◄── SYN-ACK, what of these it agrees to
//!   ACK ──►
//! ```
//!
//! [`Handshake`] keeps the two initial sequence numbers, and the SYN, SYN-ACK or RST that leaves before any
//! other segment. All other parts of a connection count bytes in *offsets* of 64 bits that begin with the SYN
//! at offset 0, so that they need not think of sequence numbers that wrap. [`Handshake`] converts the two.

use talkpath_config::{Role, Stack, TcpConfig};
use talkpath_units::{Bytes, Instant, Packets, Seed, SeqNum};
use talkpath_wire::{Flags, IPV4_HEADER, Segment, SegmentOptions, TCP_HEADER};

use super::timestamps::clock;

/// A segment without data that leaves before all others.
#[derive(Clone, Debug)]
pub(super) enum Control {
    Syn,
    SynAck,
    /// Boxed, because a reset is rare and a segment is large.
    Reset(Box<Segment>),
}

/// The state of the handshake.
#[derive(Clone, Debug)]
pub(super) struct Handshake {
    role: Role,
    /// Our initial sequence number.
    iss: SeqNum,
    /// The far end's initial sequence number.
    irs: SeqNum,
    /// The value of our MSS option, in bytes.
    mss: u32,
    /// The value of the far end's MSS option, in bytes.
    far_mss: u32,
    offers_sack: bool,
    offers_scaling: bool,
    /// The segment that leaves before any other.
    pending: Option<Control>,
    syn_transmissions: u32,
    /// When our first SYN or SYN-ACK left.
    first_sent_at: Instant,
    /// The initial window is reduced to one segment if our SYN was sent more often than this.
    transmissions_with_full_window: u32,
    is_linux: bool,
}

impl Handshake {
    /// The MSS is the config's, or the path's MTU less the two headers if that is smaller.
    pub(super) fn new(config: &TcpConfig, role: Role, path_mtu: Bytes, seed: Seed) -> Self {
        let name = match role {
            Role::Active => "tcp/iss/active",
            Role::Passive => "tcp/iss/passive",
        };
        let path_mss = path_mtu.get().saturating_sub(IPV4_HEADER + TCP_HEADER);
        let mss =
            config.mss.map_or(path_mss, |mss| mss.get().min(path_mss)).clamp(1, u64::from(u16::MAX)) as u32;
        let is_linux = config.stack == Stack::Linux;
        Self {
            role,
            iss: SeqNum::new(seed.stream(name).bits() as u32),
            irs: SeqNum::default(),
            mss,
            far_mss: mss,
            offers_sack: config.sack,
            offers_scaling: config.window_scaling,
            pending: None,
            syn_transmissions: 0,
            first_sent_at: Instant::ZERO,
            // After a lost SYN the initial window is one segment (RFC 5681 §3.1). Linux reduces it only after
            // the second loss (tcp_init_transfer).
            transmissions_with_full_window: if is_linux { 2 } else { 1 },
            is_linux,
        }
    }

    /// Replaces the seed's initial sequence number.
    pub(super) const fn set_initial_sequence(&mut self, iss: SeqNum) {
        self.iss = iss;
    }

    pub(super) const fn mss(&self) -> u32 {
        self.mss
    }

    /// Returns the sequence number of the byte at `offset` of our stream.
    #[inline]
    pub(super) const fn seq(&self, offset: u64) -> SeqNum {
        self.iss.wrapping_add(offset as u32)
    }

    /// Returns the acknowledgement number that says: everything before `offset` of the far end's stream has
    /// arrived.
    #[inline]
    pub(super) const fn ack_number(&self, offset: u64) -> SeqNum {
        self.irs.wrapping_add(offset as u32)
    }

    /// Returns the offset in the far end's stream that `seq` stands for. A sequence number of 32 bits stands
    /// for many offsets, of which this is the nearest to `near`.
    #[inline]
    pub(super) fn far_offset(&self, seq: SeqNum, near: u64) -> u64 {
        relative(seq, self.irs).extend(near)
    }

    /// Returns the offset in our stream that the acknowledgement number `seq` stands for: the nearest to
    /// `near`.
    #[inline]
    pub(super) fn own_offset(&self, seq: SeqNum, near: u64) -> u64 {
        relative(seq, self.iss).extend(near)
    }

    /// The far end's initial sequence number.
    pub(super) const fn irs(&self) -> SeqNum {
        self.irs
    }

    /// True if this end opens the connection, and its SYN was never sent.
    pub(super) fn may_open(&self) -> bool {
        self.role == Role::Active && self.syn_transmissions == 0
    }

    pub(super) fn request_syn(&mut self) {
        self.pending = Some(Control::Syn);
    }

    pub(super) fn request_syn_ack(&mut self) {
        self.pending = Some(Control::SynAck);
    }

    /// Answers a segment that belongs to no connection with a reset (RFC 9293 §3.5.2). If the segment has a
    /// timestamp, the reset echoes it (RFC 7323 §5.2). The reset's own timestamp is 0, because there is no
    /// connection whose clock it could show. A reset of Linux has no timestamps (tcp_v4_send_reset).
    pub(super) fn request_reset(&mut self, segment: &Segment) {
        let syn_fin =
            u32::from(segment.flags.contains(Flags::SYN)) + u32::from(segment.flags.contains(Flags::FIN));
        let mut reset = if segment.flags.contains(Flags::ACK) {
            Segment { seq: segment.ack, flags: Flags::RST, ..Segment::default() }
        } else {
            let ack = segment.seq.wrapping_add(segment.payload.wrapping_add(syn_fin));
            Segment { ack, flags: Flags::RST.with(Flags::ACK), ..Segment::default() }
        };
        if !self.is_linux {
            reset.options = reset.options.with_timestamps(segment.timestamps().map(|(value, _)| (0, value)));
        }
        self.pending = Some(Control::Reset(Box::new(reset)));
    }

    /// Resets our own connection (RFC 9293 §3.6.1; Linux: tcp_send_active_reset). We have sent everything
    /// before the offset `snd_nxt`, and received everything before the offset `rcv_nxt`. `timestamps` is
    /// given if both ends agreed on timestamps: our value and the echo (RFC 7323 §3.2).
    pub(super) fn request_active_reset(
        &mut self,
        snd_nxt: u64,
        rcv_nxt: u64,
        timestamps: Option<(u32, u32)>,
    ) {
        let (seq, ack) = (self.seq(snd_nxt), self.ack_number(rcv_nxt));
        let options = SegmentOptions::default().with_timestamps(timestamps);
        let reset = Segment { seq, ack, flags: Flags::RST.with(Flags::ACK), options, ..Segment::default() };
        self.pending = Some(Control::Reset(Box::new(reset)));
    }

    /// Drops the SYN, SYN-ACK or RST that has not left.
    pub(super) fn cancel(&mut self) {
        self.pending = None;
    }

    #[inline]
    pub(super) const fn has_pending(&self) -> bool {
        self.pending.is_some()
    }

    /// Returns the initial window: `initial`, or one segment if our SYN was lost.
    pub(super) const fn initial_window(&self, initial: Packets) -> Packets {
        if self.syn_transmissions > self.transmissions_with_full_window { Packets::new(1) } else { initial }
    }

    /// Returns the payload of a full segment, in bytes. The MSS does not count options, so their size is
    /// subtracted (RFC 6691 §2).
    pub(super) fn smss(&self, options: u32) -> u32 {
        self.mss.min(self.far_mss).saturating_sub(options).max(1)
    }

    pub(super) const fn offers_sack(&self) -> bool {
        self.offers_sack
    }

    pub(super) const fn offers_scaling(&self) -> bool {
        self.offers_scaling
    }

    /// Takes the segment that leaves before any other.
    pub(super) fn take_pending(&mut self) -> Option<Control> {
        self.pending.take()
    }

    /// True if our SYN or SYN-ACK was sent before.
    pub(super) const fn has_sent_syn(&self) -> bool {
        self.syn_transmissions > 0
    }

    /// Returns when our SYN was sent, or `None` if it was sent more than once. Then the round trip of its
    /// answer is ambiguous.
    pub(super) fn sent_once_at(&self) -> Option<Instant> {
        (self.syn_transmissions <= 1).then_some(self.first_sent_at)
    }

    /// True if the next timeout of our SYN doubles the RTO (RFC 6298 §5.5). Since Linux 6.5 the first four
    /// timeouts do not double it (net.ipv4.tcp_syn_linear_timeouts).
    pub(super) const fn syn_timeout_backs_off(&self) -> bool {
        !self.is_linux || self.syn_transmissions > SYN_LINEAR_TIMEOUTS
    }

    /// Reads a segment that arrives while our SYN or SYN-ACK is not acknowledged. If the segment echoes the
    /// timestamp of our first transmission, that transmission was not lost, and we repeated it needlessly.
    /// Linux then keeps the full initial window (tcp_try_undo_spurious_syn).
    pub(super) fn on_answer(&mut self, segment: &Segment) {
        let first_stamp = clock(self.first_sent_at);
        let echoes_first = segment.flags.contains(Flags::ACK)
            && segment.ack == self.seq(1)
            && segment.timestamps().is_some_and(|(_, echo)| echo == first_stamp);
        if self.is_linux && echoes_first {
            self.transmissions_with_full_window = u32::MAX;
        }
    }

    /// Our SYN or SYN-ACK leaves.
    pub(super) fn on_syn_sent(&mut self, now: Instant) {
        if self.syn_transmissions == 0 {
            self.first_sent_at = now;
        }
        self.syn_transmissions = self.syn_transmissions.saturating_add(1);
    }

    /// The far end's SYN has come.
    pub(super) fn on_far_syn(&mut self, syn: &Segment) {
        self.irs = syn.seq;
        self.far_mss = syn.mss().map_or(DEFAULT_MSS, u32::from);
    }
}

/// Returns `seq` relative to the initial sequence number `from`.
const fn relative(seq: SeqNum, from: SeqNum) -> SeqNum {
    SeqNum::new(seq.get().wrapping_sub(from.get()))
}

/// This many timeouts of a SYN do not double the RTO (net.ipv4.tcp_syn_linear_timeouts).
const SYN_LINEAR_TIMEOUTS: u32 = 4;
/// The MSS of a far end whose SYN has no MSS option, in bytes (RFC 9293 §3.7.1).
const DEFAULT_MSS: u32 = 536;
