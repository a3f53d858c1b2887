//! Counts with their nouns. The only place that forms a plural.

/// `1 benchmark`, `34 benchmarks`.
pub fn counted(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {}", plural(noun)) }
}

fn plural(noun: &str) -> String {
    const HISSING: [&str; 4] = ["s", "x", "ch", "sh"];
    let after_a_vowel = |stem: &str| stem.ends_with(['a', 'e', 'i', 'o', 'u']);
    match noun {
        _ if HISSING.iter().any(|end| noun.ends_with(end)) => format!("{noun}es"),
        _ => match (noun.strip_suffix("lf"), noun.strip_suffix('y')) {
            (Some(stem), _) => format!("{stem}lves"),
            (_, Some(stem)) if !after_a_vowel(stem) => format!("{stem}ies"),
            _ => format!("{noun}s"),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_singular_and_everything_else_is_plural() {
        assert_eq!(counted(1, "shelf"), "1 shelf");
        let several = [(0, "shelf"), (2, "process"), (1204, "benchmark"), (3, "entry"), (4, "day")];
        assert_eq!(
            several.map(|(count, noun)| counted(count, noun)),
            ["0 shelves", "2 processes", "1204 benchmarks", "3 entries", "4 days"]
        );
    }
}
