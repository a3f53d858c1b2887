//! L1, pure: locations, intervals, tests, corrections, power. statrs underneath; seeds are arguments.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]
