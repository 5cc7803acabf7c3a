//! The names of the flows of a capture, and which of them are the two directions of one conversation.
//!
//! A call is `call-1`. The two directions of a conversation are `call-1-up` and `call-1-down`, as those of a
//! run are, so that the worse one decides for both. The direction whose first packet was captured first is
//! `up`: a capture does not show who called. Other streams are `rtp-96-1`. All calls have one number after
//! another, so that a threshold on `call` is about each of them.

use core::net::IpAddr;

use crate::stream::Stream;

/// The name of a flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FlowName {
    pub(crate) name: String,
    /// The name that both directions of a conversation share. That of the flow if it is alone.
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
        let later: Vec<(usize, Call)> = later.filter_map(|other| Some((other, calls[other]?))).collect();
        let other = other_direction(&call, &later);
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

/// Finds the other direction of `call` among later calls, each with its number. RTP usually has the same port
/// at both ends (RFC 4961), but a telephone need not send from where it receives. Then the hosts decide, if
/// they have no other call at that time.
fn other_direction(call: &Call, later: &[(usize, Call)]) -> Option<usize> {
    let beside = || later.iter().filter(|(_, other)| other.overlaps(call));
    let reverse = beside().find(|(_, other)| other.from == call.to && other.to == call.from);
    if let Some((number, _)) = reverse {
        return Some(*number);
    }
    let is_between = |other: &Call, from: IpAddr, to: IpAddr| other.from.0 == from && other.to.0 == to;
    let mut back = beside().filter(|(_, other)| is_between(other, call.to.0, call.from.0));
    let (Some((number, _)), None) = (back.next(), back.next()) else { return None };
    let is_alone = !beside().any(|(_, other)| is_between(other, call.from.0, call.to.0));
    is_alone.then_some(*number)
}

impl FlowName {
    fn alone(name: String) -> Self {
        Self { conversation: name.clone(), name }
    }
}

/// What tells whether two calls are one conversation.
#[derive(Clone, Copy)]
struct Call {
    from: (IpAddr, u16),
    to: (IpAddr, u16),
    /// The times of its first and its last packet.
    seen_ns: (i128, i128),
}

impl Call {
    /// Returns `None` if the stream is no call.
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

    #[test]
    fn the_other_direction_is_between_the_same_ports_at_the_same_time() {
        let first = call((1, 4000), (2, 5000));
        let back = call((2, 5000), (1, 4000));
        let of_others = call((2, 5002), (1, 4002));
        assert_eq!(other_direction(&first, &[(1, of_others), (2, back)]), Some(2));
        let later = Call { seen_ns: (20_000_000_000, 30_000_000_000), ..back };
        assert_eq!(other_direction(&first, &[(1, later)]), None);
        assert_eq!(other_direction(&first, &[(1, call((3, 5000), (1, 4000)))]), None);
    }

    #[test]
    fn with_other_ports_the_hosts_decide_if_they_have_one_call() {
        let first = call((1, 4000), (2, 5000));
        let back = call((2, 5002), (1, 4002));
        assert_eq!(other_direction(&first, &[(1, back)]), Some(1));
        let second = call((1, 4010), (2, 5010));
        assert_eq!(other_direction(&first, &[(1, back), (2, second)]), None, "two calls begin here");
        assert_eq!(other_direction(&first, &[(1, back), (2, call((2, 5012), (1, 4012)))]), None);
    }
}
