//! Drives both ends of the flows of one connection, over two sockets on loopback, in the tests of our own
//! protocols.

use std::net::UdpSocket;
use std::sync::Arc;

use talkpath_model::Receiver;
use talkpath_units::{Instant, Seed};

use crate::clock::RunClock;
use crate::end::fixtures::{context, place};
use crate::end::{EndPlace, HostKeys, SharedEnd, UdpRoute};
use crate::progress::EndProgress;
use crate::spec::SessionSpec;
use crate::sys::Received;

/// Makes a received datagram that has no stamp.
pub(super) fn datagram(payload: &[u8]) -> Received<'_> {
    Received { from: None, to: None, stamp_ns: None, tos: None, ttl: None, payload }
}

/// Both ends of the flows of one connection, over two sockets on loopback, driven by one thread.
pub(super) struct Pair {
    /// The two ends of the first flow.
    pub(super) ends: [Arc<SharedEnd>; 2],
    /// The two ends of each other flow.
    pub(super) others: Vec<[Arc<SharedEnd>; 2]>,
    pub(super) sockets: [Arc<UdpSocket>; 2],
    pub(super) clock: RunClock,
    /// True if datagrams are read from the sockets and reach no end.
    pub(super) drops_datagrams: bool,
}

impl Pair {
    pub(super) fn new(session: &SessionSpec) -> Self {
        Self::with_keys(session, [None; 2], false)
    }

    /// Makes the pair with the keys of a QUIC connection, and with trains or without.
    pub(super) fn with_keys(session: &SessionSpec, keys: [Option<HostKeys>; 2], has_trains: bool) -> Self {
        Self::of([session; 2], keys, has_trains)
    }

    /// Makes a pair whose ends have each been told another session.
    pub(super) fn of(sessions: [&SessionSpec; 2], keys: [Option<HostKeys>; 2], has_trains: bool) -> Self {
        let common = context(0, 1 << 16);
        let clock = common.clock;
        let make = |index: usize| {
            [true, false].map(|is_near| {
                let seed = Seed::new(u64::from(is_near));
                let quic_keys = keys[usize::from(!is_near)];
                let token = 7 + index as u32;
                let place = EndPlace { index, token, has_trains, seed, quic_keys, ..place(is_near) };
                let session = sessions[usize::from(!is_near)];
                let receiver = Receiver::default();
                Arc::new(SharedEnd::new(session, &session.flows[index], &place, receiver, &common))
            })
        };
        let all: Vec<_> = (0..sessions[0].flows.len()).map(make).collect();
        for side in 0..2 {
            let ends: Vec<_> = all.iter().map(|flow| Arc::clone(&flow[side])).collect();
            SharedEnd::introduce(sessions[side], &ends);
        }
        let (ends, others) =
            all.split_first().map(|(first, others)| (first.clone(), others.to_vec())).unwrap();
        let sockets = [(); 2].map(|()| Arc::new(UdpSocket::bind("127.0.0.1:0").unwrap()));
        for (here, there) in [(0, 1), (1, 0)] {
            sockets[here].connect(sockets[there].local_addr().unwrap()).unwrap();
            sockets[here].set_nonblocking(true).unwrap();
            let route = UdpRoute { socket: Arc::clone(&sockets[here]), unconnected: None };
            ends[here].lock().set_route(route);
        }
        Self { ends, others, sockets, clock, drops_datagrams: false }
    }

    /// Drives the ends until `is_over` returns true.
    ///
    /// # Panics
    /// Panics after a minute.
    pub(super) fn drive(&self, is_over: impl Fn(&Self) -> bool) {
        while !is_over(self) {
            self.drive_once(&mut |_, _| {});
        }
    }

    /// Drives the ends once: hands over the datagrams in flight, and does what is due. `see` gets each
    /// datagram before the end that it is for.
    pub(super) fn drive_once(&self, see: &mut dyn FnMut(usize, &[u8])) {
        assert!(self.clock.now() < Instant::from_secs(60), "it comes to an end");
        for (index, (end, socket)) in self.ends.iter().zip(&self.sockets).enumerate() {
            let mut buffer = [0; 2048];
            while let Ok(size) = socket.recv(&mut buffer) {
                see(index, &buffer[..size]);
                if !self.drops_datagrams {
                    end.handle_datagram(&datagram(&buffer[..size]));
                }
            }
            for shared in core::iter::once(end).chain(self.others.iter().map(|flow| &flow[index])) {
                let mut end = shared.lock();
                if end.poll_timeout().is_some_and(|deadline| deadline <= self.clock.now()) {
                    end.handle_timeout(self.clock.now());
                    drop(end);
                    shared.step_ready();
                }
            }
        }
        std::thread::yield_now();
    }

    pub(super) fn progress(&self) -> [EndProgress; 2] {
        [0, 1].map(|end| self.ends[end].lock().progress())
    }

    pub(super) fn is_answered(&self) -> bool {
        let [near, far] = self.progress();
        near.is_done && far.is_done && near.received == near.sent
    }

    pub(super) fn failure(&self, end: usize) -> Option<String> {
        self.ends[end].lock().failure.clone()
    }
}
