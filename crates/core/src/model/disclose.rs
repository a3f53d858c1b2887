//! The amount of information in a report.

words! {
    /// Values that reports may show outside of the measuring machine.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub enum Disclose: "disclosure" {
        /// Everything that was measured.
        #[default]
        All = "all",
        /// Changes, and no absolute times, sizes or counts: numbers may be private.
        Ratios = "ratios",
    }
}
