//! Names of files and folders. Sorting by name sorts by time.

use std::fmt;

use jiff::Timestamp;

use benchgate_core::model::{is_commit, is_hex};

use super::Encoding;

/// The name of a run's file without its extension: `20261120T210000Z-<commit>`, followed by `-<digits>` if
/// another session of the same commit and second exists.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunName(String);

/// The placeholder for an unknown commit.
const NO_COMMIT: &str = "none";
/// The word that takes the position of the commit in the name of an acceptance.
const ACCEPTANCE: &str = "accept";
const TIME: &str = "%Y%m%dT%H%M%SZ";
/// Number of digits of a commit in names for people.
const SHORT_COMMIT: usize = 8;
/// Length of a time in a name.
const TIME_LENGTH: usize = 16;

impl RunName {
    /// The name of a run that began at `created` (RFC 3339). `None` if that is not a time.
    pub fn new(created: &str, commit: Option<&str>) -> Option<Self> {
        let commit = match commit {
            Some(commit) if is_commit(commit) => commit.to_ascii_lowercase(),
            Some(_) => return None,
            None => NO_COMMIT.to_owned(),
        };
        Some(Self(format!("{}-{commit}", stamp(created)?)))
    }

    /// The name for another session of the same commit and second, with the hash of its content appended.
    #[must_use]
    pub fn with_hash(&self, sha256: &str) -> Self {
        Self(format!("{}-{}", self.0, sha256.get(..8).unwrap_or(sha256)))
    }

    /// Parses a file name; `None` for acceptances and other files.
    pub fn parse(file: &str, encoding: Encoding) -> Option<Self> {
        Self::from_stem(file.strip_suffix(encoding.extension())?.strip_suffix('.')?)
    }

    /// Parses a name without its extension.
    pub fn from_stem(stem: &str) -> Option<Self> {
        let (time, rest) = stem.split_once('-')?;
        let (commit, hash) = rest.split_once('-').map_or((rest, None), |(commit, more)| (commit, Some(more)));
        let whole = is_time(time) && (commit == NO_COMMIT || is_commit(commit)) && hash.is_none_or(is_hex);
        whole.then(|| Self(stem.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn file(&self, encoding: Encoding) -> String {
        format!("{}.{}", self.0, encoding.extension())
    }

    /// The year and month, such as `2026-11`.
    pub fn month(&self) -> String {
        format!("{}-{}", &self.0[..4], &self.0[4..6])
    }

    /// The name in a readable form: `2026-11-20 21:00 (0123abcd)`.
    pub fn readable(&self) -> String {
        let (time, commit) = (self.time(), self.commit().unwrap_or("unknown commit"));
        let commit = commit.get(..SHORT_COMMIT).filter(|_| self.commit().is_some()).unwrap_or(commit);
        format!(
            "{}-{}-{} {}:{} ({commit})",
            &time[..4],
            &time[4..6],
            &time[6..8],
            &time[9..11],
            &time[11..13]
        )
    }

    /// The time at which the run began. `None` if the digits are not a valid time.
    pub fn began(&self) -> Option<Timestamp> {
        let time = jiff::civil::DateTime::strptime(TIME, self.time()).ok()?;
        Some(time.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp())
    }

    /// The time as written in the name.
    pub fn time(&self) -> &str {
        &self.0[..TIME_LENGTH]
    }

    /// The commit of the measured sources, if it is known.
    pub fn commit(&self) -> Option<&str> {
        self.0.split('-').nth(1).filter(|commit| *commit != NO_COMMIT)
    }
}

impl fmt::Display for RunName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The file name of an acceptance, with the hash of its content.
pub(super) fn acceptance_file(created: &str, sha256: &str) -> Option<String> {
    Some(format!("{}-{ACCEPTANCE}-{}.json", stamp(created)?, sha256.get(..8).unwrap_or(sha256)))
}

/// Returns whether a file is an acceptance, by its name.
pub(super) fn is_acceptance(file: &str) -> bool {
    let Some(stem) = file.strip_suffix(".json") else { return false };
    let mut parts = stem.split('-');
    parts.next().is_some_and(is_time) && parts.next() == Some(ACCEPTANCE)
}

/// A time in the format of names.
pub(super) fn stamp(created: &str) -> Option<String> {
    let time: Timestamp = created.parse().ok()?;
    Some(time.strftime(TIME).to_string())
}

/// The folder name for a suite or testbed. Each byte of a special character is written as `%` and two
/// hexadecimal digits, so that no name leads out of the baseline or is hidden.
pub fn folder_name(name: &str) -> String {
    let plain = |at: usize, byte: u8| {
        byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-' || (byte == b'.' && at > 0)
    };
    let mut folder = String::with_capacity(name.len());
    for (at, byte) in name.bytes().enumerate() {
        if plain(at, byte) {
            folder.push(char::from(byte));
        } else {
            folder.push_str(&format!("%{byte:02x}"));
        }
    }
    folder
}

fn is_time(text: &str) -> bool {
    text.len() == TIME_LENGTH
        && text.bytes().enumerate().all(|(at, byte)| match at {
            8 => byte == b'T',
            15 => byte == b'Z',
            _ => byte.is_ascii_digit(),
        })
}

/// The month of a time, the one before and the one after, in the format of [`RunName::month`].
pub(super) fn months_around(now: Timestamp) -> Vec<String> {
    let today = now.to_zoned(jiff::tz::TimeZone::UTC).date().first_of_month();
    let month = |away: i64| today.saturating_add(jiff::Span::new().months(away));
    [-1, 0, 1].map(|away| month(away).strftime("%Y-%m").to_string()).into()
}

#[cfg(test)]
mod tests {
    use super::{Encoding, RunName, folder_name, is_acceptance};

    const COMMIT: &str = "1a6681936a78138f7ae2b0fd9309d28dfe01ac5b";

    #[test]
    fn a_name_is_read_back_and_sorts_by_time() {
        let older = RunName::new("2026-11-20T23:00:00+02:00", Some(COMMIT)).unwrap();
        let newer = RunName::new("2026-11-20T21:00:01Z", None).unwrap();
        assert_eq!(older.as_str(), format!("20261120T210000Z-{COMMIT}"));
        assert!(older < newer);
        assert_eq!(newer.commit(), None);
        for name in [&older, &newer, &older.with_hash("0123456789")] {
            for encoding in [Encoding::Json, Encoding::Parquet] {
                assert_eq!(RunName::parse(&name.file(encoding), encoding).as_ref(), Some(name));
            }
        }
        assert_eq!(older.with_hash("0123456789").commit(), Some(COMMIT));
    }

    #[test]
    fn other_file_names_are_not_parsed_as_runs() {
        for file in ["README.md", "20261120T210000Z-accept-01234567.json", "x.json", "20261120-abc.json"] {
            assert_eq!(RunName::parse(file, Encoding::Json), None, "{file}");
        }
        assert!(is_acceptance("20261120T210000Z-accept-01234567.json"));
        assert!(RunName::new("2026-11-20T21:00:00Z", Some("../../etc")).is_none());
    }

    #[test]
    fn a_suite_name_can_not_lead_out_of_the_baseline() {
        assert_eq!(folder_name("../.."), "%2e.%2f..");
        assert_eq!(folder_name(".git"), "%2egit");
        assert_eq!(folder_name("Zoo-1.2_x"), "Zoo-1.2_x");
        assert_eq!(folder_name("a b/ü"), "a%20b%2f%c3%bc");
    }
}
