//! The application of one end: its writer, its reader and its echo, on whatever channel it is given.
//!
//! The backlog is the application's own: a message that a stream has no room for waits there with its due
//! time, so that a blocked sender cannot hide its delay. It is written when the channel becomes writable
//! again.
//!
//! The order within one turn is the transport contract's: what an input released leaves first, then the
//! application reads, then it writes. Each write is an input of its own: what it releases leaves before the
//! next write, so Nagle's algorithm finds something else in flight after an echo of three writes than after
//! one write of all.
//!
//! A sleeping application may take a while to wake up when something comes (`wake_up`): the transport
//! processes whatever comes meanwhile before the application reads and writes, and that decides what Nagle's
//! algorithm finds in flight. It may be late to its own clock, too (`clock_jitter`): what was due then keeps
//! its due time.
//!
//! A slow receiver works on each message, or on each read, for a service time. What waits while it works
//! stays in the channel. It begins the next work when the last one is done, also where a real host's thread
//! wakes up later than that.

mod host;
mod reading;
mod writing;

use std::collections::VecDeque;

use talkpath_scenario::{EchoWrite, Receiver};
use talkpath_transport::{Features, Message};
use talkpath_units::{Bytes, Duration, Instant, Stream};

use crate::channel::{Channel, FlowId};
use crate::file::FileSink;
use crate::late::Late;
use crate::taps::{FlowTaps, Side};
use crate::workload::{AnyWorkload, Workload};

pub use host::HostMeter;

/// What runs on one end's channel. What each turn checks comes first in memory, as in
/// [`talkpath_transport::tcp::Tcp`], and fills one cache line (64 B on most machines).
#[repr(C, align(64))]
pub struct Application {
    side: Side,
    /// [`Features::keeps_messages`] of its transport.
    keeps_messages: bool,
    /// The application takes each time all that a stream has, at once, and keeps it.
    reads_plainly: bool,
    /// Whether the application ever writes: it has a workload or an echo.
    writes: bool,
    workload_open: bool,
    /// The application takes no time to wake up, nor to read.
    is_prompt: bool,
    echo: Option<EchoWrite>,
    /// A greedy workload that found no room, and waits for nothing else, would write before this; zero if
    /// none waits.
    wants_room_until: Instant,
    /// When the application reads again; zero if nothing keeps it from reading.
    reading_again_at: Instant,
    /// When what was read is answered; zero if nothing waits for it.
    answering_at: Instant,
    blocked_since: Option<Instant>,
    /// How long at most the application takes to wake up, and what draws that; `None` reads at once.
    wake_up: Option<Box<(Duration, Stream)>>,
    /// How it is late to its clock; `None` never is.
    late: Option<Box<Late>>,
    workload: Option<AnyWorkload>,
    /// Messages that the application wants to write and the channel had no room for.
    backlog: VecDeque<Message>,
    /// A part of the first of them was written: its size is what is left of it.
    is_begun: bool,
    /// There was more to do than one turn allows.
    is_unfinished: bool,
    /// Which of the connection's flows it has.
    flow: FlowId,
    /// What an echo per read over a stream has still to write.
    stream_echo: StreamEcho,
    receiver: Receiver,
    /// When a slow receiver's last work was done, if it found something to read ever since.
    worked_until: Option<Instant>,
    /// How long after its due time a message is of no use.
    lifetime: Option<Duration>,
    blocked: Duration,
    /// Blocked time counts inside this window only.
    window: (Instant, Instant),
    /// What it measures of a real host.
    host: Option<Box<HostMeter>>,
    /// The file that it receives.
    sink: Option<Box<FileSink>>,
}

/// An echo of a stream's bytes as they were read, whatever messages they belong to.
#[derive(Debug, Default)]
struct StreamEcho {
    /// Bytes read and not yet written back.
    unwritten: Bytes,
    /// Bytes written back.
    written: u64,
    /// Messages read at least in part.
    begun: usize,
    /// Where the last of them ends in the stream.
    begun_end: u64,
    /// Of these, the ones of which no byte was written back: `seq` and offset of the first byte.
    unsent: VecDeque<(u64, u64)>,
}

