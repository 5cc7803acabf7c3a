//! The reasons why values are wrong, for messages.

/// The reason why a value is wrong: what was found, what was expected, and a hint if there is one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) message: String,
    pub(crate) help: Option<String>,
}

impl Problem {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), help: None }
    }

    pub(crate) fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

/// Puts `text` in quotes for a message, and cuts it if it is long.
pub(crate) fn quote(text: &str) -> String {
    const MAX_CHARS: usize = 60;
    if text.chars().count() <= MAX_CHARS {
        format!("{text:?}")
    } else {
        format!("{:?}...", text.chars().take(MAX_CHARS).collect::<String>())
    }
}
