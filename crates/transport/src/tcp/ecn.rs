//! Explicit congestion notification (RFC 3168 §6.1).
//!
//! ```text
//!   active                                         passive
//!   SYN, ECE, CWR ──►                          ◄── SYN-ACK, ECE: agreed
//!
//!   sender                                         receiver
//!   new data, ECT(0) ──► a queue marks it: CE ──►  begins to echo
//!   reduces cwnd, once a window                ◄── ECE, with each segment
//!   new data, CWR ──►                              stops echoing
//! ```
//!
//! This part keeps whether both ends agreed on ECN, whether the receiver echoes a mark, and whether the
//! sender has to send CWR. How a mark reduces `cwnd` is in `recovery/echo`. Retransmissions,
//! acknowledgements and SYNs are not ECN-capable (§6.1.1, §6.1.4, §6.1.5).
//!
//! Left out: the retransmission timer's role in a window of one segment (§6.1.2), which Linux leaves out too;
//! the nonce; RFC 8311 and the rules that build on it (ECT(1), more accurate feedback, RFC 8511).

use talkpath_config::Stack;
use talkpath_units::Ecn;
use talkpath_wire::{EcnCounters, Flags, Segment};

/// The state of ECN at one end.
#[derive(Clone, Copy, Debug)]
pub(super) struct EcnState {
    /// True if a single SYN without an offer, of either end, is enough that ECN is not used (§6.1.1). Linux
    /// is not strict: it goes by the answer to its first SYN (tcp_ecn_rcv_synack), and ignores further SYNs
    /// of the far end.
    is_strict: bool,
    agreement: Agreement,
    arrived: ArrivedData,
    /// The last reduction of `cwnd`. `None` before the first one, or if the last one was needless.
    reduction: Option<Reduction>,
    /// The number of packets that arrived with a mark.
    marked: u64,
    /// The number of packets that acknowledgements with an echo delivered.
    echoed: u64,
}

/// Whether both ends use ECN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Agreement {
    /// This end does not want ECN. A strict end also if it has sent a SYN or SYN-ACK without an offer.
    Excluded,
    /// This end wants ECN, and the far end has not agreed.
    Possible,
    Reached,
}

/// What the receiver knows from the codepoints of arrived data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ArrivedData {
    /// No data with an ECN-capable codepoint has arrived.
    NeverCapable,
    /// ECN-capable data has arrived, and no mark has to be echoed.
    Capable,
    /// A mark has arrived, and no CWR since. ECE leaves with each segment.
    Marked,
}

/// A reduction of `cwnd`.
#[derive(Clone, Copy, Debug)]
struct Reduction {
    /// SND.MAX when `cwnd` was reduced.
    snd_max: u64,
    by: ReducedBy,
    /// True until new data has left with CWR.
    cwr_due: bool,
}

/// The cause of a reduction of `cwnd`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReducedBy {
    /// A loss or a timeout.
    Loss,
    /// An echo of a mark.
    Echo,
}

/// The flags of an ECN-setup SYN: both bits are set (RFC 3168 §6.1.1).
const SETUP: Flags = Flags::ECE.with(Flags::CWR);

impl EcnState {
    /// `wanted` is true if this end offers ECN.
    pub(super) fn new(wanted: bool, stack: Stack) -> Self {
        Self {
            is_strict: stack != Stack::Linux,
            agreement: if wanted { Agreement::Possible } else { Agreement::Excluded },
            arrived: ArrivedData::NeverCapable,
            reduction: None,
            marked: 0,
            echoed: 0,
        }
    }

    /// Returns the flags of our SYN. A SYN that is sent again (`is_repeated`) does not offer ECN, because the
    /// offer may be the reason why the first SYN was lost (§6.1.1.1; Linux: tcp_ecn_clear_syn).
    pub(super) fn on_syn_sent(&mut self, is_repeated: bool) -> Flags {
        if is_repeated || self.agreement == Agreement::Excluded { self.decline() } else { SETUP }
    }

