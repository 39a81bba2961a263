//! Whole-gateway tests; see `tests/`.
