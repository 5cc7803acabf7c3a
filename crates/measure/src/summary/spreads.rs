//! The spreads of a flow's figures over the repetitions of a cell. A *spread* is a median, a mean and an
//! interval.

use core::ops::Index;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::Spread;

/// Spreads by the path of their figure, such as `loss_rate`, in the order of the paths.
///
/// A flow has about fifty figures, and has the same ones in nearly every cell of a sweep. Therefore the cells
/// share the list of paths in memory.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Spreads {
    paths: Arc<[Cow<'static, str>]>,
    /// The spread of each path.
    spreads: Box<[Spread]>,
}

impl Spreads {
    /// Makes the spreads of a cell from pairs of a path and a spread. If `other_cell` has the same paths, the
    /// list of paths is shared with it.
    pub(crate) fn new(mut pairs: Vec<(&'static str, Spread)>, other_cell: Option<&Self>) -> Self {
        pairs.sort_by_key(|(path, _)| *path);
        let paths = match other_cell {
            Some(other) if other.paths.iter().eq(pairs.iter().map(|(path, _)| path)) => {
                Arc::clone(&other.paths)
            }
            _ => pairs.iter().map(|(path, _)| Cow::Borrowed(*path)).collect(),
        };
        Self { paths, spreads: pairs.into_iter().map(|(_, spread)| spread).collect() }
    }

    /// Makes the spreads of figures that the user has named.
    pub fn of_names(spreads: BTreeMap<String, Spread>) -> Self {
        let (paths, spreads): (Vec<_>, Vec<_>) = spreads.into_iter().unzip();
        Self { paths: paths.into_iter().map(Cow::Owned).collect(), spreads: spreads.into() }
    }

    /// Returns true if there is no figure.
    pub fn is_empty(&self) -> bool {
        self.spreads.is_empty()
    }

    /// Returns the spread of the figure at `path`.
    pub fn get(&self, path: &str) -> Option<&Spread> {
        self.spreads.get(self.index_of(path)?)
    }

    /// Returns the spread of the figure at `path`, so that it can be changed.
    pub fn get_mut(&mut self, path: &str) -> Option<&mut Spread> {
        let index = self.index_of(path)?;
        self.spreads.get_mut(index)
    }

    /// Iterates over the paths and their spreads, in the order of the paths.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Spread)> {
        self.paths.iter().map(Cow::as_ref).zip(self.spreads.iter())
    }

    fn index_of(&self, path: &str) -> Option<usize> {
        self.paths.binary_search_by(|known| known.as_ref().cmp(path)).ok()
    }
}

impl Index<&str> for Spreads {
    type Output = Spread;

    /// # Panics
    /// Panics if there is no figure at `path`.
    fn index(&self, path: &str) -> &Spread {
        self.get(path).unwrap_or_else(|| panic!("no metric {path}"))
    }
}

impl Serialize for Spreads {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de> Deserialize<'de> for Spreads {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        BTreeMap::deserialize(deserializer).map(Self::of_names)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spread(value: f64) -> Spread {
        Spread { median: value, mean: value, ci95: None, n: None }
    }

    #[test]
    fn spreads_are_written_as_a_map_and_read_from_one() {
        let spreads = Spreads::new(vec![("sent", spread(2.0)), ("lost", spread(1.0))], None);
        let map = BTreeMap::from([("lost", spread(1.0)), ("sent", spread(2.0))]);
        let text = serde_json::to_string_pretty(&map).unwrap();
        assert_eq!(serde_json::to_string_pretty(&spreads).unwrap(), text);
        let read: Spreads = serde_json::from_str(&text).unwrap();
        assert_eq!((&read, read["sent"].mean, read.get("missing")), (&spreads, 2.0, None));
        assert_eq!(serde_json::to_string_pretty(&Spreads::default()).unwrap(), "{}");
    }

    #[test]
    fn cells_with_the_same_paths_share_them_and_others_do_not() {
        let first = Spreads::new(vec![("sent", spread(2.0)), ("lost", spread(1.0))], None);
        let same = Spreads::new(vec![("lost", spread(3.0)), ("sent", spread(4.0))], Some(&first));
        assert!(Arc::ptr_eq(&first.paths, &same.paths));
        assert_eq!((same["lost"].mean, same["sent"].mean), (3.0, 4.0));
        let fewer = Spreads::new(vec![("sent", spread(5.0))], Some(&first));
        assert_eq!((fewer.iter().len(), fewer["sent"].mean), (1, 5.0));
    }
}
