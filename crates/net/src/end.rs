//! One end of a flow: a workload or an echoing application on a kernel socket, or on a transport of our own over one, and
//! the log of what it saw.
//!
//! Client and server run the same code; who sends the messages is a matter of the flow's direction. Three threads call
//! in, one at a time behind the flow's lock: the pacer when something is due, the UDP receiver with datagrams, the TCP
//! loop when a connection is readable or writable.

mod dccp;
mod messages;
mod tcp;
mod udp;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use talkpath_scenario::{AnyWorkload, Workload};
use talkpath_units::{Bytes, Duration, Instant, Seed};

use dccp::Connection;
pub(crate) use dccp::unforeseen_seed;
pub(crate) use tcp::{Dial, Stream, apply_options};
pub(crate) use udp::{Datagrams, UdpRoute};

use crate::alarm::Alarm;
use crate::clock::RunClock;
use crate::file::FileSink;
use crate::lateness::Lateness;
use crate::log::{FlowLog, RowBudget};
use crate::protocol::Progress;
use crate::spec::{FlowSpec, SessionSpec, TransportSpec};
use crate::threads::sample_interval;

/// One end of a flow, shared by the threads that serve it.
pub(crate) struct SharedEnd {
    end: Mutex<FlowEnd>,
    /// Of the pacer that serves this end.
    alarm: Arc<Alarm>,
}

/// Which end of which flow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    /// The flow's place in the session.
    pub(crate) index: usize,
    /// Whether this end sends the workload's messages.
    pub(crate) is_sender: bool,
    /// Whether this end opens a connection of our own transports; the other answers.
    pub(crate) is_client: bool,
    /// What the flow's datagrams carry.
    pub(crate) token: u32,
    /// Draws what our own transports draw.
    pub(crate) seed: Seed,
}

/// What the ends of a run share.
pub(crate) struct Common {
    pub(crate) clock: RunClock,
    pub(crate) budget: Arc<RowBudget>,
    pub(crate) alarm: Arc<Alarm>,
}

/// One end of a flow.
pub(crate) struct FlowEnd {
    pub(crate) base: Base,
    pub(crate) channel: Channel,
}

/// What both kinds of channel need.
pub(crate) struct Base {
    pub(crate) spec: FlowSpec,
    /// Whether this end sends the workload's messages; the other end reads them, and echoes where the flow echoes.
    pub(crate) is_sender: bool,
    pub(crate) clock: RunClock,
    pub(crate) log: FlowLog,
    pub(crate) lateness: Lateness,
    /// What ended this flow before its time.
    pub(crate) failure: Option<String>,
    /// When something last arrived.
    pub(crate) last_arrival: Instant,
    workload: Option<AnyWorkload>,
    /// Where this end receives a file.
    pub(crate) sink: Option<FileSink>,
    warm_up: Instant,
    stop: Instant,
}

/// The socket, with what is ours above it.
pub(crate) enum Channel {
    Udp(Datagrams),
    Tcp(Stream),
    Dccp(Box<Connection>),
}

impl SharedEnd {
    /// An end of a flow of `session` whose socket is not open yet.
    pub(crate) fn new(session: &SessionSpec, spec: &FlowSpec, place: &Place, common: &Common) -> Self {
        let stop = session.stop();
        let base = Base {
            spec: spec.clone(),
            is_sender: place.is_sender,
            clock: common.clock,
            log: FlowLog::new(Arc::clone(&common.budget)),
            lateness: Lateness::new(),
            failure: None,
            last_arrival: Instant::ZERO,
            workload: place.is_sender.then(|| AnyWorkload::new(&spec.workload(), stop)),
            sink: None,
            warm_up: Instant::from_nanos(session.warm_up_ns),
            stop,
        };
        let bound = match spec.message_bound(session.duration_ns) {
            0 => MOST_UNBOUNDED,
            bound => bound,
        };
        let channel = match &spec.transport {
            TransportSpec::Udp { .. } => Channel::Udp(Datagrams::new(place.token, bound)),
            TransportSpec::Tcp { .. } => Channel::Tcp(Stream::new()),
            TransportSpec::Dccp(dccp) => {
                let interval = sample_interval(Duration::from_nanos(session.duration_ns));
                Channel::Dccp(Box::new(Connection::new(dccp, place, bound, interval)))
            }
        };
        Self { end: Mutex::new(FlowEnd { base, channel }), alarm: Arc::clone(&common.alarm) }
    }

    /// The same end, receiving the flow's file; `keeps` where its bytes are wanted after the check.
    pub(crate) fn receiving_file(self, keeps: bool) -> Self {
        {
            let mut end = self.lock();
            end.base.sink = end.base.spec.file_sink(keeps);
        }
        self
    }

