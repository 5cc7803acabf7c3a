//! The taps that the application and the channel of one flow write to.

use talkpath_measure::{LegTap, ReadMessages};

/// Which end of its flow an endpoint is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Where the workload is.
    Near,
    /// Where the messages go.
    Far,
}

/// The taps of one flow. In the simulator both ends write to the same ones; over real sockets each end has
/// its own, and [`LegTap::join`] joins them after the run.
#[derive(Clone, Debug, Default)]
#[repr(C)]
pub struct FlowTaps {
    /// Echoes on their way back; `None` without echo. In a box, since each step checks it and few flows have
    /// an echo.
    pub echo: Option<Box<LegTap>>,
    /// Messages on their way out.
    pub forward: LegTap,
}

impl FlowTaps {
    /// Taps that both ends of a flow share.
    pub fn shared(is_echo: bool) -> Self {
        Self { forward: LegTap::new(), echo: is_echo.then(|| Box::new(LegTap::new())) }
    }

    /// The taps of the end on `side` alone, which finds `messages` in what it reads.
    pub fn of_one_end(side: Side, is_echo: bool, messages: ReadMessages) -> Self {
        let (written, read) = (LegTap::new(), LegTap::reading_end(messages));
        match side {
            Side::Near => Self { forward: written, echo: is_echo.then(|| Box::new(read)) },
            Side::Far => Self { forward: read, echo: is_echo.then(|| Box::new(written)) },
        }
    }

    /// Messages and echoes that are neither delivered nor known to be dropped nor refused.
    #[inline]
    pub fn pending(&self) -> u64 {
        if self.echo.is_some() { self.pending_both_ways() } else { self.forward.pending() }
    }

    /// How many messages and echoes have been delivered.
    pub fn delivered(&self) -> u64 {
        self.forward.delivered() + self.echo.as_deref().map_or(0, LegTap::delivered)
    }

    /// A separate function because few flows have an echo.
    #[inline(never)]
    fn pending_both_ways(&self) -> u64 {
        self.forward.pending() + self.echo.as_deref().map_or(0, LegTap::pending)
    }

    /// How many rows and events they hold.
    pub fn held(&self) -> usize {
        self.forward.held() + self.echo.as_deref().map_or(0, LegTap::held)
    }

    /// The leg that the end on `side` writes to.
    #[inline]
    pub fn written_by(&mut self, side: Side) -> Option<&mut LegTap> {
        match side {
            Side::Near => Some(&mut self.forward),
            Side::Far => self.echo.as_deref_mut(),
        }
    }

    /// The leg that the end on `side` reads from.
    #[inline]
    pub fn read_by(&mut self, side: Side) -> Option<&mut LegTap> {
        match side {
            Side::Near => self.echo.as_deref_mut(),
            Side::Far => Some(&mut self.forward),
        }
    }
}
