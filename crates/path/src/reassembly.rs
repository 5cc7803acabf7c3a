//! Putting an IPv4 datagram together again at its destination (RFC 791 §3.2, RFC 1122 §3.3.2).
//!
//! A datagram is whole when every byte from 0 to the end of its last fragment is there, in whatever order and
//! however often the parts came. A datagram that is not whole at its deadline is given up: one lost fragment
//! costs the whole datagram.
//!
//! RFC 1122 §3.3.2 asks for a fixed timeout between 60 and 120 s. Linux waits for 30 s
//! (`net.ipv4.ipfrag_time`). `emu` and `live` run on Linux, so [`LINUX_TIMEOUT`] is the default here.
//!
//! Memory is bounded as in Linux. While the incomplete datagrams hold [`LINUX_MEMORY`] or more
//! (`net.ipv4.ipfrag_high_thresh`), the first fragment of a further datagram is refused. Fragments of
//! datagrams that have begun are always taken. Linux counts the size of its buffers, and we count payload.
//!
//! Left out: the ICMP message "time exceeded", which no transport here listens to, and the reuse of the 16
//! bits of the identification: each datagram has a key of its own.

use std::collections::{BTreeMap, BTreeSet};

use talkpath_units::{Bytes, Duration, Ecn, Instant};

use crate::fragment::{FragmentRange, IPV4_HEADER};

/// How long Linux waits for a datagram's fragments: `IP_FRAG_TIME`, `net.ipv4.ipfrag_time`.
pub const LINUX_TIMEOUT: Duration = Duration::from_secs(30);
/// How much Linux holds of incomplete datagrams: `net.ipv4.ipfrag_high_thresh`, 4 MiB.
pub const LINUX_MEMORY: Bytes = Bytes::new(4 << 20);

/// The incomplete datagrams of a host. `K` is the key of a datagram: its flow and its identification.
#[derive(Clone, Debug)]
pub struct Reassembly<K> {
    timeout: Duration,
    memory: Bytes,
    partial: BTreeMap<K, Partial>,
    /// When each of `partial` is given up, earliest first.
    deadlines: BTreeSet<(Instant, K)>,
    /// Payload bytes in `partial`.
    held: Bytes,
}

/// What a fragment did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reassembled {
    /// The datagram is whole.
    Whole {
        /// Its size as one IPv4 packet, header included.
        wire_size: Bytes,
        /// Its ECN field: Congestion Experienced if a fragment was marked so (RFC 3168 §5.3). The other
        /// fragments have the field with which the datagram was sent.
        ecn: Ecn,
    },
    /// More fragments are needed.
    Incomplete,
    /// No memory for another incomplete datagram: the fragment is gone.
    Refused,
}

/// One incomplete datagram.
#[derive(Clone, Debug)]
struct Partial {
    deadline: Instant,
    /// Payload in all, once the last fragment has come.
    total: Option<u32>,
    /// A fragment came marked.
    is_marked: bool,
    /// The bytes that have come, as ranges [start, end) in order. There is a gap between any two.
    there: Vec<(u32, u32)>,
}

impl<K: Ord + Copy> Default for Reassembly<K> {
    /// As Linux has it.
    fn default() -> Self {
        Self::new(LINUX_TIMEOUT, LINUX_MEMORY)
    }
}

impl<K: Ord + Copy> Reassembly<K> {
    /// Gives a datagram up `timeout` after its first fragment. Begins no datagram while others hold `memory`
    /// or more.
    pub fn new(timeout: Duration, memory: Bytes) -> Self {
        Self { timeout, memory, partial: BTreeMap::new(), deadlines: BTreeSet::new(), held: Bytes::ZERO }
    }

