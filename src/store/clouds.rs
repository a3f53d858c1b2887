//! Opens object stores, with the environment variables that grant access to them.

use std::sync::Arc;
use std::time::Duration;

use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::local::LocalFileSystem;
use object_store::{BackoffConfig, ClientOptions, Error, ObjectStore, RetryConfig};

use crate::model::{StoreScheme, StoreUrl};

use super::StoreError;

/// Timeout for a whole request, including its body.
const REQUEST: Duration = Duration::from_secs(60);
const CONNECT: Duration = Duration::from_secs(5);

/// The retry policy. If the response to a creation was lost, the repeated request finds the object
/// that the first request created; the caller then compares the contents.
fn retry() -> RetryConfig {
    let backoff = BackoffConfig { max_backoff: Duration::from_secs(5), ..BackoffConfig::default() };
    RetryConfig { backoff, max_retries: 4, retry_timeout: Duration::from_secs(60) }
}

/// The client options, which require encrypted connections unless a variable such as `AWS_ALLOW_HTTP` permits
/// others.
fn client() -> ClientOptions {
    // The provider is set once for the process; an error only means that it is already set.
    drop(rustls::crypto::ring::default_provider().install_default());
    ClientOptions::new().with_timeout(REQUEST).with_connect_timeout(CONNECT).with_allow_http(false)
}

/// Opens the store at a URL, and returns whether it is on another machine. The URL's bucket is set last, so
/// that no variable replaces it. The builders' own `from_env` is not used, because benchgate removes secrets
/// from its environment before it starts other programs; `variables` also contains the removed ones.
pub(super) fn open(
    url: &StoreUrl,
    variables: &[(String, String)],
) -> Result<(Arc<dyn ObjectStore>, bool), Error> {
    macro_rules! with_variables {
        ($builder:expr, $prefix:literal) => {{
            let mut builder = $builder.with_client_options(client()).with_retry(retry());
            for (name, value) in variables.iter().filter(|(name, _)| name.starts_with($prefix)) {
                // Variables that the builder does not recognize belong to other tools.
                if let Ok(key) = name.to_ascii_lowercase().parse() {
                    builder = builder.with_config(key, value);
                }
            }
            builder
        }};
    }
    let store: Arc<dyn ObjectStore> = match url.scheme() {
        StoreScheme::S3 => {
            Arc::new(with_variables!(AmazonS3Builder::new(), "AWS_").with_bucket_name(url.bucket()).build()?)
        }
        StoreScheme::Gs => Arc::new(
            with_variables!(GoogleCloudStorageBuilder::new(), "GOOGLE_")
                .with_bucket_name(url.bucket())
                .build()?,
        ),
        StoreScheme::Az => Arc::new(
            with_variables!(MicrosoftAzureBuilder::new(), "AZURE_")
                .with_container_name(url.bucket())
                .build()?,
        ),
        StoreScheme::File => folder(),
    };
    Ok((store, url.scheme() != StoreScheme::File))
}

/// A store whose objects are files of this machine. A write returns only after its data is on disk.
pub(super) fn folder() -> Arc<dyn ObjectStore> {
    Arc::new(LocalFileSystem::new().with_fsync(true))
}

/// Addresses of the metadata services from which cloud machines get credentials.
const METADATA: [&str; 3] = ["169.254.169.254", "169.254.170.2", "metadata.google.internal"];

/// Reduces a server's XML response to its code and message.
fn plain(text: &str) -> String {
    let element = |name: &str| {
        let (_, rest) = text.split_once(&format!("<{name}>"))?;
        Some(rest.split_once(&format!("</{name}>"))?.0.trim().to_owned())
    };
    let Some(code) = element("Code") else { return text.to_owned() };
    let start = text.find('<').unwrap_or_default();
    let before = text[..start].trim_end_matches([' ', ':', '"']);
    let message = element("Message").map_or_else(String::new, |message| format!(" ({message})"));
    format!("{before}: {code}{message}")
}

/// Maximum length of a reason in a message, because servers respond with whole documents.
const LONGEST: usize = 400;

/// Converts an error, and removes the query from each URL in it, because the query of an Azure URL may
/// contain a signature.
pub(super) fn failed(action: &'static str, url: &str, error: &Error) -> StoreError {
    let mut text = plain(&error.to_string());
    // The innermost cause is the one that a user can act on.
    let mut cause: &dyn std::error::Error = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    let cause = plain(&cause.to_string());
    if !text.contains(&cause) {
        text.push_str(&format!(": {cause}"));
    }
    // Without credentials, the client requests some from the machine's metadata service, which most machines
    // don't have.
    if METADATA.iter().any(|address| text.contains(address)) {
        text =
            "no credentials, neither in the environment nor from this machine's metadata service".to_owned();
    }
    if text.contains("URL scheme is not allowed") {
        text.push_str("; the connection is not encrypted, which only AWS_ALLOW_HTTP, GOOGLE_ALLOW_HTTP or AZURE_ALLOW_HTTP allow");
    }
    let words = text.split_whitespace().map(|word| match word.split_once('?') {
        Some((address, _)) if address.contains("://") => address,
        _ => word,
    });
    let mut why = words.collect::<Vec<_>>().join(" ");
    if why.len() > LONGEST {
        let end = (0..=LONGEST).rev().find(|end| why.is_char_boundary(*end)).unwrap_or(0);
        why.truncate(end);
        why.push('…');
    }
    StoreError::Objects { action, url: url.to_owned(), why }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_in_an_address_is_not_shown() {
        let source =
            "Error performing GET https://a.blob.core.windows.net/c/x?sv=2024&sig=SECRET in 1ms".into();
        let error = failed("read", "az://c/x", &Error::Generic { store: "MicrosoftAzure", source });
        assert!(!error.to_string().contains("SECRET"), "{error}");
        assert!(error.to_string().contains("https://a.blob.core.windows.net/c/x in 1ms"), "{error}");
    }

    #[test]
    fn an_answer_in_xml_is_shown_as_its_code_and_message() {
        let source = "Server returned non-2xx status code: 403 Forbidden: <?xml version=\"1.0\"?><Error>\
                      <Code>AccessDenied</Code><Message>Access Denied</Message><HostId>x</HostId></Error>";
        let error = failed("write", "s3://b/x", &Error::Generic { store: "S3", source: source.into() });
        let text = error.to_string();
        assert!(text.ends_with("403 Forbidden: AccessDenied (Access Denied)"), "{text}");
        assert!(!text.contains('<'), "{text}");
    }

    #[test]
    fn missing_credentials_are_named_and_not_the_address_that_has_none() {
        let source = "Error performing PUT http://169.254.169.254/latest/api/token in 3s: timed out".into();
        let text = failed("write", "s3://b/x", &Error::Generic { store: "S3", source }).to_string();
        assert!(text.contains("no credentials") && !text.contains("169.254"), "{text}");
    }

    #[test]
    fn the_bucket_is_that_of_the_address_and_not_that_of_a_variable() {
        let variables = [
            ("AWS_BUCKET", "other"),
            ("AWS_REGION", "us-east-1"),
            ("AWS_ACCESS_KEY_ID", "id"),
            ("AWS_SECRET_ACCESS_KEY", "secret"),
        ];
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let (store, is_remote) = open(&"s3://nightly/x".parse().unwrap(), &variables).unwrap();
        assert!(is_remote);
        assert_eq!(store.to_string(), "AmazonS3(nightly)");
    }
}