    /// Exclusive use; a thread that panicked while it had it has made the log no less true.
    pub(crate) fn lock(&self) -> MutexGuard<'_, FlowEnd> {
        self.end.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something to the end in another thread than the pacer's, which then hears of what is due sooner for it: the next
    /// packet of a connection that an acknowledgement lets go on, the next message of a workload that waited for room.
    pub(crate) fn work<T>(&self, work: impl FnOnce(&mut FlowEnd) -> T) -> T {
        let mut end = self.lock();
        let result = work(&mut end);
        if let Some(deadline) = end.poll_timeout() {
            self.alarm.bring_forward(deadline);
        }
        result
    }

    /// A datagram came for this flow.
    pub(crate) fn handle_datagram(&self, payload: &[u8], stamp_ns: Option<i64>) {
        self.work(|end| end.handle_datagram(payload, stamp_ns));
    }

    /// The connection may be readable or writable; returns whether there is more to do at once.
    pub(crate) fn handle_ready(&self) -> bool {
        self.work(FlowEnd::handle_ready)
    }

    /// The run is over: a connection of our own transports is closed.
    pub(crate) fn close(&self) {
        self.work(|end| {
            if let Channel::Dccp(connection) = &mut end.channel {
                connection.close(&mut end.base);
            }
        });
    }
}

impl FlowEnd {
    /// When the pacer is wanted next.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        match &self.channel {
            Channel::Udp(datagrams) => datagrams.poll_timeout(&self.base),
            Channel::Tcp(stream) => stream.poll_timeout(&self.base),
            Channel::Dccp(connection) => connection.poll_timeout(&self.base),
        }
    }

    /// Does what is due.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        match &mut self.channel {
            Channel::Udp(datagrams) => datagrams.handle_timeout(&mut self.base, now),
            Channel::Tcp(stream) => stream.handle_timeout(&mut self.base, now),
            Channel::Dccp(connection) => connection.handle_timeout(&mut self.base, now),
        }
    }

    fn handle_datagram(&mut self, payload: &[u8], stamp_ns: Option<i64>) {
        match &mut self.channel {
            Channel::Udp(datagrams) => datagrams.handle_datagram(&mut self.base, payload, stamp_ns),
            Channel::Dccp(connection) => connection.handle_datagram(&mut self.base, payload, stamp_ns),
            Channel::Tcp(_) => {}
        }
    }

    /// From now on this flow's datagrams go this way.
    pub(crate) fn set_route(&mut self, route: UdpRoute) {
        match &mut self.channel {
            Channel::Udp(datagrams) => datagrams.set_route(route),
            Channel::Dccp(connection) => connection.set_route(route),
            Channel::Tcp(_) => {}
        }
    }

    /// What this flow's datagrams carry; `None` for a stream.
    pub(crate) fn token(&self) -> Option<u32> {
        match &self.channel {
            Channel::Udp(datagrams) => Some(datagrams.token()),
            Channel::Dccp(connection) => Some(connection.token()),
            Channel::Tcp(_) => None,
        }
    }

    /// The application takes `service` for each message, where it reads from a transport of our own.
    pub(crate) fn set_service(&mut self, service: Duration) {
        if let Channel::Dccp(connection) = &mut self.channel {
            connection.set_service(service);
        }
    }

    /// Whether there is nothing to wait for once the run is over.
    pub(crate) fn is_closed(&self) -> bool {
        match &self.channel {
            Channel::Dccp(connection) => connection.is_closed(),
            Channel::Udp(_) | Channel::Tcp(_) => true,
        }
    }

    /// A datagram that this end sent came back with the time when it left, headers and all.
    pub(crate) fn handle_sent(&mut self, packet: &[u8], stamp_ns: Option<i64>) {
        if let Channel::Udp(datagrams) = &self.channel {
            datagrams.handle_sent(&mut self.base, packet, stamp_ns);
        }
    }

    fn handle_ready(&mut self) -> bool {
        match &mut self.channel {
            Channel::Udp(_) | Channel::Dccp(_) => false,
            Channel::Tcp(stream) => stream.handle_ready(&mut self.base),
        }
    }

    /// Looks at the connection's state.
    pub(crate) fn sample(&mut self) {
        if let Channel::Tcp(stream) = &self.channel {
            stream.sample(&mut self.base);
        }
    }

    /// How far this end is.
    pub(crate) fn progress(&self) -> Progress {
        match &self.channel {
            Channel::Udp(datagrams) => datagrams.progress(&self.base),
            Channel::Tcp(stream) => stream.progress(&self.base),
            Channel::Dccp(connection) => connection.progress(&self.base),
        }
    }

    /// The run is over: counts what is to be counted.
    pub(crate) fn finish(&mut self) {
        let now = self.base.clock.now();
        match &mut self.channel {
            Channel::Udp(datagrams) => datagrams.finish(&mut self.base, now),
            Channel::Tcp(stream) => stream.finish(&mut self.base, now),
            Channel::Dccp(connection) => connection.finish(&mut self.base, now),
        }
        self.base.log.totals.failure.clone_from(&self.base.failure);
        self.base.log.totals.file = self.base.sink.as_ref().map(FileSink::outcome);
    }
}

