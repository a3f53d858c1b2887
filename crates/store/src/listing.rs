//! Checks the answers to listing requests. object_store reads any document, such as a proxy's sign-in page or an error with
//! status 200, as a listing without objects, and a baseline that seems empty judges nothing.

use std::io;

use futures_util::future::BoxFuture;
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpService,
    ReqwestConnector,
};

/// Connects like object_store does, to a client that refuses listings that are none or lack their end.
#[derive(Debug, Default)]
pub struct ListingConnector(ReqwestConnector);

impl HttpConnector for ListingConnector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(ListingClient(self.0.connect(options)?)))
    }
}

#[derive(Debug)]
struct ListingClient(HttpClient);

impl HttpService for ListingClient {
    fn call<'a, 'b>(&'a self, request: HttpRequest) -> BoxFuture<'b, Result<HttpResponse, HttpError>>
    where
        'a: 'b,
        Self: 'b,
    {
        Box::pin(async move {
            let query = request.uri().query().unwrap_or_default();
            let is_listing = query.split('&').any(|part| matches!(part, "list-type=2" | "comp=list"));
            let response = self.0.execute(request).await?;
            if !is_listing || !response.status().is_success() {
                return Ok(response);
            }
            let (parts, body) = response.into_parts();
            let body = body.bytes().await?;
            if let Some(why) = flaw(&String::from_utf8_lossy(&body)) {
                return Err(HttpError::new(HttpErrorKind::Decode, io::Error::other(why)));
            }
            Ok(HttpResponse::from_parts(parts, body.into()))
        })
    }
}

/// Returns the reason why a document is no complete page of a listing by S3, Google Cloud Storage or Azure.
fn flaw(page: &str) -> Option<&'static str> {
    const ROOTS: [&str; 2] = ["ListBucketResult", "EnumerationResults"];
    let is_listing =
        ROOTS.iter().any(|root| page.contains(&format!("<{root}")) && page.contains(&format!("</{root}>")));
    if !is_listing {
        return Some("the answer to a listing request is no listing");
    }
    let is_cut = page.contains("<IsTruncated>true<") && !page.contains("<NextContinuationToken>");
    is_cut.then_some("the listing is truncated and does not say how it continues")
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::net::TcpListener;

    /// A store that answers each request with status 200 and this body.
    fn listed(body: &'static str) -> Result<usize, String> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            for connection in listener.incoming() {
                let mut connection = connection.unwrap();
                let mut lines = BufReader::new(connection.try_clone().unwrap()).lines();
                while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
                let length = body.len();
                write!(
                    connection,
                    "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
                )
                .unwrap();
            }
        });
        let variables = [
            ("AWS_REGION", "us-east-1".to_owned()),
            ("AWS_ACCESS_KEY_ID", "id".to_owned()),
            ("AWS_SECRET_ACCESS_KEY", "secret".to_owned()),
            ("AWS_ENDPOINT", format!("http://{address}")),
            ("AWS_ALLOW_HTTP", "true".to_owned()),
        ];
        let variables = variables.map(|(name, value)| (name.to_owned(), value));
        let (store, _) = super::super::objects::open(&"s3://nightly/x".parse().unwrap(), &variables).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let found = runtime.block_on(store.list_with_delimiter(None));
        found.map(|found| found.objects.len()).map_err(|error| format!("{error:?}"))
    }

    #[test]
    fn an_answer_that_is_no_listing_is_not_an_empty_store() {
        let whole = "<?xml version=\"1.0\"?><ListBucketResult><Name>nightly</Name><KeyCount>0</KeyCount>\
                     <MaxKeys>1000</MaxKeys><IsTruncated>false</IsTruncated></ListBucketResult>";
        assert_eq!(listed(whole), Ok(0));
        for page in [
            "<html><body>Sign in</body></html>",
            "<?xml version=\"1.0\"?><Error><Code>SlowDown</Code></Error>",
            "",
            "<ListBucketResult><Name>nightly</Name>",
            "<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>",
        ] {
            let error = listed(page).unwrap_err();
            assert!(error.contains("listing"), "{page}: {error}");
        }
    }
}
