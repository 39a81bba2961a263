//! Logs, metrics for operators.
