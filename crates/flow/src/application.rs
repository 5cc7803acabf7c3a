//! The application of one end: its writer, its reader and its echo. It runs on any [`Channel`].
//!
//! One turn of the application has three steps, in the order of the transport's contract:
//!
//! 1. The segments or datagrams that the last input released leave.
//! 2. The application reads.
//! 3. The application writes. Each write is an input of its own, so the segments that it releases leave
//!    before the next write. That matters to Nagle's algorithm: three small writes of an echo find other data
//!    in flight than one write of the three messages.
//!
//! **Backlog.** If a stream has no room for a message, the message waits in the application's own backlog
//! with its due time. So a blocked sender cannot hide the delay. The message is written when the channel has
//! room again.
//!
//! **Before the connection is open** a clock that starts with the flow makes messages due that cannot leave.
//! They are not sent later. They are noted when the connection opens, or when the run ends without it: nobody
//! needs to wake up for them.
//!
//! **Delays of the application.** With `wake_up`, an application that sleeps takes some time to wake up when
//! data arrives. The transport processes all segments that arrive meanwhile, and that decides what Nagle's
//! algorithm finds in flight. With `clock_jitter`, the application is late to its own clock; a message keeps
//! the time at which it was due.
//!
//! **Slow receivers.** A slow receiver works for a service time on each message, or on each read. The data
//! that arrives meanwhile waits in the channel. The next work begins when the last one is done, even if a
//! real host's thread wakes up later than that.
//!
//! | fields | an end that sends | an end that receives | an end that echoes |
//! | --- | --- | --- | --- |
//! | `workload`, `workload_open`, `late`, `wants_room_until`, `clock_begins`, `opened` | used | - | - |
//! | `backlog`, `is_begun`, `blocked`, `blocked_since` | used | - | used |
//! | `receiver`, `worked_until`, `sink` | - | used | used |
//! | `wake_up`, `reading_again_at` | if it reads an echo | used | used |
//! | `echo`, `stream_echo`, `answering_at` | - | - | used |

mod host;
mod reading;
mod writing;

use std::collections::VecDeque;
use std::ops::Range;

use talkpath_config::Features;
use talkpath_model::{EchoWrite, Receiver};
use talkpath_units::{Bytes, Duration, Instant, Stream};
use talkpath_wire::Message;

use crate::channel::{Channel, FlowId};
use crate::file::FileSink;
use crate::late::Late;
use crate::taps::{FlowTaps, Side};
use crate::workload::{AnyWorkload, Workload};

pub use host::HostMeter;

/// The application of one end. The fields that each turn checks come first in memory, as in
/// `Tcp` of `transport`, and fill one cache line (64 B on most machines).
#[repr(C, align(64))]
pub struct Application {
    side: Side,
    /// [`Features::keeps_messages`] of the transport.
    keeps_messages: bool,
    /// True if each read takes all bytes of a stream at once, and nothing else follows from the read.
    reads_plainly: bool,
    /// True if the application ever writes: it has a workload or an echo.
    writes: bool,
    /// True once the workload has begun.
    workload_open: bool,
    /// True if the application takes no time to wake up, nor to read.
    is_prompt: bool,
    /// How messages are sent back. `None` without an echo.
    echo: Option<EchoWrite>,
    /// Until when a workload that sends as much as there is room for would write, if it waits for room and
    /// for nothing else. Zero if it does not wait.
    wants_room_until: Instant,
    /// When the application reads again. Zero if it may read now.
    reading_again_at: Instant,
    /// When the messages that were read are sent back. Zero if they may be sent back now.
    answering_at: Instant,
    /// Since when a message has waited for room. `None` if none waits.
    blocked_since: Option<Instant>,
    /// The longest time that the application takes to wake up, and the random stream that draws the time.
    /// `None` reads at once.
    wake_up: Option<Box<(Duration, Stream)>>,
    /// How late the application is to its own clock. `None` is never late.
    late: Option<Box<Late>>,
    workload: Option<AnyWorkload>,
    /// The messages for which the channel had no room.
    backlog: VecDeque<Message>,
    /// True if a part of the first message in `backlog` was written. Its size is then the number of
    /// remaining bytes.
    is_begun: bool,
    /// True if there was more to do than one turn allows.
    is_unfinished: bool,
    /// The flow of the connection to which the application belongs.
    flow: FlowId,
    /// The bytes that an echo per read has still to write, over a stream.
    stream_echo: StreamEcho,
    receiver: Receiver,
    /// When a slow receiver's last work was done. `None` if it has found nothing to read since.
    worked_until: Option<Instant>,
    /// The time after which a message is of no use, from its due time on.
    lifetime: Option<Duration>,
    /// The time inside `window` during which a message waited for room, without the present wait.
    blocked: Duration,
    /// Blocked time counts inside this window only.
    window: Range<Instant>,
    /// What the application measures of a real host. `None` in the simulator.
    host: Option<Box<HostMeter>>,
    /// When the workload's clock begins, whatever the channel does. `None` if it begins when the channel is
    /// open, and for a workload without a clock.
    clock_begins: Option<Instant>,
    /// From when on a message could leave. `None` if none could yet.
    opened: Option<Instant>,
    /// When a whole message came first. `None` if none did yet.
    first_read: Option<Instant>,
    /// True once the channel has taken a message, or a part of one.
    has_sent: bool,
    /// The file that the application receives.
    sink: Option<Box<FileSink>>,
}

