//! Flags whose names differ between versions of the tools.

use std::collections::BTreeMap;

use crate::pipeline::SideInput;

/// The flag in a compiler's message about an unknown one: `Unknown command line argument '--iree-x=1'`.
pub fn unknown(why: &str) -> Option<String> {
    const SAYS: &str = "nknown command line argument '";
    let rest = &why[why.find(SAYS)? + SAYS.len()..];
    let flag = rest.split('\'').next()?;
    let name = flag.split('=').next()?;
    name.starts_with("--").then(|| name.to_owned())
}

/// The other name of a flag. The table of aliases is read in both directions.
pub fn other_name<'a>(aliases: &'a BTreeMap<String, String>, flag: &str) -> Option<&'a str> {
    let forward = aliases.get(flag).map(String::as_str);
    forward.or_else(|| aliases.iter().find(|(_, other)| *other == flag).map(|(name, _)| name.as_str()))
}

/// Replaces a flag by its other name everywhere on a side.
pub fn rename(side: &mut SideInput, flag: &str, other: &str) {
    let config = &mut side.config;
    let targets = config.targets.iter_mut().flat_map(|target| [&mut target.flags, &mut target.run_flags]);
    let models = config.models.iter_mut().map(|model| &mut model.flags);
    let own = [&mut side.side.flags, &mut side.side.run_flags];
    for text in targets.chain(models).chain(own).flatten() {
        if let Some(rest) = text.strip_prefix(flag)
            && (rest.is_empty() || rest.starts_with('='))
        {
            *text = format!("{other}{rest}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_compiler_names_the_flag_it_does_not_know() {
        let why = "iree-compile: Unknown command line argument '--iree-rocm-target=gfx942'.  Try: 'iree-compile --help'";
        assert_eq!(unknown(why).as_deref(), Some("--iree-rocm-target"));
        assert_eq!(unknown("error: failed to legalize"), None);
    }

    #[test]
    fn an_alias_is_read_in_both_directions() {
        let aliases = BTreeMap::from([("--new".to_owned(), "--old".to_owned())]);
        assert_eq!(other_name(&aliases, "--new"), Some("--old"));
        assert_eq!(other_name(&aliases, "--old"), Some("--new"));
        assert_eq!(other_name(&aliases, "--else"), None);
    }
}
