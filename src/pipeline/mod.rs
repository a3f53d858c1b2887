//! L4: plan, cache, export, compile, verify, measure.