impl Base {
    /// The workload begins: its first message is due now.
    fn open_workload(&mut self, now: Instant) {
        if let Some(workload) = &mut self.workload {
            workload.open(now);
        }
    }

    /// The next message that is due, and its row in the log.
    fn poll_message(
        &mut self,
        writable: u64,
        now: Instant,
    ) -> Option<(talkpath_transport::Message, Option<usize>)> {
        let message = self.workload.as_mut()?.poll_message(Bytes::new(writable), now)?;
        let row = self.log.on_due(message.seq, message.size.get(), message.due);
        Some((message, row))
    }

    /// When the workload's next clocked message is due.
    fn workload_timeout(&self) -> Option<Instant> {
        self.workload.as_ref()?.poll_timeout()
    }

    /// Whether this end's workload, if it has one, will send no more. The clock alone does not say so: a late pacer still
    /// has to hand over what was due before the stop. A flow that starts after the stop never sends.
    fn is_workload_finished(&self) -> bool {
        let never_starts = Instant::from_nanos(self.spec.start_ns) >= self.stop;
        never_starts || self.workload.as_ref().is_none_or(AnyWorkload::is_finished)
    }

    /// Adds the part of `from..to` that lies between warm-up and duration to the blocked time.
    fn add_blocked(&mut self, from: Instant, to: Instant) {
        let (from, to) = (from.max(self.warm_up), to.min(self.stop));
        self.log.totals.blocked_ns += to.since(from).as_nanos();
    }

    /// Records how late a clocked message was handed over.
    fn on_paced(&mut self, due: Instant, sent: Instant) {
        if self.spec.is_clocked() {
            self.lateness.on_sent(sent.since(due).as_nanos());
        }
    }
}

/// Messages of a greedy flow without an end, by which a far end's numbers are bounded (chosen: a bit each is 2 MB).
const MOST_UNBOUNDED: u64 = 1 << 24;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::HostClock;
    use crate::spec::{TransportSpec, WorkloadSpec};

    /// The sending end of a call of 100 ms, looked at when 300 ms have passed.
    fn late_end(start_ns: u64) -> SharedEnd {
        let flow = FlowSpec {
            transport: TransportSpec::Udp { receive_buffer: None },
            workload: WorkloadSpec::Voice { ptime_ns: 20_000_000, size: 160 },
            echo_per_read: None,
            is_up: true,
            start_ns,
            file: None,
        };
        let session =
            SessionSpec { flows: vec![flow.clone()], warm_up_ns: 0, duration_ns: 100_000_000, drain_ns: 0 };
        let host = HostClock::anchor();
        let clock = host.run_from(host.now_ns() - 300_000_000);
        let place = Place { index: 0, is_sender: true, is_client: true, token: 7, seed: Seed::new(1) };
        let common = Common { clock, budget: RowBudget::new(100), alarm: Arc::default() };
        SharedEnd::new(&session, &flow, &place, &common)
    }

    #[test]
    fn a_late_pacer_is_not_done_before_it_has_handed_over_what_was_due() {
        let end = late_end(0);
        let mut end = end.lock();
        end.base.open_workload(Instant::ZERO);
        assert!(!end.progress().is_done, "five messages are due, none was offered");
        while end.base.poll_message(u64::MAX, Instant::from_millis(300)).is_some() {}
        assert!(end.progress().is_done);
        assert_eq!(end.base.log.sent.len(), 5);
    }

    #[test]
    fn a_flow_that_starts_after_the_stop_is_done() {
        let end = late_end(100_000_000);
        assert!(end.lock().progress().is_done);
    }

    #[test]
    fn a_message_without_a_way_is_refused_and_says_why() {
        let end = late_end(0);
        let mut end = end.lock();
        // Opened in time, and looked at when all is due.
        end.handle_timeout(Instant::ZERO);
        assert!(end.base.log.sent.iter().all(|row| row.4 && row.3.is_none()));
        assert_eq!(end.base.log.totals.refusals.get("not connected"), Some(&5));
    }
}
