//! An end of a flow with its lock, for the threads that serve it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use talkpath_model::Receiver;
use talkpath_units::Instant;

use super::FlowEnd;
use super::context::EndContext;
use super::place::EndPlace;
use crate::alarm::Alarm;
use crate::spec::{FlowSpec, SessionSpec};
use crate::sys::Received;

/// One end of a flow, shared by the threads that serve it.
pub struct SharedEnd {
    end: Mutex<FlowEnd>,
    /// The alarm of the pacer that serves this end.
    alarm: Arc<Alarm>,
    /// The ends of all flows that share this end's connection, in the order of the flows, including this end.
    /// Empty if the connection has only one flow.
    members: OnceLock<Vec<Weak<Self>>>,
    /// The number of datagrams that have arrived at this end's socket.
    datagrams: AtomicU64,
}

impl SharedEnd {
    /// Makes an end of the flow `spec` of `session`. Its socket is not open yet. `receiver` says how the
    /// reading end reads the messages.
    pub fn new(
        session: &SessionSpec,
        spec: &FlowSpec,
        place: &EndPlace,
        receiver: Receiver,
        context: &EndContext,
    ) -> Self {
        Self {
            end: Mutex::new(FlowEnd::new(session, spec, place, receiver, context)),
            alarm: Arc::clone(&context.alarm),
            members: OnceLock::new(),
            datagrams: AtomicU64::new(0),
        }
    }

    /// Introduces the ends that share a connection to each other. `ends` are all ends of one host, in the
    /// order of the session's flows. Call it once.
    pub fn introduce(session: &SessionSpec, ends: &[Arc<Self>]) {
        for (index, end) in ends.iter().enumerate() {
            let members = session.members(index);
            if members.len() < 2 {
                continue;
            }
            let member = |index: usize| ends.get(index).map_or_else(Weak::new, Arc::downgrade);
            // The error of a second call is ignored, because there is only one call.
            let _ = end.members.set(members.into_iter().map(member).collect());
        }
    }

    /// Makes this end receive the flow's file. If `keeps` is true, the file's bytes are kept after the check.
    pub fn receiving_file(self, keeps: bool) -> Self {
        let Self { end, alarm, members, datagrams } = self;
        let mut end = end.into_inner().unwrap_or_else(PoisonError::into_inner);
        end.application = end.application.receiving_file(end.spec.file_sink(keeps));
        Self { end: Mutex::new(end), alarm, members, datagrams }
    }

    /// Locks the end. It does so even if a thread has panicked with the lock, because what the end has logged
    /// so far is still true.
    pub fn lock(&self) -> MutexGuard<'_, FlowEnd> {
        self.end.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `work` with the end, in another thread than the pacer's. Then it wakes the pacer if the end's
    /// next deadline has moved forward. For example, an acknowledgement may release the connection's next
    /// packet, or make room for a message that waits.
    pub fn work<T>(&self, work: impl FnOnce(&mut FlowEnd) -> T) -> T {
        let mut end = self.lock();
        let result = work(&mut end);
        if let Some((key, deadline)) = end.take_earlier_deadline() {
            self.alarm.move_forward(key, deadline);
        }
        result
    }

    /// Handles a datagram that came for this flow, or for another flow of the same connection.
    pub fn handle_datagram(&self, datagram: &Received<'_>) {
        self.datagrams.fetch_add(1, Ordering::Relaxed);
        if self.work(|end| end.handle_datagram(datagram)) {
            self.step_ready();
        }
    }

    /// Returns the number of datagrams that have arrived at this end's socket, whatever they carried.
    pub fn datagrams(&self) -> u64 {
        self.datagrams.load(Ordering::Relaxed)
    }

    /// Gives a turn to each member for which the connection has something new. Call it after a turn of this
    /// end.
    pub(crate) fn step_ready(&self) {
        let Some(members) = self.members.get() else { return };
        while let Some(index) = self.take_ready_member() {
            if let Some(member) = members.get(index).and_then(Weak::upgrade) {
                member.work(FlowEnd::take_turn);
            }
        }
        // Each turn may have moved the deadline of the QUIC engine forward. The pacer knows this deadline as
        // that of the first member, so `work` has to check it.
        if let Some(leader) = members.first().and_then(Weak::upgrade) {
            leader.work(|_| ());
        }
    }

    /// Takes the index of a member for which the connection has something new. The end's lock is released
    /// before the return, because the member may be this end.
    fn take_ready_member(&self) -> Option<usize> {
        self.lock().channel.quic_mut()?.take_ready()
    }

    /// Handles an event of a TCP connection, which may be readable or writable. The calling thread woke up
    /// for the event at `woke_at`, or should have woken up then. Returns true if there is more to do at once.
    pub(crate) fn handle_ready(&self, woke_at: Instant) -> bool {
        self.work(|end| end.handle_ready(woke_at))
    }

    /// Closes the connection of a protocol of talkpath, because the run is over. Does nothing for UDP and
    /// TCP.
    pub fn close(&self) {
        self.work(FlowEnd::close);
    }
}
