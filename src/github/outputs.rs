//! `$GITHUB_OUTPUT`: the outputs for later steps.

/// The lines for the file of outputs. Values are untrusted, so each is enclosed by delimiters that can't be guessed:
/// `delimiter` must be random and new.
pub fn outputs(values: &[(&str, String)], delimiter: &str) -> String {
    let mut text = String::new();
    for (name, value) in values {
        let mut fence = delimiter.to_owned();
        // The delimiter can't be guessed, but a value that was created later could still contain it.
        while value.contains(&fence) {
            fence.push('x');
        }
        text.push_str(&format!("{name}<<{fence}\n{value}\n{fence}\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_can_not_end_itself_and_set_another() {
        let hostile = "pass\nd1\nverdict=pass".to_owned();
        let text = outputs(&[("verdict", hostile)], "d1");
        assert_eq!(text, "verdict<<d1x\npass\nd1\nverdict=pass\nd1x\n");
    }
}
