//! Reports to GitHub: this file tests the files of the job, and the modules below test the API.

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
