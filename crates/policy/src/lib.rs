//! What comes after each failure of a request.
