//! Requests.

mod read;
mod write;

pub(crate) use read::read;
pub(super) use write::object;
pub(crate) use write::write;
