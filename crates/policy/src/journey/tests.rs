//! A journey against a scripted world: a case is a row of what providers do, and the transcript of
//! what the journey did.

mod across;
mod channels;
mod clocks;
mod evidence;
mod hooks;
mod keys;
mod laws;
mod renewal;
mod replies;
mod sessions;
mod world;
