//! Where a stream's events begin, when it commits, how it ended.
