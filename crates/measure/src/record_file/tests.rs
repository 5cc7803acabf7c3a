use std::sync::Arc;

use talkpath_units::{Instant, Seed};

use super::*;
use crate::testing::{flow, flow_of, leg, message, ms, run};
use crate::{DropCause, Fate, MessageRecord, RunRecord, Series, SeriesKind};

/// One repetition with everything in it that a row can hold.
pub(super) fn sample(repetition: u64) -> RunRecord {
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

pub(super) fn packets_of(record: &RunRecord) -> Vec<u8> {
    let mut file = Vec::new();
    write_packets(record, &mut file).unwrap();
    file
}

pub(super) fn series_of(record: &RunRecord) -> Vec<u8> {
    let mut file = Vec::new();
    write_series(record, &mut file).unwrap();
    file
}

/// A file in memory, as parquet reads it.
pub(super) fn chunk(file: Vec<u8>) -> impl ChunkReader + 'static {
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
fn a_file_that_another_program_wrote_again_is_read_and_a_column_that_differs_is_named() {
    let record = sample(1);
    let file = packets_of(&record);
    // The name of the root comes before the columns, and that of the table after them.
    let renamed = |from: &[u8], to: &[u8]| {
        let mut file = file.clone();
        let footer = file.len() - 8;
        let length = u32::from_le_bytes(file[footer..footer + 4].try_into().unwrap()) as usize;
        let begin = footer - length;
        let position = file[begin..].windows(from.len()).position(|bytes| bytes == from).unwrap();
        file[begin + position..][..to.len()].copy_from_slice(to);
        read_packets(chunk(file)).map(|rows| rows.collect::<Result<Vec<_>, _>>().unwrap())
    };
    assert_eq!(renamed(b"packets", b"schema_").unwrap(), packet_rows(&record).collect::<Vec<_>>());
    let why = renamed(b"received_ns", b"received_ms").map(drop).unwrap_err().to_string();
    assert!(why.contains("the first that differs, in its name or its type, is received_ms"), "{why}");
}

#[test]
fn a_compressed_file_is_refused_with_the_way_to_write_it_without() {
    let mut file = packets_of(&sample(1));
    // The path of the first column in the metadata of its chunk, and field 4: the codec, an integer. 2 is 1,
    // which is snappy (parquet.thrift, CompressionCodec).
    let codec = b"\x19\x18\x04cell\x15\x00";
    let position = file.windows(codec.len()).position(|bytes| bytes == codec).unwrap();
    file[position + codec.len() - 1] = 2;
    let why = read_packets(chunk(file)).map(drop).unwrap_err().to_string();
    assert!(
        why.starts_with("column `cell` is compressed (SNAPPY); talkpath reads record files without"),
        "{why}"
    );
    assert!(why.contains("compression=\"none\", row_group_size=131072"), "{why}");
}

#[test]
fn rows_of_any_shape_are_read_again() {
    let mut stream = Seed::new(9).stream("shapes");
    let mut draw = |below: u64| stream.bits() % below;
    let causes = [None, Some(DropCause::Queue), Some(DropCause::Loss), Some(DropCause::Aqm)];
    let fates = [
        Fate::Delivered,
        Fate::Missing,
        Fate::Unfinished,
        Fate::Refused,
        Fate::Expired,
        Fate::NoNetwork,
        Fate::NotOpen,
    ];
    for round in 0..60 {
        // Differences of any number of bits, runs of any length, and stretches that end within a block.
        let (bits, steadiness) = (1 + round, 1 + draw(40));
        let mut flows = Vec::new();
        for name in 0..1 + draw(5) {
            let mut rows: Vec<MessageRecord> = Vec::new();
            for seq in 0..draw(700) {
                let changes = rows.is_empty() || draw(steadiness) == 0;
                let mut row = rows.last().copied().filter(|_| !changes).unwrap_or_else(|| {
                    let mut stamp = || (draw(4) > 0).then_some(Instant::from_nanos(draw(1 << bits)));
                    let (sent, wire, received) = (stamp(), stamp(), stamp());
                    MessageRecord {
                        size: talkpath_units::Bytes::new(draw(1 << bits)),
                        sent,
                        wire,
                        received,
                        fate: fates[draw(7) as usize],
                        drop_cause: causes[draw(4) as usize],
                        copies: draw(3) as u32,
                        transmissions: draw(1 << 20) as u32,
                        ..message(0, None)
                    }
                });
                (row.seq, row.due) = (seq, Instant::from_nanos(draw(1 << bits)));
                rows.push(row);
            }
            let mut flow = flow_of(leg(rows));
            flow.info.name = format!("flow-{name}");
            flows.push(flow);
        }
        let record = run(flows);
        let rows: Result<Vec<_>, _> = read_packets(chunk(packets_of(&record))).unwrap().collect();
        assert_eq!(rows.unwrap(), packet_rows(&record).collect::<Vec<_>>(), "round {round}");
    }
}

#[test]
fn the_metadata_has_the_smallest_and_the_largest_integer_and_how_many_are_unknown() {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::file::statistics::Statistics;

    let file = SerializedFileReader::new(bytes::Bytes::from(packets_of(&sample(1)))).unwrap();
    let group = file.metadata().row_group(0);
    let bounds = |name: &str| {
        let column = group.columns().iter().find(|column| column.column_path().string() == name).unwrap();
        match column.statistics() {
            Some(Statistics::Int64(of)) => {
                (of.min_opt().copied(), of.max_opt().copied(), of.null_count_opt())
            }
            other => panic!("{name}: {other:?}"),
        }
    };
    assert_eq!(bounds("cell"), (Some(3), Some(3), Some(0)));
    assert_eq!(bounds("seq"), (Some(0), Some(5), Some(0)));
    let received: Vec<_> = packet_rows(&sample(1)).filter_map(|row| row.message.received).collect();
    let unknown = packet_rows(&sample(1)).count() - received.len();
    let at = |at: Option<&Instant>| at.map(|at| at.as_nanos() as i64);
    let expected = (at(received.iter().min()), at(received.iter().max()), Some(unknown as u64));
    assert_eq!(bounds("received_ns"), expected);
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

/// Files of record version 1, written from [`sample`] by the first talkpath that had them. They are never
/// written again: a reader that cannot read them breaks the promise that old runs stay readable.
const PACKETS_V1: &[u8] = include_bytes!("../../tests/data/packets-v1.parquet");
const SERIES_V1: &[u8] = include_bytes!("../../tests/data/series-v1.parquet");

#[test]
fn files_of_version_1_are_still_read() {
    let rows: Result<Vec<_>, _> = read_packets(chunk(PACKETS_V1.to_vec())).unwrap().collect();
    assert_eq!(rows.unwrap(), packet_rows(&sample(1)).collect::<Vec<_>>());
    let rows: Result<Vec<_>, _> = read_series(chunk(SERIES_V1.to_vec())).unwrap().collect();
    assert_eq!(rows.unwrap(), series_rows(&sample(1)).collect::<Vec<_>>());
}

#[test]
fn a_long_leg_is_written_in_several_row_groups() {
    let count = schema::GROUP_ROWS as u64 + 10;
    let record = run(vec![flow_of(leg((0..count).map(|seq| message(seq, Some(30))).collect()))]);
    let file = packets_of(&record);
    let rows: Result<Vec<_>, _> = read_packets(chunk(file.clone())).unwrap().collect();
    assert_eq!(rows.unwrap(), packet_rows(&record).collect::<Vec<_>>());
    // Steady stamps pack to almost nothing, and no column is repeated in full.
    assert!(file.len() < 200_000, "{} B", file.len());
}

#[test]
fn a_text_is_held_once_in_a_row_group_also_where_neighbours_differ() {
    let named = |name: &str| {
        let mut flow = flow(&[Some(30)]);
        flow.info.name = name.to_owned();
        flow
    };
    let mut record = run(["one", "other", "one", "other"].map(named).into());
    record.series = ["up", "down", "up"]
        .map(|entity| {
            let points = vec![(ms(0), 0.0)];
            Series { entity: entity.to_owned(), kind: SeriesKind::Queue, points }
        })
        .into();
    let rows: Result<Vec<_>, _> = read_packets(chunk(packets_of(&record))).unwrap().collect();
    let rows = rows.unwrap();
    assert!(Arc::ptr_eq(&rows[0].flow, &rows[2].flow) && Arc::ptr_eq(&rows[1].flow, &rows[3].flow));
    assert_eq!((&*rows[0].flow, &*rows[1].flow), ("one", "other"));
    let rows: Result<Vec<_>, _> = read_series(chunk(series_of(&record))).unwrap().collect();
    let rows = rows.unwrap();
    assert!(Arc::ptr_eq(&rows[0].entity, &rows[2].entity), "{rows:?}");
}

pub(super) fn refusal(file: Vec<u8>) -> RecordError {
    match read_packets(chunk(file)) {
        Err(error) => error,
        Ok(rows) => rows.filter_map(Result::err).next().expect("the file must be refused"),
    }
}

/// `file` with `from` replaced by `to`, which is as long.
fn patched(mut file: Vec<u8>, from: &[u8], to: &[u8]) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    let at = file.windows(from.len()).rposition(|window| window == from).expect("the file has it");
    file[at..at + to.len()].copy_from_slice(to);
    file
}

#[test]
fn what_is_no_record_is_refused_with_its_reason() {
    let file = packets_of(&sample(0));
    assert!(matches!(refusal(Vec::new()), RecordError::Parquet(_)));
    assert!(matches!(refusal(b"cell,repetition,flow\n0,0,call\n".to_vec()), RecordError::Parquet(_)));
    assert!(matches!(refusal(file[..file.len() - 1].to_vec()), RecordError::Parquet(_)));
    assert!(matches!(
        refusal(patched(file.clone(), b"record_version", b"record_verzion")),
        RecordError::NotARecord
    ));
    // The value follows its key: field 2, a string of one byte.
    let later = patched(file, b"record_version\x18\x011", b"record_version\x18\x012");
    assert_eq!(refusal(later).to_string(), "record version 2; this talkpath reads version 1");
    let other = refusal(series_of(&sample(0))).to_string();
    assert!(other.contains("packets") && other.contains("time_ns"), "{other}");
}

#[test]
fn a_part_that_was_cut_short_is_not_merged_and_the_error_says_which_it_is() {
    let part = packets_of(&sample(0));
    let parts = [Ok(chunk(part.clone())), Ok(chunk(part[..part.len() / 2].to_vec()))];
    let cut_short = merge_packets(parts, Vec::new());
    assert!(matches!(cut_short, Err(MergeError::Part { index: 1, why: RecordError::Parquet(_) })));
    let gone = [Ok(chunk(part.clone())), Err(std::io::ErrorKind::NotFound.into())];
    let gone = merge_packets(gone, Vec::new());
    assert!(matches!(gone, Err(MergeError::Part { index: 1, why: RecordError::Io(_) })));
    // The metadata is at the end and sound; what it points at is not there.
    let footer = u32::from_le_bytes(part[part.len() - 8..][..4].try_into().unwrap()) as usize;
    let hollow = merge_packets([Ok(chunk(part[part.len() - 8 - footer..].to_vec()))], Vec::new());
    assert!(matches!(hollow, Err(MergeError::Part { index: 0, .. })), "{hollow:?}");
    for room in [0, 100, part.len() / 2, part.len() - 1] {
        let full = merge_packets([Ok(chunk(part.clone()))], Full(room));
        assert!(matches!(full, Err(MergeError::Out(RecordError::Io(_)))), "{room}: {full:?}");
    }
}

/// A disk with room for this number of bytes.
struct Full(usize);

impl std::io::Write for Full {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or(std::io::ErrorKind::StorageFull)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_is_told_from_a_damaged_file() {
    let error = write_packets(&sample(0), Full(100)).unwrap_err();
    assert!(
        matches!(&error, RecordError::Io(io) if io.kind() == std::io::ErrorKind::StorageFull),
        "{error:?}"
    );
}

#[test]
fn a_damaged_file_is_an_error_or_other_rows_and_never_a_panic() {
    let file = packets_of(&sample(0));
    let mut refused = 0;
    for at in 0..file.len() {
        for flip in [0x01, 0x80, 0xff] {
            let mut damaged = file.clone();
            damaged[at] ^= flip;
            // Merging reads the metadata alone, and may copy what reading will refuse.
            let _ = merge_packets([Ok(chunk(damaged.clone()))], Vec::new());
            if read_packets(chunk(damaged)).and_then(Iterator::collect::<Result<Vec<_>, _>>).is_err() {
                refused += 1;
            }
        }
    }
    assert!(refused > file.len(), "only {refused} of {} were noticed", 3 * file.len());
}

/// `file` with one to four bits, bytes or stretches changed, or its end gone.
fn damaged(file: &[u8], draw: &mut impl FnMut(usize) -> usize) -> Vec<u8> {
    let mut file = file.to_vec();
    for _ in 0..=draw(4) {
        let at = draw(file.len());
        match draw(8) {
            0 => file.truncate(at + 1),
            1 | 2 => file[at] ^= 1 << draw(8),
            3 => file[at] = [0x00, 0x01, 0x7f, 0x80, 0xff][draw(5)],
            4 => file[at] = file[at].wrapping_add(1),
            5 => file[at] = file[at].wrapping_sub(1),
            6 => file[at] = draw(256) as u8,
            // An integer that goes on and on.
            _ => file[at..].iter_mut().take(1 + draw(12)).for_each(|byte| *byte = 0x80 | draw(256) as u8),
        }
    }
    file
}

#[test]
fn thousands_of_damaged_files_are_errors_or_other_rows_and_never_a_panic() {
    let long = run(vec![flow_of(leg((0..300)
        .map(|seq| message(seq, (seq % 7 != 0).then_some(30 + seq * seq % 11)))
        .collect()))]);
    let packets = [packets_of(&sample(0)), packets_of(&long), PACKETS_V1.to_vec()];
    let series = [series_of(&sample(0)), SERIES_V1.to_vec()];
    let mut stream = Seed::new(8).stream("damage");
    let mut draw = |below: usize| (stream.bits() % below as u64) as usize;
    let mut refused = 0;
    for _ in 0..2_000 {
        let file = damaged(&packets[draw(packets.len())], &mut draw);
        let _ = merge_packets([Ok(chunk(file.clone()))], Vec::new());
        let rows = read_packets(chunk(file)).and_then(Iterator::collect::<Result<Vec<_>, _>>);
        refused += usize::from(rows.is_err());
        let file = damaged(&series[draw(series.len())], &mut draw);
        let _ = merge_series([Ok(chunk(file.clone()))], Vec::new());
        let rows = read_series(chunk(file)).and_then(Iterator::collect::<Result<Vec<_>, _>>);
        refused += usize::from(rows.is_err());
    }
    assert!(refused > 2_000, "only {refused} of 4000 were noticed");
}

#[test]
fn runs_are_restored_as_far_as_the_files_hold_them() {
    let record = sample(1);
    let restored = restore_runs(packet_rows(&record).map(Ok), series_rows(&record).map(Ok)).unwrap();
    assert_eq!(restored.len(), 1);
    let run = &restored[0];
    assert_eq!((run.cell, run.repetition, &run.series), (3, 1, &record.series));
    for (restored, flow) in run.flows.iter().zip(&record.flows) {
        assert_eq!(restored.info.name, flow.info.name);
        assert_eq!(restored.forward, flow.forward);
        assert_eq!(restored.echo, flow.echo);
    }
    let backwards = packet_rows(&record).collect::<Vec<_>>().into_iter().rev().map(Ok);
    assert!(matches!(restore_runs(backwards, []), Err(RecordError::Inconsistent { .. })));
}

#[test]
fn every_column_with_a_unit_exists_and_every_kind_of_series_has_one() {
    use super::schema::{PACKETS, SERIES};
    use crate::SeriesKind;

    for table in [&PACKETS, &SERIES] {
        let schema = table.schema().unwrap();
        for (of, _) in table.units {
            let column = of.split('.').next().unwrap();
            assert!(schema.get_fields().iter().any(|field| field.name() == column), "{of}");
            let kind = of.strip_prefix("value.");
            assert!(kind.is_none_or(|kind| SeriesKind::from_name(kind).is_some()), "{of}");
        }
    }
    let kinds = SERIES.units.iter().filter(|(of, _)| of.starts_with("value.")).count();
    // `from_name` lists them all.
    assert_eq!(kinds, 12);
}
