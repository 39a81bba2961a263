//! What an API account family needs on the wire.
