//! What the fuzz target `quic_datagram` of `fuzz/` calls: a stranger's datagrams at an end of a QUIC
//! connection, before its handshake or after it. The tests here run the committed corpus through it.

use talkpath_config::{Carry, QuicConfig};
use talkpath_model::WorkloadConfig;
use talkpath_quic::{Fingerprint, HostKeys};
use talkpath_units::{Bytes, Rate};

use super::fixtures;
use super::pair::{Pair, datagram};
use crate::spec::{QuicSpec, TransportSpec};

/// A stranger's datagrams at an end of a connection that carries a message a millisecond up.
///
/// The first byte sets the scene. Bit 0 chooses the client's end, or the server's if it is 0. Bit 1 says that
/// the datagrams come after the handshake, or before it if it is 0. Bits 2 and 3 choose what carries the
/// messages.
///
/// Records follow, each a length (1 B) and that many bytes. If the length is even, the bytes are a datagram.
/// If it is odd, they change the beginning of the last datagram that the end has got from its peer, bit by
/// bit, so that the fuzzer need not guess connection IDs.
///
/// # Panics
/// Panics if a message counts that was not sent, if the records make an end send without end, or if a
/// connection that was open does not go on. A connection that was not open may fail, because who sees its
/// packets may forge an answer to them (RFC 9000 §6.2, §21.2).
pub fn quic_datagrams(bytes: &[u8]) {
    let Some((&first, mut rest)) = bytes.split_first() else { return };
    let hearing = usize::from(first & 1 == 0);
    let is_open = first & 2 != 0;
    let carry = [Carry::Datagram, Carry::StreamPerMessage, Carry::Stream][usize::from(first >> 2 & 3) % 3];
    let pair = connection(carry);
    let mut wire = Wire { hearing, last: Vec::new(), answers: 0 };
    let is_under_way = |pair: &Pair| pair.progress()[1].received > 2 || has_failed(pair);
    if is_open {
        drive_until(&pair, &mut wire, is_under_way);
    } else {
        pair.drive_once(&mut |end, bytes| wire.see(end, bytes));
    }
    let before = pair.progress()[1].received;
    wire.answers = 0;
    let mut records = 0;
    while let Some((&length, more)) = rest.split_first() {
        let (said, after) = more.split_at(more.len().min(usize::from(length)));
        rest = after;
        records += 1;
        match length % 2 {
            0 => pair.ends[hearing].handle_datagram(&datagram(said)),
            _ => pair.ends[hearing].handle_datagram(&datagram(&wire.changed(said))),
        }
        pair.drive_once(&mut |end, bytes| wire.see(end, bytes));
    }
    // Without the stranger the end sends a message a millisecond, and the datagrams of its handshake.
    let own = 100 + pair.clock.now().as_nanos() / 1_000_000 * 4;
    assert!(wire.answers <= 4 * records + own, "{} packets after {records} datagrams", wire.answers);
    if is_open {
        drive_until(&pair, &mut wire, |pair| pair.progress()[1].received > before + 2 || has_failed(pair));
        assert_eq!((pair.failure(0), pair.failure(1)), (None, None));
    }
    let [near, far] = pair.progress();
    assert!(far.received <= near.sent, "{far:?} of {near:?}");
}

/// Listens to the datagrams between the two ends.
struct Wire {
    /// The end that hears the stranger.
    hearing: usize,
    /// The last datagram that came to that end from its peer.
    last: Vec<u8>,
    /// The number of datagrams that end has sent.
    answers: u64,
}

impl Wire {
    fn see(&mut self, end: usize, bytes: &[u8]) {
        if end == self.hearing {
            self.last = bytes.to_vec();
        } else {
            self.answers += 1;
        }
    }

    fn changed(&self, by: &[u8]) -> Vec<u8> {
        let mut bytes = self.last.clone();
        bytes.iter_mut().zip(by).for_each(|(byte, change)| *byte ^= change);
        bytes
    }
}

/// Makes both ends of a connection, over two sockets.
fn connection(carry: Carry) -> Pair {
    let workload = WorkloadConfig::Cbr { rate: Rate::from_bps(1_280_000), size: Bytes::new(160).into() };
    let spec = QuicSpec::new(&QuicConfig::new(carry), None, Bytes::new(1500));
    let flow = fixtures::flow(TransportSpec::Quic(spec), workload);
    let client = Fingerprint::of_secret(&SECRET).map(HostKeys::Client).ok();
    let keys = [client, Some(HostKeys::Server(SECRET))];
    Pair::with_keys(&fixtures::session(&flow, 60_000_000_000), keys, false)
}

/// The secret that the server's certificate is made from.
const SECRET: [u8; 32] = [3; 32];

fn has_failed(pair: &Pair) -> bool {
    [0, 1].iter().any(|&end| pair.failure(end).is_some())
}

fn drive_until(pair: &Pair, wire: &mut Wire, is_over: impl Fn(&Pair) -> bool) {
    while !is_over(pair) {
        pair.drive_once(&mut |end, bytes| wire.see(end, bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_of_the_corpus_break_no_connection_of_quic() {
        let folder = format!("{}/../../fuzz/corpus/quic_datagram", env!("CARGO_MANIFEST_DIR"));
        let files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
        assert!(files.len() >= 5, "{}", files.len());
        files.iter().for_each(|file| quic_datagrams(&std::fs::read(file).unwrap()));
    }
}
