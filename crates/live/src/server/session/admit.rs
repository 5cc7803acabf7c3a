//! Admission of sessions: a session is let in if it keeps within the limits, and if there is a seat and
//! memory for it.

use talkpath_kernel::spec::{FlowSpec, SessionSpec};
use talkpath_kernel::unsupported::{check_congestion_control, check_multipath_mss};
use talkpath_units::counted;

use crate::protocol::Answer;
use crate::server::origin::{Lack, Origin, Share, Shares};
use crate::server::{Limits, Shared};

/// A session that is let in.
pub(super) struct Admitted<'a> {
    /// The options of the session that this host cannot set.
    pub(super) warnings: Vec<String>,
    /// The session's seat and memory. They are given back when this value is dropped.
    _shares: [Share<'a>; 2],
}

/// Lets in a session that comes from `origin`.
///
/// # Errors
/// Returns [`Refusal`] with the reason if the session is not let in.
pub(super) fn admit<'a>(
    spec: &SessionSpec,
    origin: Origin,
    shared: &'a Shared,
) -> Result<Admitted<'a>, Refusal> {
    let seat = take_seat(origin, &shared.seats)?;
    let warnings = check(spec, &shared.limits)?;
    Ok(Admitted { warnings, _shares: [seat, take_memory(spec, origin, shared)?] })
}

/// Takes a seat for a session.
fn take_seat(origin: Origin, seats: &Shares) -> Result<Share<'_>, Refusal> {
    seats.take(origin, 1).map_err(|lack| {
        Refusal::for_now(match lack {
            Lack::TooMuch | Lack::AllTaken(_) => {
                format!("all its sessions are taken ({} at once); try again later", seats.all())
            }
            Lack::AddressFull(own) => {
                format!(
                    "your address has {}, half of all; end one, or try again later",
                    counted(own, "session")
                )
            }
        })
    })
}

/// Takes the memory that a session's files and QUIC connections may need.
fn take_memory<'a>(spec: &SessionSpec, origin: Origin, shared: &'a Shared) -> Result<Share<'a>, Refusal> {
    let keeps = shared.keep.is_some();
    let needed_bytes = |(index, flow): (usize, &FlowSpec)| {
        flow.held_bytes(keeps).saturating_add(spec.connection_bytes(index))
    };
    let bytes = spec.flows.iter().enumerate().map(needed_bytes).fold(0, u64::saturating_add);
    let memory = &shared.memory;
    memory.take(origin, bytes).map_err(|lack| {
        let what = format!("files and QUIC connections of {bytes} B");
        match lack {
            Lack::TooMuch => {
                let most = memory.most_per_address();
                format!("{what}; this server holds {most} B for those of one address").into()
            }
            Lack::AllTaken(taken) => Refusal::for_now(format!(
                "{what}; this server holds {} B for those, {taken} B of them taken; try again later",
                memory.all()
            )),
            Lack::AddressFull(own) => Refusal::for_now(format!(
                "{what}; this server holds {} B for those of one address, and your address has {own} B of them; \
                 end a session, or try again later",
                memory.most_per_address()
            )),
        }
    })
}

/// Checks that the session keeps within the limits. Returns warnings about options that the server cannot
/// set.
///
/// # Errors
/// Returns [`Refusal`] with the first limit that the session exceeds, or with what this host cannot do.
pub(in crate::server) fn check(spec: &SessionSpec, limits: &Limits) -> Result<Vec<String>, Refusal> {
    if spec.flows.is_empty() || spec.flows.len() > limits.flows {
        let (found, most) = (spec.flows.len(), limits.flows);
        let more = if found > most { "; started with `serve --max-flows N` it takes more" } else { "" };
        return Err(format!("{}; this server takes 1 to {most}{more}", counted(found, "flow")).into());
    }
    spec.flows.iter().try_for_each(FlowSpec::check)?;
    spec.check_connections().map_err(|(index, why)| Refusal::of_flow(index, why))?;
    if spec.flows.iter().any(|flow| flow.file.is_some() && !flow.is_up) {
        return Err("this server sends no files".to_owned().into());
    }
    let seconds = spec.duration_ns.saturating_add(spec.drain_ns).div_ceil(1_000_000_000);
    if seconds > limits.duration_s {
        return Err(
            format!("duration and drain are {seconds} s; this server takes {} s", limits.duration_s).into()
        );
    }
    let rate = spec.payload_rate();
    if rate > limits.rate_bps {
        return Err(format!(
            "the flows send {rate} bps together; this server takes {} bps. \
             What UDP is given at one moment counts as sent within a second",
            limits.rate_bps
        )
        .into());
    }
    check_messages(spec, limits)?;
    let rows = spec.message_bound();
    if rows > limits.rows {
        return Err(format!(
            "up to {}, both directions of an echo counted; this server keeps {} of a session; \
             make the run shorter, or have fewer flows",
            counted(rows, "message"),
            limits.rows
        )
        .into());
    }
    spec.flows
        .iter()
        .filter_map(|flow| flow.transport.cc())
        .try_for_each(|cc| check_congestion_control(cc, "the far host"))?;
    if spec.flows.iter().any(|flow| flow.transport.sets_multipath_mss()) {
        check_multipath_mss("the far host")?;
    }
    let is_ignored = spec.flows.iter().any(|flow| flow.is_up && flow.transport.datagram_buffer().is_some());
    Ok(if is_ignored {
        vec![
            "the server's UDP socket is shared by its sessions: socket_buffer of a flow upwards is ignored"
                .to_owned(),
        ]
    } else {
        Vec::new()
    })
}

/// Checks that the server's pacer does not have to send more messages a second than the limit allows.
fn check_messages(spec: &SessionSpec, limits: &Limits) -> Result<(), Refusal> {
    let rates: Vec<u64> = spec.flows.iter().map(FlowSpec::served_messages).collect();
    let together = rates.iter().copied().fold(0, u64::saturating_add);
    // The refusal is about the flow with the highest rate.
    let Some((index, rate)) = rates.into_iter().enumerate().max_by_key(|&(_, rate)| rate) else {
        return Ok(());
    };
    if together <= limits.messages_per_s {
        return Ok(());
    }
    let all =
        if spec.flows.len() == 1 { String::new() } else { format!(" ({together} with the other flows)") };
    let why = format!(
        "it has the far host send {} a second{all}; \
         this server sends at most {} a second for a session",
        counted(rate, "message"),
        limits.messages_per_s
    );
    Err(Refusal::of_flow(index, why))
}

/// Why a session is refused.
pub(in crate::server) struct Refusal {
    /// The reason, in words for a person.
    pub(super) why: String,
    /// The index of the flow that the refusal is about, if it is about a single flow.
    flow: Option<u32>,
    /// True if a server without other sessions would have taken the session. The client may then try again.
    is_for_now: bool,
}

impl Refusal {
    fn of_flow(index: usize, why: String) -> Self {
        Self { flow: u32::try_from(index).ok(), ..why.into() }
    }

    fn for_now(why: String) -> Self {
        Self { is_for_now: true, ..why.into() }
    }

    pub(super) fn answer(self) -> Answer {
        let Self { why, flow, is_for_now } = self;
        if is_for_now { Answer::Busy { why } } else { Answer::Refused { why, flow } }
    }
}

impl From<String> for Refusal {
    fn from(why: String) -> Self {
        Self { why, flow: None, is_for_now: false }
    }
}
