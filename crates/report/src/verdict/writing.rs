//! How judged figures are written, and the rule that ranks transports by them.

use talkpath_measure::figures::Scale;
use talkpath_measure::summary::JudgedBy;

/// How one kind of judged figure is written.
pub(crate) struct FigureStyle {
    /// The title of the column's group. Empty if there is no such title.
    pub column_group: &'static str,
    /// The head of the column.
    pub column_head: &'static str,
    /// How a figure becomes the number that is shown.
    pub scale: Scale,
    /// The text directly after each number.
    unit: &'static str,
    /// The text before one number or several.
    before: &'static str,
    /// The text after one number or several.
    after: &'static str,
}

pub(crate) const fn figure_style(judged_by: JudgedBy) -> FigureStyle {
    match judged_by {
        JudgedBy::Mos => {
            let (column_group, column_head) = ("", "MOS");
            FigureStyle {
                column_group,
                column_head,
                scale: Scale::SCORE,
                unit: "",
                before: "MOS ",
                after: "",
            }
        }
        JudgedBy::Heard => {
            let (column_group, column_head) = ("heard", "%");
            FigureStyle {
                column_group,
                column_head,
                scale: Scale::PERCENT,
                unit: " %",
                before: "",
                after: " heard",
            }
        }
        JudgedBy::InTime => {
            let (column_group, column_head) = ("in time", "%");
            FigureStyle {
                column_group,
                column_head,
                scale: Scale::PERCENT,
                unit: " %",
                before: "",
                after: " in time",
            }
        }
        JudgedBy::Goodput => {
            let (column_group, column_head) = ("goodput", "Mb/s");
            FigureStyle {
                column_group,
                column_head,
                scale: Scale::MBPS,
                unit: "",
                before: "goodput ",
                after: " Mb/s",
            }
        }
    }
}

impl FigureStyle {
    /// Writes the number alone: `4.38`, `99.80`.
    pub(crate) fn number(&self, figure: f64) -> String {
        self.scale.text(Some(figure))
    }

    /// Writes the difference of two figures with its sign. A difference that rounds to zero has no sign.
    pub(crate) fn signed(&self, difference: f64) -> String {
        self.scale.signed(difference)
    }

    /// Writes the number with the unit that directly follows it: `4.38`, `99.80 %`.
    pub(crate) fn bare(&self, figure: f64) -> String {
        format!("{}{}", self.number(figure), self.unit)
    }

    /// Completes a range of numbers: `2.10 to 4.33` becomes `MOS 2.10 to 4.33`.
    pub(crate) fn range(&self, numbers: &str) -> String {
        format!("{}{numbers}{}{}", self.before, self.unit, self.after)
    }

    /// Completes a list of bare figures: `4.38 and 4.31` becomes `MOS 4.38 and 4.31`.
    pub(crate) fn phrase(&self, bare_figures: &str) -> String {
        format!("{}{bare_figures}{}", self.before, self.after)
    }
}

/// The ranking rule in one sentence, for the foot of a table.
pub(crate) fn rule(judged_by: JudgedBy) -> String {
    let figure = match judged_by {
        JudgedBy::Mos => "MOS",
        JudgedBy::InTime => "share in time",
        JudgedBy::Heard => "share heard",
        JudgedBy::Goodput => "goodput",
    };
    let tolerance = tolerance_words(judged_by);
    format!(
        "by the mean {figure}; alike if the 95 % interval of the difference lies within {tolerance}, better if all of the \
         interval is beyond, else undecided"
    )
}

/// The difference up to which transports are alike (`ranked::measure`).
pub(super) const fn tolerance_words(judged_by: JudgedBy) -> &'static str {
    match judged_by {
        JudgedBy::Mos => "0.1",
        JudgedBy::InTime => "1 point",
        JudgedBy::Heard => "0.4 points",
        JudgedBy::Goodput => "5 % of the best",
    }
}