    /// A fragment of datagram `key` arrives. A whole datagram passes as it is.
    pub fn handle_fragment(
        &mut self,
        key: K,
        fragment: FragmentRange,
        ecn: Ecn,
        now: Instant,
    ) -> Reassembled {
        if fragment.is_whole() {
            return Reassembled::Whole { wire_size: fragment.wire_size(), ecn };
        }
        let Some(partial) = self.partial.get_mut(&key) else {
            return self.begin(key, fragment, ecn, now);
        };
        let before = partial.bytes_there();
        partial.add(fragment, ecn);
        let ecn = if partial.is_marked { Ecn::Ce } else { ecn };
        self.held = self.held - before + partial.bytes_there();
        match partial.is_whole() {
            Some(wire_size) => {
                self.forget(key);
                Reassembled::Whole { wire_size, ecn }
            }
            None => Reassembled::Incomplete,
        }
    }

    /// When the next datagram is given up, if any is incomplete.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.deadlines.first().map(|&(deadline, _)| deadline)
    }

    /// A datagram that was given up by `now`, one a call, in order of time; to be called until `None`.
    pub fn poll_expired(&mut self, now: Instant) -> Option<K> {
        let &(deadline, key) = self.deadlines.first()?;
        if deadline > now {
            return None;
        }
        self.forget(key);
        Some(key)
    }

    /// Incomplete datagrams.
    pub fn incomplete(&self) -> usize {
        self.partial.len()
    }

    /// The first fragment to come of a datagram.
    fn begin(&mut self, key: K, fragment: FragmentRange, ecn: Ecn, now: Instant) -> Reassembled {
        if self.held >= self.memory {
            return Reassembled::Refused;
        }
        let deadline = now.saturating_add(self.timeout);
        let mut partial = Partial { deadline, total: None, is_marked: false, there: Vec::new() };
        partial.add(fragment, ecn);
        self.held += partial.bytes_there();
        self.partial.insert(key, partial);
        self.deadlines.insert((deadline, key));
        Reassembled::Incomplete
    }

    fn forget(&mut self, key: K) {
        if let Some(partial) = self.partial.remove(&key) {
            self.held -= partial.bytes_there();
            self.deadlines.remove(&(partial.deadline, key));
        }
    }
}

impl Partial {
    /// Notes the fragment's bytes as there, and its mark.
    fn add(&mut self, fragment: FragmentRange, ecn: Ecn) {
        self.is_marked |= ecn == Ecn::Ce;
        let (mut start, mut end) = (fragment.offset, fragment.end());
        if !fragment.more {
            self.total = Some(end);
        }
        // The spans that touch the new one are merged with it.
        let first = self.there.partition_point(|&(_, there_end)| there_end < start);
        let past = self.there.partition_point(|&(there_start, _)| there_start <= end);
        for &(there_start, there_end) in &self.there[first..past.max(first)] {
            start = start.min(there_start);
            end = end.max(there_end);
        }
        self.there.splice(first..past.max(first), [(start, end)]);
    }

    /// The datagram's size as one IPv4 packet, where every byte is there.
    fn is_whole(&self) -> Option<Bytes> {
        match (self.total, self.there.as_slice()) {
            (Some(total), &[(0, end)]) if end >= total => Some(IPV4_HEADER + Bytes::new(u64::from(total))),
            _ => None,
        }
    }

