//! One end of a flow: a workload or an echoing application on a kernel socket, and the log of what it saw.
//!
//! Client and server run the same code; who sends the messages is a matter of the flow's direction. Three threads call
//! in, one at a time behind the flow's lock: the pacer when something is due, the UDP receiver with datagrams, the TCP
//! loop when a connection is readable or writable.

mod tcp;
mod udp;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use talkpath_scenario::{AnyWorkload, Workload};
use talkpath_units::{Bytes, Instant};

pub(crate) use tcp::{Dial, Stream, apply_options};
pub(crate) use udp::{Datagrams, UdpRoute};

use crate::clock::RunClock;
use crate::file::FileSink;
use crate::lateness::Lateness;
use crate::log::{FlowLog, RowBudget};
use crate::protocol::Progress;
use crate::spec::{FlowSpec, SessionSpec};

/// One end of a flow, shared by the threads that serve it.
pub(crate) struct SharedEnd(Mutex<FlowEnd>);

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

/// The socket.
pub(crate) enum Channel {
    Udp(Datagrams),
    Tcp(Stream),
}

impl SharedEnd {
    /// An end of flow `index` of `session` whose socket is not open yet.
    pub(crate) fn new(
        session: &SessionSpec,
        spec: &FlowSpec,
        is_sender: bool,
        token: u32,
        clock: RunClock,
        budget: &Arc<RowBudget>,
    ) -> Self {
        let stop = session.stop();
        let base = Base {
            spec: spec.clone(),
            is_sender,
            clock,
            log: FlowLog::new(Arc::clone(budget)),
            lateness: Lateness::new(),
            failure: None,
            last_arrival: Instant::ZERO,
            workload: is_sender.then(|| AnyWorkload::new(&spec.workload(), stop)),
            sink: None,
            warm_up: Instant::from_nanos(session.warm_up_ns),
            stop,
        };
        let channel = if spec.is_stream() {
            Channel::Tcp(Stream::new())
        } else {
            Channel::Udp(Datagrams::new(token, spec.message_bound(session.duration_ns)))
        };
        Self(Mutex::new(FlowEnd { base, channel }))
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
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FlowEnd {
    /// When the pacer is wanted next.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        match &self.channel {
            Channel::Udp(datagrams) => datagrams.poll_timeout(&self.base),
            Channel::Tcp(stream) => stream.poll_timeout(&self.base),
        }
    }

    /// Whether the pacer must look in often, because a connection that opens makes something due.
    pub(crate) fn is_opening(&self) -> bool {
        matches!(&self.channel, Channel::Tcp(stream) if self.base.is_sender && !stream.is_open())
    }

    /// Does what is due.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        match &mut self.channel {
            Channel::Udp(datagrams) => datagrams.handle_timeout(&mut self.base, now),
            Channel::Tcp(stream) => stream.handle_timeout(&mut self.base, now),
        }
    }

    /// A datagram came for this flow.
    pub(crate) fn handle_datagram(&mut self, payload: &[u8], stamp_ns: Option<i64>) {
        if let Channel::Udp(datagrams) = &mut self.channel {
            datagrams.handle_datagram(&mut self.base, payload, stamp_ns);
        }
    }

    /// A datagram that this end sent came back with the time when it left, headers and all.
    pub(crate) fn handle_sent(&mut self, packet: &[u8], stamp_ns: Option<i64>) {
        if let Channel::Udp(datagrams) = &self.channel {
            datagrams.handle_sent(&mut self.base, packet, stamp_ns);
        }
    }

    /// The connection may be readable or writable; returns whether there is more to do at once.
    pub(crate) fn handle_ready(&mut self) -> bool {
        match &mut self.channel {
            Channel::Udp(_) => false,
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
        }
    }

    /// The run is over: counts what is to be counted.
    pub(crate) fn finish(&mut self) {
        let now = self.base.clock.now();
        match &mut self.channel {
            Channel::Udp(datagrams) => datagrams.finish(&mut self.base, now),
            Channel::Tcp(stream) => stream.finish(&mut self.base, now),
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
        SharedEnd::new(&session, &flow, true, 7, clock, &RowBudget::new(100))
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