    /// Returns the flags of our SYN-ACK.
    pub(super) fn on_syn_ack_sent(&mut self) -> Flags {
        if self.is_agreed() { Flags::ECE } else { self.decline() }
    }

    /// Returns the flags of a SYN or SYN-ACK without an offer. A strict end that has sent such a segment does
    /// not use ECN, whatever the far end answers (§6.1.1).
    const fn decline(&mut self) -> Flags {
        if self.is_strict {
            self.agreement = Agreement::Excluded;
        }
        Flags::NONE
    }

    /// Takes the far end's SYN or SYN-ACK.
    pub(super) fn on_far_syn(&mut self, syn: &Segment) {
        let is_agreed = if syn.flags.contains(Flags::ACK) {
            syn.flags.are_just(Flags::ECE, SETUP)
        } else {
            syn.flags.contains(SETUP)
        };
        if self.agreement != Agreement::Excluded {
            self.agreement = if is_agreed { Agreement::Reached } else { Agreement::Possible };
        }
    }

    /// Takes the far end's SYN that has arrived again. If it no longer has an offer, ECN is not used
    /// (§6.1.1).
    pub(super) fn on_syn_again(&mut self, syn: &Segment) {
        if self.is_strict && self.is_agreed() && !syn.flags.contains(SETUP) {
            self.agreement = Agreement::Possible;
        }
    }

    #[inline]
    const fn is_agreed(&self) -> bool {
        matches!(self.agreement, Agreement::Reached)
    }

    /// Counts a packet that arrived with a mark.
    pub(super) const fn on_marked(&mut self) {
        self.marked += 1;
    }

    /// Counts the `packets` that an acknowledgement with an echo delivered (Linux: tcp_count_delivered_ce).
    pub(super) const fn on_echoed(&mut self, packets: u64) {
        self.echoed += packets;
    }

    pub(super) const fn counters(&self) -> EcnCounters {
        EcnCounters { capable: self.is_agreed(), marked: self.marked, echoed: Some(self.echoed) }
    }

    /// True if data with this `codepoint` changes nothing here, because it has no mark and data like it has
    /// arrived before.
    #[inline]
    pub(super) fn is_ordinary(&self, codepoint: Ecn) -> bool {
        let is_usual_codepoint = matches!(codepoint, Ecn::Ect0 | Ecn::Ect1);
        !self.is_agreed() || (self.arrived != ArrivedData::NeverCapable && is_usual_codepoint)
    }

    /// Takes data that arrived with this `codepoint`. `is_new` is false if the data had arrived before. CWR
    /// ends the echo of earlier marks, but not of a mark on the same packet (§6.1.3).
    ///
    /// Returns true if acknowledgements must not wait, because the sender's window may have become very
    /// small. That is so at the first mark, and at data without an ECN-capable codepoint, which most likely
    /// is a retransmission (Linux: tcp_data_ecn_check).
    pub(super) fn on_data(&mut self, flags: Flags, codepoint: Ecn, is_new: bool) -> bool {
        if !self.is_agreed() {
            return false;
        }
        if flags.contains(Flags::CWR) && self.arrived == ArrivedData::Marked {
            self.arrived = ArrivedData::Capable;
        }
        if !is_new {
            return false;
        }
        match (codepoint, self.arrived) {
            (Ecn::Ce, arrived) => {
                self.arrived = ArrivedData::Marked;
                arrived != ArrivedData::Marked
            }
            (Ecn::NotEct, arrived) => arrived != ArrivedData::NeverCapable,
            (Ecn::Ect0 | Ecn::Ect1, ArrivedData::NeverCapable) => {
                self.arrived = ArrivedData::Capable;
                false
            }
            (Ecn::Ect0 | Ecn::Ect1, ArrivedData::Capable | ArrivedData::Marked) => false,
        }
    }

    /// Returns the ECE flag of a segment that leaves with the ACK bit, if a mark has to be echoed.
    #[inline]
    pub(super) const fn echo(&self) -> Flags {
        if matches!(self.arrived, ArrivedData::Marked) { Flags::ECE } else { Flags::NONE }
    }

