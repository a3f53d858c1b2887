//! The text of an alert: an issue's title and Markdown text, and the marker by which it is recognized. Names
//! are untrusted and are written in code spans, where nothing is a mention, a link or markup.

use jiff::Timestamp;

use super::alerts::{IssueTrace, Over, rows};
use super::benchmark::path;
use super::causes::{Cause, Range, compiler, sources};
use super::history::Session;
use super::layout::RepositoryUrl;
use super::plot::day;
use crate::report::{change, markdown_cell, markdown_code, quantity};
use benchgate_core::model::short_commit;

const BEGIN: &str = "<!-- benchgate/alert/v1 ";
const END: &str = " -->";
/// Maximum number of benchmarks in the table; the others are counted.
const ROWS: usize = 30;

/// A handle to mention in issues about certain benchmarks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BenchmarkOwner {
    /// Glob over benchmark names.
    pub benchmarks: String,
    /// `@user` or `@org/team`.
    pub handle: String,
}

impl BenchmarkOwner {
    /// Parses `GLOB=@HANDLE`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (benchmarks, handle) = text.rsplit_once('=').ok_or("expected GLOB=@HANDLE")?;
        globset::Glob::new(benchmarks).map_err(|error| error.to_string())?;
        let plain = |part: &str| {
            !part.is_empty()
                && part.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_.".contains(letter))
        };
        let name = handle
            .strip_prefix('@')
            .filter(|name| name.split('/').count() <= 2 && name.split('/').all(plain));
        name.ok_or("expected a handle like @user or @org/team")?;
        Ok(Self { benchmarks: benchmarks.to_owned(), handle: handle.to_owned() })
    }
}

/// Links and mentions that an issue may contain.
#[derive(Debug, Clone, Default)]
pub struct IssueContext<'a> {
    pub repository: Option<&'a RepositoryUrl>,
    /// Address of the published site, with a trailing slash.
    pub site: Option<&'a str>,
    pub owners: &'a [BenchmarkOwner],
}

impl IssueTrace {
    /// Returns the line with which an issue begins.
    pub fn line(&self) -> String {
        let state = if self.recovered { "over" } else { "worse" };
        let size = (self.size * 1e4).round();
        let total = (self.total * 1e4).round();
        format!(
            "{BEGIN}at={} size={size} total={total} state={state} of={}{END}",
            self.at.as_second(),
            self.members.join(",")
        )
    }

    /// Reads the trace from an issue's text. Only its first line counts, and only if it is complete.
    pub fn from_body(body: &str) -> Option<Self> {
        let line = body.lines().next()?.trim_end();
        let mut parts = line.strip_prefix(BEGIN)?.strip_suffix(END)?.split(' ').peekable();
        let mut part = |name: &str| parts.next()?.strip_prefix(name)?.strip_prefix('=');
        let at = Timestamp::from_second(part("at")?.parse().ok()?).ok()?;
        let number = |text: &str| text.parse().ok().filter(|number: &f64| number.is_finite());
        let size = number(part("size")?)?;
        // Issues of earlier versions have no total.
        let total = parts.next_if(|part| part.starts_with("total="));
        let total = total.map_or(Some(size), |total| number(total.strip_prefix("total=")?))?;
        let mut part = |name: &str| parts.next()?.strip_prefix(name)?.strip_prefix('=');
        let recovered = match part("state")? {
            "worse" => false,
            "over" => true,
            _ => return None,
        };
        let members: Vec<String> = part("of")?.split(',').map(str::to_owned).collect();
        let key = |member: &String| member.len() == 8 && member.bytes().all(|byte| byte.is_ascii_hexdigit());
        let whole = parts.next().is_none() && members.iter().all(key);
        whole.then_some(Self { at, size: size / 1e4, total: total / 1e4, members, recovered })
    }
}

/// Returns the title: the slower benchmarks, and the current slowdown.
pub fn title(cause: &Cause<'_>) -> String {
    let Some(worst) = cause.slowest() else { return String::new() };
    let more = cause.members.len() - 1;
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    let mut by = change(worst.change.now / worst.change.from);
    if !cause.later.is_empty() {
        by.push_str(&format!(" in {} steps", cause.later.len() + 1));
    }
    let name: String =
        crate::report::clean(worst.benchmark).replace('@', "@\u{2060}").chars().take(120).collect();
    format!("Slower since {}: {name}{more} ({by})", day(worst.at()))
}

