//! The key tables of scenario and campaign files, one in each file. The keys of transports, workloads and
//! queues are beside the code that reads them.
//!
//! A *key table* describes the keys of one table of the file. The checks and the defaults
//! ([`crate::pass::check`]), the JSON Schema ([`crate::schema`]) and the Markdown tables of
//! docs/reference/scenario.md ([`key_tables`]) are made of the key tables.

mod campaign;
mod cellular;
mod change;
mod flow;
mod kernel;
mod link;
mod program;
mod root;
mod tables;
mod wifi;

pub(crate) use campaign::{CAMPAIGN, HOST, MEASURE, SCHEDULE};
pub(crate) use cellular::{CELL_RATE, CELLULAR};
pub(crate) use change::{CHANGE, CHANGED_QUEUE};
pub(crate) use flow::{FLOW, RECEIVER};
pub(crate) use kernel::KERNEL;
#[cfg(test)]
pub(crate) use link::LOSS;
pub(crate) use link::{LINK, PATH, REORDERING, TOKEN_BUCKET};
pub(crate) use program::{FIGURE, PROGRAM};
pub(crate) use root::{FAR_CLOCK, ROOT};
pub use tables::{campaign_key_tables, key_tables, transport_names};
pub(crate) use wifi::{LARGEST_PACKET, OF_THE_WIFI, OTHERS, WIFI, WIFI_RATE};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{Key, Kind};

    #[test]
    fn every_key_has_its_own_name_and_a_doc() {
        fn walk(keys: &'static [Key]) {
            for (at, key) in keys.iter().enumerate() {
                assert!(
                    !key.doc.is_empty() && !key.doc.ends_with('.'),
                    "{}: a phrase without a full stop",
                    key.name
                );
                assert!(!keys[..at].iter().any(|other| other.name == key.name), "{} twice", key.name);
                match key.kind {
                    Kind::Table(spec) | Kind::Map(spec) | Kind::Path(spec) | Kind::List(spec) => {
                        walk(spec.keys);
                    }
                    Kind::Tagged(tagged) => tagged.variants.iter().for_each(|variant| walk(variant.keys)),
                    _ => {}
                }
            }
        }
        walk(ROOT.keys);
        walk(CAMPAIGN.keys);
    }
}
