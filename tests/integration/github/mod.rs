//! What is reported to GitHub: the job's own files here, the API in the modules below.

mod double;
pub mod event;
pub mod forged;
mod job;
mod publish;
mod schema;
mod sticky;
mod token;
mod trusted;

pub use double::{BOT, Double, Fault, TOKEN};
pub use publish::{Measured, pull};
