//! Explicit congestion notification (RFC 3168 §6.1).
//!
//! ```text
//!   active                                         passive
//!   SYN, ECE, CWR ──►                          ◄── SYN-ACK, ECE: agreed
//!
//!   sender                                         receiver
//!   new data, ECT(0) ──► a queue marks it: CE ──►  begins to echo
//!   reduces, once a window                     ◄── ECE, with each segment
//!   new data, CWR ──►                              stops echoing
//! ```
//!
//! This part keeps what both ends agreed on, what the receiver echoes, and what the sender owes. What a mark
//! does to `cwnd` is in `recovery/echo`. Retransmissions, acknowledgements and SYNs are not ECN-capable
//! (§6.1.1, §6.1.4, §6.1.5).
//!
//! Left out: the retransmission timer's role in a window of one segment (§6.1.2), which Linux leaves out too,
//! the nonce, RFC 8311 and what builds on it (ECT(1), more accurate feedback, RFC 8511).

use talkpath_units::Ecn;
use talkpath_wire::{EcnCounters, Flags, Segment};

/// The state of ECN at one end.
#[derive(Clone, Copy, Debug)]
pub(super) struct EcnState {
    wanted: bool,
    agreed: bool,
    /// One SYN without an offer, of either end, is enough that ECN is not used. Linux takes the answer to its
    /// first SYN (tcp_ecn_rcv_synack), and forgets a far end's further ones.
    is_strict: bool,
    /// A SYN or SYN-ACK of ours had no offer.
    has_declined: bool,
    /// Data with an ECN-capable codepoint has arrived.
    seen: bool,
    /// A mark has arrived, and no CWR since: ECE leaves with each segment.
    echoes: bool,
    /// CWR leaves with the next new data.
    cwr_due: bool,
    /// SND.NXT when `cwnd` was last reduced. `None` before.
    reduced_at: Option<u64>,
    /// An echo reduced it last.
    reduced_by_echo: bool,
    /// Packets that came marked.
    marked: u64,
    /// Packets that acknowledgements with an echo delivered.
    echoed: u64,
}

/// RFC 3168 §6.1.1: both bits are set on an ECN-setup SYN.
const SETUP: Flags = Flags::ECE.with(Flags::CWR);

impl EcnState {
    pub(super) const fn new(wanted: bool, is_strict: bool) -> Self {
        Self {
            wanted,
            agreed: false,
            is_strict,
            has_declined: false,
            seen: false,
            echoes: false,
            cwr_due: false,
            reduced_at: None,
            reduced_by_echo: false,
            marked: 0,
            echoed: 0,
        }
    }

    /// The flags of our SYN, or of our answer to one. A SYN that is sent again does not offer ECN, in case
    /// that was why the first one was lost (§6.1.1.1; tcp_ecn_clear_syn).
    pub(super) const fn on_syn_sent(&mut self, is_answer: bool, again: bool) -> Flags {
        match (is_answer, again) {
            (true, _) if self.agreed => Flags::ECE,
            (false, false) if self.wanted => SETUP,
            _ => {
                self.has_declined = true;
                Flags::NONE
            }
        }
    }

    /// The far end's SYN has arrived, as an answer to ours if it acknowledges. §6.1.1: an end that has also
    /// sent a SYN without an offer does not use ECN, whatever the answer says.
    pub(super) const fn on_far_syn(&mut self, syn: &Segment) {
        let is_agreed = if syn.flags.contains(Flags::ACK) {
            syn.flags.are_just(Flags::ECE, SETUP)
        } else {
            syn.flags.contains(SETUP)
        };
        self.agreed = self.wanted && is_agreed && !(self.is_strict && self.has_declined);
    }

    /// The far end's SYN has arrived again. §6.1.1: if it no longer has an offer, ECN is not used.
    pub(super) const fn on_syn_again(&mut self, syn: &Segment) {
        if self.is_strict && !syn.flags.contains(SETUP) {
            self.agreed = false;
        }
    }

    /// A packet came marked.
    pub(super) const fn on_marked(&mut self) {
        self.marked += 1;
    }

    /// An acknowledgement with an echo delivered `packets` (tcp_count_delivered_ce).
    pub(super) const fn on_echoed(&mut self, packets: u64) {
        self.echoed += packets;
    }

    /// The counts of marks until now.
    pub(super) const fn counters(&self) -> EcnCounters {
        EcnCounters { capable: self.agreed, marked: self.marked, echoed: Some(self.echoed) }
    }

    /// True if data with `codepoint` is what came before, so that it changes nothing here.
    #[inline]
    pub(super) fn is_ordinary(&self, codepoint: Ecn) -> bool {
        !self.agreed || (self.seen && matches!(codepoint, Ecn::Ect0 | Ecn::Ect1))
    }

    /// New data has arrived with `codepoint`, or data that was here before if not `is_new`. §6.1.3: CWR ends
    /// the echo of earlier marks, and not of the one that the same packet carries.
    ///
    /// Returns true if acknowledgements are not to wait, because the sender's window may have become very
    /// small: at the first mark, and at what is most likely a retransmission (tcp_data_ecn_check).
    pub(super) fn on_data(&mut self, flags: Flags, codepoint: Ecn, is_new: bool) -> bool {
        if !self.agreed {
            return false;
        }
        if flags.contains(Flags::CWR) {
            self.echoes = false;
        }
        match codepoint {
            _ if !is_new => false,
            Ecn::Ce => {
                self.seen = true;
                !core::mem::replace(&mut self.echoes, true)
            }
            Ecn::NotEct => self.seen,
            Ecn::Ect0 | Ecn::Ect1 => {
                self.seen = true;
                false
            }
        }
    }