/// An echo of a stream's bytes as they were read, whatever messages they belong to.
#[derive(Debug, Default)]
struct StreamEcho {
    /// The number of bytes that were read and are not yet written back.
    unwritten: Bytes,
    /// The number of bytes that were written back.
    written: u64,
    /// The number of messages that were read at least in part.
    begun: usize,
    /// The offset in the stream at which the last message of `begun` ends.
    begun_end: u64,
    /// The messages of `begun` without a byte written back: `seq`, and the offset of the first byte.
    unsent: VecDeque<(u64, u64)>,
}

impl Application {
    /// The end that sends `workload` over a transport with these features. Blocked time counts inside
    /// `window`.
    pub fn near(transport: Features, workload: AnyWorkload, window: Range<Instant>) -> Self {
        Self::new(Side::Near, transport, Some(workload), None, Receiver::default(), window)
    }

    /// The end that reads as `receiver` says, and writes everything back if the flow has an `echo`.
    pub fn far(
        transport: Features,
        echo: Option<EchoWrite>,
        receiver: Receiver,
        window: Range<Instant>,
    ) -> Self {
        Self::new(Side::Far, transport, None, echo, receiver, window)
    }

    fn new(
        side: Side,
        transport: Features,
        workload: Option<AnyWorkload>,
        echo: Option<EchoWrite>,
        receiver: Receiver,
        window: Range<Instant>,
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
            clock_begins: None,
            opened: None,
            first_read: None,
            has_sent: false,
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

    /// The same with a clock that begins at `start`, if the workload has one: what is due before the channel
    /// is open is never sent.
    #[must_use]
    pub fn with_clock_from(mut self, start: Instant) -> Self {
        self.clock_begins =
            Some(start).filter(|_| self.workload.as_ref().is_some_and(AnyWorkload::is_clocked));
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
    pub fn wake_up_within(&mut self, max: Duration, stream: Stream) {
        self.wake_up = (!max.is_zero()).then(|| Box::new((max, stream)));
        self.is_prompt &= self.wake_up.is_none();
    }

    /// It writes what its clock says a time uniform in [0, `max`) after that was due.
    pub fn late_by(&mut self, max: Duration, stream: Stream) {
        self.late = (!max.is_zero()).then(|| Box::new(Late::new(max, stream)));
    }

    /// Whether it takes a while to wake up when something comes.
    #[inline(always)]
    pub fn has_to_wake_up(&self) -> bool {
        self.wake_up.is_some()
    }

    /// Something to read is coming to the channel.
    pub fn on_arrival(&mut self, now: Instant) {
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

    /// Whether its clock has made a message due before `now` that it has not handed over: a late application.
    pub fn owes(&self, now: Instant) -> bool {
        let due = self.workload.as_ref().and_then(AnyWorkload::poll_timeout);
        self.workload_open && due.is_some_and(|due| due < now)
    }

    /// Whether nothing waits for room.
    pub fn has_written_all(&self) -> bool {
        self.backlog.is_empty() && self.stream_echo.unwritten == Bytes::ZERO
    }

    /// From when on a message could leave; `None` if none ever could.
    pub fn opened(&self) -> Option<Instant> {
        self.opened
    }

    /// When a whole message came first; `None` if none did.
    pub fn first_read(&self) -> Option<Instant> {
        self.first_read
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
            self.blocked += clipped(since, now, &self.window);
        }
        self.blocked
    }
}

/// The part of `from..to` that lies inside `window`.
fn clipped(from: Instant, to: Instant, window: &Range<Instant>) -> Duration {
    to.min(window.end).since(from.max(window.start))
}
