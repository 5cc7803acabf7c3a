//! Legends, which explain the words of tables.
//!
//! - A *term* is a word with its meaning. A *definition* is true for every run. A *finding* is known about
//!   this run alone.
//! - A *topic* decides where a term is in the legend.
//!
//! Begin to read with [`Term`], then [`legend`].

use talkpath_measure::figures::Table;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Term {
    pub name: &'static str,
    pub meaning: String,
    pub kind: TermKind,
    pub topic: Topic,
}

/// Whether a terminal prints a term without `--explain`. The page has both kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TermKind {
    /// What a column or a word means, in every run alike. A terminal prints it only with `--explain`.
    Definition,
    /// What is known of this run, such as how far its calls lie outside of the E-model's table. A terminal
    /// always prints it.
    Finding,
}

/// What a word is about. A legend explains the topics in the order of this enum. Within a topic, the words
/// are in the order in which they were collected, so the words of columns are in the order of the columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Topic {
    Transport,
    /// The figure that decides, and the differences in it.
    JudgedFigure,
    /// How the transports are ranked, and the reason of the answer.
    Ranking,
    Playout,
    /// The receivers of a call, and the limits of their model.
    Receiver,
    InTime,
    Delay,
    Opening,
    Jitter,
    Loss,
    Goodput,
    Unfinished,
    Resent,
    Fairness,
    /// A word without a topic of its own.
    Other,
    /// How the figures of several repetitions, and unknown figures, are to be read.
    Reading,
}

pub(crate) type Terms = Vec<Term>;

impl Term {
    /// A definition without a topic of its own.
    pub(crate) fn new(name: &'static str, meaning: impl Into<String>) -> Self {
        Self { name, meaning: meaning.into(), kind: TermKind::Definition, topic: Topic::Other }
    }

    /// A finding without a topic of its own.
    pub(crate) fn finding(name: &'static str, meaning: impl Into<String>) -> Self {
        Self { kind: TermKind::Finding, ..Self::new(name, meaning) }
    }

    /// The definition of the figure at `path` of `table`.
    pub(crate) fn defined<T>(name: &'static str, table: &'static Table<T>, path: &str) -> Self {
        Self::new(name, table.row(path).definition)
    }

    pub(crate) fn about(self, topic: Topic) -> Self {
        Self { topic, ..self }
    }
}

/// Adds the terms that are not yet explained.
pub(crate) fn add_new_terms(terms: &mut Terms, more: Terms) {
    for term in more {
        if terms.iter().all(|known| known.name != term.name) {
            terms.push(term);
        }
    }
}

/// Puts the terms in the order of a legend. If several terms have the same name, the first of them stays.
pub(crate) fn legend(mut terms: Terms) -> Terms {
    terms.sort_by_key(|term| term.topic);
    let mut legend = Terms::new();
    add_new_terms(&mut legend, terms);
    legend
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_legend_is_in_the_order_of_its_topics_and_names_no_word_twice() {
        let terms = vec![
            Term::new("loss", "first").about(Topic::Loss),
            Term::new("one", "its column is the first"),
            Term::new("loss", "second").about(Topic::Loss),
            Term::new("vs", "").about(Topic::JudgedFigure),
            Term::new("two", "its column is the second"),
        ];
        let legend = legend(terms);
        let names: Vec<&str> = legend.iter().map(|term| term.name).collect();
        assert_eq!(names, ["vs", "loss", "one", "two"]);
        assert_eq!(legend[1].meaning, "first");
    }
}
