//! The names of the models that benchgate brings along: one for each file of `python/benchgate_export/zoo`.

include!(concat!(env!("OUT_DIR"), "/zoo_keys.rs"));
