//! What is reported to GitHub: the job's own files here, the API in the modules below.

mod double;
pub mod event;
mod forged;
mod job;
mod publish;
pub mod red;
mod schema;
mod sticky;
mod token;
mod trusted;

pub use double::{BOT, Double, Fault, TOKEN};
pub use publish::{Measured, pull};
