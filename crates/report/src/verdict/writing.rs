//! How a judged figure is written, and the rule by which it ranks transports.

use talkpath_measure::figures::Scale;
use talkpath_measure::summary::JudgedBy;

/// How a judged figure is written.
pub(crate) struct Written {
    /// The two lines of its column's head.
    pub head: (&'static str, &'static str),
    /// From the figure to the number that is shown.
    pub scale: Scale,
    /// Directly after each number.
    unit: &'static str,
    /// Around one number or several.
    before: &'static str,
    after: &'static str,
}

/// How a figure of this kind is written.
pub(crate) const fn written(by: JudgedBy) -> Written {
    match by {
        JudgedBy::Mos => {
            Written { head: ("", "MOS"), scale: Scale::SCORE, unit: "", before: "MOS ", after: "" }
        }
        JudgedBy::InTime => {
            let head = ("in time", "%");
            Written { head, scale: Scale::PERCENT, unit: " %", before: "", after: " in time" }
        }
        JudgedBy::Goodput => {
            let head = ("goodput", "Mb/s");
            Written { head, scale: Scale::MBPS, unit: "", before: "goodput ", after: " Mb/s" }
        }
    }
}

impl Written {
    /// `4.38`
    pub(crate) fn number(&self, figure: f64) -> String {
        self.scale.text(Some(figure))
    }

    /// A difference of two figures, with its sign; what rounds to zero has none.
    pub(crate) fn signed(&self, difference: f64) -> String {
        self.scale.signed(difference)
    }

    /// `4.38 and 4.31` of `MOS 4.38 and 4.31`
    pub(super) fn bare(&self, figure: f64) -> String {
        format!("{}{}", self.number(figure), self.unit)
    }

    /// `MOS 4.38 and 4.31`, of what [`Self::bare`] wrote.
    pub(super) fn phrase(&self, figures: &str) -> String {
        format!("{}{figures}{}", self.before, self.after)
    }
}

/// The rule in one sentence, for a table's foot.
pub(crate) fn rule(by: JudgedBy) -> String {
    let (figure, tolerance) = match by {
        JudgedBy::Mos => ("MOS", "0.1"),
        JudgedBy::InTime => ("share in time", "1 point"),
        JudgedBy::Goodput => ("goodput", "5 % of the best"),
    };
    format!(
        "by the mean {figure}; alike if the 95 % interval of the difference lies within {tolerance}, else better \
         if it leaves out zero, else undecided"
    )
}