    fn bytes_there(&self) -> Bytes {
        self.there.iter().map(|&(start, end)| Bytes::new(u64::from(end - start))).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fragment::fragments;

    fn at(s: u64) -> Instant {
        Instant::from_secs(s)
    }

    fn parts() -> Vec<FragmentRange> {
        fragments(Bytes::new(4000), Bytes::new(1500)).collect()
    }

    #[test]
    fn a_datagram_is_whole_when_its_last_missing_byte_comes() {
        let mut reassembly = Reassembly::default();
        for order in [[0, 1, 2], [2, 1, 0], [1, 0, 2], [2, 0, 1]] {
            let results = order.map(|part| reassembly.handle_fragment(7, parts()[part], Ecn::NotEct, at(0)));
            let whole = Reassembled::Whole { wire_size: Bytes::new(4000), ecn: Ecn::NotEct };
            assert_eq!(results, [Reassembled::Incomplete, Reassembled::Incomplete, whole]);
            assert_eq!((reassembly.incomplete(), reassembly.poll_timeout()), (0, None));
            assert_eq!(reassembly.held, Bytes::ZERO);
        }
    }

    /// RFC 3168 §5.3.
    #[test]
    fn a_datagram_with_a_marked_fragment_is_marked() {
        for marked in [None, Some(0), Some(1), Some(2)] {
            let mut reassembly = Reassembly::default();
            let ecn = |part| if marked == Some(part) { Ecn::Ce } else { Ecn::Ect0 };
            let last =
                (0..3).map(|part| reassembly.handle_fragment(7, parts()[part], ecn(part), at(0))).last();
            let expected = if marked.is_some() { Ecn::Ce } else { Ecn::Ect0 };
            let whole = Reassembled::Whole { wire_size: Bytes::new(4000), ecn: expected };
            assert_eq!(last, Some(whole), "{marked:?}");
        }
    }

    #[test]
    fn a_duplicate_fragment_fills_no_hole() {
        let mut reassembly = Reassembly::default();
        for part in [0, 0, 2, 2, 0] {
            assert_eq!(
                reassembly.handle_fragment(7, parts()[part], Ecn::NotEct, at(0)),
                Reassembled::Incomplete
            );
        }
        assert_eq!(reassembly.held, Bytes::new(1480 + 1020));
    }

    /// RFC 1122 §3.3.2: the timeout is fixed; later fragments do not extend it.
    #[test]
    fn a_datagram_is_given_up_at_a_fixed_time_after_its_first_fragment() {
        let mut reassembly = Reassembly::new(Duration::from_secs(60), LINUX_MEMORY);
        reassembly.handle_fragment("a", parts()[0], Ecn::NotEct, at(0));
        reassembly.handle_fragment("b", parts()[0], Ecn::NotEct, at(1));
        reassembly.handle_fragment("a", parts()[1], Ecn::NotEct, at(50));
        assert_eq!(reassembly.poll_timeout(), Some(at(60)));
        assert_eq!(reassembly.poll_expired(at(59)), None);
        assert_eq!(reassembly.poll_expired(at(60)), Some("a"));
        assert_eq!(reassembly.poll_expired(at(60)), None);
        assert_eq!(reassembly.poll_timeout(), Some(at(61)));
        // What comes after begins anew and is not whole.
        assert_eq!(reassembly.handle_fragment("a", parts()[2], Ecn::NotEct, at(61)), Reassembled::Incomplete);
    }

    #[test]
    fn full_memory_turns_new_datagrams_away_and_finishes_old_ones() {
        let mut reassembly = Reassembly::new(LINUX_TIMEOUT, Bytes::new(2000));
        assert_eq!(reassembly.handle_fragment(1, parts()[0], Ecn::NotEct, at(0)), Reassembled::Incomplete);
        assert_eq!(reassembly.handle_fragment(2, parts()[0], Ecn::NotEct, at(0)), Reassembled::Incomplete);
        assert_eq!(reassembly.handle_fragment(3, parts()[0], Ecn::NotEct, at(0)), Reassembled::Refused);
        assert_eq!(reassembly.handle_fragment(1, parts()[1], Ecn::NotEct, at(0)), Reassembled::Incomplete);
        let whole = Reassembled::Whole { wire_size: Bytes::new(4000), ecn: Ecn::NotEct };
        assert_eq!(reassembly.handle_fragment(1, parts()[2], Ecn::NotEct, at(0)), whole);
        assert_eq!(reassembly.handle_fragment(3, parts()[0], Ecn::NotEct, at(0)), Reassembled::Incomplete);
        assert_eq!(reassembly.incomplete(), 2);
    }

    #[test]
    fn a_datagram_that_was_never_cut_passes_as_it_is() {
        let mut reassembly = Reassembly::default();
        let whole = FragmentRange::whole(Bytes::new(188));
        assert_eq!(
            reassembly.handle_fragment((0_u32, 0_u64), whole, Ecn::NotEct, at(0)),
            Reassembled::Whole { wire_size: Bytes::new(188), ecn: Ecn::NotEct }
        );
        assert_eq!(reassembly.incomplete(), 0);
    }
}
