//! There is one comment of benchgate, never two, and an older result never replaces a newer one. The fake
//! server fails on request.

use std::time::Duration;

use benchgate::github::{
    Check, Client, CommentRequest, Conclusion, GitHubError, GitHubToken, Marker, Posted, PostedCheck,
    RepositoryName, RetryPolicy, RunAttempt, Sha,
};

use super::double::{BOT, Double, Fault, TOKEN};

const RETRIES: RetryPolicy =
    RetryPolicy { first_wait: Duration::from_millis(5), max_attempts: 4, max_wait: Duration::from_secs(5) };

const ISSUE: &str = "/api/v3/repos/o/r/issues/7/comments";

fn client(double: &Double) -> Client {
    let repository = RepositoryName::parse("o/r").unwrap();
    Client::new(&double.api(), repository, &GitHubToken::new(TOKEN).unwrap(), RETRIES).unwrap()
}

fn on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

fn marker(run: u64, attempt: u64) -> Marker {
    Marker::new("quickstart", RunAttempt { run, attempt })
}

fn post(double: &Double, run: u64, attempt: u64, body: &str, begin: bool) -> Result<Posted, GitHubError> {
    let marker = marker(run, attempt);
    let wanted = CommentRequest { pull_request: 7, marker: &marker, body, create: begin, author: BOT };
    on(async { client(double).comment(&wanted).await })
}

/// Posts, and returns benchgate's comments.
fn say(double: &Double, run: u64, attempt: u64, body: &str) -> Vec<String> {
    post(double, run, attempt, body, true).unwrap();
    ours(double)
}

fn ours(double: &Double) -> Vec<String> {
    let comments = double.comments().into_iter().filter(|comment| comment.login == BOT);
    comments.filter_map(|comment| Some(comment.body.split_once('\n')?.1.to_owned())).collect()
}

#[test]
fn the_second_verdict_replaces_the_first() {
    let double = Double::new();
    assert_eq!(say(&double, 1, 1, "red"), ["red"]);
    assert_eq!(say(&double, 2, 1, "green"), ["green"]);
    assert_eq!(double.count("POST"), 1);
    assert_eq!(double.unauthorized(), 0);
}

#[test]
fn a_rerun_replaces_its_own_first_try() {
    let double = Double::new();
    assert_eq!(say(&double, 1, 1, "red"), ["red"]);
    assert_eq!(say(&double, 1, 2, "green"), ["green"]);
}

#[test]
fn an_older_try_says_nothing_over_a_newer_one() {
    let double = Double::new();
    say(&double, 2, 1, "new");
    for (run, attempt) in [(1, 1), (1, 9)] {
        let posted = post(&double, run, attempt, "old", true).unwrap();
        assert!(matches!(posted, Posted::Newer { .. }), "{posted:?}");
        assert_eq!(ours(&double), ["new"]);
    }
}

#[test]
fn a_comment_that_a_user_deleted_is_written_anew() {
    let double = Double::new();
    say(&double, 1, 1, "red");
    double.remove(double.comments()[0].id);
    assert_eq!(say(&double, 2, 1, "green"), ["green"]);
}

#[test]
fn our_comment_is_found_behind_three_pages_of_others() {
    let double = Double::new();
    for at in 0..290 {
        double.add("kim", &format!("comment {at}"));
    }
    say(&double, 1, 1, "red");
    for at in 0..50 {
        double.add("kim", &format!("later {at}"));
    }
    assert_eq!(say(&double, 2, 1, "green"), ["green"]);
    assert_eq!((double.count("POST"), double.comments().len()), (1, 341));
}

#[test]
fn another_user_s_comment_with_our_marker_is_left_alone() {
    let double = Double::new();
    let forged = format!("{}\nforged", marker(u64::MAX, 1).line());
    double.add("mallory", &forged);
    assert_eq!(say(&double, 1, 1, "red"), ["red"]);
    assert_eq!(say(&double, 2, 1, "green"), ["green"]);
    assert_eq!(double.comments()[0].body, forged);
}

#[test]
fn a_comment_of_ours_about_another_suite_is_another_comment() {
    let double = Double::new();
    let other = Marker::new("nightly", RunAttempt { run: 9, attempt: 1 });
    double.add(BOT, &other.comment("of another suite"));
    double.add(BOT, &format!("hello\n{}", marker(9, 9).line()));
    assert_eq!(say(&double, 1, 1, "red"), ["of another suite", &marker(9, 9).line(), "red"]);
}

#[test]
fn duplicates_are_cleaned_up() {
    let double = Double::new();
    for run in 1..4 {
        double.add(BOT, &marker(run, 1).comment("twin"));
    }
    assert_eq!(say(&double, 5, 1, "only"), ["only"]);
}