/// Returns the text of an open issue.
pub fn body(cause: &Cause<'_>, trace: &IssueTrace, context: &IssueContext<'_>) -> String {
    let mut text = format!("{}\n", trace.line());
    let count = benchgate_core::model::counted(cause.members.len(), "benchmark");
    text.push_str(&format!(
        "{count} got slower at the same change, between {} and {}.\n\n",
        day(cause.after()),
        day(cause.until())
    ));
    if cause.later.is_empty() {
        text.push_str(&ranges(cause.old, cause.new, context.repository));
    } else {
        text.push_str("After that it got slower again. The steps of the slowdown:\n\n");
        cause.steps().for_each(|step| text.push_str(&step_text(step, context)));
    }
    text.push_str(
        "\n| benchmark | suite | testbed | metric | before → now | change |\n|---|---|---|---|---|--:|\n",
    );
    for (member, moved) in rows(cause).take(ROWS) {
        let unit = member
            .timeline
            .benchmarks
            .get(member.benchmark)
            .and_then(|history| history.tracks.get(member.metric));
        let unit = unit.map_or(benchgate_core::model::Unit::Count, |track| track.unit.clone());
        let name = markdown_cell(member.benchmark);
        let name = context.site.map_or(name.clone(), |site| {
            format!("{name} [page]({site}{})", path(member.timeline, member.benchmark))
        });
        text.push_str(&format!(
            "| {name} | {} | {} | {} | {} → {} | {} |\n",
            markdown_cell(&member.timeline.suite),
            markdown_cell(&member.timeline.machine),
            markdown_cell(member.metric),
            quantity(moved.from, &unit),
            quantity(moved.now, &unit),
            change(moved.now / moved.from)
        ));
    }
    if cause.members.len() > ROWS {
        text.push_str(&format!("\nand {} more.\n", cause.members.len() - ROWS));
    }
    let owners = owners(cause, context.owners);
    if !owners.is_empty() {
        text.push_str(&format!("\nOwners: {}\n", owners.join(" ")));
    }
    text.push_str(
        "\nbenchgate closes this issue when the benchmarks are back at their earlier level, or when the change is accepted \
         with `benchgate baseline accept`. To stop its updates, close it yourself. Keep the label, because \
         benchgate finds the issue by it.\n",
    );
    text
}

/// Describes one of several slowdowns: its size, its dates and its commits.
fn step_text(step: &Cause<'_>, context: &IssueContext<'_>) -> String {
    let by =
        step.members.first().map_or_else(String::new, |worst| change(worst.change.to / worst.change.from));
    let (after, until) = (day(step.after()), day(step.until()));
    format!("**{by}** between {after} and {until}\n\n{}\n", ranges(step.old, step.new, context.repository))
}

/// Returns a comment on an issue whose benchmarks got slower again. `before` is the slowdown that was
/// reported last.
pub fn growth(cause: &Cause<'_>, before: f64, context: &IssueContext<'_>) -> String {
    let Some(worst) = cause.slowest() else { return String::new() };
    let mut text = format!(
        "{} is now at {} compared with its level before {}; the last report said {}. The newest step:\n\n",
        markdown_code(worst.benchmark),
        change(worst.change.now / worst.change.from),
        day(cause.until()),
        change(before.exp())
    );
    text.push_str(&step_text(cause.steps().last().unwrap_or(cause), context));
    let owners = owners(cause, context.owners);
    if !owners.is_empty() {
        text.push_str(&format!("\nOwners: {}\n", owners.join(" ")));
    }
    text
}

