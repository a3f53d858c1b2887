//! How much a report may say.

/// What may leave the machine that measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Disclose {
    /// Everything that was measured.
    #[default]
    All,
    /// Changes, and no absolute times, sizes or counts: numbers may be private.
    Ratios,
}

impl Disclose {
    pub const ALL: [Self; 2] = [Self::All, Self::Ratios];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Ratios => "ratios",
        }
    }

    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|disclose| disclose.as_str() == word)
    }
}
