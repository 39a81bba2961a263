//! The wire shapes callers and providers speak.
