//! L3: pins, lock file, install, verification.
