//! The listener that turns a caller's request into a journey.
