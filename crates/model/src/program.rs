//! A program of the user on the path, and the figures that are read back from its output.

use regex::Regex;
use serde_json::Value;
use serde_json_path::JsonPath;
use talkpath_units::Duration;

/// A program of the user on the path.
#[derive(Clone, Debug, PartialEq)]
pub struct Program {
    /// The words of the command. It runs at the near end.
    pub command: Vec<String>,
    /// The words of the command that runs at the far end. Empty if none does.
    pub server: Vec<String>,
    /// The longest time that the command may take.
    pub timeout: Duration,
    /// The figures in the output of the command, in the order of their names.
    pub figures: Vec<ProgramFigure>,
    /// Whether a person ran the program by `talkpath shell`. Nobody else can run it again.
    pub is_of_shell: bool,
}

/// A figure in the output of a program.
#[derive(Clone, Debug, PartialEq)]
pub struct ProgramFigure {
    /// The name of the figure, which the user gave.
    pub name: String,
    /// Where the figure is in the output.
    pub source: FigureSource,
    /// The unit, as tables and charts show it. Empty if the figure has none.
    pub unit: String,
    /// Whether a smaller figure is better.
    pub less_is_better: bool,
}

/// Where a figure is in the output of a program.
#[derive(Clone, Debug)]
pub enum FigureSource {
    /// The value at a path in JSON (RFC 9535).
    Json(JsonPath),
    /// The text that matches a regular expression: its first group, or all of it if it has no group.
    Regex(Regex),
}

impl Program {
    /// Returns the whole commands in one line, for a person who decides whether to run them: `` `player -q`
    /// ``. Words with other characters than those of names and paths are in quotes.
    pub fn lines(&self) -> String {
        let line = |words: &[String]| {
            let words: Vec<String> = words.iter().map(|word| shown_word(word)).collect();
            format!("`{}`", words.join(" "))
        };
        match &self.server[..] {
            [] => line(&self.command),
            server => format!("{} with {} at the far end", line(&self.command), line(server)),
        }
    }
}

/// A word of a command as a person has to see it. Characters that a terminal does not show are escaped.
fn shown_word(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) { word.to_owned() } else { format!("{word:?}") }
}

impl FigureSource {
    /// Reads a path in JSON: `$.end.sum_received.bits_per_second`.
    ///
    /// # Errors
    /// Returns what is wrong with the path, and where.
    pub fn json(path: &str) -> Result<Self, String> {
        JsonPath::parse(path).map(Self::Json).map_err(|error| {
            format!("found what is not a path in JSON (RFC 9535), such as $.end.stalls: {error}")
        })
    }

    /// Reads a regular expression: `stalled ([0-9.]+) s`.
    ///
    /// # Errors
    /// Returns what is wrong with the expression, and where.
    pub fn regex(pattern: &str) -> Result<Self, String> {
        let regex = Regex::new(pattern).map_err(|error| {
            // The lines before the last one repeat the expression.
            let text = error.to_string();
            text.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned()
        })?;
        match regex.captures_len() {
            1 | 2 => Ok(Self::Regex(regex)),
            groups => Err(format!(
                "it has {} groups, and at most one of them is the figure: (?:...) is a group that is not counted",
                groups - 1
            )),
        }
    }

    /// Finds the figure in the standard output of a program. Programs repeat themselves while they run, so
    /// the last match counts. A value that is true is 1, and a value that is false is 0.
    ///
    /// # Errors
    /// Returns why there is no number, as the end of a sentence.
    pub fn find(&self, output: &str) -> Result<f64, String> {
        match self {
            Self::Json(path) => {
                let json = last_json(output).ok_or("the output is not JSON, and neither is its last line")?;
                let found = path.query(&json).last();
                number(found.ok_or_else(|| format!("the output has nothing at {self}"))?)
                    .ok_or_else(|| format!("the value at {self} is not a number"))
            }
            Self::Regex(regex) => {
                let last = regex.captures_iter(output).last();
                let captures = last.ok_or_else(|| format!("nothing in the output matches {self}"))?;
                let text = captures.get(1).or_else(|| captures.get(0)).map_or("", |found| found.as_str());
                let number = text.trim().parse::<f64>().ok().filter(|number| number.is_finite());
                number.ok_or_else(|| format!("what matches {self} is not a number: {text:?}"))
            }
        }
    }
}

