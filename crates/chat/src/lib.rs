//! The neutral shape of a conversation that every dialect translates through.