impl Application {
    /// The end that sends `workload` over a transport with these features. Blocked time counts inside
    /// `window`.
    pub fn near(transport: Features, workload: AnyWorkload, window: (Instant, Instant)) -> Self {
        Self::new(Side::Near, transport, Some(workload), None, Receiver::default(), window)
    }

    /// The end that reads as `receiver` says, and writes everything back if the flow has an `echo`.
    pub fn far(
        transport: Features,
        echo: Option<EchoWrite>,
        receiver: Receiver,
        window: (Instant, Instant),
    ) -> Self {
        Self::new(Side::Far, transport, None, echo, receiver, window)
    }

    fn new(
        side: Side,
        transport: Features,
        workload: Option<AnyWorkload>,
        echo: Option<EchoWrite>,
        receiver: Receiver,
        window: (Instant, Instant),
    ) -> Self {
        let keeps_messages = transport.keeps_messages;
        let writes = workload.is_some() || echo.is_some();
        Self {
            side,
            keeps_messages,
            reads_plainly: !keeps_messages
                && receiver.service.is_zero()
                && echo.is_none()
                && side == Side::Far,
            writes,
            workload_open: false,
            is_prompt: receiver.service.is_zero(),
            wants_room_until: Instant::ZERO,
            workload,
            echo,
            reading_again_at: Instant::ZERO,
            answering_at: Instant::ZERO,
            backlog: VecDeque::new(),
            is_begun: false,
            is_unfinished: false,
            flow: FlowId::default(),
            stream_echo: StreamEcho::default(),
            receiver,
            worked_until: None,
            lifetime: None,
            wake_up: None,
            late: None,
            blocked_since: None,
            blocked: Duration::ZERO,
            window,
            host: None,
            sink: None,
        }
    }

    /// The same as `flow` of a connection that carries several.
    #[must_use]
    pub fn as_flow(mut self, flow: FlowId) -> Self {
        self.flow = flow;
        self
    }

    /// The same with messages that are of no use `lifetime` after they were due.
    #[must_use]
    pub fn expiring_after(mut self, lifetime: Duration) -> Self {
        self.lifetime = Some(lifetime);
        self
    }

    /// The same on a real host, which it measures.
    #[must_use]
    pub fn on_host(mut self) -> Self {
        self.reads_plainly = false;
        self.host = Some(Box::default());
        self
    }

    /// The same, receiving a file.
    #[must_use]
    pub fn receiving_file(mut self, sink: Option<FileSink>) -> Self {
        self.sink = sink.map(Box::new);
        self
    }

    /// It wakes up a time uniform in [0, `max`) after something came, and answers another such time after
    /// that.
    pub(crate) fn wake_up_within(&mut self, max: Duration, stream: Stream) {
        self.wake_up = (!max.is_zero()).then(|| Box::new((max, stream)));
        self.is_prompt &= self.wake_up.is_none();
    }

    /// It writes what its clock says a time uniform in [0, `max`) after that was due.
    pub(crate) fn late_by(&mut self, max: Duration, stream: Stream) {
        self.late = (!max.is_zero()).then(|| Box::new(Late::new(max, stream)));
    }

    /// Whether it takes a while to wake up when something comes.
    #[inline(always)]
    pub(crate) fn has_to_wake_up(&self) -> bool {
        self.wake_up.is_some()
    }

    /// Something to read is coming to the channel.
    pub(crate) fn on_arrival(&mut self, now: Instant) {
        if let Some(wake_up) = &mut self.wake_up
            && self.reading_again_at == Instant::ZERO
        {
            let (max, stream) = &mut **wake_up;
            self.reading_again_at = now + stream.span(Duration::ZERO, *max);
        }
    }

    /// When it wants its next turn, or its next message is due; [`Instant::MAX`] if it waits for the channel
    /// alone.
    #[inline]
    pub fn next(&self) -> Instant {
        if self.is_prompt & (!self.workload_open | (self.wants_room_until > Instant::ZERO)) {
            return Instant::MAX;
        }
        self.next_slow()
    }

