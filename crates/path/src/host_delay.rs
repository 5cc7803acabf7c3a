//! A host's own wait before a packet leaves it: uniform, and in order.
//!
//! Operating systems send a little later than asked, never earlier, and one packet after the other. Studies also add
//! such a wait on purpose, to break the phase effects of equal periods that beat at a full queue (Floyd and
//! Jacobson, *On traffic phase effects in packet-switched gateways*, 1992).

use talkpath_units::{Duration, Instant, Seed, Stream};

use crate::pipe::{Ring, Traveller};

/// Holds each packet for a time uniform in [0, `max`), and never lets one pass its predecessor.
#[derive(Debug)]
pub struct HostDelay<T> {
    max: Duration,
    stream: Stream,
    waiting: Ring<T>,
}

impl<T> HostDelay<T> {
    /// The sending side of the flow called `name`; its random stream is `host/NAME/delay`.
    pub fn new(max: Duration, seed: Seed, name: &str) -> Self {
        Self { max, stream: seed.stream(&format!("host/{name}/delay")), waiting: Ring::new() }
    }

    /// The transport hands over a packet.
    #[inline]
    pub fn handle_packet(&mut self, packet: T, now: Instant) {
        let arrival = now.saturating_add(self.stream.span(Duration::ZERO, self.max));
        self.waiting.enter(Traveller { arrival, lost: false, packet });
    }

    /// When the next packet leaves, if any waits.
    #[inline]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.waiting.poll_timeout()
    }

    /// The next packet that left the host by `now`.
    #[inline]
    pub fn poll_output(&mut self, now: Instant) -> Option<T> {
        self.waiting.poll_output(now).map(|out| out.packet)
    }

    /// Packets that wait.
    pub fn held(&self) -> usize {
        self.waiting.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_leave_in_order_and_within_the_maximum_of_their_predecessors() {
        let max = Duration::from_millis(3);
        let mut host = HostDelay::new(max, Seed::new(1), "call");
        let (mut previous, mut delayed) = (Instant::ZERO, 0);
        for number in 0..10_000_u64 {
            let now = Instant::from_millis(number / 2);
            host.handle_packet((number, now), now);
        }
        for expected in 0..10_000 {
            let now = host.poll_timeout().expect("a packet waits");
            let (number, handed_over) = host.poll_output(now).expect("it leaves at its deadline");
            assert_eq!(number, expected);
            assert!(now >= previous && now.since(handed_over) < max);
            delayed += u32::from(now > handed_over);
            previous = now;
        }
        assert!(delayed > 9_900, "{delayed}");
        assert_eq!((host.held(), host.poll_timeout()), (0, None));
    }
}