#[test]
fn a_comment_is_begun_only_when_wanted_and_then_kept_up_to_date() {
    let double = Double::new();
    assert_eq!(post(&double, 1, 1, "green", false).unwrap(), Posted::NotWanted);
    say(&double, 2, 1, "red");
    assert!(matches!(post(&double, 3, 1, "green", false).unwrap(), Posted::Updated { .. }));
    assert_eq!(ours(&double), ["green"]);
}

#[test]
fn a_post_that_a_gateway_swallowed_is_there_once() {
    for fault in [Fault::DoneThen502, Fault::DoneThenSilence] {
        let double = Double::new();
        double.fail("POST", ISSUE, fault);
        assert_eq!(say(&double, 1, 1, "red"), ["red"]);
        assert_eq!(double.count("POST"), 1, "{:?}", double.log());
    }
}

#[test]
fn a_post_that_was_not_done_is_done_after_a_look() {
    let double = Double::new();
    double.fail("POST", ISSUE, Fault::NotDone502);
    assert_eq!(say(&double, 1, 1, "red"), ["red"]);
    let log = double.log();
    let first = log.iter().position(|line| line.starts_with("POST")).unwrap();
    assert!(log[first + 1].starts_with("GET"), "{log:?}");
    assert_eq!(double.count("POST"), 2);
}

#[test]
fn a_gateway_that_never_recovers_is_an_error_and_no_flood() {
    let double = Double::new();
    for _ in 0..10 {
        double.fail("POST", ISSUE, Fault::NotDone502);
    }
    let error = post(&double, 1, 1, "red", true).unwrap_err();
    assert!(matches!(error, GitHubError::Unreachable { .. }), "{error}");
    assert_eq!(double.count("POST"), 3);
}

#[test]
fn a_limit_is_waited_out_as_the_server_asks() {
    for (status, message) in
        [(429, "You have exceeded a secondary rate limit"), (403, "You have exceeded a secondary rate limit")]
    {
        let double = Double::new();
        let headers = vec![("Retry-After", "1".to_owned())];
        double.fail("POST", ISSUE, Fault::Refuse { status, headers, message });
        assert_eq!(say(&double, 1, 1, "red"), ["red"]);
        let gap = double.gap("POST");
        assert!((1.0..3.0).contains(&gap), "{status}: {gap}");
    }
}

#[test]
fn a_spent_hour_is_waited_for_by_the_server_s_clock() {
    let double = Double::new();
    // The server's clock is years ahead of the local one.
    let headers = vec![
        ("Date", "Thu, 01 Jan 2099 00:00:00 GMT".to_owned()),
        ("X-RateLimit-Remaining", "0".to_owned()),
        ("X-RateLimit-Reset", "4070908801".to_owned()),
    ];
    double.fail(
        "PATCH",
        "comments",
        Fault::Refuse { status: 403, headers, message: "API rate limit exceeded" },
    );
    say(&double, 1, 1, "red");
    assert_eq!(say(&double, 2, 1, "green"), ["green"]);
    let gap = double.gap("PATCH");
    assert!((1.9..4.0).contains(&gap), "{gap}");
}

#[test]
fn a_wait_beyond_patience_is_an_error_that_says_how_long() {
    let double = Double::new();
    let headers = vec![("Retry-After", "3600".to_owned())];
    double.fail("GET", ISSUE, Fault::Refuse { status: 429, headers, message: "limited" });
    let error = post(&double, 1, 1, "red", true).unwrap_err();
    assert!(
        matches!(error, GitHubError::RateLimited { .. }) && error.to_string().contains("3600 s"),
        "{error}"
    );
}

#[test]
fn a_reader_s_token_is_distinguished_from_a_limit() {
    let double = Double::new();
    double.read_only();
    let error = post(&double, 1, 1, "red", true).unwrap_err();
    assert!(error.is_forbidden(), "{error}");
    assert_eq!(double.count("POST"), 1);
}

#[test]
fn who_we_are_is_asked_and_learned_from_the_answer() {
    let double = Double::new();
    double.personal();
    assert_eq!(say(&double, 1, 1, "red"), ["red"]);
    // The configured name is wrong, and the token may not ask for its owner's login.
    let double = Double::new();
    double.add(BOT, &marker(1, 1).comment("old"));
    let marker = marker(2, 1);
    let wanted =
        CommentRequest { pull_request: 7, marker: &marker, body: "new", create: true, author: "other[bot]" };
    on(async { client(&double).comment(&wanted).await }).unwrap();
    assert_eq!(ours(&double), ["new"]);
}

