use std::io;

use talkpath_units::Instant;

use super::*;
use crate::testing::{flow, flow_of, leg, message, ms, run};
use crate::{DropCause, Fate, Leg, MessageRecord, RunRecord, Series, SeriesKind};

/// One repetition with everything in it that a row can hold.
fn sample(repetition: u64) -> RunRecord {
    let mut call = flow(&[Some(30), None, Some(31), Some(90)]);
    call.forward.messages[2].copies = 2;
    call.forward.arrivals.insert(2, 2);
    call.forward.messages.push(MessageRecord {
        fate: Fate::Refused,
        sent: None,
        wire: None,
        ..message(4, None)
    });
    call.forward.messages.push(MessageRecord {
        fate: Fate::Unfinished,
        drop_cause: None,
        ..message(5, None)
    });
    call.echo = Some(leg(vec![
        message(0, Some(60)),
        MessageRecord { drop_cause: Some(DropCause::Loss), wire: None, transmissions: 0, ..message(2, None) },
    ]));
    let mut upload = flow_of(leg(vec![message(0, Some(5)), message(1, Some(7))]));
    upload.info.name = "upload, \"big\"".to_owned();
    let mut record = run(vec![call, upload]);
    (record.cell, record.repetition) = (3, repetition);
    let series = |entity: &str, kind, points: &[(Instant, f64)]| Series {
        entity: entity.to_owned(),
        kind,
        points: points.to_vec(),
    };
    record.series = vec![
        series("up", SeriesKind::Queue, &[(ms(0), 0.0), (ms(5), 1.0), (ms(9), 0.0)]),
        series("upload, \"big\"", SeriesKind::Cwnd, &[(ms(0), 10.0), (ms(70), 10.5)]),
    ];
    record
}

fn packets_of(record: &RunRecord) -> Vec<u8> {
    let mut file = Vec::new();
    write_packets(record, &mut file).unwrap();
    file
}

fn series_of(record: &RunRecord) -> Vec<u8> {
    let mut file = Vec::new();
    write_series(record, &mut file).unwrap();
    file
}

/// A file in memory, as parquet reads it.
fn chunk(file: Vec<u8>) -> impl ChunkReader + 'static {
    bytes::Bytes::from(file)
}

#[test]
fn what_is_written_is_read_again() {
    let record = sample(1);
    let rows: Result<Vec<_>, _> = read_packets(chunk(packets_of(&record))).unwrap().collect();
    assert_eq!(rows.unwrap(), packet_rows(&record).collect::<Vec<_>>());
    let rows: Result<Vec<_>, _> = read_series(chunk(series_of(&record))).unwrap().collect();
    assert_eq!(rows.unwrap(), series_rows(&record).collect::<Vec<_>>());
}

#[test]
fn a_run_without_messages_is_a_file_without_rows() {
    assert_eq!(read_packets(chunk(packets_of(&run(vec![])))).unwrap().count(), 0);
}

#[test]
fn merging_parts_equals_their_rows_in_order() {
    let records = [sample(0), sample(1), sample(2)];
    let parts = || records.iter().map(|record| Ok(chunk(packets_of(record))));
    let mut merged = Vec::new();
    merge_packets(parts(), &mut merged).unwrap();
    let rows: Result<Vec<_>, _> = read_packets(chunk(merged.clone())).unwrap().collect();
    assert_eq!(rows.unwrap(), records.iter().flat_map(packet_rows).collect::<Vec<_>>());
    // The same parts in the same order give the same bytes; merging what was merged changes nothing.
    let (mut again, mut twice) = (Vec::new(), Vec::new());
    merge_packets(parts(), &mut again).unwrap();
    merge_packets([Ok(chunk(merged.clone()))], &mut twice).unwrap();
    assert_eq!(again, merged);
    assert_eq!(twice, merged);
}
