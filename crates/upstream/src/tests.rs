//! The client against peers written by hand: in memory under a paused clock where time matters, on
//! loopback where the socket does.

mod body;
mod cancel;
mod failures;
mod h2;
mod peer;
mod pool;
mod tls;
mod token;
