//! The reasons why values are wrong, for messages.

/// The reason why a value is wrong: what was found, what was expected, and a hint if there is one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) message: String,
    pub(crate) help: Option<String>,
}

impl Problem {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        message.into().into()
    }

    pub(crate) fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

impl From<String> for Problem {
    fn from(message: String) -> Self {
        Self { message, help: None }
    }
}

impl From<&str> for Problem {
    fn from(message: &str) -> Self {
        message.to_owned().into()
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
