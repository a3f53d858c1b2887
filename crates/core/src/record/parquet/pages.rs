//! Pages whose headers are checked against their content before the decoder reserves memory for them.

use parquet::basic::Encoding;
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};

/// The pages of one column of one row group.
pub(super) struct CheckedPages {
    pages: Box<dyn PageReader>,
    /// Rows that later data pages can still hold; a flat column has one value a row.
    rows: usize,
}

impl CheckedPages {
    pub(super) fn new(pages: Box<dyn PageReader>, rows: usize) -> Self {
        Self { pages, rows }
    }

    fn check(&mut self, page: &Page) -> Result<()> {
        let wrong = |what: String| Err(ParquetError::General(what));
        let (encoding, values) = (page.encoding(), page.num_values() as usize);
        // Other encodings can expand without bound, and benchgate writes none of them.
        let known = matches!(
            encoding,
            Encoding::PLAIN | Encoding::PLAIN_DICTIONARY | Encoding::RLE_DICTIONARY | Encoding::RLE
        );
        if !known {
            return wrong(format!("a page has the encoding {encoding}, which benchgate does not write"));
        }
        match page {
            // Each entry takes at least its length.
            Page::DictionaryPage { buf, .. } if values > buf.len() / 4 => {
                wrong(format!("a dictionary of {} bytes states {values} entries", buf.len()))
            }
            Page::DictionaryPage { .. } => Ok(()),
            Page::DataPage { .. } | Page::DataPageV2 { .. } => match self.rows.checked_sub(values) {
                Some(rest) => {
                    self.rows = rest;
                    Ok(())
                }
                None => wrong("a column has more values than its row group has rows".to_owned()),
            },
        }
    }
}

impl PageReader for CheckedPages {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let page = self.pages.get_next_page()?;
        if let Some(page) = &page {
            self.check(page)?;
        }
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
