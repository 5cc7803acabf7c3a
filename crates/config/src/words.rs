//! Choices with a word each, written once: the enum, its variants in order, and their words in scenarios and
//! summaries.

/// Defines an enum whose variants have a word each, with `ALL`, `WORDS` in the same order, `name` and
/// `named`.
#[macro_export]
macro_rules! words {
    ($(#[$about:meta])* pub enum $name:ident { $($(#[$doc:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name {
            $($(#[$doc])* $variant,)*
        }

        impl $name {
            /// Every variant, in order.
            pub const ALL: [Self; [$($word),*].len()] = [$(Self::$variant),*];

            /// Their words in scenarios, in the order of `ALL`.
            pub const WORDS: &[&str] = &[$($word),*];

            /// The word in scenarios and summaries.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)*
                }
            }

            /// The one with this word.
            pub fn named(word: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|it| it.name() == word)
            }
        }
    };
}
