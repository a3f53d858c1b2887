//! The address of stored sessions in an object store.

use std::fmt;
use std::str::FromStr;

words! {
    /// A service that holds objects by key.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum StoreScheme: "store scheme" {
        /// Amazon S3 and servers that speak its protocol.
        S3 = "s3",
        /// Google Cloud Storage.
        Gs = "gs",
        /// Azure Blob Storage.
        Az = "az",
        /// A folder on this machine, local or mounted.
        File = "file",
    }
}

/// `s3://bucket/prefix`, `gs://bucket/prefix`, `az://container/prefix` or `file:///folder`. It contains only
/// a location. Account, endpoint, options and credentials come from the environment, so that an address in an
/// untrusted change can't redirect them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreUrl {
    scheme: StoreScheme,
    /// Empty for a folder.
    bucket: String,
    /// Without a slash at either end.
    prefix: String,
}

/// The reason why a text is not a [`StoreUrl`]. Completes "expected …".
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected {0}")]
pub struct StoreUrlError(&'static str);

impl StoreUrlError {
    /// The expected form, for messages.
    pub const fn expected(self) -> &'static str {
        self.0
    }
}

const FORMS: &str =
    "an address such as s3://bucket/prefix, gs://bucket/prefix, az://container/prefix or file:///folder";

impl StoreUrl {
    pub fn scheme(&self) -> StoreScheme {
        self.scheme
    }

    /// The bucket or container; empty for a folder.
    pub fn bucket(&self) -> &str {
        &self.bucket
    }

    /// The beginning of every key, without a slash at either end; for a folder, its path relative to `/`.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }
}

impl FromStr for StoreUrl {
    type Err = StoreUrlError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (scheme, rest) = text.split_once("://").ok_or(StoreUrlError(FORMS))?;
        let scheme = StoreScheme::parse(scheme).ok_or(StoreUrlError(FORMS))?;
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        // The bucket becomes part of a host name or of a path, so it must not contain their separators.
        let named = |byte: u8| {
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_' | b'.')
        };
        let is_bucket = (3..=222).contains(&bucket.len())
            && bucket.bytes().all(named)
            && bucket.bytes().next().is_some_and(|first| first.is_ascii_alphanumeric())
            && !bucket.contains("..");
        match scheme {
            StoreScheme::File if !bucket.is_empty() => {
                return Err(StoreUrlError("a folder of this machine with three slashes: file:///folder"));
            }
            StoreScheme::File => {}
            _ if !is_bucket => {
                return Err(StoreUrlError(
                    "a bucket of at least three lowercase letters, digits, `-`, `_` and `.` after `://`",
                ));
            }
            _ => {}
        }
        let prefix = prefix.strip_suffix('/').unwrap_or(prefix);
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'=');
        let is_segment =
            |part: &str| !part.is_empty() && part != "." && part != ".." && part.bytes().all(plain);
        if prefix.is_empty() && scheme == StoreScheme::File {
            return Err(StoreUrlError("a folder of this machine with three slashes: file:///folder"));
        }
        if !prefix.is_empty() && !prefix.split('/').all(is_segment) {
            return Err(StoreUrlError(
                "a prefix of letters, digits, `-`, `_`, `.`, `=` and single slashes, without credentials or options",
            ));
        }
        Ok(Self { scheme, bucket: bucket.to_owned(), prefix: prefix.to_owned() })
    }
}

impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme, self.bucket)?;
        if self.prefix.is_empty() { Ok(()) } else { write!(f, "/{}", self.prefix) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_names_a_service_a_bucket_and_a_prefix() {
        for text in ["s3://nightly", "gs://a-b.c/x/y=1", "az://container/p", "file:///srv/histories"] {
            assert_eq!(text.parse::<StoreUrl>().unwrap().to_string(), text);
        }
        let url: StoreUrl = "s3://nightly/compiler/".parse().unwrap();
        assert_eq!((url.scheme(), url.bucket(), url.prefix()), (StoreScheme::S3, "nightly", "compiler"));
    }

    #[test]
    fn an_address_can_not_bring_a_host_an_option_or_a_credential() {
        for text in [
            "https://bucket.s3.amazonaws.com/x",
            "http://169.254.169.254/x",
            "s3://",
            "s3://AKIA:secret@bucket/x",
            "s3://bucket:9000/x",
            "s3://bucket?endpoint=evil.example",
            "s3://bucket/x?endpoint=evil.example",
            "s3://bucket/x#y",
            "s3://bucket/../other",
            "s3://bucket//x",
            "s3://bucket/%2e%2e/x",
            "s3://evil.example#/x",
            "s3://a..b/x",
            "az://container@account.evil.example/x",
            "file://host/share",
            "file:///",
            "file:///srv/../etc",
            "baselines",
        ] {
            assert!(text.parse::<StoreUrl>().is_err(), "{text}");
        }
    }
}
