//! The threads of a run, and how this host disturbed it.

use std::os::fd::AsFd;
use std::sync::atomic::AtomicBool;

use talkpath_kernel::clock::{HostClock, RunClock};
use talkpath_kernel::log::sample_interval;
use talkpath_kernel::stolen::StolenTime;
use talkpath_kernel::threads::{StoresOnDrop, close_connections, pace, receive_datagrams, serve_connections};
use talkpath_kernel::udp_drops::{DropCount, UdpDrops};

use super::Session;
use super::main_loop::{MainLoop, Observed, RunOutcome};
use super::ways::Way;
use crate::client::control::ServerControl;

/// The result of a run at this host.
pub(super) struct Measured {
    pub(super) observed: Observed,
    pub(super) disturbance: Disturbance,
}

/// How this host disturbed a run.
pub(super) struct Disturbance {
    /// The reason why the pacer had no real-time priority, or that its thread panicked. `None` if all was
    /// well.
    pub(super) pacer_problem: Option<String>,
    /// The datagrams that this host's sockets dropped.
    pub(super) drops: UdpDrops,
    /// The failure of a receiving thread. If several threads failed, it is that of the last one.
    pub(super) receiver_failure: Option<String>,
    /// The share of the time that the hypervisor took from this host. `None` if the kernel does not report
    /// it.
    pub(super) stolen_share: Option<f64>,
}

impl Session<'_> {
    /// Carries out the run. Starts up to three threads: the pacer, a thread for datagrams if there are UDP
    /// sockets, and a thread for connections if there are streams. Meanwhile this thread runs the main loop.
    pub(super) fn measure(
        &self,
        ways: &mut [Way],
        server: &mut ServerControl,
        host_clock: HostClock,
        clock: RunClock,
    ) -> Measured {
        let stop = AtomicBool::new(false);
        let interval = sample_interval(self.scenario.duration);
        let has_streams = self.spec.flows.iter().any(|flow| !flow.transport.channel_kind().is_udp());
        let stolen = StolenTime::start();
        let descriptors = || self.sockets.iter().map(|(socket, _)| socket.as_fd());
        let drops = DropCount::start(descriptors());
        let mut pacer_problem = None;
        let mut receiver_failure = None;
        let observed = std::thread::scope(|scope| {
            // The guard stops the threads in each case, also after a panic.
            let stop_guard = StoresOnDrop(&stop);
            let thread = || std::thread::Builder::new();
            let pacer = thread().spawn_scoped(scope, || pace(&self.ends, clock, &self.alarm, &stop));
            let mut receivers = Vec::new();
            if !self.sockets.is_empty() {
                let datagrams = || receive_datagrams(&self.sockets, &stop);
                receivers.push(thread().spawn_scoped(scope, datagrams));
            }
            if has_streams {
                let connections = || serve_connections(&self.epoll, &self.ends, clock, interval, &stop);
                receivers.push(thread().spawn_scoped(scope, connections));
            }
            let failed_receivers = receivers.iter().filter_map(|thread| thread.as_ref().err());
            let observed = match pacer.as_ref().err().into_iter().chain(failed_receivers).next() {
                Some(error) => Observed::nothing(RunOutcome::NoThread(error.to_string())),
                None => MainLoop::new(self, server, ways, host_clock, clock).run(),
            };
            if matches!(observed.outcome, RunOutcome::Drained) {
                close_connections(&self.ends, clock);
            }
            drop(stop_guard);
            if let Ok(pacer) = pacer {
                pacer_problem = pacer.join().unwrap_or_else(|_| Some("the pacer failed".to_owned()));
            }
            for thread in receivers.into_iter().flatten() {
                match thread.join() {
                    Ok(Ok(())) => {}
                    Ok(Err(error)) => receiver_failure = Some(format!("a receiving thread ended: {error}")),
                    Err(_) => receiver_failure = Some("a receiving thread failed".to_owned()),
                }
            }
            observed
        });
        for end in &self.ends {
            end.lock().finish();
        }
        let drops = if self.sockets.is_empty() { UdpDrops::none() } else { drops.finish(descriptors()) };
        let disturbance =
            Disturbance { pacer_problem, drops, receiver_failure, stolen_share: stolen.share() };
        Measured { observed, disturbance }
    }
}
