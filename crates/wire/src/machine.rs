//! What the channel over real sockets needs to know of a protocol of ours besides the contract.

use talkpath_config::{EncapsulatedConfig, Role};
use talkpath_units::{Bytes, Duration, Seed};

use crate::contract::Transport;

/// The state machine of a protocol of ours that real hosts carry in UDP datagrams.
pub trait Machine: Transport {
    /// Whether no connection is left, or none was opened: the far end knows that it ended, or need not know.
    fn is_over(&self) -> bool;
    /// How the connection ended; `None` until it has.
    fn ending(&self) -> Option<Ending>;
    /// What a client makes of a server that does not answer.
    fn silence(&self) -> Silence;
}

/// How a connection ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ending {
    /// One of the ends closed it, in order.
    pub is_close: bool,
    /// The same as a failure, in words.
    pub why: String,
}

/// What a client makes of a server that does not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Silence {
    /// A client that has waited for less cannot say that there is no answer.
    pub patience: Duration,
    /// The failure then, in words.
    pub why: &'static str,
}

/// Makes one end of a flow over a protocol of ours: by its options and its role, the smallest MTU of the
/// flow's links, the seed of what it draws, and the receiving buffer, if it is not that of the options.
pub type MakeMachine = fn(&EncapsulatedConfig, Role, Bytes, Seed, Option<Bytes>) -> Box<dyn Machine + Send>;

/// The state machines that a program runs over real sockets. The program alone knows them: a changed line in
/// one compiles no channel again. By default there are none, for whoever runs no such flow.
#[derive(Clone, Copy, Debug, Default)]
pub struct Machines(Option<MakeMachine>);

impl Machines {
    /// None.
    pub const NONE: Self = Self(None);

    /// Those that `make` makes.
    pub const fn made_by(make: MakeMachine) -> Self {
        Self(Some(make))
    }

    /// One end of a flow, as [`MakeMachine`] says.
    ///
    /// # Panics
    /// There are none.
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
