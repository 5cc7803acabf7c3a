//! A workload as client and server describe it to each other: the conversion between the scenario's type and
//! what goes over the control connection, in ns, B and bit/s. A file's path stays with its owner.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use talkpath_scenario::{Codec, WorkloadConfig};
use talkpath_units::{Bytes, Duration, Rate};

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum WireWorkload {
    Voice { ptime_ns: u64, size: u64 },
    Cbr { rate_bps: u64, size: u64 },
    Bulk { bytes: Option<u64> },
    Burst { count: u64, size: u64, repeat: u64, gap_ns: u64 },
    File { bytes: u64, size: u64, header: u64 },
}

pub(super) fn serialize<S: Serializer>(config: &WorkloadConfig, serializer: S) -> Result<S::Ok, S::Error> {
    let wire = match *config {
        WorkloadConfig::Voice { codec: Codec::G711, ptime, size } => {
            WireWorkload::Voice { ptime_ns: ptime.as_nanos(), size: size.get() }
        }
        WorkloadConfig::Cbr { rate, size } => WireWorkload::Cbr { rate_bps: rate.as_bps(), size: size.get() },
        WorkloadConfig::Bulk { bytes } => WireWorkload::Bulk { bytes: bytes.map(Bytes::get) },
        WorkloadConfig::Burst { count, size, repeat, gap } => {
            WireWorkload::Burst { count, size: size.get(), repeat, gap_ns: gap.as_nanos() }
        }
        WorkloadConfig::File { bytes, size, header, .. } => {
            WireWorkload::File { bytes: bytes.get(), size: size.get(), header: header.get() }
        }
    };
    wire.serialize(serializer)
}

pub(super) fn deserialize<'a, D: Deserializer<'a>>(deserializer: D) -> Result<WorkloadConfig, D::Error> {
    Ok(match WireWorkload::deserialize(deserializer)? {
        WireWorkload::Voice { ptime_ns, size } => WorkloadConfig::Voice {
            codec: Codec::G711,
            ptime: Duration::from_nanos(ptime_ns),
            size: Bytes::new(size),
        },
        WireWorkload::Cbr { rate_bps, size } => {
            WorkloadConfig::Cbr { rate: Rate::from_bps(rate_bps), size: Bytes::new(size) }
        }
        WireWorkload::Bulk { bytes } => WorkloadConfig::Bulk { bytes: bytes.map(Bytes::new) },
        WireWorkload::Burst { count, size, repeat, gap_ns } => {
            WorkloadConfig::Burst { count, size: Bytes::new(size), repeat, gap: Duration::from_nanos(gap_ns) }
        }
        WireWorkload::File { bytes, size, header } => WorkloadConfig::File {
            source: String::new(),
            bytes: Bytes::new(bytes),
            size: Bytes::new(size),
            header: Bytes::new(header),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As a session's flow carries it.
    #[derive(Serialize, Deserialize)]
    struct Carried(#[serde(with = "super")] WorkloadConfig);

    #[test]
    fn every_workload_comes_back_from_its_text_and_a_file_without_its_path() {
        let size = Bytes::new(100);
        let file = |source: &str| WorkloadConfig::File {
            source: source.to_owned(),
            bytes: Bytes::new(3000),
            size,
            header: Bytes::new(8),
        };
        let burst = WorkloadConfig::Burst { count: 5, size, repeat: 2, gap: Duration::from_nanos(7) };
        let cbr = WorkloadConfig::Cbr { rate: Rate::from_bps(9), size };
        for (config, text, comes_back) in [
            (WorkloadConfig::G711, r#"{"voice":{"ptime_ns":20000000,"size":160}}"#, None),
            (cbr, r#"{"cbr":{"rate_bps":9,"size":100}}"#, None),
            (WorkloadConfig::Bulk { bytes: None }, r#"{"bulk":{"bytes":null}}"#, None),
            (burst, r#"{"burst":{"count":5,"size":100,"repeat":2,"gap_ns":7}}"#, None),
            (file("/a"), r#"{"file":{"bytes":3000,"size":100,"header":8}}"#, Some(file(""))),
        ] {
            assert_eq!(serde_json::to_string(&Carried(config.clone())).unwrap(), text);
            let Carried(back) = serde_json::from_str(text).unwrap();
            assert_eq!(back, comes_back.unwrap_or(config));
        }
    }
}
