//! Makes the program of a scenario.

use talkpath_model::{FigureSource, Program, ProgramFigure};
use talkpath_units::Duration;

use crate::diagnostic::Log;
use crate::keys::{FIGURE, PROGRAM};
use crate::quantity::Problem;
use crate::read::KeyPath;
use crate::section::Section;
use crate::tree::Table;

/// The program of the scenario `root`. Its mistakes go to `log`.
pub(super) fn program(root: &Table, duration: Option<Duration>, log: &mut Log) -> Option<Program> {
    let node = root.get("program")?;
    let at = KeyPath::ROOT.key("program");
    let section = Section::new(node.as_table()?, PROGRAM.keys, at, &node.place);
    let command = words(&section, "command", log)?;
    let server = match section.node("server") {
        Some(_) => words(&section, "server", log)?,
        None => Vec::new(),
    };
    let timeout = section.duration("timeout").or(duration)?;
    if let Some(duration) = duration.filter(|duration| timeout > *duration) {
        let message = format!("found {timeout}, expected at most `duration`, {duration}");
        section.problem("timeout", Problem::new(message), log);
    }
    let figures = figures(&section, at.key("figures"), log);
    Some(Program { command, server, timeout, figures, is_of_shell: section.flag("shell")? })
}

/// The words of a command. The system takes no word with the character NUL (execve(2)).
fn words(section: &Section<'_>, key: &str, log: &mut Log) -> Option<Vec<String>> {
    let words: Vec<String> = section.names(key)?.map(|(word, _)| word.to_owned()).collect();
    if words.iter().any(|word| word.contains('\0')) {
        section.problem(
            key,
            Problem::new("found the character NUL in a word, which no program can get"),
            log,
        );
    }
    if words.first().is_some_and(String::is_empty) {
        section.problem(key, Problem::new("found no program in the first word"), log);
    }
    Some(words)
}

fn figures(program: &Section<'_>, at: KeyPath<'_>, log: &mut Log) -> Vec<ProgramFigure> {
    let tables = program.node("figures").and_then(|node| node.as_table());
    let mut figures = Vec::new();
    for entry in tables.map_or(&[][..], |tables| &tables.entries) {
        let Some(table) = entry.node.as_table() else { continue };
        let section = Section::new(table, FIGURE.keys, at.key(&entry.name), &entry.place);
        if let Some(source) = source(&section, log) {
            figures.push(ProgramFigure {
                name: entry.name.clone(),
                source,
                unit: section.text("unit").unwrap_or_default().to_owned(),
                less_is_better: section.choice("better") == Some("less"),
            });
        }
    }
    figures.sort_by(|a, b| a.name.cmp(&b.name));
    figures
}

fn source(section: &Section<'_>, log: &mut Log) -> Option<FigureSource> {
    let (key, source) = match (section.text("json"), section.text("regex")) {
        (Some(path), None) => ("json", FigureSource::json(path)),
        (None, Some(pattern)) => ("regex", FigureSource::regex(pattern)),
        (Some(_), Some(_)) => {
            section.problem("regex", Problem::new("found `json` and `regex`, expected one of them"), log);
            return None;
        }
        (None, None) => {
            // A value that is no text is in the log.
            if section.node("json").is_none() && section.node("regex").is_none() {
                let problem = Problem::new("missing; expected a path in JSON, or `regex` in its place");
                section.problem("json", problem.with_help("json = \"$.stalls\""), log);
            }
            return None;
        }
    };
    source.map_err(|why| section.problem(key, Problem::new(why), log)).ok()
}

#[cfg(test)]
mod tests {
    use talkpath_units::Duration;

    use crate::{Options, Source, load};

    /// Loads a scenario with this text behind `[program]`. The error has all mistakes.
    fn program(text: &str) -> Result<talkpath_model::Program, String> {
        let text = format!("duration = \"9 s\"\npath = \"lan\"\n[program]\n{text}\n");
        let plan = load(&Source::new("a.toml", text), &Options::default());
        let plan = plan.map_err(|mistakes| mistakes.to_string())?;
        Ok(plan.cells[0].scenario.program.clone().unwrap())
    }

    #[test]
    fn a_program_has_its_words_its_figures_and_the_duration_as_its_timeout() {
        let read = program(
            "command = [\"player\", \"-q\"]\nserver = [\"server\"]\n\
             figures.stalls = { json = \"$.stalls\", unit = \"s\", better = \"less\" }\n\
             figures.mbps = { regex = \"rate ([0-9.]+)\" }",
        )
        .unwrap();
        assert_eq!((read.command.len(), read.server.len(), read.timeout), (2, 1, Duration::from_secs(9)));
        let figures: Vec<_> = read.figures.iter().map(|f| (&*f.name, &*f.unit, f.less_is_better)).collect();
        assert_eq!(figures, [("mbps", "", false), ("stalls", "s", true)]);
        assert!(!read.is_of_shell);
        assert_eq!(program("command = [\"a\"]\ntimeout = \"2 s\"").unwrap().timeout, Duration::from_secs(2));
    }

    #[test]
    fn what_is_wrong_with_a_program_is_said_at_its_key() {
        for (text, key, expected) in [
            ("timeout = \"1 s\"", "program.command", "missing"),
            ("command = [\"a\"]\ntimeout = \"10 s\"", "program.timeout", "at most `duration`"),
            ("command = [\"\"]", "program.command", "no program in the first word"),
            ("command = [\"a\\u0000b\"]", "program.command", "the character NUL"),
            ("command = [\"a\"]\nfigures.x = {}", "program.figures.x.json", "missing"),
            ("command = [\"a\"]\nfigures.x = { json = \"a.b\" }", "program.figures.x.json", "$"),
            ("command = [\"a\"]\nfigures.x = { regex = \"(\" }", "program.figures.x.regex", "unclosed group"),
            (
                "command = [\"a\"]\nfigures.x = { regex = \"a\", json = \"$.a\" }",
                "program.figures.x.regex",
                "expected one of them",
            ),
            ("command = [\"a\"]\nfigures.\"a.b\" = { regex = \"a\" }", "program.figures", "the name"),
        ] {
            let mistakes = program(text).unwrap_err();
            assert!(mistakes.contains(key) && mistakes.contains(expected), "{text}: {mistakes}");
        }
    }
}
