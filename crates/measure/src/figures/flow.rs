//! The figures of a flow.

use super::call::{CALL, OTHER_RECEIVER, PATIENT_RECEIVER, RECEIVER_MATTERS};
use super::directions::{FORWARD_LEG, HEADERS, RETURN_LEG};
use super::opening::OPENING;
use super::row::Table;
use super::waits::{HELD, WAITS_FOR_LOST, WAITS_FOR_ROOM, WAITS_IN_TRANSPORT};
use crate::summary::flow::{
    FILE, FlowSummary, LEDGER, LOSSES, MARKS, MESSAGES, ONE_WAY, RATES, ROUND_TRIP, STATE, TRANSPORT,
    TURN_ROUND, VARIATION,
};

/// The figures of a flow in one repetition, in the order of summary.json.
pub static FLOW: Table<FlowSummary> = Table::new(&[
    MESSAGES,
    LEDGER,
    OPENING,
    LOSSES,
    CALL,
    OTHER_RECEIVER,
    PATIENT_RECEIVER,
    RECEIVER_MATTERS,
    STATE,
    ONE_WAY,
    ROUND_TRIP,
    TURN_ROUND,
    VARIATION,
    RATES,
    TRANSPORT,
    WAITS_FOR_ROOM,
    WAITS_IN_TRANSPORT,
    WAITS_FOR_LOST,
    HELD,
    MARKS,
    HEADERS,
    FORWARD_LEG,
    RETURN_LEG,
    FILE,
]);
