//! The names of the flows of a capture, and which of them are the two directions of one conversation.
//!
//! A call is `call-1`. The two directions of a conversation are `call-1-up` and `call-1-down`, like those of
//! a run, so that the worse direction decides for both. The direction whose first packet was captured first
//! is `up`, because a capture does not show who called. Streams that are no calls are `rtp-96-1`, by their
//! payload type. Calls are numbered one after another, so that a threshold on `call` is about each call.

use core::net::IpAddr;

use crate::stream::Stream;

/// The name of a flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FlowName {
    pub(crate) name: String,
    /// The name that both directions of a conversation share. A flow without another direction has its own
    /// name here.
    pub(crate) conversation: String,
}

/// Names the streams, which are in the order of their first packets.
pub(crate) fn name(streams: &[Stream<'_>]) -> Vec<FlowName> {
    let calls: Vec<Option<Call>> = streams.iter().map(Call::of).collect();
    let mut names: Vec<Option<FlowName>> = vec![None; streams.len()];
    let (mut conversations, mut others) = (0, 0);
    for index in 0..streams.len() {
        if names[index].is_some() {
            continue;
        }
        let Some(call) = calls[index] else {
            others += 1;
            names[index] = Some(FlowName::alone(format!("rtp-{}-{others}", streams[index].payload_type())));
            continue;
        };
        conversations += 1;
        let conversation = format!("call-{conversations}");
        let later = (index + 1..streams.len()).filter(|other| names[*other].is_none());
        let other = other_direction(&call, &later.filter_map(|other| Some((other, calls[other]?))));
        names[index] = Some(match other {
            Some(_) => FlowName { name: format!("{conversation}-up"), conversation: conversation.clone() },
            None => FlowName::alone(conversation.clone()),
        });
        if let Some(other) = other {
            names[other] = Some(FlowName { name: format!("{conversation}-down"), conversation });
        }
    }
    names.into_iter().flatten().collect()
}

/// Finds the other direction of `call` among `later` calls, each with the index of its stream. A telephone
/// usually sends RTP from the port at which it receives it (RFC 4961), but it need not. If no call has these
/// ports, the other direction is the only call from the one host to the other at that time, provided that
/// `call` is the only call the opposite way.
fn other_direction(call: &Call, later: &(impl Iterator<Item = (usize, Call)> + Clone)) -> Option<usize> {
    let beside = || later.clone().filter(|(_, other)| other.overlaps(call));
    let reverse = beside().find(|(_, other)| other.from == call.to && other.to == call.from);
    if let Some((index, _)) = reverse {
        return Some(index);
    }
    let is_between = |other: &Call, from: IpAddr, to: IpAddr| other.from.0 == from && other.to.0 == to;
    let mut back = beside().filter(|(_, other)| is_between(other, call.to.0, call.from.0));
    let (Some((index, _)), None) = (back.next(), back.next()) else { return None };
    let is_alone = !beside().any(|(_, other)| is_between(&other, call.from.0, call.to.0));
    is_alone.then_some(index)
}

impl FlowName {
    fn alone(name: String) -> Self {
        Self { conversation: name.clone(), name }
    }
}

/// The addresses and times by which two calls are known as the directions of one conversation.
#[derive(Clone, Copy)]
struct Call {
    from: (IpAddr, u16),
    to: (IpAddr, u16),
    /// The times of its first and its last packet, ns since 1970.
    seen_ns: (i128, i128),
}

impl Call {
    /// Returns `None` if the stream is no call, or has no packet.
    fn of(stream: &Stream<'_>) -> Option<Self> {
        let seen = || stream.rows.iter().filter_map(|row| row.seen_ns);
        let seen_ns = (seen().min()?, seen().max()?);
        let endpoints = stream.found.endpoints;
        stream.is_call().then_some(Self { from: endpoints.from, to: endpoints.to, seen_ns })
    }

    fn overlaps(&self, other: &Self) -> bool {
        self.seen_ns.0 <= other.seen_ns.1 && other.seen_ns.0 <= self.seen_ns.1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A call from 0 to 10 s between hosts, each with its port.
    fn call(from: (u8, u16), to: (u8, u16)) -> Call {
        let end = |(host, port): (u8, u16)| (IpAddr::from([192, 0, 2, host]), port);
        Call { from: end(from), to: end(to), seen_ns: (0, 10_000_000_000) }
    }

    /// The index of the other direction of `call` among `later`.
    fn among(call: &Call, later: &[Call]) -> Option<usize> {
        other_direction(call, &later.iter().copied().enumerate())
    }

    #[test]
    fn the_other_direction_is_between_the_same_ports_at_the_same_time() {
        let first = call((1, 4000), (2, 5000));
        let back = call((2, 5000), (1, 4000));
        let of_others = call((2, 5002), (1, 4002));
        assert_eq!(among(&first, &[of_others, back]), Some(1));
        let later = Call { seen_ns: (20_000_000_000, 30_000_000_000), ..back };
        assert_eq!(among(&first, &[later]), None);
        assert_eq!(among(&first, &[call((3, 5000), (1, 4000))]), None);
    }

    #[test]
    fn with_other_ports_the_hosts_decide_if_they_have_one_call() {
        let first = call((1, 4000), (2, 5000));
        let back = call((2, 5002), (1, 4002));
        assert_eq!(among(&first, &[back]), Some(0));
        let second = call((1, 4010), (2, 5010));
        assert_eq!(among(&first, &[back, second]), None, "two calls begin here");
        assert_eq!(among(&first, &[back, call((2, 5012), (1, 4012))]), None);
    }
}
