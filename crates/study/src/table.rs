//! The tables of a publication: its printed figures, each with the cell and the metric that answer it. They
//! are read from a CSV file, one row for each figure.

use core::fmt;

use serde::de::{self, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

/// A table of printed figures.
#[derive(Clone, Debug, PartialEq)]
pub struct PublishedTable {
    /// The title, which says what the table shows.
    pub title: String,
    /// The rows, in the order of the file.
    pub rows: Vec<PublishedRow>,
}

/// A row of the CSV file: one printed figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedRow {
    /// The number of the table in the publication. It is empty if the file holds a single table.
    #[serde(default)]
    pub table: String,
    /// What the figure is, in words. If it is empty, the cell and the metric are shown.
    #[serde(rename = "what", default)]
    pub name: String,
    /// The column of the figure, if the table has several columns. `name` is then the row.
    #[serde(default)]
    pub column: String,
    /// The name of the cell that is compared with the figure.
    pub cell: String,
    /// The metric that is read of the cell.
    pub metric: String,
    /// The printed number, in the unit of the metric. If the publication measured several times, there are
    /// several numbers, with spaces between them in the CSV file.
    #[serde(deserialize_with = "numbers")]
    pub published: Vec<f64>,
    /// What the figure was used for.
    #[serde(default)]
    pub role: Role,
    /// The place of the figure in the publication, or the reason why it is exempt.
    #[serde(default)]
    pub note: String,
}

impl PublishedRow {
    /// Returns the mean of the printed numbers.
    pub fn mean(&self) -> Option<f64> {
        let count = self.published.len();
        (count > 0).then(|| self.published.iter().sum::<f64>() / count as f64)
    }
}

/// Reads one number, a list of numbers, or a text of numbers with spaces between them.
fn numbers<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<f64>, D::Error> {
    struct Numbers;
    impl<'de> Visitor<'de> for Numbers {
        type Value = Vec<f64>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a number, or several with spaces between them")
        }

        fn visit_f64<E: de::Error>(self, value: f64) -> Result<Self::Value, E> {
            if !value.is_finite() {
                return Err(E::invalid_value(de::Unexpected::Float(value), &self));
            }
            Ok(vec![value])
        }

        fn visit_i64<E>(self, value: i64) -> Result<Self::Value, E> {
            Ok(vec![value as f64])
        }

        fn visit_u64<E>(self, value: u64) -> Result<Self::Value, E> {
            Ok(vec![value as f64])
        }

        fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
            let mut numbers = Vec::new();
            for word in text.split_whitespace() {
                match word.parse::<f64>() {
                    Ok(number) if number.is_finite() => numbers.push(number),
                    _ => return Err(E::invalid_value(de::Unexpected::Str(text), &self)),
                }
            }
            if numbers.is_empty() {
                return Err(E::invalid_value(de::Unexpected::Str(text), &self));
            }
            Ok(numbers)
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
    /// Nothing in the set-up was chosen because of the figure. This is also the role if the file names none.
    #[default]
    #[serde(alias = "")]
    Predicted,
    /// The figure follows from an assumption about something that the publication does not say.
    Assumed,
    /// A parameter of the set-up was chosen so that the figure comes out.
    Fitted,
    /// Other figures of the publication contradict this figure, so it is not compared.
    Exempt,
}

impl fmt::Display for Role {
    /// Writes the name that the JSON has.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}
