//! How an application writes: what is due, what waited for room, and what of a message there is room for.

use talkpath_units::{Bytes, Instant};
use talkpath_wire::Message;

use super::{Application, clipped};
use crate::channel::{Channel, Write, WriteOutcome};
use crate::taps::FlowTaps;
use crate::workload::{AnyWorkload, Awaits, Workload};

impl Application {
    /// Writes what is due and fits.
    pub(super) fn write<C: Channel>(&mut self, channel: &mut C, taps: &mut FlowTaps, now: Instant) {
        if !channel.is_open() {
            if self.workload_open {
                self.write_off_due(channel, taps, now);
            }
            return;
        }
        if !self.backlog.is_empty() {
            self.write_backlog(channel, taps, now);
        }
        if self.stream_echo.unwritten > Bytes::ZERO {
            self.write_stream_echo(channel, taps, now);
        }
        if self.workload.is_none() {
            return;
        }
        if !self.workload_open {
            self.begin(channel.opened_at(now), taps);
        }
        let mut left = C::MAX_TURN;
        while !self.oversleeps(now)
            && let Some(mut message) = self.poll_workload(channel, now)
        {
            taps.forward.on_due(message.seq, message.size, message.due);
            self.note_lateness(channel, message.due, now);
            if !self.backlog.is_empty() {
                self.backlog.push_back(message);
                self.write_backlog(channel, taps, now);
            } else if !self.write_message(&mut message, false, channel, taps, now) {
                self.backlog.push_back(message);
            }
            left -= 1;
            if left == 0 {
                self.is_unfinished = true;
                return;
            }
        }
    }

    /// The workload begins: messages can leave from `opened` on.
    #[cold]
    fn begin(&mut self, opened: Instant, taps: &mut FlowTaps) {
        self.opened = Some(opened);
        self.begin_clock(self.clock_begins.unwrap_or(opened));
        if self.clock_begins.is_some() {
            self.write_off_before(opened, taps);
        }
    }

    fn begin_clock(&mut self, from: Instant) {
        if let Some(workload) = &mut self.workload {
            workload.open(from);
            self.workload_open = true;
        }
    }

    /// What the clock has made due before `before` is never sent.
    fn write_off_before(&mut self, before: Instant, taps: &mut FlowTaps) {
        let Some(last) = before.as_nanos().checked_sub(1).map(Instant::from_nanos) else { return };
        while let Some(message) =
            self.workload.as_mut().and_then(|workload| workload.poll_message(Bytes::ZERO, last))
        {
            taps.forward.on_due(message.seq, message.size, message.due);
            taps.forward.on_not_open(message.seq);
        }
    }

    /// The run is over at `now`. If the channel never opened, what the clock has made due was never sent.
    pub fn finish(&mut self, taps: &mut FlowTaps, now: Instant) {
        if !self.workload_open
            && let Some(start) = self.clock_begins
        {
            self.begin_clock(start);
            self.write_off_before(now, taps);
        }
    }

    /// The connection has ended: nothing takes what the clock makes due from now on.
    #[cold]
    fn write_off_due(&mut self, channel: &mut impl Channel, taps: &mut FlowTaps, now: Instant) {
        let is_clocked = self.workload.as_ref().is_some_and(AnyWorkload::is_clocked);
        while is_clocked
            && !self.oversleeps(now)
            && let Some(message) = self.poll_workload(channel, now)
        {
            taps.forward.on_due(message.seq, message.size, message.due);
            taps.forward.on_not_open(message.seq);
        }
    }

    /// The channel took a part of `message`, or was not open for it after all: a flow of datagrams whose far
    /// end is not known yet is open for none.
    #[inline(always)]
    fn note_opening(&mut self, message: &Message, outcome: WriteOutcome) {
        if self.has_sent {
            return;
        }
        match outcome {
            WriteOutcome::Taken(_) => {
                self.has_sent = true;
                self.opened.get_or_insert(message.due);
            }
            WriteOutcome::NotOpen => self.opened = None,
            WriteOutcome::NoRoom
            | WriteOutcome::Refused
            | WriteOutcome::NoNetwork
            | WriteOutcome::Expired => {}
        }
    }

    /// The next message that is due. While older messages wait there is no room for newer ones.
    #[inline(always)]
    fn poll_workload(&mut self, channel: &mut impl Channel, now: Instant) -> Option<Message> {
        let workload = self.workload.as_mut()?;
        let now = channel.now(now);
        let awaits = workload.awaits();
        let mut room = match awaits {
            Awaits::Clock => Bytes::MAX,
            Awaits::Room | Awaits::RoomFor(_) if self.backlog.is_empty() => channel.writable(self.flow),
            Awaits::Room | Awaits::RoomFor(_) => Bytes::ZERO,
        };
        if room > Bytes::ZERO
            && let Awaits::RoomFor(size) = awaits
            && room < size
            && channel.takes(self.flow, size)
        {
            room = size;
        }
        workload.poll_message(room, now)
    }

