//! The qlog of an end: when it is kept, and what is taken from the connection.

use talkpath_units::Instant;

use super::{Metrics, Qlog, QlogEvent};
use crate::End;

impl End {
    /// Keeps a qlog of at most `room` events from now on.
    pub fn keep_qlog(&mut self, room: usize) {
        self.watch.keep_packets();
        self.qlog.get_or_insert_with(|| Box::new(Qlog::new(room)));
    }

    /// The connection's name in the qlog, its first destination ID in hexadecimal, and what was logged since
    /// the last call, in order of time; `None` if no qlog is kept.
    pub fn take_qlog(&mut self) -> Option<(String, Vec<QlogEvent>)> {
        self.qlog.as_mut().map(|qlog| qlog.take())
    }

    /// Logs what happened at `now`, if a qlog is kept.
    pub(crate) fn log(&mut self, now: Instant) {
        let (Some(qlog), Some((_, connection))) = (&mut self.qlog, &self.connection) else { return };
        let recovery = *self.recovery.lock();
        let congestion = connection.congestion_state().metrics();
        let smoothed_rtt = recovery.smoothed_rtt();
        let metrics = Metrics {
            cwnd: Some(congestion.congestion_window),
            ssthresh: congestion.ssthresh.filter(|bytes| *bytes != u64::MAX),
            bytes_in_flight: Some(recovery.bytes_in_flight()),
            min_rtt: smoothed_rtt.map(|_| connection.min_rtt().into()),
            smoothed_rtt,
            rttvar: smoothed_rtt.map(|_| recovery.rttvar()),
        };
        let (parameters, packets) = (self.watch.take_parameters(), self.watch.take_packets());
        qlog.note(now, parameters, packets, (connection, self.far.report(connection)), metrics);
    }
}
