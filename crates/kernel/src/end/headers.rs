//! Counts the values in the IP headers of the datagrams that came to an end.

use crate::log::Headers;
use crate::sys::Received;

/// The counts of header values.
pub(super) struct HeaderCount {
    /// The number of datagrams for each value of the byte that holds the DSCP and the ECN field.
    by_tos: Box<[u64; 256]>,
    /// The smallest and the largest TTL (or hop limit) of a datagram.
    ttl: Option<(u8, u8)>,
    /// The number of datagrams for which the kernel did not report the byte with the DSCP.
    unreported: u64,
}

impl HeaderCount {
    pub(super) fn new() -> Self {
        Self { by_tos: Box::new([0; 256]), ttl: None, unreported: 0 }
    }

    pub(super) fn note_datagram(&mut self, datagram: &Received<'_>) {
        self.note(datagram.tos, datagram.ttl);
    }

    /// Counts a datagram. A value is `None` if the kernel did not report it.
    pub(super) fn note(&mut self, tos: Option<u8>, ttl: Option<u8>) {
        match tos {
            Some(tos) => self.by_tos[usize::from(tos)] += 1,
            None => self.unreported += 1,
        }
        if let Some(ttl) = ttl {
            let (least, most) = self.ttl.unwrap_or((ttl, ttl));
            self.ttl = Some((least.min(ttl), most.max(ttl)));
        }
    }

    /// Returns true if the kernel reported DSCP and ECN field of every datagram that came.
    pub(super) const fn are_whole(&self) -> bool {
        self.unreported == 0
    }

    /// The counts as they go into the log, together with the MTU of the path that this end sends over.
    pub(super) fn figures(&self, path_mtu: Option<u32>) -> Headers {
        let tos = (0..=u8::MAX).zip(self.by_tos.iter().copied()).filter(|&(_, count)| count > 0);
        Headers { tos: tos.collect(), unreported: self.unreported, ttl: self.ttl, path_mtu }
    }
}
