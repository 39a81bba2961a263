//! The client that carries one attempt to a provider.
