//! Which paths a run's summary has, taken from its types, so that a misspelt metric is found before anything
//! runs.
//!
//! [`Whole`] is a serde source in which every field, every optional value and one entry of every list are
//! present. What a type reads from it shows all its paths.

use core::fmt;

use serde::de::value::StrDeserializer;
use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, IntoDeserializer, MapAccess, SeqAccess, VariantAccess, Visitor,
};
use serde::{Deserialize, forward_to_deserialize_any};
use serde_json::Value as Json;
use talkpath_measure::summary::{Clock, FlowSummary, GroupSummary, LinkSummary, MachineSummary};
use talkpath_model::Scenario;

/// The summary of a run of `scenario` with every figure present.
pub(crate) fn shape(scenario: &Scenario) -> Json {
    let (flow, group, link) = (of::<FlowSummary>(), of::<GroupSummary>(), of::<LinkSummary>());
    let table = |names: &mut dyn Iterator<Item = &String>, each: &Json| -> Json {
        Json::Object(names.map(|name| (name.clone(), each.clone())).collect())
    };
    // A group of one copy has the figures of its flow.
    let mut of_group = flow.clone();
    if let (Some(all), Json::Object(own)) = (of_group.as_object_mut(), group) {
        all.extend(own);
    }
    serde_json::json!({
        "flows": table(&mut scenario.flows.iter().map(|flow| &flow.name), &flow),
        "groups": table(&mut scenario.flows.iter().map(|flow| &flow.group), &of_group),
        "links": table(&mut scenario.links.iter().map(|link| &link.name), &link),
        "machine": of::<MachineSummary>(),
        "clock": of::<Clock>(),
        "watched": {
            "nodes": 0.0,
            "links": table(&mut scenario.links.iter().map(|link| &link.name), &watched()),
        },
        "log": table(&mut scenario.flows.iter().map(|flow| &flow.name), &logged()),
    })
}

/// The fields of a flow in log.txt (`talkpath_measure::log`): the stamps and the time in ms.
fn logged() -> Json {
    serde_json::json!({
        "start_timestamp": 0.0, "end_timestamp": 0.0, "transfer_time": 0.0, "packet_size": 0.0,
        "packets_received": 0.0, "packets_expected": 0.0, "protocol": "", "receiver_timeout": 0.0,
    })
}

/// What is watched of a link packet by packet.
fn watched() -> Json {
    serde_json::json!({ "passed": 0.0, "dropped": 0.0, "lost": 0.0, "queue_max": 0.0 })
}

fn of<T: for<'de> Deserialize<'de> + serde::Serialize>() -> Json {
    T::deserialize(Whole).ok().and_then(|all| serde_json::to_value(all).ok()).unwrap_or_default()
}

/// Everything, once.
#[derive(Clone, Copy)]
struct Whole;

/// Nothing here can fail but a type that asks for what no summary has.
#[derive(Debug)]
struct Unknown;

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a summary has no such value")
    }
}

impl core::error::Error for Unknown {}

impl serde::de::Error for Unknown {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self
    }
}

impl<'de> Deserializer<'de> for Whole {
    type Error = Unknown;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unknown> {
        visitor.visit_unit()
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unknown> {
        visitor.visit_bool(false)
    }

    fn deserialize_u8<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unknown> {
        visitor.visit_u8(0)
    }

    fn deserialize_u32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unknown> {
        visitor.visit_u32(0)
    }

    fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unknown> {
        visitor.visit_u64(0)
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unknown> {
        visitor.visit_f64(0.0)
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unknown> {
        visitor.visit_str("")
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unknown> {
        visitor.visit_str("")
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unknown> {
        visitor.visit_some(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unknown> {
        visitor.visit_seq(Values(1))
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, Unknown> {
        visitor.visit_seq(Values(len))
    }

    /// Which keys a map has, its type does not say.
    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unknown> {
        visitor.visit_map(Fields(&[]))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Unknown> {
        visitor.visit_map(Fields(fields))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Unknown> {
        visitor.visit_enum(First(variants.first().copied().ok_or(Unknown)?))
    }

    forward_to_deserialize_any! {
        i8 i16 i32 i64 i128 u16 u128 f32 char bytes byte_buf unit unit_struct newtype_struct tuple_struct
        identifier ignored_any
    }
}

/// That many values.
struct Values(usize);

impl<'de> SeqAccess<'de> for Values {
    type Error = Unknown;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Unknown> {
        let Some(left) = self.0.checked_sub(1) else { return Ok(None) };
        self.0 = left;
        seed.deserialize(Whole).map(Some)
    }
}

/// A value for each field.
struct Fields(&'static [&'static str]);

impl<'de> MapAccess<'de> for Fields {
    type Error = Unknown;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Unknown> {
        let Some((first, rest)) = self.0.split_first() else { return Ok(None) };
        self.0 = rest;
        let name: StrDeserializer<'de, Unknown> = (*first).into_deserializer();
        seed.deserialize(name).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Unknown> {
        seed.deserialize(Whole)
    }
}

/// An enum's first variant.
struct First(&'static str);

impl<'de> EnumAccess<'de> for First {
    type Error = Unknown;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), Unknown> {
        let name: StrDeserializer<'de, Unknown> = self.0.into_deserializer();
        Ok((seed.deserialize(name)?, self))
    }
}

impl<'de> VariantAccess<'de> for First {
    type Error = Unknown;

    fn unit_variant(self) -> Result<(), Unknown> {
        Ok(())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, _: T) -> Result<T::Value, Unknown> {
        Err(Unknown)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, _: V) -> Result<V::Value, Unknown> {
        Err(Unknown)
    }

    fn struct_variant<V: Visitor<'de>>(self, _: &'static [&'static str], _: V) -> Result<V::Value, Unknown> {
        Err(Unknown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_of_a_summary_is_there() {
        let flow = of::<FlowSummary>();
        assert_eq!(flow["round_trip_delay_ms"]["p999"], 0.0);
        assert_eq!((&flow["loss_runs"]["histogram"][0], &flow["file"]["intact"]), (&0.into(), &false.into()));
        assert_eq!(flow["call"]["mouth_to_ear_ms"]["p95"], 0.0);
        assert_eq!(of::<GroupSummary>()["judged"]["worst"], 0.0);
        assert_eq!(of::<LinkSummary>()["dropped_by"]["aqm"], 0);
        assert_eq!(of::<MachineSummary>()["emulator_late_ms"]["p99"], 0.0);
        assert_eq!(of::<Clock>()["trusted"], false);
    }
}
