//! A guard between the file and the parquet library's decoders: what these assert, or would take a damaged
//! number's word for, is checked before they see it.

use parquet::basic::Encoding;
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};

/// Whether every column chunk lies within a file of `length` bytes.
pub(super) fn chunks_lie_within(metadata: &ParquetMetaData, length: u64) -> bool {
    let mut chunks = metadata.row_groups().iter().flat_map(RowGroupMetaData::columns);
    chunks.all(|chunk| {
        let start = chunk.dictionary_page_offset().unwrap_or_else(|| chunk.data_page_offset());
        let end = start.checked_add(chunk.compressed_size());
        start >= 0 && chunk.compressed_size() >= 0 && end.is_some_and(|end| end.unsigned_abs() <= length)
    })
}

/// The pages of one column chunk of `rows` rows.
pub(super) struct CheckedPages {
    pages: Box<dyn PageReader>,
    rows: usize,
    has_dictionary: bool,
}

impl CheckedPages {
    pub(super) fn new(pages: Box<dyn PageReader>, rows: usize) -> Self {
        Self { pages, rows, has_dictionary: false }
    }

    fn check(&mut self, page: &Page) -> Result<()> {
        if page.is_dictionary_page() {
            self.has_dictionary = true;
            return Ok(());
        }
        let sound = match page.encoding() {
            Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY => self.has_dictionary,
            Encoding::PLAIN | Encoding::DELTA_BINARY_PACKED => true,
            _ => false,
        };
        let values = usize::try_from(page.num_values()).unwrap_or(usize::MAX);
        match self.rows.checked_sub(values) {
            Some(left) if sound => {
                self.rows = left;
                Ok(())
            }
            Some(_) => Err(ParquetError::General(format!("unexpected encoding {}", page.encoding()))),
            None => Err(ParquetError::General(format!("{values} values in a page, {} to come", self.rows))),
        }
    }
}

impl PageReader for CheckedPages {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let page = self.pages.get_next_page()?;
        page.as_ref().map_or(Ok(()), |page| self.check(page))?;
        Ok(page)
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.pages.skip_next_page()
    }
}

impl Iterator for CheckedPages {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}