/// Returns the text of a closed issue, which is added above its earlier text.
pub fn closing(trace: &IssueTrace, why: &Over, now: Timestamp, old: &str) -> String {
    let reason = match why {
        Over::Recovered => "the benchmarks are back at their earlier level".to_owned(),
        Over::Accepted { who, why } => format!("accepted by {}: {}", markdown_code(who), markdown_code(why)),
    };
    let rest = old.split_once('\n').map_or("", |(_, rest)| rest);
    // The text of an earlier closing is replaced.
    let rest = rest
        .strip_prefix("**Closed ")
        .and_then(|rest| rest.split_once("\n\n"))
        .map_or(rest, |(_, rest)| rest);
    format!("{}\n**Closed {}**: {reason}.\n\n{rest}", trace.line(), day(now))
}

fn ranges(old: &Session, new: &Session, repository: Option<&RepositoryUrl>) -> String {
    let iree = RepositoryUrl::parse("https://github.com/iree-org/iree");
    let line = |what: &str, range: Option<Range<'_>>, repository: Option<&RepositoryUrl>| {
        let Some(range) = range else { return String::new() };
        let text = markdown_code(&format!("{}..{}", short_commit(range.from), short_commit(range.to)));
        let url = repository.and_then(|repository| repository.compare(range.from, range.to));
        url.map_or(format!("- {what}: {text}\n"), |url| format!("- {what}: [{text}]({url})\n"))
    };
    let text = line("commits", sources(old, new), repository)
        + &line("commits of the compiler", compiler(old, new), iree.as_ref());
    if text.is_empty() {
        "- the same commit and compiler before and after: look at the machine\n".to_owned()
    } else {
        text
    }
}

fn owners(cause: &Cause<'_>, owners: &[BenchmarkOwner]) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for owner in owners {
        let Ok(glob) = globset::Glob::new(&owner.benchmarks) else { continue };
        let glob = glob.compile_matcher();
        let concerned = cause.members.iter().any(|member| glob.is_match(member.benchmark));
        if concerned && !found.contains(&owner.handle) {
            found.push(owner.handle.clone());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace() -> IssueTrace {
        IssueTrace {
            at: "2026-11-20T02:17:00Z".parse().unwrap(),
            size: 0.0831,
            total: 0.1204,
            members: vec!["0123abcd".to_owned(), "ffffffff".to_owned()],
            recovered: false,
        }
    }

    #[test]
    fn a_marker_is_read_back_and_only_a_whole_one_counts() {
        let line = trace().line();
        assert_eq!(IssueTrace::from_body(&format!("{line}\nmore")), Some(trace()));
        for body in [
            format!("hello\n{line}"),
            line.replace(" -->", ""),
            line.replace("state=worse", "state=better"),
            line.replace("0123abcd", "../../x"),
            line.replace("size=831", "size=inf"),
            line.replace("total=1204", "total=x"),
            String::new(),
        ] {
            assert_eq!(IssueTrace::from_body(&body), None, "{body}");
        }
    }

    #[test]
    fn a_marker_of_an_earlier_version_has_no_total() {
        let line = trace().line().replace("total=1204 ", "");
        let read = IssueTrace::from_body(&line).unwrap();
        assert_eq!((read.size, read.total), (0.0831, 0.0831));
    }

    #[test]
    fn closing_keeps_what_was_said_and_says_why_once() {
        let now: Timestamp = "2026-12-01T00:00:00Z".parse().unwrap();
        let over = IssueTrace { recovered: true, ..trace() };
        let first = closing(&over, &Over::Recovered, now, &format!("{}\nslow", trace().line()));
        let why = Over::Accepted { who: "kim".to_owned(), why: "on purpose @all".to_owned() };
        let second = closing(&over, &why, now, &first);
        assert_eq!(second.matches("**Closed").count(), 1);
        assert!(second.ends_with("\n\nslow") && second.contains("`on purpose @all`"), "{second}");
        assert_eq!(IssueTrace::from_body(&second), Some(over));
    }

    #[test]
    fn only_a_handle_is_a_handle() {
        assert_eq!(BenchmarkOwner::parse("vit*=@org/team").unwrap().handle, "@org/team");
        for wrong in ["vit*", "vit*=kim", "vit*=@", "vit*=@a/b/c", "vit*=@a b", "[=@kim", "vit*=@a\n@b"] {
            assert!(BenchmarkOwner::parse(wrong).is_err(), "{wrong}");
        }
    }
}
