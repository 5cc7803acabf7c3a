//! Trains: datagrams of one size to one peer that leave by one system call (UDP_SEGMENT of udp(7)). The
//! kernel cuts a train into its datagrams, at the latest before the device.
//!
//! A burst or a bulk transfer writes many messages in one turn. A system call for each message costs more
//! than all other work on the message. The messages of a clock have no trains, because they are due one by
//! one.

use std::io;

use super::route::{SendFailure, UdpRoute};

/// The largest number of messages in a train. It is UDP_MAX_SEGMENTS of linux/udp.h before Linux 6.9, which
/// doubled it.
const MAX_MESSAGES: usize = 64;
/// The largest number of bytes in a train. It is the largest UDP payload over IPv4, because the system call
/// takes a train as one payload.
const MAX_BYTES: usize = 65_507;
/// The largest message in a train, bytes. It is the payload of an Ethernet packet over IPv6, because the
/// kernel refuses a train whose messages would be fragmented.
const MAX_SIZE: u64 = 1500 - 40 - 8;

/// The messages that wait to leave together. They leave when the turn ends, or when there are
/// [`MAX_MESSAGES`].
pub(super) struct Train {
    /// True if this flow has trains. False if its workload follows a clock, or if the kernel has refused a
    /// train.
    is_on: bool,
    /// The bytes of all waiting messages, one message after the other.
    bytes: Vec<u8>,
    /// The size in bytes of each message but the last, which may be shorter.
    size: usize,
    /// The numbers of the waiting messages.
    seqs: Vec<u64>,
    /// The messages that the kernel did not take, until the channel takes them.
    unsent: Vec<Unsent>,
}

/// A message that the kernel did not take.
pub(super) struct Unsent {
    pub(super) seq: u64,
    pub(super) failure: SendFailure,
    /// The text of the system's error.
    pub(super) why: String,
}

impl Unsent {
    fn new(seq: u64, error: &io::Error) -> Self {
        Self { seq, failure: SendFailure::of(error), why: error.to_string() }
    }
}

impl Train {
    /// Makes an empty train. If `is_on` is false, no message ever leaves with others.
    pub(super) const fn new(is_on: bool) -> Self {
        Self { is_on, bytes: Vec::new(), size: 0, seqs: Vec::new(), unsent: Vec::new() }
    }

    /// Returns true if a message of `size` bytes may leave with others.
    pub(super) fn takes(&self, size: u64) -> bool {
        self.is_on && (1..=MAX_SIZE).contains(&size)
    }

    /// Returns true if messages wait to leave and another message of their size may join them.
    pub(super) fn is_joinable(&self) -> bool {
        (1..MAX_MESSAGES).contains(&self.seqs.len()) && self.bytes.len() + self.size <= MAX_BYTES
    }

    /// Adds message `seq` to the train. If the message does not fit behind the waiting ones, these leave
    /// first over `route`.
    pub(super) fn push(&mut self, seq: u64, message: &[u8], route: &UdpRoute) {
        let is_shorter = self.bytes.len() != self.seqs.len() * self.size;
        if !self.seqs.is_empty() && (is_shorter || message.len() > self.size || !self.is_joinable()) {
            self.leave(route);
        }
        if self.seqs.is_empty() {
            self.size = message.len();
        }
        self.bytes.extend_from_slice(message);
        self.seqs.push(seq);
    }

    /// Sends all waiting messages over `route`.
    pub(super) fn leave(&mut self, route: &UdpRoute) {
        if self.seqs.len() > 1 {
            match route.send_train(&self.bytes, self.size) {
                Err(error) if is_against_trains(&error) => {
                    self.is_on = false;
                    self.leave_one_by_one(route);
                }
                Err(error) => self.unsent.extend(self.seqs.iter().map(|&seq| Unsent::new(seq, &error))),
                Ok(()) => {}
            }
        } else {
            self.leave_one_by_one(route);
        }
        self.seqs.clear();
        self.bytes.clear();
    }

    /// Takes the messages that the kernel has refused since the last call.
    pub(super) fn take_unsent(&mut self) -> Vec<Unsent> {
        std::mem::take(&mut self.unsent)
    }

