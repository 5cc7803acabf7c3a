//! A publication's printed figures beside ours, cell by cell.

use core::fmt;

use serde::de::{self, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

/// A table of printed figures.
#[derive(Clone, Debug, PartialEq)]
pub struct PublishedTable {
    /// What it shows.
    pub title: String,
    /// In the file's order.
    pub rows: Vec<PublishedRow>,
}

/// One printed figure: a row of the CSV file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedRow {
    /// Which of the publication's tables it is in; empty if the file holds a single table.
    #[serde(default)]
    pub table: String,
    /// For a person; the cell and the metric if it is empty.
    #[serde(default)]
    pub what: String,
    /// Its column, if the table has several; `what` is then its row.
    #[serde(default)]
    pub column: String,
    /// The cell that answers it.
    pub cell: String,
    /// What is read of the cell.
    pub metric: String,
    /// As printed, in the metric's unit; several figures, with spaces between them in the CSV file, if the
    /// publication measured it several times.
    #[serde(deserialize_with = "numbers")]
    pub published: Vec<f64>,
    /// What the figure was used for.
    #[serde(default)]
    pub role: Role,
    /// Its place in the publication, or why it is exempt.
    #[serde(default)]
    pub note: String,
}

impl PublishedRow {
    /// The mean of what is printed.
    pub fn mean(&self) -> Option<f64> {
        let count = self.published.len();
        (count > 0).then(|| self.published.iter().sum::<f64>() / count as f64)
    }
}

/// One number, a list of them, or a text of numbers with spaces between them; at least one.
fn numbers<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<f64>, D::Error> {
    struct Numbers;
    impl<'de> Visitor<'de> for Numbers {
        type Value = Vec<f64>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a number, or several with spaces between them")
        }

        fn visit_f64<E: de::Error>(self, value: f64) -> Result<Self::Value, E> {
            match value.is_finite() {
                true => Ok(vec![value]),
                false => Err(E::invalid_value(de::Unexpected::Float(value), &self)),
            }
        }

        fn visit_i64<E>(self, value: i64) -> Result<Self::Value, E> {
            Ok(vec![value as f64])
        }

        fn visit_u64<E>(self, value: u64) -> Result<Self::Value, E> {
            Ok(vec![value as f64])
        }

        fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
            let numbers: Option<Vec<f64>> = text
                .split_whitespace()
                .map(|word| word.parse::<f64>().ok().filter(|it| it.is_finite()))
                .collect();
            numbers
                .filter(|them| !them.is_empty())
                .ok_or_else(|| E::invalid_value(de::Unexpected::Str(text), &self))
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
            let mut numbers = Vec::new();
            while let Some(number) = seq.next_element::<f64>()? {
                if !number.is_finite() {
                    return Err(de::Error::invalid_value(de::Unexpected::Float(number), &self));
                }
                numbers.push(number);
            }
            Ok(numbers)
        }
    }
    deserializer.deserialize_any(Numbers)
}

/// What a printed figure was used for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// The set-up was not chosen by it; also if nothing is said.
    #[default]
    #[serde(alias = "")]
    Predicted,
    /// An assumption of ours that the publication does not give decides it.
    Assumed,
    /// A parameter of the set-up was chosen so that it comes out.
    Fitted,
    /// The publication's own figures rule it out.
    Exempt,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Predicted => "predicted",
            Self::Assumed => "assumed",
            Self::Fitted => "fitted",
            Self::Exempt => "exempt",
        })
    }
}
