//! Samples of a process by metric. The metrics are in a list, because a process has only two or three of them
//! and a tree would take more memory than the samples do.

use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::Number;

/// Lists of samples, one value per repetition, in the order of the metrics' names.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SampleMap(Vec<(String, Vec<f64>)>);

impl SampleMap {
    pub fn get(&self, metric: &str) -> Option<&[f64]> {
        self.place(metric).ok().map(|at| self.0[at].1.as_slice())
    }

    pub fn get_mut(&mut self, metric: &str) -> Option<&mut Vec<f64>> {
        self.place(metric).ok().map(|at| &mut self.0[at].1)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &[f64])> {
        self.0.iter().map(|(metric, samples)| (metric.as_str(), samples.as_slice()))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn insert(&mut self, metric: String, samples: Vec<f64>) {
        match self.place(&metric) {
            Ok(at) => self.0[at].1 = samples,
            Err(at) => {
                self.0.reserve_exact(1);
                self.0.insert(at, (metric, samples));
            }
        }
    }

    fn place(&self, metric: &str) -> Result<usize, usize> {
        self.0.binary_search_by(|(known, _)| known.as_str().cmp(metric))
    }
}

impl FromIterator<(String, Vec<f64>)> for SampleMap {
    fn from_iter<I: IntoIterator<Item = (String, Vec<f64>)>>(samples: I) -> Self {
        let mut map = Self::default();
        samples.into_iter().for_each(|(metric, samples)| map.insert(metric, samples));
        map
    }
}

impl Serialize for SampleMap {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // JSON has no NaN and no infinities; `Number` writes and reads them as words.
        let words = |samples: &[f64]| -> Vec<Number> { samples.iter().copied().map(Number).collect() };
        serializer.collect_map(self.iter().map(|(metric, samples)| (metric, words(samples))))
    }
}

impl<'de> Deserialize<'de> for SampleMap {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Samples;

        impl<'de> Visitor<'de> for Samples {
            type Value = SampleMap;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("samples by metric")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<SampleMap, A::Error> {
                let mut samples = SampleMap::default();
                while let Some((metric, values)) = map.next_entry::<String, Vec<Number>>()? {
                    // Otherwise the second list would silently replace the first.
                    if samples.get(&metric).is_some() {
                        return Err(A::Error::custom(format_args!("duplicate metric {metric:?}")));
                    }
                    let mut values: Vec<f64> = values.into_iter().map(f64::from).collect();
                    values.shrink_to_fit();
                    samples.insert(metric, values);
                }
                Ok(samples)
            }
        }

        deserializer.deserialize_map(Samples)
    }
}
