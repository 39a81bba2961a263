//! A scripted provider over real HTTP for tests, demo, drills.
