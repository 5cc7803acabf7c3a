//! A DCCP connection as client and server describe it to each other.

use serde::{Deserialize, Serialize};
use talkpath_config::Revision;
use talkpath_config::largest_dccp_message;
use talkpath_transport::{CcidKind, DccpConfig, QueuePolicy};
use talkpath_units::{Bytes, Packets};

use super::bounds::is_buffer;

/// As `DccpConfig`, with the path's MTU. What a far end says is checked by `DccpSpec::check`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DccpSpec {
    /// 2, 3 or 4.
    ccid: u8,
    initial_window: Option<u64>,
    initial_ssthresh: Option<u64>,
    ack_ratio: u16,
    send_queue: Option<u64>,
    drops_oldest: bool,
    app_limited_growth: bool,
    growth_by_each: bool,
    segment_size: Option<u64>,
    /// Whether a rate follows RFC 3448 instead of RFC 5348.
    follows_rfc3448: bool,
    socket_buffer: u64,
    short_seqnos: bool,
    data_checksum: bool,
    oscillation_prevention: bool,
    history_discounting: bool,
    checksum_coverage: u8,
    init_cookie: bool,
    /// What takes the place of `socket_buffer` at the receiver, if the scenario has a receiver's own.
    receive_buffer: Option<u64>,
    /// Bytes of the largest IP packet.
    mtu: u64,
}

impl DccpSpec {
    /// What `config` says, on a path of this MTU; `receive_buffer` is the receiver's own.
    pub fn new(config: &DccpConfig, receive_buffer: Option<Bytes>, mtu: Bytes) -> Self {
        // All fields by name, so that a new one is not forgotten. ECN is left out: `end/dccp.rs`.
        let DccpConfig {
            ccid,
            initial_window,
            initial_ssthresh,
            ack_ratio,
            send_queue,
            send_queue_policy,
            app_limited_growth,
            growth_by_each,
            segment_size,
            tfrc,
            socket_buffer,
            ecn: _,
            init_cookie,
            short_seqnos,
            data_checksum,
            oscillation_prevention,
            history_discounting,
            checksum_coverage,
        } = config.clone();
        Self {
            ccid: ccid.number(),
            initial_window: initial_window.map(Packets::get),
            initial_ssthresh: initial_ssthresh.map(Packets::get),
            ack_ratio,
            send_queue: send_queue.map(Packets::get),
            drops_oldest: send_queue_policy == QueuePolicy::DropOldest,
            app_limited_growth,
            growth_by_each,
            segment_size: segment_size.map(Bytes::get),
            follows_rfc3448: tfrc == Revision::Rfc3448,
            socket_buffer: socket_buffer.get(),
            short_seqnos,
            data_checksum,
            oscillation_prevention,
            history_discounting,
            checksum_coverage,
            init_cookie,
            receive_buffer: receive_buffer.map(Bytes::get),
            mtu: mtu.get(),
        }
    }

    /// The state machine's configuration.
    pub fn config(&self) -> DccpConfig {
        DccpConfig {
            initial_window: self.initial_window.map(Packets::new),
            initial_ssthresh: self.initial_ssthresh.map(Packets::new),
            ack_ratio: self.ack_ratio,
            send_queue: self.send_queue.map(Packets::new),
            send_queue_policy: if self.drops_oldest {
                QueuePolicy::DropOldest
            } else {
                QueuePolicy::DropNewest
            },
            app_limited_growth: self.app_limited_growth,
            growth_by_each: self.growth_by_each,
            segment_size: self.segment_size.map(Bytes::new),
            tfrc: if self.follows_rfc3448 { Revision::Rfc3448 } else { Revision::Rfc5348 },
            socket_buffer: Bytes::new(self.socket_buffer),
            short_seqnos: self.short_seqnos,
            data_checksum: self.data_checksum,
            oscillation_prevention: self.oscillation_prevention,
            history_discounting: self.history_discounting,
            checksum_coverage: self.checksum_coverage,
            init_cookie: self.init_cookie,
            ..DccpConfig::new(match self.ccid {
                3 => CcidKind::Ccid3,
                4 => CcidKind::Ccid4,
                _ => CcidKind::Ccid2,
            })
        }
    }

