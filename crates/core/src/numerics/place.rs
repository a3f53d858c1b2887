//! The position of wrong elements in an output.

/// The smallest box that contains all wrong elements.
#[derive(Debug, Clone)]
pub(super) struct ErrorRegion<'a> {
    shape: &'a [usize],
    /// The first in row-major order.
    first: Option<Vec<usize>>,
    low: Vec<usize>,
    high: Vec<usize>,
    count: u64,
}

impl<'a> ErrorRegion<'a> {
    pub(super) const fn new(shape: &'a [usize]) -> Self {
        Self { shape, first: None, low: Vec::new(), high: Vec::new(), count: 0 }
    }

    /// How many elements were added.
    pub(super) const fn count(&self) -> u64 {
        self.count
    }

    /// Adds the element at this position of the flattened output.
    pub(super) fn add(&mut self, at: usize) {
        let position = coordinates(at, self.shape);
        self.count += 1;
        if self.first.is_none() {
            self.low.clone_from(&position);
            self.high.clone_from(&position);
            self.first = Some(position);
            return;
        }
        for (bound, index) in self.low.iter_mut().zip(&position) {
            *bound = (*bound).min(*index);
        }
        for (bound, index) in self.high.iter_mut().zip(&position) {
            *bound = (*bound).max(*index);
        }
    }

    /// `at [0, 17]`, or `first at [3, 0], all within [3–4, 0–95]`. `None` without wrong elements.
    pub(super) fn describe(&self) -> Option<String> {
        let first = self.first.as_ref()?;
        if self.shape.is_empty() {
            return Some("at the only element".to_owned());
        }
        let list = |parts: Vec<String>| format!("[{}]", parts.join(", "));
        let point = list(first.iter().map(usize::to_string).collect());
        if self.count == 1 {
            return Some(format!("at {point}"));
        }
        let everywhere = self.low.iter().all(|low| *low == 0)
            && self.high.iter().zip(self.shape).all(|(h, n)| h + 1 == *n);
        if everywhere {
            return Some(format!("first at {point}, all over the output"));
        }
        let range = |(low, high): (&usize, &usize)| {
            if low == high { low.to_string() } else { format!("{low}–{high}") }
        };
        let region = list(self.low.iter().zip(&self.high).map(range).collect());
        Some(format!("first at {point}, all within {region}"))
    }
}

/// The coordinates of an element of a row-major tensor.
pub(super) fn coordinates(at: usize, shape: &[usize]) -> Vec<usize> {
    let mut rest = at;
    let mut position: Vec<usize> = shape
        .iter()
        .rev()
        .map(|side| {
            let side = (*side).max(1);
            let index = rest % side;
            rest /= side;
            index
        })
        .collect();
    position.reverse();
    position
}
