//! Content of a file that no reader recognizes, so that the error can say what to do.

/// The kind of a file that is not a result, as far as its bytes show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::Display)]
pub enum FileContent {
    #[strum(to_string = "it is empty")]
    Empty,
    #[strum(to_string = "it is UTF-16 text")]
    Utf16,
    #[strum(to_string = "it is compressed with xz, bzip2 or lz4, or a zip archive")]
    Compressed,
    #[strum(to_string = "it is binary data")]
    Binary,
    #[strum(to_string = "it is a web page")]
    Html,
    #[strum(to_string = "a list of names, values and units does not say whether less or more is better")]
    Directionless,
    #[strum(to_string = "it is BenchmarkDotNet's JSON, which is not read")]
    BenchmarkDotNet,
    #[strum(to_string = "it is JSON that ends in the middle")]
    CutJson,
    #[strum(to_string = "it is JSON of no known benchmark tool")]
    Json,
    #[strum(to_string = "it is the log of a command that failed")]
    FailedCommand,
    #[strum(to_string = "no line of it is a result of a known benchmark tool")]
    Text,
}

impl FileContent {
    /// How to get a result from it.
    pub const fn hint(self) -> &'static str {
        match self {
            Self::Empty => "the benchmark printed nothing: look at its exit status and its log",
            Self::Utf16 => {
                "PowerShell's `>` writes UTF-16: have the tool write the file, or pipe to `Out-File -Encoding utf8`"
            }
            Self::Compressed => "decompress it first; gzip and Zstandard are read as they are",
            Self::Binary => "name the file that the benchmark tool wrote as JSON, CSV or text",
            Self::CutJson => "let the tool finish and write it again",
            Self::FailedCommand => "run the benchmark again; a process without results is not left out",
            Self::Html => "download the raw file, not the page that shows it",
            Self::Directionless => {
                "choose: `--format-in custom-smaller-is-better` or `--format-in custom-bigger-is-better`"
            }
            Self::BenchmarkDotNet | Self::Json | Self::Text => {
                "`--format-in NAME` names its format; docs/formats.md lists them, including one that any script can write"
            }
        }
    }
}
