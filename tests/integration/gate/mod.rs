//! The gate through its public seam: two runs and a policy in, a comparison out.

mod build;
mod outcomes;