    #[inline]
    fn next_slow(&self) -> Instant {
        let mut deadline = self.next_read().unwrap_or(Instant::MAX);
        if self.answering_at > Instant::ZERO {
            deadline = deadline.min(self.answering_at);
        }
        if self.workload_open
            && let Some(due) = self.workload.as_ref().and_then(AnyWorkload::poll_timeout)
        {
            deadline = deadline.min(self.late.as_ref().map_or(due, |late| late.wakes(due)));
        }
        deadline
    }

    /// When it reads again; `None` if nothing keeps it from reading.
    #[inline]
    pub fn next_read(&self) -> Option<Instant> {
        (self.reading_again_at > Instant::ZERO).then_some(self.reading_again_at)
    }

    /// Whether there was more to do than one turn allows.
    pub fn is_unfinished(&self) -> bool {
        self.is_unfinished
    }

    /// Whether its workload, if it has one, will send nothing more. The clock alone does not say so: a late
    /// host still has to hand over what was due before the stop.
    pub fn is_workload_finished(&self) -> bool {
        self.workload.as_ref().is_none_or(AnyWorkload::is_finished)
    }

    /// Whether nothing waits for room.
    pub fn has_written_all(&self) -> bool {
        self.backlog.is_empty() && self.stream_echo.unwritten == Bytes::ZERO
    }

    /// What it measured of its host.
    pub fn host(&self) -> Option<&HostMeter> {
        self.host.as_deref()
    }

    /// The file that it receives.
    pub fn sink(&self) -> Option<&FileSink> {
        self.sink.as_deref()
    }

    /// One turn: moves everything that can move at `now`, within [`Channel::MAX_TURN`].
    ///
    /// One pass is enough where a read takes all that there is: reading makes room to write back, but nothing
    /// that is written gives more to read.
    #[inline(always)]
    pub fn advance<C: Channel>(&mut self, channel: &mut C, side: Side, taps: &mut FlowTaps, now: Instant) {
        debug_assert!(side == self.side, "the end is on the other side");
        let mut rounds = C::MAX_TURN;
        if C::MAX_TURN < usize::MAX {
            self.is_unfinished = false;
        }
        channel.flush(self.flow, side, taps, now);
        loop {
            let mut has_read = false;
            if taps.read_by(side).is_some() && self.read(channel, side, taps, now) {
                has_read = true;
                // A read may open the window or send an acknowledgement.
                channel.flush(self.flow, side, taps, now);
            }
            if self.writes && !self.still_wants_room(channel, now) && self.may_answer(now) {
                self.write(channel, taps, now);
                let now = channel.now(now);
                self.account_blocking(now);
            }
            if !C::IN_PARTS || !has_read {
                return;
            }
            rounds -= 1;
            if rounds == 0 {
                self.is_unfinished = true;
                return;
            }
        }
    }

    /// Whether a greedy workload that waited for room still does: then [`Self::write`] would change nothing,
    /// nor would [`Self::account_blocking`].
    #[inline(always)]
    fn still_wants_room(&self, channel: &mut impl Channel, now: Instant) -> bool {
        now < self.wants_room_until && channel.writable(self.flow) == Bytes::ZERO
    }

    /// Whether an application that answers has come so far.
    fn may_answer(&mut self, now: Instant) -> bool {
        let may = now >= self.answering_at;
        if may {
            self.answering_at = Instant::ZERO;
        }
        may
    }

    /// Time inside the window during which it had a message and the channel no room, up to `now`.
    pub fn blocked(&mut self, now: Instant) -> Duration {
        if let Some(since) = self.blocked_since.replace(now) {
            self.blocked += clipped(since, now, self.window);
        }
        self.blocked
    }
}

/// The part of `from..to` that lies inside `window`.
fn clipped(from: Instant, to: Instant, window: (Instant, Instant)) -> Duration {
    to.min(window.1).since(from.max(window.0))
}
