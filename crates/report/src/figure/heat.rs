//! Heat maps over two swept parameters: who is best at each combination, and how good the best is. Each
//! combination is a cell with its text, so that nothing hangs on colour alone. A cell has the colour of the
//! first transport in its text.

use std::collections::{BTreeMap, BTreeSet};

use talkpath_measure::summary::JudgedBy;

use super::sweep::{along, axis_title};
use super::{Entry, Figure, Sample, colour};
use crate::display::Look;
use crate::number::{count, list};
use crate::plot::panel::{RIGHT, WIDTH};
use crate::plot::svg::{Anchor, Svg};
use crate::sweep::{Combination, Outcome, Sweep};
use crate::view::TransportView;

/// Room left of the cells for the values of the vertical axis.
const LEFT: f64 = 96.0;
/// Room above the cells for the title of the vertical axis, and for the name of one map of several above it.
const TOP: f64 = 26.0;
const NAME_ROW: f64 = 18.0;
/// Where both begin.
const TITLE_LEFT: f64 = 8.0;
const ROW: f64 = 26.0;
/// Room under the cells for the values of the horizontal axis and its title.
const FOOT: f64 = 46.0;
/// Sets of names behind a +N that a caption writes out; chosen: more are longer than the rest of it.
const MAX_SETS: usize = 3;
/// Maps under one another, one for each combination of further keys; chosen.
const MAX_MAPS: usize = 6;
/// Letters below this size are not read; chosen.
const LEGIBLE: f64 = 7.0;

/// What a map shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Heat {
    Winner,
    Figure,
}

/// The figure, with `conditions` as the end of its caption; `None` if fewer than two parameters are swept, if
/// several runs stand side by side, or for the winner if nothing is compared.
pub(crate) fn heat_map(sweep: &Sweep<'_>, heat: Heat, conditions: &str) -> Option<Figure> {
    let (x, mut others) = along(sweep)?;
    let y = *others.iter().max_by_key(|&&at| sweep.axes[at].values.len())?;
    if !sweep.has_answers() || heat == Heat::Winner && !sweep.is_compared() {
        return None;
    }
    others.retain(|at| *at != y);
    let (maps, left_out) = maps(sweep, &others);
    let (columns, rows) = (sweep.axes[x].values.len(), sweep.axes[y].values.len());
    let height = rows as f64 * ROW;
    let head = if others.is_empty() { TOP } else { TOP + NAME_ROW };
    let mut svg = Svg::new(WIDTH, (head + height + FOOT) * maps.len() as f64);
    let colours = colour_range(sweep);
    for (index, (name, members)) in maps.iter().enumerate() {
        let top = head + index as f64 * (head + height + FOOT);
        if !name.is_empty() {
            svg.text("name", "", (TITLE_LEFT, top - 9.0 - NAME_ROW), Anchor::Start, name);
        }
        axes(&mut svg, sweep, (x, y), top);
        for it in members {
            let width = (WIDTH - RIGHT - LEFT) / columns as f64;
            let corner = (LEFT + it.at[x] as f64 * width, top + (rows - 1 - it.at[y]) as f64 * ROW);
            cell(&mut svg, sweep, it, (heat, colours), corner, width);
        }
    }
    let word = axis_title(sweep.by);
    let (title, kind) = match heat {
        Heat::Winner => (format!("Which transport is best for {}", sweep.flow), "winner"),
        Heat::Figure if sweep.is_compared() => {
            (format!("How good the best transport is for {}: {word}", sweep.flow), "figure")
        }
        Heat::Figure => (format!("How good it is for {}: {word}", sweep.flow), "figure"),
    };
    let id = format!("heat-{kind}-{}", super::word(sweep.flow));
    let description = format!(
        "A cell for each of the {} combinations of {} and {}.",
        sweep.combinations.len(),
        sweep.axes[x].key,
        sweep.axes[y].key
    );
    let caption = match heat {
        Heat::Winner => format!(
            "A full colour: one is best. A faint one: the named serve alike, +N is N more of them{}. \"?\": the repetitions \
             do not decide. \"~\": it depends on the receiver. \"no\": nothing is usable. The number is the {word} of the best: a mean over the repetitions, or both outcomes where there are two.",
            hidden_names(sweep)
        ),
        Heat::Figure => {
            "Means over the repetitions, or both outcomes where there are two; the better, the stronger the colour. In \
             brackets: not usable, or not in each repetition or with each receiver."
                .to_owned()
        }
    };
    Some(Figure {
        legend: if heat == Heat::Winner { legend(sweep) } else { Vec::new() },
        svg: Some(svg.finish(&id, &title, &description)),
        caption: format!("{caption}{left_out}{}{conditions}", sweep.placeless()),
        id,
        title,
    })
}

