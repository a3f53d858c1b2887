//! L3: host and device facts, fingerprints, the host lock.
