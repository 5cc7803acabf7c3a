//! The real arenas.