    /// Returns the codepoint of new data.
    #[inline]
    pub(super) const fn codepoint(&self) -> Ecn {
        if self.is_agreed() { Ecn::Ect0 } else { Ecn::NotEct }
    }

    /// Returns the CWR flag of new data that leaves, once for each reduction.
    #[inline]
    pub(super) const fn take_cwr(&mut self) -> Flags {
        match &mut self.reduction {
            Some(reduction) if reduction.cwr_due => {
                reduction.cwr_due = false;
                Flags::CWR
            }
            _ => Flags::NONE,
        }
    }

    /// True if an acknowledgement echoes a mark.
    #[inline]
    pub(super) const fn is_echo(&self, flags: Flags) -> bool {
        self.is_agreed() && flags.contains(Flags::ECE)
    }

    /// True if the flags of arriving data say that the sender has reduced its window.
    pub(super) const fn is_reduction(&self, flags: Flags) -> bool {
        self.is_agreed() && flags.contains(Flags::CWR)
    }

    /// True if all acknowledged data was sent before `cwnd` was last reduced (§6.1.2). The far end echoes the
    /// same mark until data that was sent after the reduction arrives, because only such data carries CWR.
    pub(super) fn is_reduced(&self, snd_una: u64) -> bool {
        self.reduction.is_some_and(|reduction| snd_una <= reduction.snd_max)
    }

    /// True if [`Self::is_reduced`] holds and an echo was the cause.
    #[inline]
    pub(super) fn is_reduced_by_echo(&self, snd_una: u64) -> bool {
        self.is_reduced(snd_una) && self.reduction.is_some_and(|reduction| reduction.by == ReducedBy::Echo)
    }

    /// Takes note that `cwnd` is reduced when everything before `snd_max` was sent. The next new data carries
    /// CWR, whatever the cause (§6.1.2).
    pub(super) fn on_reduced(&mut self, snd_max: u64, by: ReducedBy) {
        if self.is_agreed() {
            self.reduction = Some(Reduction { snd_max, by, cwr_due: true });
        }
    }

    /// Forgets the reduction, because it was needless (Linux: tcp_ecn_withdraw_cwr).
    pub(super) const fn on_undone(&mut self) {
        self.reduction = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agreed() -> EcnState {
        let mut ecn = EcnState::new(true, Stack::Rfc);
        ecn.on_far_syn(&Segment { flags: Flags::SYN.with(SETUP), ..Segment::default() });
        ecn
    }

    /// RFC 3168 §6.1.1.
    #[test]
    fn both_ends_have_to_want_it() {
        let answer = |flags: Flags| {
            let mut ecn = EcnState::new(true, Stack::Rfc);
            let flags = Flags::SYN.with(Flags::ACK).with(flags);
            ecn.on_far_syn(&Segment { flags, ..Segment::default() });
            ecn.codepoint()
        };
        assert_eq!(answer(Flags::ECE), Ecn::Ect0);
        // An end that reflects both bits does not know them.
        assert_eq!((answer(SETUP), answer(Flags::NONE)), (Ecn::NotEct, Ecn::NotEct));
        assert_eq!(agreed().on_syn_ack_sent(), Flags::ECE);
        assert_eq!(EcnState::new(true, Stack::Rfc).on_syn_sent(true), Flags::NONE);
        assert_eq!(EcnState::new(false, Stack::Rfc).on_syn_sent(false), Flags::NONE);
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
        ecn.on_reduced(5001, ReducedBy::Echo);
        assert!(ecn.is_reduced(1) && ecn.is_reduced_by_echo(5001) && !ecn.is_reduced(5002));
        assert_eq!((ecn.take_cwr(), ecn.take_cwr()), (Flags::CWR, Flags::NONE));
        ecn.on_reduced(9001, ReducedBy::Loss);
        assert!(ecn.is_reduced(9001) && !ecn.is_reduced_by_echo(9001));
    }
}
