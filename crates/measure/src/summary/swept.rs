//! The swept keys of a plan, with their values in one cell.

use core::ops::{Deref, DerefMut};
use std::collections::{BTreeMap, btree_map};
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

/// The swept keys and the values of one cell. The plan, the cell and its repetitions share them in memory. A
/// change makes a copy.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Swept(Arc<BTreeMap<String, Value>>);

impl Deref for Swept {
    type Target = BTreeMap<String, Value>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl DerefMut for Swept {
    fn deref_mut(&mut self) -> &mut Self::Target {
        Arc::make_mut(&mut self.0)
    }
}

impl From<Arc<BTreeMap<String, Value>>> for Swept {
    fn from(swept: Arc<BTreeMap<String, Value>>) -> Self {
        Self(swept)
    }
}

impl From<BTreeMap<String, Value>> for Swept {
    fn from(swept: BTreeMap<String, Value>) -> Self {
        Self(Arc::new(swept))
    }
}

impl<const N: usize> From<[(String, Value); N]> for Swept {
    fn from(swept: [(String, Value); N]) -> Self {
        BTreeMap::from(swept).into()
    }
}

impl<'a> IntoIterator for &'a Swept {
    type Item = (&'a String, &'a Value);
    type IntoIter = btree_map::Iter<'a, String, Value>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

impl Serialize for Swept {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Swept {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        BTreeMap::<String, Value>::deserialize(deserializer).map(Self::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_shares_the_values_until_it_is_changed() {
        let first = Swept::from([("path.up.loss".to_owned(), Value::from(0.01))]);
        let mut other = first.clone();
        assert!(Arc::ptr_eq(&first.0, &other.0));
        other.insert("path.up.delay".to_owned(), Value::from("5 ms"));
        assert_eq!((first.len(), other.len()), (1, 2));
        let text = serde_json::to_string(&other).unwrap();
        assert_eq!(text, r#"{"path.up.delay":"5 ms","path.up.loss":0.01}"#);
        assert_eq!(serde_json::from_str::<Swept>(&text).unwrap(), other);
    }
}
