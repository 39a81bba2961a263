//! What kind of failure a provider's answer is.