/// One map for each combination of the other axes, and how many are not drawn.
fn maps<'s>(sweep: &'s Sweep<'_>, others: &[usize]) -> (Vec<(String, Vec<&'s Combination<'s>>)>, String) {
    let mut maps: Vec<(String, Vec<&Combination<'_>>)> = Vec::new();
    let mut places: BTreeMap<Vec<usize>, usize> = BTreeMap::new();
    for it in &sweep.combinations {
        let key: Vec<usize> = others.iter().map(|&axis| it.at[axis]).collect();
        let place = *places.entry(key).or_insert_with(|| {
            let parts = others
                .iter()
                .map(|&axis| format!("{} = {}", sweep.axes[axis].key, sweep.axes[axis].typed(it.at[axis])));
            maps.push((parts.collect::<Vec<_>>().join(", "), Vec::new()));
            maps.len() - 1
        });
        maps[place].1.push(it);
    }
    let all = maps.len();
    let hidden: usize = maps.iter().skip(MAX_MAPS).map(|(_, members)| members.len()).sum();
    maps.truncate(MAX_MAPS);
    let left_out = match hidden {
        0 => String::new(),
        hidden => {
            let keys: Vec<String> = others.iter().map(|axis| sweep.axes[*axis].key.clone()).collect();
            format!(
                " Drawn for the first {MAX_MAPS} of {} values of {}; the other {} combinations are in {}.",
                count(all as u64),
                list(&keys),
                count(hidden as u64),
                if sweep.is_large() { "summary.json" } else { "the table below" }
            )
        }
    };
    (maps, left_out)
}

/// The values beside the rows and under the columns.
fn axes(svg: &mut Svg, sweep: &Sweep<'_>, (x, y): (usize, usize), top: f64) {
    let (columns, rows) = (sweep.axes[x].values.len(), sweep.axes[y].values.len());
    let (width, bottom) = ((WIDTH - RIGHT - LEFT) / columns as f64, top + rows as f64 * ROW);
    let every = |room: f64, axis: usize| {
        let longest =
            (0..sweep.axes[axis].values.len()).map(|at| sweep.axes[axis].typed(at).chars().count()).max();
        ((7.2 * longest.unwrap_or(1) as f64 + 4.0) / room).ceil().max(1.0) as usize
    };
    let step = every(width, x);
    for at in (0..columns).step_by(step) {
        let middle = LEFT + (at as f64 + 0.5) * width;
        svg.text("tick", "", (middle, bottom + 17.0), Anchor::Middle, &sweep.axes[x].typed(at));
    }
    for at in 0..rows {
        let middle = top + (rows - 1 - at) as f64 * ROW + ROW / 2.0 + 4.0;
        svg.text("tick", "", (LEFT - 7.0, middle), Anchor::End, &sweep.axes[y].typed(at));
    }
    svg.text("title", "", (LEFT, bottom + 37.0), Anchor::Start, &sweep.axes[x].in_words());
    // Above the values and not beside them: few rows are less high than the words are long.
    svg.text("title", "", (TITLE_LEFT, top - 9.0), Anchor::Start, &sweep.axes[y].in_words());
}

fn cell(
    svg: &mut Svg,
    sweep: &Sweep<'_>,
    it: &Combination<'_>,
    (heat, colours): (Heat, (f64, f64)),
    (x, y): (f64, f64),
    width: f64,
) {
    let (text, style) = match heat {
        Heat::Winner => winner(sweep, it, width),
        Heat::Figure => figure(sweep, it, colours),
    };
    let values =
        sweep.axes.iter().zip(&it.at).map(|(axis, at)| format!("{} = {}", axis.key, axis.typed(*at)));
    let figure = it.figure_of_best(sweep.by);
    let figure = figure.map_or_else(String::new, |text| format!(", {} {text}", axis_title(sweep.by)));
    let name = match it.verdict {
        Some(verdict) if !verdict.is_valid => " no answer, the run is not valid".to_owned(),
        Some(verdict) => format!(" {}, {}", verdict.short, it.outcome().word()),
        None => String::new(),
    };
    let title = format!("{}:{name}{figure}", values.collect::<Vec<_>>().join(", "));
    let size = letter_size(&text, width).clamp(4.0, 12.0);
    svg.cell(&style, ((x, y), (width - 1.0, ROW - 1.0)), size, &text, &title);
}

/// The size in which `text` fills a cell. A character is about 0.6 of the font's size wide.
fn letter_size(text: &str, width: f64) -> f64 {
    (width - 3.0) / (0.6 * text.chars().count().max(2) as f64)
}

/// Who is best, in a few letters, and how good, if there is room for it.
fn winner(sweep: &Sweep<'_>, it: &Combination<'_>, width: f64) -> (String, String) {
    let (who, style) = names_and_colour(sweep, it);
    let both = it.figure_of_best(sweep.by).map(|text| format!("{who} {text}"));
    let both = both.filter(|both| it.outcome() != Outcome::Unknown && letter_size(both, width) >= LEGIBLE);
    (both.unwrap_or(who), style)
}

