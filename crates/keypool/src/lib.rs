//! Which key serves the next attempt.