#[test]
fn a_check_run_is_posted_once_and_updated_by_the_same_try() {
    let head = Sha::parse("0123456789abcdef0123456789abcdef01234567").unwrap();
    let mut check = Check {
        name: "benchgate: quickstart".into(),
        head,
        conclusion: Conclusion::Neutral,
        title: "Inconclusive".into(),
        summary: "open".into(),
        marker: marker(1, 1),
        page: None,
    };
    for fault in [Fault::DoneThen502, Fault::NotDone502] {
        let double = Double::new();
        double.fail("POST", "check-runs", fault);
        on(async { client(&double).check(&check).await }).unwrap();
        assert_eq!(double.checks().len(), 1);
        assert_eq!(double.checks()[0]["conclusion"], "neutral");
        check.conclusion = Conclusion::Success;
        on(async { client(&double).check(&check).await }).unwrap();
        assert_eq!((double.checks().len(), double.checks()[0]["conclusion"].as_str()), (1, Some("success")));
        check.conclusion = Conclusion::Neutral;
    }
}

#[test]
fn an_older_check_run_replaces_nothing_and_a_newer_one_updates_it() {
    let double = Double::new();
    let check = |run, attempt, conclusion| Check {
        name: "benchgate: quickstart".into(),
        head: Sha::parse("0123456789abcdef0123456789abcdef01234567").unwrap(),
        conclusion,
        title: "x".into(),
        summary: "x".into(),
        marker: marker(run, attempt),
        page: None,
    };
    let post = |check: &Check| on(async { client(&double).check(check).await }).unwrap();
    assert_eq!(post(&check(8, 2, Conclusion::Failure)), PostedCheck::Posted);
    assert_eq!(post(&check(7, 3, Conclusion::Success)), PostedCheck::Newer, "an older run");
    assert_eq!(post(&check(8, 1, Conclusion::Success)), PostedCheck::Newer, "an older attempt");
    assert_eq!(
        post(&check(8, 2, Conclusion::Success)),
        PostedCheck::Failed,
        "another machine of the attempt"
    );
    assert_eq!(double.checks()[0]["conclusion"], "failure");
    assert_eq!(post(&check(9, 1, Conclusion::Success)), PostedCheck::Posted);
    assert_eq!(post(&check(9, 1, Conclusion::Failure)), PostedCheck::Posted, "it failed on another machine");
    assert_eq!(post(&check(9, 2, Conclusion::Success)), PostedCheck::Posted);
    assert_eq!((double.checks().len(), double.checks()[0]["conclusion"].as_str()), (1, Some("success")));
}

#[test]
fn a_retry_after_of_any_size_is_a_wait_that_is_too_long() {
    for (status, seconds) in [(502, "18446744073709551615"), (429, "18446744073709551614"), (503, "1e99")] {
        let double = Double::new();
        // The client has already waited for a second, so adding the requested wait overflows.
        double.fail("GET", "comments", Fault::NotDone502);
        let headers = vec![("Retry-After", seconds.to_owned())];
        double.fail("GET", "comments", Fault::Refuse { status, headers, message: "later" });
        let retries = RetryPolicy { first_wait: Duration::from_secs(1), ..RETRIES };
        let repository = RepositoryName::parse("o/r").unwrap();
        let marker = marker(1, 1);
        let wanted =
            CommentRequest { pull_request: 7, marker: &marker, body: "red", create: true, author: BOT };
        let posted = on(async {
            Client::new(&double.api(), repository, &GitHubToken::new(TOKEN).unwrap(), retries)
                .unwrap()
                .comment(&wanted)
                .await
        });
        assert!(posted.is_err(), "{status}");
    }
}

#[test]
fn an_answer_that_echoes_the_token_is_redacted() {
    let double = Double::new();
    let message = "Bad header Authorization: Bearer ghs_loopback_9f8e7d6c5b4a";
    assert!(message.ends_with(TOKEN));
    double.fail("GET", "comments", Fault::Refuse { status: 422, headers: Vec::new(), message });
    let error = post(&double, 1, 1, "red", true).unwrap_err();
    assert!(matches!(&error, GitHubError::Refused { status: 422, .. }), "{error:?}");
    assert!(!format!("{error:?} {error}").contains("ghs_"), "{error}");
}

#[test]
fn a_token_that_no_header_can_hold_is_not_a_token() {
    for text in ["ghs_a\nb", "ghs_a b", "ghs_\u{e9}", "\n", ""] {
        assert!(GitHubToken::new(text).is_none(), "{text:?}");
    }
    assert!(GitHubToken::new(" ghs_a\n").is_some());
}

#[test]
fn nothing_shows_the_token() {
    let double = Double::new();
    let token = GitHubToken::new(TOKEN).unwrap();
    let client = on(async { client(&double) });
    double.fail(
        "GET",
        "user",
        Fault::Refuse { status: 401, headers: Vec::new(), message: "Bad credentials" },
    );
    let error = post(&double, 1, 1, "red", true).unwrap_err();
    for shown in [format!("{token:?}"), format!("{client:?}"), format!("{error:?}"), error.to_string()] {
        assert!(!shown.contains("ghs_"), "{shown}");
    }
}
