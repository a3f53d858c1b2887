//! Names that say which side something belongs to.

use std::collections::BTreeSet;

/// Words by which names of results say that they are those of the new program, and those for the old one next to them.
const OF_SIDES: [(&str, &str); 8] = [
    ("head", "base"),
    ("new", "old"),
    ("after", "before"),
    ("pr", "main master"),
    ("candidate contender", "baseline"),
    ("patched", "unpatched vanilla orig original"),
    ("optimized", "orig original baseline"),
    ("treatment", "control"),
];

/// Returns whether two names, of base and of head, differ only in that base's says base, or old, where head's says head, or
/// new: `results/base.json` and `results/head.json`.
pub fn name_their_sides(base: &str, head: &str) -> bool {
    let names = [base, head].map(|name| name.to_ascii_lowercase());
    // A side of a run.json is selected on purpose.
    let paths = names.each_ref().map(|name| name.trim_end_matches("#head").trim_end_matches("#base"));
    let [base, head] = paths.map(name_parts);
    let rest = |part: &str, words: &str| -> BTreeSet<String> {
        let rests = words.split(' ').filter_map(|word| part.strip_suffix(word));
        rests.filter(|rest| !rest.ends_with(char::is_alphanumeric)).map(str::to_owned).collect()
    };
    let name_sides = |(base, head): &(&&str, &&str)| {
        OF_SIDES.iter().any(|(new, old)| !rest(head, new).is_disjoint(&rest(base, old)))
    };
    let differing: Vec<_> = base.iter().zip(&head).filter(|(base, head)| base != head).collect();
    base.len() == head.len() && !differing.is_empty() && differing.iter().all(name_sides)
}

/// The parts of a name, each including the separator before it.
pub fn name_parts(name: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut start = 0;
    for (at, _) in name.match_indices(|c: char| !c.is_alphanumeric()) {
        parts.push(&name[start..at]);
        start = at;
    }
    parts.push(&name[start..]);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_their_sides_in_one_order_only() {
        for (head, base) in [
            ("head.json", "base.json"),
            ("results/head", "results/base"),
            ("'head-*.json'", "'base-*.json'"),
            ("New/a.json", "old/a.json"),
            ("new/head-1.json", "old/base-1.json"),
            ("after.json", "before.json"),
            ("pr", "main"),
            ("contender.json", "baseline.json"),
        ] {
            assert!(name_their_sides(base, head), "{base} {head}");
            assert!(!name_their_sides(head, base), "{head} {base}");
        }
        for (head, base) in [
            ("run.json#head", "run.json#base"),
            ("renew.json", "reold.json"),
            ("new/base.json", "old/head.json"),
            ("head.json", "head.json"),
            ("head-1.json", "base-2.json"),
            ("head/a.json", "base/b.json"),
            ("current.json", "main.json"),
            ("candidate.json", "main.json"),
            ("post-processing.json", "pre-processing.json"),
        ] {
            assert!(!name_their_sides(base, head), "{base} {head}");
        }
    }
}
