//! One row an attempt, one record a journey.
