//! What the channel over real sockets needs to know of a connection.

use talkpath_units::Duration;
use talkpath_wire::dccp::ResetCode;
use talkpath_wire::machine::{Ending, Machine, Silence};

use super::connection::{Dccp, State};

impl Machine for Dccp {
    fn is_over(&self) -> bool {
        matches!(self.state(), State::Closed | State::TimeWait | State::Listen)
    }

    fn ending(&self) -> Option<Ending> {
        let code = self.ended_by()?;
        let why = format!("the DCCP connection was reset: {}", reason(code));
        Some(Ending { is_close: code == ResetCode::CLOSED, why })
    }

    fn silence(&self) -> Silence {
        SILENCE
    }
}

/// What a Reset Code means (RFC 4340 §5.6, RFC 6773 §3.8).
fn reason(code: ResetCode) -> String {
    let word = match code {
        ResetCode::CLOSED => "the far end closed it",
        ResetCode::ABORTED => "no progress",
        ResetCode::NO_CONNECTION => "no such connection",
        ResetCode::PACKET_ERROR => "an unexpected packet",
        ResetCode::OPTION_ERROR | ResetCode::MANDATORY_ERROR => "an option in error",
        ResetCode::CONNECTION_REFUSED => "the far end refused it",
        ResetCode::BAD_SERVICE_CODE => "another service code",
        ResetCode::TOO_BUSY => "the far end is too busy",
        ResetCode::BAD_INIT_COOKIE => "a bad Init Cookie",
        ResetCode::AGGRESSION_PENALTY => "misbehaviour",
        ResetCode::ENCAPSULATED_PORT_REUSE => "its UDP ports are another connection's",
        _ => "no reason given",
    };
    format!("{word} (Reset Code {})", code.0)
}

/// Requests leave after 0, 1 and 3 s (RFC 4340 §8.1.1): if three find no answer, there is none.
const SILENCE: Silence = Silence {
    patience: Duration::from_secs(3),
    why: "the DCCP connection did not open: no answer to its Requests",
};
