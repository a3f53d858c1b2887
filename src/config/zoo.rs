//! The names of the models that come with benchgate, one for each file in `python/benchgate_export/zoo`.

include!(concat!(env!("OUT_DIR"), "/zoo_keys.rs"));