    /// The flag of a segment that leaves with the ACK bit.
    #[inline]
    pub(super) const fn echo(&self) -> Flags {
        if self.echoes { Flags::ECE } else { Flags::NONE }
    }

    /// The codepoint of new data.
    #[inline]
    pub(super) const fn codepoint(&self) -> Ecn {
        if self.agreed { Ecn::Ect0 } else { Ecn::NotEct }
    }

    /// The flag of new data that leaves, once for each reduction.
    #[inline]
    pub(super) const fn take_cwr(&mut self) -> Flags {
        if core::mem::replace(&mut self.cwr_due, false) { Flags::CWR } else { Flags::NONE }
    }

    /// True if an acknowledgement echoes a mark.
    #[inline]
    pub(super) const fn is_echo(&self, flags: Flags) -> bool {
        self.agreed && flags.contains(Flags::ECE)
    }

    /// True if arriving data says that the sender has reduced its window.
    pub(super) const fn is_reduction(&self, flags: Flags) -> bool {
        self.agreed && flags.contains(Flags::CWR)
    }

    /// §6.1.2: true if `cwnd` was reduced for what was sent before `snd_una`, or for more. The echo goes on
    /// until something that was sent after the reduction is acknowledged, because that may carry the CWR.
    pub(super) fn is_reduced(&self, snd_una: u64) -> bool {
        self.reduced_at.is_some_and(|snd_max| snd_una <= snd_max)
    }

    /// The same, and an echo was the cause.
    #[inline]
    pub(super) fn is_reduced_by_echo(&self, snd_una: u64) -> bool {
        self.reduced_by_echo && self.is_reduced(snd_una)
    }

    /// `cwnd` is reduced with everything before `snd_max` sent, for an echo or for a loss. §6.1.2: the next
    /// new data says so, whatever the cause.
    pub(super) fn on_reduced(&mut self, snd_max: u64, by_echo: bool) {
        if self.agreed {
            self.cwr_due = true;
            self.reduced_at = Some(snd_max);
            self.reduced_by_echo = by_echo;
        }
    }

    /// The reduction was needless (tcp_ecn_withdraw_cwr).
    pub(super) const fn on_undone(&mut self) {
        self.cwr_due = false;
        self.reduced_at = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agreed() -> EcnState {
        let mut ecn = EcnState::new(true, true);
        ecn.on_far_syn(&Segment { flags: Flags::SYN.with(SETUP), ..Segment::default() });
        ecn
    }

    /// RFC 3168 §6.1.1.
    #[test]
    fn both_ends_have_to_want_it() {
        let answer = |flags: Flags| {
            let mut ecn = EcnState::new(true, true);
            let flags = Flags::SYN.with(Flags::ACK).with(flags);
            ecn.on_far_syn(&Segment { flags, ..Segment::default() });
            ecn.codepoint()
        };
        assert_eq!(answer(Flags::ECE), Ecn::Ect0);
        // An end that reflects both bits does not know them.
        assert_eq!((answer(SETUP), answer(Flags::NONE)), (Ecn::NotEct, Ecn::NotEct));
        assert_eq!(agreed().on_syn_sent(true, true), Flags::ECE);
        assert_eq!(EcnState::new(true, true).on_syn_sent(false, true), Flags::NONE);
        assert_eq!(EcnState::new(false, true).on_syn_sent(false, false), Flags::NONE);
    }

    /// RFC 3168 §6.1.3.
    #[test]
    fn a_mark_is_echoed_until_cwr_arrives() {
        let mut ecn = agreed();
        assert!(!ecn.on_data(Flags::ACK, Ecn::Ect0, true));
        assert_eq!((ecn.on_data(Flags::ACK, Ecn::Ce, true), ecn.echo()), (true, Flags::ECE));
        assert_eq!((ecn.on_data(Flags::ACK, Ecn::Ce, true), ecn.echo()), (false, Flags::ECE));
        ecn.on_data(Flags::CWR, Ecn::Ce, true);
        assert_eq!(ecn.echo(), Flags::ECE);
        ecn.on_data(Flags::CWR, Ecn::Ect0, true);
        assert_eq!(ecn.echo(), Flags::NONE);
        ecn.on_data(Flags::ACK, Ecn::Ce, false);
        assert_eq!(ecn.echo(), Flags::NONE);
    }

    /// RFC 3168 §6.1.2.
    #[test]
    fn one_reduction_a_window_and_one_cwr_each() {
        let mut ecn = agreed();
        assert!(!ecn.is_reduced(1));
        ecn.on_reduced(5001, true);
        assert!(ecn.is_reduced(1) && ecn.is_reduced_by_echo(5001) && !ecn.is_reduced(5002));
        assert_eq!((ecn.take_cwr(), ecn.take_cwr()), (Flags::CWR, Flags::NONE));
        ecn.on_reduced(9001, false);
        assert!(ecn.is_reduced(9001) && !ecn.is_reduced_by_echo(9001));
    }
}
