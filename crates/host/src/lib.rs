#![doc = include_str!("../README.md")]

pub mod device;
pub mod files;
pub mod git;
pub mod process;
