//! What a run's page says of how it was made.

use std::path::Path;

use crate::terminal::{shell_path, shell_word};

/// What runs `scenario` again in `arena`. If the far host of a live run is not known, `HOST` stands for it.
pub(crate) fn command_again(scenario: &Path, arena: &str, to: Option<&str>) -> String {
    let to = to.or_else(|| (arena == "live").then_some("HOST"));
    let to = to.map_or_else(String::new, |to| format!(" --to {}", shell_word(to)));
    format!("talkpath run {} --arena {arena}{to}", shell_path(scenario))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_that_repeats_a_run_is_one_that_a_shell_and_the_program_take() {
        let of = |path: &str, arena: &str, to: Option<&str>| command_again(Path::new(path), arena, to);
        assert_eq!(
            of("my runs/scenario.toml", "sim", None),
            "talkpath run 'my runs/scenario.toml' --arena sim"
        );
        assert_eq!(
            of("a.toml", "live", Some("h.example")),
            "talkpath run a.toml --arena live --to h.example"
        );
        // Its directory keeps the host as long as the run has parts.
        assert_eq!(of("a.toml", "live", None), "talkpath run a.toml --arena live --to HOST");
    }
}
