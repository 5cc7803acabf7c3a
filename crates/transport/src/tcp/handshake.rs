//! Opening a connection: SYN, SYN-ACK, and the options that both ends agree on (RFC 9293 §3.5, RFC 7323 §2).
//!
//! ```text
//!   active                               passive
//!   SYN, MSS, scale, SACK, timestamps ──►
//!                                    ◄── SYN-ACK, what of these it agrees to
//!   ACK ──►
//! ```
//!
//! This part keeps the two initial sequence numbers, and the SYN, SYN-ACK or RST that has to leave before
//! anything else.

use talkpath_config::{Role, Stack, TcpConfig};
use talkpath_units::{Bytes, Instant, Packets, Seed, SeqNum};
use talkpath_wire::{Flags, IPV4_HEADER, Segment, SegmentOptions, TCP_HEADER};

use super::timestamps::clock;

/// A segment without data that leaves before all others.
#[derive(Clone, Debug)]
pub(super) enum Control {
    Syn,
    SynAck,
    /// In a box, because it is rare and large.
    Reset(Box<Segment>),
}

/// What the handshake knows and still has to send.
#[derive(Clone, Debug)]
pub(super) struct Handshake {
    role: Role,
    /// Our initial sequence number, and the far end's.
    iss: SeqNum,
    irs: SeqNum,
    /// The value of our MSS option, and of the far end's.
    mss: u32,
    far_mss: u32,
    offers_sack: bool,
    /// Our SYN offers window scaling.
    offers_scaling: bool,
    pending: Option<Control>,
    syn_transmissions: u32,
    /// When our first SYN or SYN-ACK left.
    first_sent_at: Instant,
    /// After more transmissions than these the initial window is one segment.
    forgiven: u32,
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
            // RFC 5681 §3.1: one segment after a lost SYN. Linux forgives the first loss (tcp_init_transfer).
            forgiven: if is_linux { 2 } else { 1 },
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

    /// The sequence number of one of our offsets.
    #[inline]
    pub(super) const fn seq(&self, offset: u64) -> SeqNum {
        self.iss.wrapping_add(offset as u32)
    }

    /// The acknowledgement number of an offset of the far end.
    #[inline]
    pub(super) const fn ack_number(&self, offset: u64) -> SeqNum {
        self.irs.wrapping_add(offset as u32)
    }

    /// The far end's offset of a sequence number, the one nearest to `near`.
    #[inline]
    pub(super) fn far_offset(&self, seq: SeqNum, near: u64) -> u64 {
        relative(seq, self.irs).extend(near)
    }

    /// Our offset of an acknowledged sequence number, the one nearest to `near`.
    #[inline]
    pub(super) fn own_offset(&self, seq: SeqNum, near: u64) -> u64 {
        relative(seq, self.iss).extend(near)
    }

    /// The far end's initial sequence number.
    pub(super) const fn irs(&self) -> SeqNum {
        self.irs
    }

    /// True if the application opens and has not done so before.
    pub(super) fn may_open(&self) -> bool {
        self.role == Role::Active && self.syn_transmissions == 0
    }

    pub(super) fn request_syn(&mut self) {
        self.pending = Some(Control::Syn);
    }

    pub(super) fn request_syn_ack(&mut self) {
        self.pending = Some(Control::SynAck);
    }

    /// RFC 9293 §3.5.2: answers a segment that belongs to no connection. RFC 7323 §5.2: with its timestamp,
    /// if it has one, and none of ours. Linux's reset has no timestamp (tcp_v4_send_reset).
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

    /// RFC 9293 §3.6.1: resets our own connection. Everything before the offset `snd_nxt` was sent, and
    /// everything before `rcv_nxt` received (tcp_send_active_reset). RFC 7323 §3.2: with `timestamps`, if
    /// they were agreed on.
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

    /// Nothing of this room has to leave any longer.
    pub(super) fn cancel(&mut self) {
        self.pending = None;
    }

    #[inline]
    pub(super) const fn has_pending(&self) -> bool {
        self.pending.is_some()
    }

    /// The initial window after this handshake.
    pub(super) const fn initial_window(&self, initial: Packets) -> Packets {
        if self.syn_transmissions > self.forgiven { Packets::new(1) } else { initial }
    }

    /// Payload of a full segment. The MSS does not count options, so the payload has to leave room for them
    /// (RFC 6691 §2).
    pub(super) fn smss(&self, options: u32) -> u32 {
        self.mss.min(self.far_mss).saturating_sub(options).max(1)
    }

    pub(super) const fn offers_sack(&self) -> bool {
        self.offers_sack
    }

    pub(super) const fn offers_scaling(&self) -> bool {
        self.offers_scaling
    }

    /// What has to leave before anything else; it is taken.
    pub(super) fn take_pending(&mut self) -> Option<Control> {
        self.pending.take()
    }

    /// True if our SYN or SYN-ACK was sent before.
    pub(super) const fn has_sent_syn(&self) -> bool {
        self.syn_transmissions > 0
    }

    /// When our SYN was sent, if it was sent once.
    pub(super) fn sent_once_at(&self) -> Option<Instant> {
        (self.syn_transmissions <= 1).then_some(self.first_sent_at)
    }

    /// True if a timeout of our SYN doubles the RTO (RFC 6298 §5.5). Under Linux the first four timeouts do
    /// not (net.ipv4.tcp_syn_linear_timeouts, since 6.5).
    pub(super) const fn syn_timeout_backs_off(&self) -> bool {
        !self.is_linux || self.syn_transmissions > SYN_LINEAR_TIMEOUTS
    }

    /// A segment arrives while our SYN or SYN-ACK is not acknowledged. If it acknowledges and echoes the
    /// timestamp of the first transmission, that one had arrived, and only answers to it were lost. Linux
    /// then keeps the initial window (tcp_try_undo_spurious_syn).
    pub(super) fn on_answer(&mut self, segment: &Segment) {
        let first_stamp = clock(self.first_sent_at);
        let echoes_first = segment.flags.contains(Flags::ACK)
            && segment.ack == self.seq(1)
            && segment.timestamps().is_some_and(|(_, echo)| echo == first_stamp);
        if self.is_linux && echoes_first {
            self.forgiven = u32::MAX;
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

/// `seq` counted from the initial sequence number `from`.
const fn relative(seq: SeqNum, from: SeqNum) -> SeqNum {
    SeqNum::new(seq.get().wrapping_sub(from.get()))
}

/// net.ipv4.tcp_syn_linear_timeouts.
const SYN_LINEAR_TIMEOUTS: u32 = 4;
/// RFC 9293 §3.7.1: what a SYN without the option means.
const DEFAULT_MSS: u32 = 536;
