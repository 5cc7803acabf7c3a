//! The receivers that a call is judged with.

/// The receiver with which a call is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Receiver {
    /// The receiver that the scenario names. It is the adaptive receiver if the scenario names none.
    Own,
    /// The second receiver, which waits for 60 ms beyond the smallest delay. A call has it only if its own
    /// receiver is the adaptive one.
    Other,
    /// The patient receiver, which waits for 200 ms. A call has it as it has the second receiver.
    Patient,
}
