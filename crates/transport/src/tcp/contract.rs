//! The contract of [`Transport`]: what an application and the network give to a connection, and ask it.

use talkpath_units::{Bytes, Instant};

use super::connection::{Control, State, Tcp};
use crate::cc::{CongestionControl, Counting};
use crate::{
    Counters, Delivery, Ecn, Levels, Message, Observation, Outlet, Packet, Refused, Role, Transmit, Transport,
};

impl Transport for Tcp {
    fn open(&mut self, _now: Instant) {
        (self.is_plain, self.has_told) = (false, false);
        self.stir();
        if self.role == Role::Active && self.state == State::Closed && self.syn_transmissions == 0 {
            self.state = State::SynSent;
            self.control = Some(Control::Syn);
        }
    }

    #[inline]
    fn is_open(&self) -> bool {
        matches!(self.state, State::Established | State::CloseWait) && !self.sender.is_closing()
    }

    /// A message is taken whole or not at all (see `buffer.rs`); none is too large for a stream.
    fn handle_message(&mut self, message: Message, _now: Instant) -> Result<(), Refused> {
        if !self.is_open() {
            return Err(Refused::NotOpen);
        }
        let queue = self.sender.queue();
        if !self.buffer.fits(queue, message.size.get()) {
            self.buffer.on_refused();
            return Err(Refused::NoRoom);
        }
        self.take(message.size);
        Ok(())
    }

    fn handle_part(&mut self, rest: Bytes, written: Bytes) -> Bytes {
        if !self.is_open() {
            return Bytes::ZERO;
        }
        let size = rest.min(self.buffer.part(self.sender.queue(), self.lump_size(), written));
        if size > Bytes::ZERO {
            self.take(size);
        }
        size
    }

    #[inline(always)]
    fn handle_packet(&mut self, packet: &Packet, _ecn: Ecn, now: Instant) {
        self.stir_by_packet();
        match packet {
            Packet::Tcp(segment) if self.state == State::Established => {
                self.on_synchronized_here(segment, now);
            }
            Packet::Tcp(segment) => self.on_segment(segment, now),
            Packet::Udp(_) | Packet::Dccp(_) => {}
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        (self.is_plain, self.has_told) = (false, false);
        self.stir();
        while let Some(kind) = self.timers.take_expired(now) {
            self.on_timer(kind, now);
        }
    }

    fn close(&mut self, _now: Instant) {
        self.is_plain = false;
        self.stir();
        match self.state {
            State::Listen | State::SynSent => {
                self.control = None;
                self.shut();
            }
            State::SynReceived | State::Established | State::CloseWait => self.sender.queue_fin(),
            State::Closed
            | State::FinWait1
            | State::FinWait2
            | State::Closing
            | State::LastAck
            | State::TimeWait => {}
        }
    }

    #[inline]
    fn may_transmit(&self) -> bool {
        !self.is_quiet
    }

    #[inline]
    fn poll_transmit(&mut self, now: Instant) -> Option<Transmit> {
        if self.is_quiet { None } else { self.next_transmit(now) }
    }

    #[inline(always)]
    fn transmit_all(&mut self, now: Instant, out: &mut impl Outlet) {
        if self.is_quiet {
            return;
        }
        if self.owes_ack {
            return self.acknowledge_alone(now, out);
        }
        if self.sender.is_waiting() {
            self.transmit_plainly(now, out);
        }
        if !self.is_quiet {
            self.transmit_the_rest(now, out);
        }
    }

    #[inline(always)]
    fn poll_delivery(&mut self, limit: Bytes, now: Instant) -> Option<Delivery> {
        let bytes = self.receiver.read(limit.get());
        if bytes == 0 {
            return None;
        }
        self.has_told = false;
        if matches!(self.state, State::Established | State::FinWait1 | State::FinWait2) {
            self.receiver.tune(now);
            let window = &self.receiver.window;
            let rcv_nxt = self.receiver.rcv_nxt();
            let offered = window.offered(rcv_nxt);
            if self.acks.read_may_acknowledge(rcv_nxt, offered, window.full(), window.unit()) {
                let asks = self.acks.read_asks_window(offered, window.full());
                let context = if asks { self.ack_context(now) } else { self.arrival_context(now) };
                self.acks.on_read(&context);
                if self.acks.is_pending() {
                    // What was quiet before has nothing else to send.
                    self.owes_ack = self.is_quiet && self.acks.is_immediate() && self.only_receives();
                    self.is_quiet = false;
                }
            }
        }
        Some(Delivery::Stream { bytes: Bytes::new(bytes) })
    }

    /// Always `None`: what does not fit the window was never acknowledged and comes again.
    fn poll_dropped(&mut self) -> Option<u64> {
        None
    }

    #[inline]
    fn poll_timeout(&self) -> Option<Instant> {
        self.timers.next()
    }

    #[inline]
    fn writable(&self) -> Bytes {
        if self.is_open() && !self.buffer.is_known_full() {
            self.buffer.writable(self.sender.queue())
        } else {
            Bytes::ZERO
        }
    }

    fn takes(&self, size: Bytes) -> bool {
        let writable = self.writable();
        writable >= size || (writable > Bytes::ZERO && !self.buffer.holds(self.sender.queue(), size.get()))
    }

    #[inline]
    fn observe(&self) -> Observation {
        let Levels { cwnd, window, send_buffer } = self.levels();
        Observation {
            cwnd,
            window,
            ssthresh: Some(self.controller.window().ssthresh_packets()),
            srtt: self.rtt.srtt(),
            rto: Some(self.rtt.rto()),
            pacing_rate: self.controller.pacing_rate(),
            bottleneck_rate: self.controller.bottleneck_rate(),
            send_buffer,
        }
    }

    #[inline]
    fn levels(&self) -> Levels {
        let cwnd = self.controller.window().cwnd_packets();
        Levels {
            cwnd: Some(cwnd),
            window: Some(cwnd.min(self.sender.offered_packets())),
            send_buffer: Bytes::new(self.sender.queued()),
        }
    }

    /// The segment size changes with the handshake alone, and with it the window offered; of which what `cwnd` does not fill makes no
    /// difference.
    #[inline]
    fn windows_key(&self) -> (u64, u64) {
        let window = self.controller.window();
        let cwnd = match window.counting() {
            Counting::Bytes { .. } => window.cwnd(),
            Counting::Packets => window.cwnd().saturating_mul(u64::from(self.sender.smss())),
        };
        (window.cwnd(), self.sender.offered_bytes().min(cwnd))
    }

    #[inline]
    fn send_buffer(&self) -> Bytes {
        Bytes::new(self.sender.queued())
    }

    fn counters(&self) -> Counters {
        self.counters
    }
}
