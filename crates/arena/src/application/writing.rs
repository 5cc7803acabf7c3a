//! How an application writes: what is due, what waited for room, and what of a message there is room for.

use talkpath_scenario::workload::{AnyWorkload, Workload};
use talkpath_transport::{Message, Outlet, Refused, Transport};
use talkpath_units::{Bytes, Instant};

use super::{Application, clipped};
use crate::endpoint::FlowTaps;

impl Application {
    /// Writes what is due and fits.
    pub(super) fn write<T: Transport>(
        &mut self,
        transport: &mut T,
        taps: &mut FlowTaps,
        now: Instant,
        out: &mut impl Outlet,
    ) {
        if !transport.is_open() {
            return;
        }
        if !self.backlog.is_empty() {
            self.write_backlog(transport, taps, now, out);
        }
        if self.stream_echo.unwritten > Bytes::ZERO {
            self.write_stream_echo(transport, taps, now, out);
        }
        let Some(workload) = &mut self.workload else { return };
        if !self.workload_open {
            workload.open(now);
            self.workload_open = true;
        }
        // While older messages wait there is no room for newer ones.
        while !self.oversleeps(now)
            && let Some(message) = self.workload.as_mut().and_then(|workload| {
                let mut room = if self.backlog.is_empty() { transport.writable() } else { Bytes::ZERO };
                if room > Bytes::ZERO
                    && let Some(size) = workload.waits_for()
                    && room < size
                    && transport.takes(size)
                {
                    room = size;
                }
                workload.poll_message(room, now)
            })
        {
            taps.forward.on_due(message.seq, message.size, message.due);
            if !self.backlog.is_empty() || !self.write_one(message, transport, taps, now, out) {
                self.backlog.push_back(message);
                self.write_backlog(transport, taps, now, out);
            }
        }
    }

    fn write_backlog<T: Transport>(
        &mut self,
        transport: &mut T,
        taps: &mut FlowTaps,
        now: Instant,
        out: &mut impl Outlet,
    ) {
        while let Some(&message) = self.backlog.front()
            && ((!self.is_begun && self.write_one(message, transport, taps, now, out))
                || self.write_part(transport, taps, now, out))
        {
            self.backlog.pop_front();
            self.is_begun = false;
        }
    }

    /// Writes what a stream has room for of the message that waits first, if it is begun already or not even an empty buffer holds
    /// it; returns whether that was the last of it.
    fn write_part<T: Transport>(
        &mut self,
        transport: &mut T,
        taps: &mut FlowTaps,
        now: Instant,
        out: &mut impl Outlet,
    ) -> bool {
        let Some(&Message { seq, size, .. }) = self.backlog.front() else { return false };
        if !(if self.is_begun { transport.writable() > Bytes::ZERO } else { transport.takes(size) }) {
            return false;
        }
        let (mut left, mut written) = (size, Bytes::ZERO);
        loop {
            let part = transport.handle_part(left, written);
            if part == Bytes::ZERO {
                break;
            }
            if !self.is_begun
                && let Some(tap) = taps.written_by(self.side)
            {
                tap.on_sent_stream(seq, now);
            }
            self.is_begun = true;
            left -= part;
            written += part;
            self.transmit_all(transport, self.side, taps, now, out);
        }
        if let Some(first) = self.backlog.front_mut() {
            first.size = left;
        }
        left == Bytes::ZERO
    }

    /// Writes a message; returns whether it need not wait for room, as it was written or the transport will never take it.
    #[inline(always)]
    fn write_one<T: Transport>(
        &self,
        message: Message,
        transport: &mut T,
        taps: &mut FlowTaps,
        now: Instant,
        out: &mut impl Outlet,
    ) -> bool {
        let outcome = transport.handle_message(message, now);
        if outcome == Err(Refused::NoRoom) {
            return false;
        }
        if let Some(tap) = taps.written_by(self.side) {
            match outcome {
                Ok(()) if self.is_stream => tap.on_sent_stream(message.seq, now),
                Ok(()) => tap.on_sent(message.seq, now),
                Err(_) => tap.on_refused(message.seq),
            }
        }
        self.transmit_all(transport, self.side, taps, now, out);
        true
    }

    fn write_stream_echo<T: Transport>(
        &mut self,
        transport: &mut T,
        taps: &mut FlowTaps,
        now: Instant,
        out: &mut impl Outlet,
    ) {
        let size = self.stream_echo.unwritten.min(transport.writable());
        if size == Bytes::ZERO {
            return;
        }
        let write = Message { seq: 0, size, due: now };
        if transport.handle_message(write, now).is_err() {
            return;
        }
        self.stream_echo.unwritten -= size;
        self.stream_echo.written += size.get();
        if let Some(tap) = &mut taps.echo {
            while let Some((seq, _)) =
                self.stream_echo.unsent.pop_front_if(|&mut (_, first)| first < self.stream_echo.written)
            {
                tap.on_sent_stream(seq, now);
            }
        }
        self.transmit_all(transport, self.side, taps, now, out);
    }

    #[inline]
    pub(super) fn account_blocking(&mut self, now: Instant) {
        let greedy_waits = self.workload_open
            && self
                .workload
                .as_ref()
                .is_some_and(|workload| !workload.is_finished() && workload.poll_timeout().is_none());
        let owes = !self.backlog.is_empty() || self.stream_echo.unwritten > Bytes::ZERO;
        let is_blocked = owes || greedy_waits;
        let greedy_until = self.workload.as_ref().map_or(Instant::ZERO, AnyWorkload::wants_room_until);
        let wants_room_alone = greedy_waits && !owes && self.late.is_none();
        self.wants_room_until = if wants_room_alone { greedy_until } else { Instant::ZERO };
        match (self.blocked_since, is_blocked) {
            (None, true) => self.blocked_since = Some(now),
            (Some(since), false) => {
                self.blocked += clipped(since, now, self.window);
                self.blocked_since = None;
            }
            _ => {}
        }
    }
}
