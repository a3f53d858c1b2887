//! L3: the only file that names git2.