impl core::fmt::Display for FigureSource {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Json(path) => write!(f, "{path}"),
            Self::Regex(regex) => write!(f, "{regex}"),
        }
    }
}

impl PartialEq for FigureSource {
    /// Compares the texts, because neither library compares its values.
    fn eq(&self, other: &Self) -> bool {
        core::mem::discriminant(self) == core::mem::discriminant(other)
            && self.to_string() == other.to_string()
    }
}

/// The output as JSON, or else its last line that is a JSON object or list. Many programs write a line of
/// JSON a second.
fn last_json(output: &str) -> Option<Value> {
    if let Ok(whole) = serde_json::from_str(output) {
        return Some(whole);
    }
    output.lines().rev().find_map(|line| {
        serde_json::from_str(line).ok().filter(|json: &Value| json.is_object() || json.is_array())
    })
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::Bool(flag) => Some(f64::from(u8::from(*flag))),
        // Some programs write their numbers as text.
        Value::String(text) => text.trim().parse::<f64>().ok(),
        _ => None,
    }
    .filter(|number| number.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_is_found_in_json_in_lines_of_json_and_by_an_expression() {
        let json = |path: &str, output: &str| FigureSource::json(path).unwrap().find(output);
        let regex = |pattern: &str, output: &str| FigureSource::regex(pattern).unwrap().find(output);
        let report = r#"{ "end": { "stalls": [1.5, 2.5], "ok": true, "text": "7", "none": null } }"#;
        assert_eq!(json("$.end.stalls[-1]", report), Ok(2.5));
        assert_eq!(json("$.end.ok", report), Ok(1.0));
        assert_eq!(json("$.end.text", report), Ok(7.0));
        let lines = "begun\n{ \"at\": 1 }\n{ \"at\": 2 }\n3\n";
        assert_eq!(json("$.at", lines), Ok(2.0), "the last line that is an object");
        assert_eq!(
            regex(r"stalled ([0-9.]+) s", "stalled 1 s\nstalled 2.25 s\n"),
            Ok(2.25),
            "the last match"
        );
        assert_eq!(regex(r"[0-9]+", "a 5 b"), Ok(5.0), "without a group all that matches");
        assert_eq!(json("$.end.none", report).unwrap_err(), "the value at $.end.none is not a number");
        assert_eq!(json("$.other", report).unwrap_err(), "the output has nothing at $.other");
        assert!(json("$.a", "no JSON").unwrap_err().contains("is not JSON"));
        assert!(regex("x(.)", "xy").unwrap_err().contains("is not a number: \"y\""));
        assert!(regex("(nan)", "nan").unwrap_err().contains("is not a number"));
    }

    #[test]
    fn a_command_is_shown_with_its_words_apart_and_with_hidden_characters_escaped() {
        let words = |line: &[&str]| line.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let mut program = Program {
            command: words(&["player", "--url=http://a/b", "a b\u{1b}[2K"]),
            server: Vec::new(),
            timeout: Duration::ZERO,
            figures: Vec::new(),
            is_of_shell: false,
        };
        assert_eq!(program.lines(), "`player --url=http://a/b \"a b\\u{1b}[2K\"`");
        program.server = words(&["server", ""]);
        assert!(program.lines().ends_with(" with `server \"\"` at the far end"), "{}", program.lines());
    }

    #[test]
    fn a_path_and_an_expression_that_are_wrong_are_refused() {
        assert!(FigureSource::json("end.stalls").is_err(), "a path begins with $");
        assert!(FigureSource::regex("(").is_err());
        assert!(FigureSource::regex("(a)(b)").unwrap_err().contains("2 groups"));
        assert!(FigureSource::regex("(?:a)(b)").is_ok());
    }
}
