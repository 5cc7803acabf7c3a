//! A macro for enums whose variants have a word in scenarios and summaries. The variants and their words are
//! written in one place.

/// Defines an enum whose variants have a word each, with the constants `ALL` and `WORDS` in the same order,
/// and the functions `name` and `named`.
#[macro_export]
macro_rules! words {
    ($(#[$about:meta])* pub enum $name:ident { $($(#[$doc:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name {
            $($(#[$doc])* $variant,)*
        }

        impl $name {
            /// All variants, in the order of the enum.
            pub const ALL: [Self; [$($word),*].len()] = [$(Self::$variant),*];

            /// The words of all variants, in the order of `ALL`.
            pub const WORDS: &[&str] = &[$($word),*];

            /// The word of the variant in scenarios and summaries.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)*
                }
            }

            /// Returns the variant with this word.
            pub fn named(word: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|variant| variant.name() == word)
            }
        }
    };
}
