//! L3: argv in, Exit out: timeout, process group, containment, log, resource use.