    /// Whether the clock's next message has to wait: it is not due, or the application has not woken up yet.
    #[inline]
    fn oversleeps(&mut self, now: Instant) -> bool {
        let Some(late) = &mut self.late else { return false };
        self.workload.as_ref().and_then(AnyWorkload::poll_timeout).is_some_and(|due| late.sleeps(due, now))
    }

    /// A message that was `due` is handed over.
    #[inline(always)]
    fn note_lateness(&mut self, channel: &mut impl Channel, due: Instant, now: Instant) {
        if let Some(host) = &mut self.host
            && self.workload.as_ref().is_some_and(AnyWorkload::is_clocked)
        {
            host.lateness.record_unsigned(channel.now(now).since(due));
        }
    }

    fn write_backlog<C: Channel>(&mut self, channel: &mut C, taps: &mut FlowTaps, now: Instant) {
        while let Some(mut message) = self.backlog.front().copied() {
            let is_settled = self.write_message(&mut message, self.is_begun, channel, taps, now);
            if !is_settled {
                if let Some(first) = self.backlog.front_mut() {
                    first.size = message.size;
                }
                return;
            }
            self.backlog.pop_front();
            self.is_begun = false;
        }
    }

    /// Writes a message, or the rest of one that `is_begun`, part by part, and leaves in it what is not
    /// written; returns whether it was written whole.
    #[inline(always)]
    fn write_message<C: Channel>(
        &mut self,
        message: &mut Message,
        mut is_begun: bool,
        channel: &mut C,
        taps: &mut FlowTaps,
        now: Instant,
    ) -> bool {
        let mut written = Bytes::ZERO;
        let expires = self.lifetime.map(|lifetime| message.due.saturating_add(lifetime));
        loop {
            let now = channel.now(now);
            let write = Write { flow: self.flow, message: *message, is_begun, written, expires };
            let outcome = channel.write(&write, now);
            if outcome == WriteOutcome::NoRoom {
                // It is, or becomes, the first that waits.
                self.is_begun = is_begun;
                return false;
            }
            self.note_opening(message, outcome);
            if let Some(tap) = taps.written_by(self.side) {
                match outcome {
                    WriteOutcome::Taken(_) if is_begun => {}
                    WriteOutcome::Taken(_) if self.keeps_messages => tap.on_sent(message.seq, now),
                    WriteOutcome::Taken(_) => tap.on_sent_stream(message.seq, now),
                    WriteOutcome::Expired => tap.on_expired(message.seq),
                    // A part of the message was sent.
                    WriteOutcome::Refused | WriteOutcome::NoNetwork | WriteOutcome::NotOpen if is_begun => {}
                    WriteOutcome::NoNetwork => tap.on_no_network(message.seq),
                    WriteOutcome::NotOpen => tap.on_not_open(message.seq),
                    WriteOutcome::Refused | WriteOutcome::NoRoom => tap.on_refused(message.seq),
                }
            }
            channel.flush(self.flow, self.side, taps, now);
            let WriteOutcome::Taken(part) = outcome else { return true };
            if part >= message.size {
                return true;
            }
            is_begun = true;
            message.size -= part;
            written += part;
        }
    }

    fn write_stream_echo<C: Channel>(&mut self, channel: &mut C, taps: &mut FlowTaps, now: Instant) {
        loop {
            let room = if C::IN_PARTS { Bytes::MAX } else { channel.writable(self.flow) };
            let size = self.stream_echo.unwritten.min(room);
            if size == Bytes::ZERO {
                return;
            }
            let now = channel.now(now);
            let message = Message { seq: 0, size, due: now };
            let (flow, written) = (self.flow, Bytes::ZERO);
            let write = Write { flow, message, is_begun: false, written, expires: None };
            let WriteOutcome::Taken(part) = channel.write(&write, now) else { return };
            self.stream_echo.unwritten -= part;
            self.stream_echo.written += part.get();
            if let Some(tap) = &mut taps.echo {
                while let Some((seq, _)) =
                    self.stream_echo.unsent.pop_front_if(|&mut (_, first)| first < self.stream_echo.written)
                {
                    tap.on_sent_stream(seq, now);
                }
            }
            channel.flush(self.flow, self.side, taps, now);
            if part == size {
                return;
            }
        }
    }

    #[inline]
    pub(super) fn account_blocking(&mut self, now: Instant) {
        let greedy_waits = self.workload_open
            && !self.is_unfinished
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
                self.blocked += clipped(since, now, &self.window);
                self.blocked_since = None;
            }
            _ => {}
        }
    }
}
