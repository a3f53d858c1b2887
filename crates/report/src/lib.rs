#![doc = include_str!("../README.md")]

pub mod report;
pub mod site;
