//! What the operator's file means.
