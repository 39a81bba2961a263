//! The whole gateway against providers that fail on request.

mod common;

mod attempts;
mod aws;
mod azure;
mod bad_input;
mod bedrock;
mod callers;
mod choice;
mod cohere;
mod compat;
mod compression;
mod configuration;
mod counting;
mod disclosure;
mod doors;
mod embeddings;
mod fallback;
mod gemini;
mod hang_up;
mod headers;
mod hooks;
mod keepalive;
mod kept_responses;
mod keys;
mod life;
mod pass_through;
mod replay;
mod responses;
mod scenario;
mod secrets;
mod sessions;
mod soak;
mod streams;
mod surfaces;
mod tokens;
mod translation;
mod vertex;

mod sdk;
