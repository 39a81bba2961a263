//! Requests.

mod read;
mod write;

pub(crate) use read::read;
pub(crate) use write::write;
pub(crate) use write::{budget, object, temperature};
