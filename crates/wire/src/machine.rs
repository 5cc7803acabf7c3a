//! Says what the channel over real sockets needs to know about a protocol of ours besides the contract.

use talkpath_config::{EncapsulatedConfig, Role};
use talkpath_units::{Bytes, Duration, Seed};

use crate::contract::Transport;

/// The state machine of a protocol of ours that real hosts carry in UDP datagrams.
pub trait Machine: Transport {
    /// Returns true if no connection is left, or none was opened. The far end then knows that the connection
    /// ended, or need not know.
    fn is_over(&self) -> bool;
    /// The way in which the connection ended. `None` until it has.
    fn ending(&self) -> Option<Ending>;
    /// Says what a client makes of a server that does not answer.
    fn silence(&self) -> Silence;
}

/// How a connection ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ending {
    /// True if one of the ends closed the connection in order.
    pub is_close: bool,
    /// The failure that the end of the connection is, in words.
    pub why: String,
}

/// What a client makes of a server that does not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Silence {
    /// The time that a client waits before it says that there is no answer.
    pub patience: Duration,
    /// The failure after that time, in words.
    pub why: &'static str,
}

/// Makes one end of a flow over a protocol of ours. The arguments are the options, the role of the end, the
/// smallest MTU of the flow's links, the seed of what the end draws, and the receiving buffer, if it is not
/// that of the options.
pub type MakeMachine = fn(&EncapsulatedConfig, Role, Bytes, Seed, Option<Bytes>) -> Box<dyn Machine + Send>;

/// The state machines that a program runs over real sockets. Only the program knows them, so a changed line
/// in one compiles no channel again. By default there are none, for a program that runs no such flow.
#[derive(Clone, Copy, Debug, Default)]
pub struct Machines(Option<MakeMachine>);

impl Machines {
    /// No state machines.
    pub const NONE: Self = Self(None);

    /// The state machines that `make` makes.
    pub const fn made_by(make: MakeMachine) -> Self {
        Self(Some(make))
    }

    /// Makes one end of a flow, as [`MakeMachine`] says.
    ///
    /// # Panics
    /// Panics if there are no state machines.
    pub fn make(
        self,
        config: &EncapsulatedConfig,
        role: Role,
        mtu: Bytes,
        seed: Seed,
        receive_buffer: Option<Bytes>,
    ) -> Box<dyn Machine + Send> {
        let make = self.0.expect("who runs flows over a protocol of ours gives its state machine");
        make(config, role, mtu, seed, receive_buffer)
    }
}
