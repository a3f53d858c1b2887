//! Bisection under noise: finds the candidate that made a benchmark worse.
//!
//! [`Search`] does no IO. The next comparison is a pure function of what was measured so far, so an
//! interrupted search resumes with the same question. Three rules make its result reliable:
//!
//! - The ends are judged first, by the gate itself. If the bad end isn't worse, no candidate is blamed.
//! - Probes only guide the search. A probe compares a candidate with an end of its range. Its exact p-values
//!   (for "no part of the step lies between the two" and "all of it does") become e-values, and all e-values
//!   together weight every position ([`weights`](self)). Later probes outweigh a misleading one.
//! - A candidate is named only after the gate calls it worse than its direct predecessor. The ranges before
//!   and after it are then judged again, so that all culprits are found if there are several.

mod evidence;
mod found;
mod search;

#[cfg(test)]
mod tests;

pub use evidence::{Observed, Pair};
pub use found::{BisectOptions, Ends, Found, Part, Probe, SearchProgress};
pub use search::{Next, Search};
