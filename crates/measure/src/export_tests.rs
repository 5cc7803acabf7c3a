//! The three formats of a table against each other, and against RFC 4180.

use bytes::Bytes;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::{Field as Read, RowAccessor};

use super::parquet_table::GROUP_ROWS;
use super::*;
use crate::record_file::packet_rows;
use crate::testing::{flow, run};

const ALL: [TableFormat; 3] = [TableFormat::Csv, TableFormat::Jsonl, TableFormat::Parquet];

fn written(columns: Vec<Column>, format: TableFormat, rows: &[Vec<Field>]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut table = TableWriter::new(columns, format, &mut out).unwrap();
    rows.iter().for_each(|row| table.row(row).unwrap());
    table.finish().unwrap();
    out
}

fn messages(format: TableFormat) -> Vec<u8> {
    let mut call = flow(&[Some(30), None]);
    call.info.name = "a \"call\", up".to_owned();
    call.forward.messages[1].wire = None;
    let swept = [Column::new("path.up.rate_bps", ColumnKind::Integer)];
    let rows: Vec<_> = packet_rows(&run(vec![call]))
        .map(|packet| {
            let mut row = Vec::new();
            message_row(&packet, &[Field::Integer(1_500_000)], &mut row);
            row
        })
        .collect();
    written(message_columns(&swept), format, &rows)
}

#[test]
fn csv_quotes_what_needs_quotes_and_leaves_the_unknown_empty() {
    let expected = "cell,repetition,path_up_rate_bps,flow,leg,seq,size,due_ns,sent_ns,wire_ns,received_ns,fate,drop_cause,\
                    copies,transmissions\n\
                    0,0,1500000,\"a \"\"call\"\", up\",forward,0,160,0,0,0,30000000,delivered,,1,1\n\
                    0,0,1500000,\"a \"\"call\"\", up\",forward,1,160,20000000,20000000,,,missing,queue,0,1\n";
    assert_eq!(String::from_utf8(messages(TableFormat::Csv)).unwrap(), expected);
}

#[test]
fn json_lines_have_the_same_columns_in_the_same_order() {
    let text = String::from_utf8(messages(TableFormat::Jsonl)).unwrap();
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 2);
    let keys: Vec<_> = lines[1].as_object().unwrap().keys().map(String::as_str).collect();
    let csv = String::from_utf8(messages(TableFormat::Csv)).unwrap();
    assert_eq!(Some(keys.join(",").as_str()), csv.lines().next());
    assert_eq!(lines[1]["wire_ns"], serde_json::Value::Null);
    assert_eq!(lines[0]["received_ns"], 30_000_000);
    assert_eq!(lines[0]["flow"], "a \"call\", up");
}

#[test]
fn parquet_has_the_same_columns_and_values_with_their_types() {
    let file = SerializedFileReader::new(Bytes::from(messages(TableFormat::Parquet))).unwrap();
    let rows: Vec<_> = file.get_row_iter(None).unwrap().map(Result::unwrap).collect();
    let names: Vec<_> = rows[1].get_column_iter().map(|(name, _)| name.as_str()).collect();
    let csv = String::from_utf8(messages(TableFormat::Csv)).unwrap();
    assert_eq!(Some(names.join(",").as_str()), csv.lines().next());
    assert_eq!(
        (rows[0].get_long(2).unwrap(), rows[0].get_string(3).unwrap().as_str()),
        (1_500_000, "a \"call\", up")
    );
    assert_eq!(rows[1].get_column_iter().nth(9).unwrap().1, &Read::Null);
}

#[test]
fn what_does_not_fit_its_column_is_unknown_and_whole_numbers_are_numbers_too() {
    let kinds = [ColumnKind::Flag, ColumnKind::Number, ColumnKind::Integer, ColumnKind::Text];
    let columns: Vec<_> = kinds.iter().map(|kind| Column::new(&format!("{kind:?}"), *kind)).collect();
    let rows = [
        vec![Field::Flag(true), Field::Integer(2), Field::Integer(-3), Field::text("x")],
        vec![Field::text("x"), Field::Number(f64::NAN), Field::Number(1.5), Field::Flag(true)],
        vec![Field::Flag(false)],
    ];
    let text = |format| String::from_utf8(written(columns.clone(), format, &rows)).unwrap();
    assert_eq!(text(TableFormat::Csv), "flag,number,integer,text\ntrue,2.0,-3,x\n,,,\nfalse,,,\n");
    assert_eq!(
        text(TableFormat::Jsonl).lines().nth(2),
        Some("{\"flag\":false,\"number\":null,\"integer\":null,\"text\":null}")
    );
    let file = SerializedFileReader::new(Bytes::from(written(columns, TableFormat::Parquet, &rows))).unwrap();
    let rows: Vec<_> = file.get_row_iter(None).unwrap().map(Result::unwrap).collect();
    assert_eq!((rows[0].get_bool(0).unwrap(), rows[0].get_double(1).unwrap()), (true, 2.0));
    assert!(rows[1].get_column_iter().all(|(_, field)| *field == Read::Null), "{:?}", rows[1]);
}

#[test]
fn an_unsigned_column_holds_all_64_bits_in_every_format() {
    let columns = vec![Column::new("seed", ColumnKind::Unsigned)];
    let seeds = [7, 1 << 63, u64::MAX];
    let rows = seeds.map(|seed| vec![Field::Unsigned(seed)]);
    let text = |format| String::from_utf8(written(columns.clone(), format, &rows)).unwrap();
    assert_eq!(text(TableFormat::Csv), "seed\n7\n9223372036854775808\n18446744073709551615\n");
    assert_eq!(text(TableFormat::Jsonl).lines().nth(2), Some("{\"seed\":18446744073709551615}"));
    let file = SerializedFileReader::new(Bytes::from(written(columns, TableFormat::Parquet, &rows))).unwrap();
    let read = file.get_row_iter(None).unwrap().map(|row| row.unwrap().get_ulong(0).unwrap());
    assert!(read.eq(seeds));
}

#[test]
fn a_long_table_has_several_row_groups_and_every_row() {
    let columns = vec![Column::new("n", ColumnKind::Integer)];
    let rows: Vec<_> = (0..GROUP_ROWS as i64 + 5).map(|n| vec![Field::Integer(n)]).collect();
    let file = SerializedFileReader::new(Bytes::from(written(columns, TableFormat::Parquet, &rows))).unwrap();
    assert_eq!(file.metadata().num_row_groups(), 2);
    let numbers = file.get_row_iter(None).unwrap().map(|row| row.unwrap().get_long(0).unwrap());
    assert!(numbers.eq(0..GROUP_ROWS as i64 + 5));
}

#[test]
fn a_table_without_rows_still_has_its_header() {
    for format in ALL {
        let out = written(message_columns(&[]), format, &[]);
        assert_eq!(out.is_empty(), format == TableFormat::Jsonl, "{format:?}");
    }
}