/// Who is best, in a few letters.
fn names_and_colour(sweep: &Sweep<'_>, it: &Combination<'_>) -> (String, String) {
    let named = it.verdict.map(|verdict| &verdict.named[..]).unwrap_or_default();
    let names: Vec<String> = named.iter().map(|name| code(name)).collect();
    let first = named.first().and_then(|name| sweep.series.iter().position(|view| view.label == *name));
    let leader = first.or(it.leader).map(|at| colour(sweep.looks[at]));
    let leader = leader.unwrap_or_else(|| "var(--soft)".to_owned());
    let all = || short(&names);
    match it.outcome() {
        Outcome::Distinct(_) => (all(), format!("fill:{leader};fill-opacity:.55")),
        Outcome::Alike(_) => (all(), format!("fill:{leader};fill-opacity:.2")),
        Outcome::Undecided => ("?".to_owned(), "fill:var(--soft);fill-opacity:.12".to_owned()),
        Outcome::DependsOnReceiver => ("~".to_owned(), "fill:var(--bad);fill-opacity:.08".to_owned()),
        Outcome::Unusable => ("no".to_owned(), "fill:var(--bad);fill-opacity:.16".to_owned()),
        Outcome::Unknown => ("–".to_owned(), "fill:none".to_owned()),
    }
}

/// `U`, `U/T`, `U+4`
fn short(names: &[String]) -> String {
    match names {
        [first, _, _, ..] => format!("{first}+{}", names.len() - 1),
        few => few.join("/"),
    }
}

/// Whose names the letters with a +N leave out, for the caption: ` (U+2: UDP, TCP and QUIC stream)`.
fn hidden_names(sweep: &Sweep<'_>) -> String {
    let named = sweep
        .combinations
        .iter()
        .filter(|it| matches!(it.outcome(), Outcome::Distinct(_) | Outcome::Alike(_)));
    let named = named.filter_map(|it| Some(&it.verdict?.named)).filter(|names| names.len() > 2);
    let sets: BTreeSet<String> = named
        .map(|names| {
            let letters: Vec<String> = names.iter().map(|name| code(name)).collect();
            format!("{}: {}", short(&letters), list(names))
        })
        .collect();
    match sets.len() {
        0 => String::new(),
        1..=MAX_SETS => format!(" ({})", sets.into_iter().collect::<Vec<_>>().join("; ")),
        _ => " (the report's table of combinations has their names)".to_owned(),
    }
}

/// The figures that have the faintest and the strongest colour.
fn colour_range(sweep: &Sweep<'_>) -> (f64, f64) {
    match sweep.by {
        JudgedBy::Mos => (1.0, 4.5),
        JudgedBy::InTime => (0.0, 1.0),
        JudgedBy::Goodput => {
            (0.0, sweep.combinations.iter().filter_map(Combination::best).fold(0.0, f64::max))
        }
    }
}

/// How good the best is, in a colour between those of `low` and `high`.
fn figure(sweep: &Sweep<'_>, it: &Combination<'_>, (low, high): (f64, f64)) -> (String, String) {
    let (Some(best), Some(text)) = (it.best(), it.figure_of_best(sweep.by)) else {
        return ("–".to_owned(), "fill:none".to_owned());
    };
    let share = if high > low { ((best - low) / (high - low)).clamp(0.0, 1.0) } else { 0.0 };
    let is_unusable = it.best_depends() || it.usable_of_best().is_some_and(|share| share < 1.0);
    let text = if is_unusable { format!("({text})") } else { text };
    (text, format!("fill:var(--accent);fill-opacity:{:.2}", 0.05 + 0.55 * share))
}

/// The transports' letters and colours.
fn legend(sweep: &Sweep<'_>) -> Vec<Entry> {
    let of = |(view, look): (&TransportView, &Look)| Entry {
        name: format!("{} ({})", view.label, code(&view.label)),
        samples: vec![Sample::line(
            format!("stroke:{};stroke-width:9;stroke-opacity:.55", colour(*look)),
            None,
        )],
    };
    sweep.series.iter().zip(&sweep.looks).map(of).collect()
}

/// The first letter of each word, and its number: `TCP_NODELAY` is TN, `DCCP CCID 2` is DC2. No two
/// transports have the same letters.
fn code(label: &str) -> String {
    let words = label.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words
        .filter_map(|word| {
            let first = word.chars().next()?;
            Some(if first.is_ascii_digit() { word.to_owned() } else { first.to_uppercase().to_string() })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::code;
    use crate::display::all;

    #[test]
    fn no_two_transports_have_the_same_letters() {
        let mut known = BTreeMap::new();
        for display in all() {
            let other = known.insert(code(display.name), display.name);
            assert_eq!(other, None, "{}", display.name);
        }
    }
}
