//! What a link layer adds to each packet on the wire.

use talkpath_units::Bytes;

/// What a link layer puts around an IP packet. It takes time on the wire and no room in the queue, which
/// holds IP packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Framing {
    /// Nothing: the rate is that of IP packets.
    #[default]
    None,
    /// As many bytes around every packet: Ethernet's preamble, header, checksum and gap, SLIP's or PPP's
    /// framing.
    Bytes {
        /// How many.
        overhead: Bytes,
    },
    /// AAL5 over ATM (ITU-T I.363.5, RFC 2684), as ADSL uses it: packet, encapsulation and trailer fill whole
    /// cells.
    Atm {
        /// The encapsulation's bytes: LLC/SNAP, Ethernet, PPP over Ethernet.
        overhead: Bytes,
    },
}

impl Framing {
    /// What an IP packet of `size` takes on the wire.
    #[inline]
    pub const fn on_wire(self, size: Bytes) -> Bytes {
        match self {
            Self::None => size,
            Self::Bytes { overhead } => Bytes::new(size.get().saturating_add(overhead.get())),
            Self::Atm { overhead } => {
                let frame = size.get().saturating_add(overhead.get()).saturating_add(AAL5_TRAILER);
                Bytes::new(frame.div_ceil(CELL_PAYLOAD).saturating_mul(CELL))
            }
        }
    }
}

/// Of an AAL5 frame (ITU-T I.363.5 §9.2.1.2), B.
const AAL5_TRAILER: u64 = 8;
/// Of a cell (ITU-T I.361 §2.1), B: the whole and its payload.
const CELL: u64 = 53;
const CELL_PAYLOAD: u64 = 48;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_atm_frame_fills_whole_cells() {
        // 40 B of TCP's acknowledgement, 8 of LLC/SNAP and 8 of trailer are 56: two cells.
        let adsl = Framing::Atm { overhead: Bytes::new(8) };
        assert_eq!(adsl.on_wire(Bytes::new(40)), Bytes::new(2 * 53));
        // 80 B fill two cells to the last byte, 81 need a third.
        assert_eq!(adsl.on_wire(Bytes::new(80)), Bytes::new(2 * 53));
        assert_eq!(adsl.on_wire(Bytes::new(81)), Bytes::new(3 * 53));
    }

    #[test]
    fn ethernet_adds_38_bytes_whatever_the_packet() {
        let ethernet = Framing::Bytes { overhead: Bytes::new(38) };
        assert_eq!(ethernet.on_wire(Bytes::new(1500)), Bytes::new(1538));
        assert_eq!(Framing::None.on_wire(Bytes::new(1500)), Bytes::new(1500));
    }
}
