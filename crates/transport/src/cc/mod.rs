//! Placeholder while the crate grows.
