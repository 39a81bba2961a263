//! How long to wait before a retry, within a budget.