    /// A server with this keeps no state before the handshake is complete.
    pub(super) const fn keep_no_state(&mut self) {
        self.init_cookie = true;
    }

    /// The receiver's own buffer.
    pub fn receive_buffer(&self) -> Option<Bytes> {
        self.receive_buffer.map(Bytes::new)
    }

    /// The path's MTU.
    pub const fn mtu(&self) -> Bytes {
        Bytes::new(self.mtu)
    }

    /// The largest message.
    pub(crate) const fn largest_message(&self) -> u64 {
        largest_dccp_message(self.mtu()).get()
    }

    /// What no scenario's check would have let through, in words.
    ///
    /// # Errors
    /// What is wrong.
    pub(super) fn check(&self) -> Result<(), String> {
        let is_positive = |value: Option<u64>| value != Some(0);
        let values = [
            (matches!(self.ccid, 2..=4), "a CCID of 2, 3 or 4"),
            (is_positive(self.initial_window), "an initial_window of at least 1 packet"),
            (is_positive(self.initial_ssthresh), "an initial_ssthresh of at least 1 packet"),
            (self.ack_ratio > 0, "an ack_ratio of at least 1"),
            (is_positive(self.send_queue), "a send_queue of at least 1 packet"),
            (
                self.segment_size.is_none_or(|size| (1..=65_535).contains(&size)),
                "a segment_size that fits IP",
            ),
            (
                is_buffer(self.socket_buffer) && self.receive_buffer.is_none_or(is_buffer),
                "a socket_buffer of at least 1 B and at most 1 GiB",
            ),
            (self.checksum_coverage < 16, "a checksum coverage of four bits"),
            (self.largest_message() > 0 && self.mtu <= 65_535, "an MTU that a message fits in"),
        ];
        match values.into_iter().find(|(is_right, _)| !is_right) {
            Some((_, needs)) => Err(format!("DCCP needs {needs}")),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_is_what_the_other_end_is_configured_with() {
        let config = DccpConfig {
            initial_window: Some(Packets::new(3)),
            initial_ssthresh: Some(Packets::new(100)),
            ack_ratio: 5,
            send_queue: Some(Packets::new(7)),
            send_queue_policy: QueuePolicy::DropOldest,
            app_limited_growth: false,
            growth_by_each: true,
            segment_size: Some(Bytes::new(500)),
            tfrc: Revision::Rfc3448,
            socket_buffer: Bytes::new(9_000),
            short_seqnos: true,
            data_checksum: true,
            oscillation_prevention: false,
            history_discounting: false,
            checksum_coverage: 1,
            init_cookie: true,
            ..DccpConfig::new(CcidKind::Ccid4)
        };
        let spec = DccpSpec::new(&config, Some(Bytes::new(4000)), Bytes::new(576));
        let told: DccpSpec = serde_json::from_str(&serde_json::to_string(&spec).unwrap()).unwrap();
        assert_eq!(told.config(), config);
        assert_eq!((told.check(), told.largest_message()), (Ok(()), 516));
        assert_eq!((told.receive_buffer(), told.mtu()), (Some(Bytes::new(4000)), Bytes::new(576)));
    }

    #[test]
    fn values_that_no_scenario_can_have_are_refused() {
        let good = DccpSpec::new(&DccpConfig::new(CcidKind::Ccid3), None, Bytes::new(1500));
        let spoilt: [fn(&mut DccpSpec); 8] = [
            |spec| spec.ccid = 5,
            |spec| spec.segment_size = Some(0),
            |spec| spec.send_queue = Some(0),
            |spec| spec.mtu = 60,
            |spec| spec.mtu = u64::MAX,
            |spec| spec.checksum_coverage = 16,
            |spec| spec.socket_buffer = 0,
            |spec| spec.receive_buffer = Some(u64::MAX),
        ];
        for spoil in spoilt {
            let mut spec = good.clone();
            spoil(&mut spec);
            assert!(spec.check().is_err(), "{spec:?}");
        }
    }
}
