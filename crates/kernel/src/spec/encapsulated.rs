//! A flow over a protocol of ours as client and server describe it to each other: its options as the scenario
//! resolved them, the receiver's own buffer, and the path's MTU.
//!
//! ```text
//! {"dccp": {"ccid": 2, …, "receive_buffer": null, "mtu": 1500}}
//! ```

use serde::de::Error as _;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};
use talkpath_config::{EncapsulatedConfig, EncapsulatedKind};
use talkpath_units::Bytes;

use super::bounds::is_buffer;

/// The transport of one flow. `EncapsulatedSpec::check` checks a spec that came from a far end.
#[derive(Clone, Debug, PartialEq)]
pub struct EncapsulatedSpec {
    config: EncapsulatedConfig,
    /// The buffer that the scenario sets for the receiver. It replaces the buffer in `config` there.
    receive_buffer: Option<Bytes>,
    /// The size of the largest IP packet.
    mtu: Bytes,
}

impl EncapsulatedSpec {
    /// Makes the spec of a transport with `config` on a path with this MTU. `receive_buffer` is the buffer
    /// that the scenario sets for the receiver.
    pub fn new(config: &EncapsulatedConfig, receive_buffer: Option<Bytes>, mtu: Bytes) -> Self {
        let mut config = config.clone();
        config.options_mut().leave_out_ecn();
        Self { config, receive_buffer, mtu }
    }

    /// The kind of the protocol.
    pub const fn kind(&self) -> EncapsulatedKind {
        self.config.kind()
    }

    /// The state machine's configuration.
    pub const fn config(&self) -> &EncapsulatedConfig {
        &self.config
    }

    /// Makes the server keep no state before the client has proved its address.
    pub(super) fn keep_no_state(&mut self) {
        self.config.options_mut().keep_no_state();
    }

    /// The buffer that the scenario sets for the receiver.
    pub const fn receive_buffer(&self) -> Option<Bytes> {
        self.receive_buffer
    }

    /// The path's MTU.
    pub const fn mtu(&self) -> Bytes {
        self.mtu
    }

    /// The size of the largest message in bytes.
    pub(crate) fn largest_message(&self) -> u64 {
        self.config.options().largest_message(self.mtu).get()
    }

    /// Checks the values as the check of a scenario does, because a far end may have sent the spec.
    ///
    /// # Errors
    /// Returns a text that says what the transport needs.
    pub(super) fn check(&self) -> Result<(), String> {
        let options = self.config.options();
        let are_buffers = is_buffer(options.socket_buffer().get())
            && self.receive_buffer.is_none_or(|size| is_buffer(size.get()));
        let values = [
            (are_buffers, "a socket_buffer of at least 1 B and at most 1 GiB"),
            (self.largest_message() > 0 && self.mtu.get() <= 65_535, "an MTU that a message fits in"),
        ];
        let own = values.into_iter().find(|(is_right, _)| !is_right).map(|(_, need)| need);
        match options.need().or(own) {
            Some(need) => Err(format!("{} needs {need}", self.kind().name())),
            None => Ok(()),
        }
    }
}

impl Serialize for EncapsulatedSpec {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut named = serde_json::to_value(&self.config).map_err(S::Error::custom)?;
        if let Some(options) = options_in(&mut named) {
            options.insert(RECEIVE_BUFFER.to_owned(), self.receive_buffer.map(Bytes::get).into());
            options.insert(MTU.to_owned(), self.mtu.get().into());
        }
        named.serialize(serializer)
    }
}

impl<'a> Deserialize<'a> for EncapsulatedSpec {
    fn deserialize<D: Deserializer<'a>>(deserializer: D) -> Result<Self, D::Error> {
        let mut named = Value::deserialize(deserializer)?;
        let options = options_in(&mut named).ok_or_else(|| D::Error::custom("a transport has options"))?;
        let mut take = |key| options.remove(key).unwrap_or(Value::Null);
        let receive_buffer = serde_json::from_value(take(RECEIVE_BUFFER)).map_err(D::Error::custom)?;
        let mtu = serde_json::from_value(take(MTU)).map_err(D::Error::custom)?;
        let config = serde_json::from_value(named).map_err(D::Error::custom)?;
        Ok(Self { config, receive_buffer, mtu })
    }
}

/// The options in `{"NAME": {…}}`.
fn options_in(named: &mut Value) -> Option<&mut Map<String, Value>> {
    named.as_object_mut()?.values_mut().next()?.as_object_mut()
}

