//! The simulated arena.
