//! Headers and footers that the Parquet library would read without an end, or in another way than other
//! readers.

use super::super::tests::{chunk, packets_of, refusal, sample, series_of};
use super::super::{merge_packets, merge_series, read_series};
use super::*;

/// Returns a page header that begins with the type and both lengths, and ends after `between`.
fn header(between: &[u8]) -> Vec<u8> {
    [&[0x15, 0x00, 0x15, 0x02, 0x15, 0x02], between, &[0x00]].concat()
}

#[test]
fn a_page_header_with_absurd_lists_is_refused_whatever_they_hold() {
    assert_eq!(page_size(&header(&[])), Ok(PageSize { header: 7, contents: 1 }));
    // Field 13 and a list of 2^31 - 1 values of each type, of lists of such lists, and a map.
    let count = [0xff, 0xff, 0xff, 0xff, 0x07];
    for kind in 0..=15 {
        for list in [LIST, SET] {
            let absurd = [&[0xa0 | list, 0xf0 | kind], &count[..]].concat();
            assert!(page_size(&header(&absurd)).is_err(), "type {kind}");
            let nested = [&[0xa0 | list, 0x29, 0xf0 | kind], &count[..], &[0xf1], &count[..]].concat();
            assert!(page_size(&header(&nested)).is_err(), "type {kind}");
        }
        let map = [&[0xa0 | MAP], &count[..], &[kind << 4 | kind]].concat();
        assert!(page_size(&header(&map)).is_err(), "type {kind}");
    }
}

#[test]
fn a_known_field_of_another_type_is_refused_since_the_library_reads_on_by_its_number() {
    // Field 4, the checksum, as a text that hides a list of booleans behind its length.
    assert!(page_size(&header(&[0x18, 0x00])).is_err());
    // Field 5, the header of data pages, as an integer.
    assert!(page_size(&header(&[0x25, 0x00])).is_err());
    // Field 5 with statistics (its field 5) that are no struct.
    assert!(page_size(&header(&[0x2c, 0x55, 0x00, 0x00])).is_err());
    assert!(page_size(&header(&[0x2c, 0x5c, 0x00, 0x00])).is_ok());
}

#[test]
fn a_header_has_a_length_within_its_column_and_ends() {
    assert!(page_size(&[0x15, 0x00, 0x00]).unwrap_err().contains("without a length"));
    assert!(page_size(&[0x15, 0x00, 0x15, 0x02, 0x15, 0x01, 0x00]).is_err(), "-1");
    let endless = vec![0x15; MAX_HEADER as usize];
    assert!(page_size(&endless).is_err());
    let deep = [vec![0xcc; 40], vec![0; 40]].concat();
    assert!(Walk::new(&deep).walk_struct(&[], UnknownField::Walked, 0).unwrap_err().contains("16"));
    let long = [vec![0x80; 12], vec![0]].concat();
    assert!(Walk::new(&long).varint().is_err());
}

/// `file` with `extra` fields at the end of its footer.
fn with_footer_fields(file: &[u8], extra: &[u8]) -> Vec<u8> {
    let tail = file.len() - TAIL as usize;
    let size = u32::from_le_bytes(file[tail..tail + 4].try_into().unwrap()) + extra.len() as u32;
    // Before the byte that ends the footer.
    [&file[..tail - 1], extra, &[0], &size.to_le_bytes(), b"PAR1"].concat()
}

#[test]
fn a_footer_with_absurd_lists_is_refused_in_both_tables_and_by_merging() {
    let (packets, series) = (packets_of(&sample(0)), series_of(&sample(0)));
    // What the library does not know it skips: a text, as field 12 (5 after column_orders).
    let harmless = with_footer_fields(&packets, &[0x58, 0x01, b'x']);
    assert!(merge_packets([Ok(chunk(harmless))], Vec::new()).is_ok());
    let count = [0xff, 0xff, 0xff, 0xff, 0x07];
    let booleans = [&[0x59, 0xf1], &count[..]].concat();
    let lists = [&[0x59, 0x29, 0xf1], &count[..], &[0xf1], &count[..]].concat();
    for absurd in [booleans, lists] {
        let file = with_footer_fields(&packets, &absurd);
        assert!(refusal(file.clone()).to_string().contains("a footer that cannot be"));
        assert!(merge_packets([Ok(chunk(file))], Vec::new()).is_err());
        let file = with_footer_fields(&series, &absurd);
        assert!(read_series(chunk(file.clone())).is_err());
        assert!(merge_series([Ok(chunk(file))], Vec::new()).is_err());
    }
}

#[test]
fn the_file_of_2_kb_that_never_ended_is_refused_by_reading_and_by_merging() {
    let file = include_bytes!("../../../../fuzz/corpus/record_files/series-endless-header");
    let refused = read_series(chunk(file.to_vec())).err().expect("its header is absurd").to_string();
    assert!(refused.contains("a page header that cannot be"), "{refused}");
    assert!(merge_series([Ok(chunk(file.to_vec()))], Vec::new()).is_err());
}

#[test]
fn columns_that_share_their_bytes_are_refused_lest_few_bytes_are_read_again_and_again() {
    let file = packets_of(&sample(0));
    let metadata = super::super::reader::metadata(&super::super::schema::PACKETS, &Bytes::from(file.clone()));
    let metadata = metadata.unwrap();
    let mut builder = metadata.clone().into_builder();
    let group = metadata.row_group(0).clone();
    for _ in 0..3 {
        builder = builder.add_row_group(group.clone());
    }
    let refused = check_pages(&Bytes::from(file), &builder.build()).unwrap_err();
    assert!(refused.to_string().contains("in a file of"), "{refused}");
}
