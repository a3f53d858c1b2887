//! Time per kernel, as the runtime's own profiler saw it.

/// What one iteration spends in each kernel. Context for people and never judged: a profiled process is slower
/// than a measured one.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Profile {
    /// In the order of the module.
    pub kernels: Vec<Kernel>,
    /// Why there are none, where they were asked for.
    pub problem: Option<String>,
}

/// One kernel of the module.
#[derive(Debug, Clone, PartialEq)]
pub struct Kernel {
    /// The compiler's name of it, `main_dispatch_9_batch_matmul_4x197x197x48_f32`.
    pub name: String,
    /// Launches in one iteration.
    pub calls: f64,
    /// Time of all of them in one iteration.
    pub nanoseconds: f64,
}
