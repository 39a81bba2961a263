//! Whether a channel may be tried now.