    fn leave_one_by_one(&mut self, route: &UdpRoute) {
        for (&seq, message) in self.seqs.iter().zip(self.bytes.chunks(self.size.max(1))) {
            if let Err(error) = route.send(message) {
                self.unsent.push(Unsent::new(seq, &error));
            }
        }
    }
}

/// Returns true if the error is about the train and not about a datagram in it (`udp_send_skb` and
/// `udp_sendmsg` of net/ipv4/udp.c). A train does not work with a device without checksums, with messages
/// that do not fit the path's MTU, or with a kernel before 4.18.
fn is_against_trains(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EIO | libc::EINVAL | libc::EMSGSIZE | libc::EOPNOTSUPP))
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::os::fd::AsFd as _;
    use std::sync::Arc;

    use super::*;
    use crate::end::Unconnected;

    /// A route to `peer`, connected or not.
    fn route(peer: &UdpSocket, is_connected: bool) -> UdpRoute {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let to = peer.local_addr().unwrap();
        if is_connected {
            socket.connect(to).unwrap();
        }
        let from = "127.0.0.1".parse().unwrap();
        let unconnected = (!is_connected).then_some(Unconnected {
            from,
            to,
            is_v6: false,
            tos: Some(0b10),
            is_whole: false,
        });
        UdpRoute { socket: Arc::new(socket), unconnected }
    }

    #[test]
    fn what_leaves_together_arrives_apart_in_order_and_whole() {
        for is_connected in [true, false] {
            let peer = UdpSocket::bind("127.0.0.1:0").unwrap();
            peer.set_read_timeout(Some(std::time::Duration::from_secs(5))).unwrap();
            let route = route(&peer, is_connected);
            let mut train = Train::new(true);
            // A shorter one ends a train, and a longer one begins another.
            let sizes: Vec<usize> =
                std::iter::repeat_n(128, 100).chain([60, 128, 200, 200, 1, 1, 7]).collect();
            for (seq, &size) in (0..).zip(&sizes) {
                train.push(seq, &vec![seq as u8; size], &route);
            }
            train.leave(&route);
            assert!(train.is_on && train.take_unsent().is_empty());
            let mut buffer = [0; 2000];
            for (seq, &size) in (0..).zip(&sizes) {
                assert_eq!(peer.recv(&mut buffer).unwrap(), size, "message {seq}");
                assert!(buffer[..size].iter().all(|&byte| byte == seq as u8));
            }
        }
    }

    #[test]
    fn where_the_kernel_takes_no_train_messages_leave_one_by_one() {
        let peer = UdpSocket::bind("127.0.0.1:0").unwrap();
        peer.set_read_timeout(Some(std::time::Duration::from_secs(5))).unwrap();
        let route = route(&peer, true);
        // No checksums, no segmentation (EINVAL of udp_send_skb).
        crate::sys::set_option(route.socket.as_fd(), libc::SOL_SOCKET, libc::SO_NO_CHECK, [1]).unwrap();
        let mut train = Train::new(true);
        (0..3).for_each(|seq| train.push(seq, &[seq as u8; 50], &route));
        train.leave(&route);
        assert!(!train.is_on && !train.takes(50) && train.take_unsent().is_empty());
        let mut buffer = [0; 100];
        for seq in 0..3 {
            assert_eq!((peer.recv(&mut buffer).unwrap(), buffer[0]), (50, seq));
        }
    }

    #[test]
    fn what_the_kernel_has_no_network_for_is_given_back_message_by_message() {
        let nowhere = UdpSocket::bind("127.0.0.1:0").unwrap();
        let to = "192.0.2.1:9".parse().unwrap();
        let from = "127.0.0.1".parse().unwrap();
        // From loopback nothing leaves the host (EINVAL), so each is tried by itself.
        let unconnected = Some(Unconnected { from, to, is_v6: false, tos: None, is_whole: false });
        let route = UdpRoute { socket: Arc::new(nowhere), unconnected };
        let mut train = Train::new(true);
        (5..8).for_each(|seq| train.push(seq, &[0; 50], &route));
        train.leave(&route);
        let unsent: Vec<_> =
            train.take_unsent().into_iter().map(|unsent| (unsent.seq, unsent.failure)).collect();
        assert_eq!(unsent, [5, 6, 7].map(|seq| (seq, SendFailure::NoNetwork)));
    }
}
