//! The result of a study for a person: a table of claims in the terminal, a page with charts, and the places
//! of pages in Markdown.
//!
//! Nothing is computed here: medians, confidence intervals and verdicts are in the
//! [`talkpath_study::Outcome`].
//!
//! - *claim*: a statement of the publication, or of our own.
//! - *check*: one comparison of measured figures with what a claim says.
//! - *cell*: one set-up of a study that runs: a scenario with settings of its own.
//! - *assumption set*: one answer to what the publication leaves open. The first set is the *base*.
//! - *standing*: whether the verdict is the same under the other sets and with other seeds.
//!
//! Begin to read with `text.rs`, which has the table of the terminal, and then with `page.rs`.

mod changes;
pub(crate) mod chart;
mod fill;
mod guide;
mod links;
mod page;
mod pictures;
mod prose;
mod published;
mod text;
mod words;

pub use changes::study_changes;
pub use fill::{PageMistake, fill_page, page_pictures};
pub use page::study_page;
pub use pictures::Picture;
pub use text::study_table;
