//! Any bytes as the record files of a run: `packets.parquet` and `series.parquet`. Their rows are read, or
//! what is wrong with them is said; what was read becomes records, which are written and read again.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use talkpath_measure::record_file::{
    PacketRow, RecordError, SeriesRow, read_packets, read_series, restore_runs, write_packets,
};
use talkpath_measure::summarise::summarise_flow;

fuzz_target!(|bytes: &[u8]| {
    let file = Bytes::copy_from_slice(bytes);
    let packets: Vec<Result<PacketRow, RecordError>> = match read_packets(file.clone()) {
        Ok(rows) => rows.take(MAX_ROWS).collect(),
        Err(why) => return series_or(file, &why),
    };
    if let Some(Err(why)) = packets.iter().find(|row| row.is_err()) {
        assert!(!why.to_string().is_empty());
    }
    let rows = packets.into_iter().map_while(Result::ok).map(Ok);
    let Ok(runs) = restore_runs(rows, std::iter::empty()) else { return };
    for run in &runs {
        for flow in &run.flows {
            let _ = summarise_flow(flow, &(run.window_start..run.window_end));
        }
        let mut again = Vec::new();
        if write_packets(run, &mut again).is_ok() {
            let again = read_packets(Bytes::from(again)).expect("what was written is a file");
            let count = again.map(|row| row.expect("and its rows are read")).count();
            let messages: usize = run.flows.iter().map(|flow| flow.forward.messages.len()).sum();
            assert!(count >= messages);
        }
    }
});

fn series_or(file: Bytes, why: &RecordError) {
    assert!(!why.to_string().is_empty());
    let Ok(rows) = read_series(file) else { return };
    let rows: Vec<SeriesRow> = rows.take(MAX_ROWS).map_while(Result::ok).collect();
    let _ = restore_runs(std::iter::empty(), rows.into_iter().map(Ok));
}

/// A small file may claim many equal rows.
const MAX_ROWS: usize = 50_000;
