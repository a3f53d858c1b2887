//! Bisection under noise: finds the candidate that made a benchmark worse.
//!
//! [`Search`] does no IO. It says what to measure next as a pure function of what was measured so far, so that an
//! interrupted search asks the same question again. Three things keep it honest:
//!
//! - The ends are judged first, by the gate itself. Where the bad end isn't worse, no candidate is blamed.
//! - Probes only guide the search. Each one compares a candidate with an end of its range; the exact p-values of
//!   "no part of the step lies between them" and "all of it does" become e-values, and every position is weighed
//!   by all of them ([`weights`](self)). A misleading probe is outweighed by later ones.
//! - A candidate is named only after the gate calls it worse than its direct predecessor. What lies before and
//!   behind it is then judged again, so that several culprits are all found.

mod evidence;
mod found;
mod search;

#[cfg(test)]
mod tests;

pub use evidence::{Observed, Pair};
pub use found::{BisectOptions, Ends, Found, Part, Probe, SearchProgress};
pub use search::{Next, Search};
