//! Which numerical tolerances apply to a benchmark.

use benchgate_core::model::{BenchmarkGlob, BenchmarkName};

use super::NumericsTolerance;

/// How far outputs may be from their references.
#[derive(Debug, Clone, PartialEq)]
pub struct NumericsPolicy {
    /// One tolerance for every element type.
    pub types: Vec<NumericsTolerance>,
    /// Globs over benchmark names, and the tolerance of one type for what they match. Later ones win.
    pub overrides: Vec<(String, NumericsTolerance)>,
}

impl Default for NumericsPolicy {
    fn default() -> Self {
        Self { types: NumericsTolerance::defaults(), overrides: Vec::new() }
    }
}

impl NumericsPolicy {
    /// The tolerance of every element type for one benchmark.
    pub fn for_benchmark(&self, name: &BenchmarkName) -> Vec<NumericsTolerance> {
        let mut types = self.types.clone();
        for (_, own) in
            self.overrides.iter().filter(|(glob, _)| BenchmarkGlob::new(glob).matches(name.as_str()))
        {
            types.iter_mut().filter(|known| known.dtype == own.dtype).for_each(|known| known.clone_from(own));
        }
        types
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_benchmark_has_its_own_tolerance_of_one_type() {
        let wide = NumericsTolerance { atol: 0.5, ..NumericsTolerance::default_for("f16").unwrap() };
        let policy =
            NumericsPolicy { overrides: vec![("unet*/*".into(), wide)], ..NumericsPolicy::default() };
        let atol = |benchmark: &str, dtype: &str| {
            let all = policy.for_benchmark(&BenchmarkName::new(benchmark));
            all.iter().find(|tolerance| tolerance.dtype == dtype).unwrap().atol
        };
        assert_eq!(atol("unet-conv/cpu/main", "f16"), 0.5);
        assert_eq!(atol("unet-conv/cpu/main", "f32"), NumericsTolerance::default_for("f32").unwrap().atol);
        assert_eq!(atol("vit/cpu/main", "f16"), NumericsTolerance::default_for("f16").unwrap().atol);
    }
}
