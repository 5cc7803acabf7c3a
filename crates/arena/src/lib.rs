//! What every arena shares: the trait, the endpoint and its taps.
