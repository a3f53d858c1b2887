//! Files of the kernel that hold one line.

use std::path::Path;

/// The line, without blanks around it; `None` if there is no such file or it is empty.
pub(super) fn read_line(path: impl AsRef<Path>) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}