const RECEIVE_BUFFER: &str = "receive_buffer";
const MTU: &str = "mtu";

#[cfg(test)]
mod tests {
    use talkpath_config::{CcidKind, DccpConfig, QueuePolicy};
    use talkpath_units::Packets;

    use super::*;
    use crate::spec::TransportSpec;

    fn full() -> DccpConfig {
        DccpConfig {
            initial_window: Some(Packets::new(3)),
            initial_ssthresh: Some(Packets::new(100)),
            ack_ratio: 5,
            send_queue: Some(Packets::new(7)),
            send_queue_policy: QueuePolicy::DropOldest,
            app_limited_growth: false,
            growth_by_each: true,
            segment_size: Some(Bytes::new(500)),
            tfrc: talkpath_config::Revision::Rfc3448,
            socket_buffer: Bytes::new(9_000),
            short_seqnos: true,
            data_checksum: true,
            oscillation_prevention: false,
            history_discounting: false,
            checksum_coverage: 1,
            init_cookie: true,
            ecn: true,
            ..DccpConfig::new(CcidKind::Ccid4)
        }
    }

    /// The keys are those of version 9 of the protocol.
    #[test]
    fn what_is_told_is_what_the_other_end_is_configured_with() {
        let config = EncapsulatedConfig::Dccp(full());
        let spec = EncapsulatedSpec::new(&config, Some(Bytes::new(4000)), Bytes::new(576));
        let text = serde_json::to_string(&TransportSpec::Encapsulated(spec)).unwrap();
        assert_eq!(
            text,
            r#"{"dccp":{"ccid":4,"initial_window":3,"initial_ssthresh":100,"ack_ratio":5,"send_queue":7,"#
                .to_owned()
                + r#""drops_oldest":true,"app_limited_growth":false,"growth_by_each":true,"segment_size":500,"#
                + r#""follows_rfc3448":true,"socket_buffer":9000,"init_cookie":true,"short_seqnos":true,"#
                + r#""data_checksum":true,"oscillation_prevention":false,"history_discounting":false,"#
                + r#""checksum_coverage":1,"receive_buffer":4000,"mtu":576}}"#
        );
        let TransportSpec::Encapsulated(told) = serde_json::from_str(&text).unwrap() else {
            panic!("{text}");
        };
        assert_eq!(*told.config(), EncapsulatedConfig::Dccp(DccpConfig { ecn: false, ..full() }));
        assert_eq!((told.check(), told.largest_message()), (Ok(()), 516));
        assert_eq!((told.receive_buffer(), told.mtu()), (Some(Bytes::new(4000)), Bytes::new(576)));
    }

    /// They are serialised among the options, where a key of an equal name would be overwritten.
    #[test]
    fn no_option_of_a_protocol_has_the_name_of_a_sockets_key() {
        let any = |kind: EncapsulatedKind| match kind {
            EncapsulatedKind::Dccp => EncapsulatedConfig::Dccp(full()),
        };
        for kind in EncapsulatedKind::ALL {
            let mut named = serde_json::to_value(any(kind)).unwrap();
            let options = options_in(&mut named).unwrap();
            assert!(!options.contains_key(RECEIVE_BUFFER) && !options.contains_key(MTU), "{kind:?}");
        }
    }

    #[test]
    fn values_that_no_scenario_can_have_are_refused() {
        let good = EncapsulatedConfig::Dccp(DccpConfig::new(CcidKind::Ccid3));
        let good = serde_json::to_value(EncapsulatedSpec::new(&good, None, Bytes::new(1500))).unwrap();
        for (key, value) in [
            ("ccid", 5),
            ("segment_size", 0),
            ("segment_size", 65_500),
            ("send_queue", 0),
            ("send_queue", 1_000_000_001),
            ("initial_window", 0),
            ("initial_window", 1_000_001),
            ("initial_ssthresh", 0),
            ("initial_ssthresh", u64::MAX),
            ("ack_ratio", 0),
            ("mtu", 60),
            ("mtu", u64::MAX),
            ("checksum_coverage", 16),
            ("socket_buffer", 0),
            ("receive_buffer", u64::MAX),
        ] {
            let mut spoilt = good.clone();
            spoilt["dccp"][key] = value.into();
            let spec: Result<EncapsulatedSpec, _> = serde_json::from_value(spoilt);
            assert!(spec.is_err() == (key == "ccid"), "{key}");
            assert!(spec.is_err() || spec.is_ok_and(|spec| spec.check().is_err()), "{key} = {value}");
        }
    }
}
