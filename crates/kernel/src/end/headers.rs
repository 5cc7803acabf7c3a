//! What the IP headers of the datagrams that came to an end carried.

use crate::log::Headers;
use crate::sys::Received;

/// Counts headers.
pub(super) struct HeaderCount {
    /// Datagrams by the byte with DSCP and ECN field.
    by_tos: Box<[u64; 256]>,
    /// The fewest and the most hops that one had left.
    ttl: Option<(u8, u8)>,
}

impl HeaderCount {
    pub(super) fn new() -> Self {
        Self { by_tos: Box::new([0; 256]), ttl: None }
    }

    pub(super) fn note_datagram(&mut self, datagram: &Received<'_>) {
        self.note(datagram.tos, datagram.ttl);
    }

    /// A datagram came with these, if the kernel reported them.
    pub(super) fn note(&mut self, tos: Option<u8>, ttl: Option<u8>) {
        if let Some(tos) = tos {
            self.by_tos[usize::from(tos)] += 1;
        }
        if let Some(ttl) = ttl {
            let (least, most) = self.ttl.unwrap_or((ttl, ttl));
            self.ttl = Some((least.min(ttl), most.max(ttl)));
        }
    }

    /// What came, beside the MTU of the path that this end sends over.
    pub(super) fn figures(&self, path_mtu: Option<u32>) -> Headers {
        let tos = (0..=u8::MAX).zip(self.by_tos.iter().copied()).filter(|&(_, count)| count > 0);
        Headers { tos: tos.collect(), ttl: self.ttl, path_mtu }
    }
}
