//! `benchgate alert`: one issue for each cause over many nights, and its behavior when GitHub fails.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;

use benchgate::model::{BenchmarkGlob, SourceCommit};
use benchgate::record::{AcceptanceFile, AcceptanceSchema, QuarantineCause, QuarantineRecord};
use benchgate::site::{
    Action, AlertPolicy, BenchmarkHistory, IssueTrace, KnownIssue, Range, RepositoryUrl, Site, Timeline,
    open_slowdowns, plan,
};
use benchgate::store::{self, BaselineFolder, Directory};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::github::{BOT, Double, Fault, TOKEN};
use crate::harness::{Outcome, World};
use crate::nights::{End, Machine, Slowdown, play_nights};
use crate::replay::{PLANTED, night_session, play, point, track};
use crate::simulated_history::{self as history, Plan};

#[test]
fn every_planted_cause_is_one_issue_and_nothing_else_is() {
    // benches/alerts.rs simulates a hundred years.
    for seed in 0..2 {
        let year = play(seed, 0.008, &PLANTED);
        assert!(year.is_exact(&PLANTED), "{seed}: {year:?}");
        // The issues of the reverted slowdown and of the accepted one are closed.
        assert!(year.closed >= 2, "{year:?}");
    }
}

#[test]
fn a_year_without_a_change_opens_no_issue() {
    let year = play(1, 0.012, &[]);
    assert!(year.opened.is_empty(), "{year:?}");
}

#[test]
fn nights_with_a_slowdown_that_no_one_accepted_are_neither_learned_from_nor_green() {
    // benches/nights.rs simulates a hundred years.
    let slowdown = |row, night, size, end| Slowdown { row, night, takes: 1, size, end };
    let slowdowns = [
        slowdown(0, 26, 0.03, End::Never),
        slowdown(0, 44, 0.3, End::Never),
        slowdown(1, 27, 0.06, End::Reverted(46)),
        slowdown(2, 28, 0.12, End::Accepted(44)),
        slowdown(3, 30, 1.0, End::Never),
        // An improvement, part of which a later change undoes.
        slowdown(4, 24, -0.1, End::Never),
        slowdown(4, 29, 0.067, End::Never),
    ];
    let year = play_nights(1, 60, &Machine::steady(0.004), &slowdowns);
    assert!(year.slow_nights > 110 && year.steps == 6, "{year:?}");
    assert!(year.stored_as_good.is_empty() && year.passed.is_empty(), "{year:?}");
    assert!(year.steps_not_shown.is_empty() && year.not_on_site.is_empty(), "{year:?}");
}

/// Nights of one benchmark with these changes of its level, and with noise of half a percent.
fn nights(changes: &[f64]) -> Vec<Timeline> {
    let first: Timestamp = "2026-01-01T02:17:00Z".parse().unwrap();
    let mut timeline = Timeline::new("zoo", "gpu");
    let mut track = track();
    for (session, change) in changes.iter().enumerate() {
        let began = first + SignedDuration::from_hours(24 * session as i64);
        timeline.sessions.push(night_session(began, None));
        // Multiples of the golden ratio are evenly distributed but not sorted.
        let noise = 0.01 * ((session as f64 * 0.618_034).fract() - 0.5);
        track.points.push(point(session, 1e6 * (change + noise).exp()));
    }
    let tracks = BTreeMap::from([("latency".to_owned(), track)]);
    timeline.benchmarks.insert("vit/gpu/main".to_owned(), BenchmarkHistory { tracks, failures: Vec::new() });
    vec![timeline]
}

fn decided<'a>(timelines: &'a [Timeline], known: &[KnownIssue]) -> Vec<Action<'a>> {
    let now = timelines[0].newest().unwrap().began;
    plan(timelines, known, now, &AlertPolicy::default()).actions
}

#[test]
fn two_slowdowns_that_a_first_night_finds_in_one_benchmark_are_one_issue() {
    let both = nights(&[[0.0; 40].as_slice(), &[0.05; 20], &[0.31; 20]].concat());
    let opened = decided(&both, &[]);
    let [Action::Open { cause, .. }] = &opened[..] else { panic!("{opened:?}") };
    assert_eq!(cause.steps().count(), 2);
    assert!(benchgate::site::issue_title(cause).ends_with(" in 2 steps)"));
}

#[test]
fn two_causes_three_nights_apart_are_two_issues() {
    let mut both = nights(&[[0.0; 40].as_slice(), &[0.09; 20]].concat());
    let other = nights(&[[0.0; 43].as_slice(), &[0.3; 17]].concat()).remove(0);
    both[0]
        .benchmarks
        .extend(other.benchmarks.into_values().map(|history| ("bert/gpu/main".to_owned(), history)));
    let opened = decided(&both, &[]);
    let members = |action: &Action<'_>| match action {
        Action::Open { cause, .. } => cause.members.len(),
        _ => 0,
    };
    assert_eq!(opened.iter().map(members).collect::<Vec<_>>(), [1, 1]);
}

#[test]
fn a_benchmark_that_was_accepted_alone_is_no_longer_part_of_the_slowdown() {
    let back = |nights_until: usize| {
        [vec![0.0; 40], vec![0.09; nights_until], vec![0.0; 20 - nights_until]].concat()
    };
    let both = |of_bert: usize| {
        let mut both = nights(&back(20));
        let other = nights(&back(of_bert)).remove(0);
        let renamed = other.benchmarks.into_values().map(|history| ("bert/gpu/main".to_owned(), history));
        both[0].benchmarks.extend(renamed);
        both
    };
    let accepted = |mut timelines: Vec<Timeline>, glob: Option<&str>| {
        let from = timelines[0].sessions[40].name.clone();
        timelines[0].acceptances.push(AcceptanceFile {
            schema: AcceptanceSchema,
            benchgate: "0.1.0".to_owned(),
            sha256: String::new(),
            suite: "zoo".to_owned(),
            testbed: "gpu".to_owned(),
            created: "2026-03-01T00:00:00Z".to_owned(),
            from,
            benchmark: glob.map(BenchmarkGlob::new),
            not_measured: Vec::new(),
            later_runs: None,
            who: "kim".to_owned(),
            why: "on purpose".to_owned(),
            until: None,
        });
        timelines
    };
    let open = both(20);
    let opened = decided(&open, &[]);
    let [Action::Open { cause, trace }] = &opened[..] else { panic!("{opened:?}") };
    assert_eq!(cause.members.len(), 2);
    let known = KnownIssue { number: 1, open: true, trace: trace.clone() };

    let partly = accepted(both(20), Some("vit*"));
    let opened = decided(&partly, &[]);
    let [Action::Open { cause, .. }] = &opened[..] else { panic!("{opened:?}") };
    assert_eq!(cause.members.iter().map(|member| member.benchmark).collect::<Vec<_>>(), ["bert/gpu/main"]);
    let now = partly[0].newest().unwrap().began;
    let listed = open_slowdowns(&partly, now, &AlertPolicy::default());
    assert_eq!(listed.iter().map(|open| open.cause.members.len()).collect::<Vec<_>>(), [1]);

    // The issue about both is over when the other benchmark is back.
    let of_both = std::slice::from_ref(&known);
    assert!(matches!(decided(&partly, of_both)[..], [Action::Update { .. }]));
    assert!(matches!(decided(&accepted(both(10), Some("vit*")), of_both)[..], [Action::Close { .. }]));
    assert!(matches!(decided(&accepted(both(20), None), of_both)[..], [Action::Close { .. }]));
}

#[test]
fn an_open_slowdown_lists_the_commits_of_its_range_with_their_authors() {
    let mut timelines = nights(&[[0.0; 40].as_slice(), &[0.05; 20]].concat());
    for (night, session) in timelines[0].sessions.iter_mut().enumerate() {
        session.commit = Some(format!("{night:040x}"));
    }
    let now = timelines[0].newest().unwrap().began;
    let open = open_slowdowns(&timelines, now, &AlertPolicy::default());
    let commits = |range: &Range<'_>| {
        let (subject, author) = ("Tile <b>less</b>".to_owned(), "Kim".to_owned());
        vec![SourceCommit { id: range.to.to_owned(), subject, author }]
    };
    let repository = RepositoryUrl::parse("https://github.com/o/r");
    let (timelines, open, repository) = (&timelines[..], &open[..], repository.as_ref());
    let (red, newest, silent, unstable) = (&[][..], None, &[][..], &[][..]);
    let site = Site { timelines, open, red, newest, silent, unstable, now, repository, commits: &commits };
    let mut page = String::new();
    let written: Result<(), std::convert::Infallible> = site.build(&[], |path, content| {
        if path == "index.html" {
            page = String::from_utf8(content.to_vec()).unwrap();
        }
        Ok(())
    });
    written.unwrap();
    let first = page.split("<h2>").find(|section| section.starts_with("Open slowdowns")).unwrap();
    let commit = format!("https://github.com/o/r/commit/{:040x}", 40);
    assert!(first.contains(&commit) && first.contains("<bdi>Kim</bdi>"), "{first}");
    assert!(first.contains("Tile &lt;b&gt;less"), "{first}");
}

#[test]
fn a_slowdown_three_nights_after_a_larger_improvement_is_one_issue_until_it_is_gone() {
    let improved = [[0.0; 40].as_slice(), &[-0.09; 3]].concat();
    // The gate compares these nights with the three before them, so it has failed since then.
    let mut slow = nights(&[improved.as_slice(), &[-0.04; 8]].concat());
    for session in &mut slow[0].sessions[43..] {
        let benchmark = Some("vit/gpu/main".to_owned());
        let (cause, why) = (QuarantineCause::Regressed, "slower".to_owned());
        session.held.push(QuarantineRecord { cause, why, benchmark });
    }
    let track = |timelines: &mut Vec<Timeline>| {
        let history = timelines[0].benchmarks.values_mut().next().unwrap();
        history.tracks.values_mut().next().unwrap().points[43..]
            .iter_mut()
            .for_each(|point| point.held = true);
    };
    track(&mut slow);
    let opened = decided(&slow, &[]);
    let [Action::Open { cause, trace }] = &opened[..] else { panic!("{opened:?}") };
    assert!((0.04..0.06).contains(&cause.total()), "{}", cause.total());
    let now = slow[0].newest().unwrap().began;
    let open = open_slowdowns(&slow, now, &AlertPolicy::default());
    assert!(open.len() == 1 && open[0].red, "{open:?}");
    let known = [KnownIssue { number: 7, open: true, trace: trace.clone() }];
    assert!(matches!(decided(&slow, &known)[..], [Action::Update { number: 7, .. }]));
    let gone = nights(&[improved.as_slice(), &[-0.04; 8], &[-0.09; 8]].concat());
    assert!(matches!(decided(&gone, &known)[..], [Action::Close { number: 7, .. }]));
}

/// The gate fails on a metric that the configuration makes fatal, while the latency stays the same.
#[test]
fn a_slowdown_of_another_metric_that_the_gate_fails_on_is_one_issue_until_it_is_gone() {
    let with = |slow: usize, good: usize| {
        let mut timelines = nights(&vec![0.0; 40 + slow + good]);
        let changes = [vec![0.0; 40], vec![0.26; slow], vec![0.0; good]].concat();
        let mut other = nights(&changes).remove(0);
        let mut history = other.benchmarks.remove("vit/gpu/main").unwrap();
        let mut track = history.tracks.remove("latency").unwrap();
        for at in 40..40 + slow {
            let (cause, why) = (QuarantineCause::Regressed, "cpu-time: 1.297 × the stored".to_owned());
            let benchmark = Some("vit/gpu/main".to_owned());
            timelines[0].sessions[at].held.push(QuarantineRecord { cause, why, benchmark });
            track.points[at].held = true;
        }
        let history = timelines[0].benchmarks.get_mut("vit/gpu/main").unwrap();
        history.tracks.get_mut("latency").unwrap().points[40..40 + slow]
            .iter_mut()
            .for_each(|point| point.held = true);
        history.tracks.insert("cpu-time".to_owned(), track);
        timelines
    };
    for nights in [3, 8, 30] {
        let slow = with(nights, 0);
        let now = slow[0].newest().unwrap().began;
        let open = open_slowdowns(&slow, now, &AlertPolicy::default());
        assert!(open.len() == 1 && open[0].red, "{open:?}");
        assert_eq!(open[0].cause.members[0].metric, "cpu-time");
        assert!((0.25..0.27).contains(&open[0].cause.total()), "{}", open[0].cause.total());
        let opened = decided(&slow, &[]);
        let [Action::Open { cause, trace }] = &opened[..] else { panic!("{nights}: {opened:?}") };
        assert_eq!((cause.members[0].metric, cause.steps().count()), ("cpu-time", 1));
        let known = [KnownIssue { number: 7, open: true, trace: trace.clone() }];
        assert!(matches!(decided(&slow, &known)[..], [Action::Update { number: 7, grew: None, .. }]));
        let gone = with(nights, 8);
        assert!(matches!(decided(&gone, &known)[..], [Action::Close { number: 7, .. }]));
        assert!(open_slowdowns(&gone, now, &AlertPolicy::default()).is_empty());
    }
}

#[test]
fn two_bad_nights_of_three_open_no_issue_and_three_do() {
    let with = |newest: [f64; 3]| nights(&[&[0.0; 57][..], &newest].concat());
    let flaky = with([0.2, 0.0, 0.2]);
    assert!(benchgate::site::moved(&flaky).iter().any(|member| member.change.evidence > 46.0));
    assert!(decided(&flaky, &[]).is_empty());
    assert!(matches!(decided(&with([0.2; 3]), &[])[..], [Action::Open { .. }]));
}

#[test]
fn evidence_that_opens_no_issue_keeps_one_up_to_date() {
    let policy = AlertPolicy::default();
    let step = |size: f64| nights(&[[0.0; 54].as_slice(), &[size; 6]].concat());
    let between = |timelines: &Vec<Timeline>| {
        let moved = benchgate::site::moved(timelines);
        moved.iter().any(|member| (policy.evidence..policy.opening).contains(&member.change.evidence))
    };
    let timelines = (100..400).map(|size| step(f64::from(size) * 1e-4)).find(between).unwrap();
    assert!(decided(&timelines, &[]).is_empty());
    let at = timelines[0].sessions[54].began;
    let members = vec![benchgate::site::key(&timelines[0], "vit/gpu/main")];
    let trace = IssueTrace { at, size: 0.02, total: 0.02, members, recovered: false };
    let known = [KnownIssue { number: 7, open: true, trace }];
    assert!(matches!(decided(&timelines, &known)[..], [Action::Update { number: 7, .. }]));
}

#[test]
fn a_second_slowdown_is_a_step_of_the_issue_and_makes_it_louder() {
    let first = nights(&[[0.0; 40].as_slice(), &[0.05; 20]].concat());
    let opened = decided(&first, &[]);
    let [Action::Open { trace, .. }] = &opened[..] else { panic!("{opened:?}") };
    let known = |trace: &IssueTrace| [KnownIssue { number: 7, open: true, trace: trace.clone() }];
    let same = decided(&first, &known(trace));
    assert!(matches!(same[..], [Action::Update { grew: None, .. }]), "{same:?}");
    let second = nights(&[[0.0; 40].as_slice(), &[0.05; 20], &[0.31; 5]].concat());
    let grown = decided(&second, &known(trace));
    let [Action::Update { number: 7, cause, trace, grew: Some(before) }] = &grown[..] else {
        panic!("{grown:?}")
    };
    assert!((before - 0.05).abs() < 0.01 && (cause.total() - 0.31).abs() < 0.01, "{before}");
    assert_eq!(cause.steps().count(), 2);
    assert!(benchgate::site::issue_title(cause).ends_with(" in 2 steps)"));
    // The issue lists the days of each step.
    let body = benchgate::site::issue_body(cause, trace, &benchgate::site::IssueContext::default());
    assert!(
        body.contains("2026-02-09 and 2026-02-10") && body.contains("2026-03-01 and 2026-03-02"),
        "{body}"
    );
    // The second step is reported only once.
    let again = decided(&second, &known(trace));
    assert!(matches!(again[..], [Action::Update { grew: None, .. }]), "{again:?}");
}

#[test]
fn a_slowdown_larger_than_the_one_that_a_person_closed_is_another_issue() {
    let first = nights(&[[0.0; 40].as_slice(), &[0.05; 20]].concat());
    let opened = decided(&first, &[]);
    let [Action::Open { trace, .. }] = &opened[..] else { panic!("{opened:?}") };
    let closed = [KnownIssue { number: 7, open: false, trace: trace.clone() }];
    assert!(decided(&first, &closed).is_empty());
    let second = nights(&[[0.0; 40].as_slice(), &[0.05; 20], &[0.31; 10]].concat());
    let decided = decided(&second, &closed);
    assert!(matches!(decided[..], [Action::Open { .. }]), "{decided:?}");
}

/// A history with one slowdown in the newest nights, and a fake GitHub.
struct Night {
    world: World,
    double: Double,
}

// With only 60 nights, the gradual regression would appear next to the newest slowdown and delay it.
const PLAN: Plan = Plan { seed: 3, nights: 75, benchmarks: 8, processes: 3, noise: 0.003, hostile: true };

impl Night {
    fn new() -> Self {
        let world = World::new();
        history::write(&PLAN, &world.work().join("baselines"));
        world.write("event.json", "{}");
        Self { world, double: Double::new() }
    }

    fn alert(&self, more: &[&str], variables: &[(&str, &str)]) -> Outcome {
        let now = history::began(PLAN.nights).to_string();
        let mut command = self.world.command(["alert", "--now", &now].iter().chain(more));
        command
            .env("GITHUB_EVENT_NAME", "schedule")
            .env("GITHUB_EVENT_PATH", self.world.work().join("event.json"))
            .env("GITHUB_REPOSITORY", "o/r")
            .env("GITHUB_API_URL", self.double.api())
            .env("GITHUB_SERVER_URL", "https://github.com")
            .env("GITHUB_SHA", "0123456789abcdef0123456789abcdef01234567")
            .env("GITHUB_REF", "refs/heads/main")
            .env("GITHUB_RUN_ID", "7")
            .env("GITHUB_RUN_ATTEMPT", "1")
            .env("GITHUB_TOKEN", TOKEN)
            .envs(variables.iter().copied());
        let outcome = self.world.finish(command);
        assert!(!format!("{}{}", outcome.stdout, outcome.stderr).contains("ghs_"));
        outcome
    }

    fn states(&self) -> Vec<String> {
        self.double.issues().iter().map(|issue| issue["state"].as_str().unwrap().to_owned()).collect()
    }
}

#[test]
fn an_issue_is_opened_once_closed_when_accepted_and_opened_again_when_that_ends() {
    let night = Night::new();
    night.alert(&["--owner", "*passwd=@org/team"], &[]).expect_code(0);
    let issues = night.double.issues();
    assert!(!issues.is_empty());
    let newest = issues.iter().find(|issue| issue["title"].as_str().unwrap().contains("passwd")).unwrap();
    let body = newest["body"].as_str().unwrap();
    assert!(body.starts_with("<!-- benchgate/alert/v1 at=") && body.contains("Owners: @org/team"), "{body}");
    assert!(body.contains("https://github.com/o/r/compare/"), "{body}");
    for issue in &issues {
        let text = issue["body"].as_str().unwrap().replace("<!-- benchgate/alert/v1 ", "");
        assert!(!text.contains("\u{202e}") && !text.contains("\n<"), "{text}");
    }
    let count = issues.len();
    // Running the command again for the same session changes nothing.
    night.alert(&["--owner", "*passwd=@org/team"], &[]).expect_code(0);
    assert_eq!((night.double.issues().len(), night.double.count("PATCH")), (count, 0));
    let accept = ["baseline", "accept", "zoo", "--testbed", "cpu", "--since"];
    let from = history::commit(PLAN.nights - 5);
    let rest = ["--benchmark", "*passwd*", "--who", "kim", "--why", "on purpose"];
    night.world.run(accept.into_iter().chain([from.as_str()]).chain(rest)).expect_code(0);
    night.alert(&[], &[]).expect_code(0);
    let closed = night.double.issues().into_iter().find(|issue| issue["state"] == "closed").unwrap();
    assert!(closed["title"].as_str().unwrap().contains("passwd"));
    assert_eq!(closed["state_reason"], "completed");
    assert!(closed["body"].as_str().unwrap().contains("accepted by `kim`: `on purpose`"));
    // A newer acceptance of the same benchmarks, which has expired, withdraws the earlier one.
    let mut files = Directory::new(night.world.work().join("baselines"));
    let baseline = BaselineFolder::open_folder(&files, "zoo/cpu".to_owned()).unwrap();
    let (_, accepted) = baseline.acceptances.last().unwrap();
    let until = history::began(PLAN.nights - 1).to_zoned(jiff::tz::TimeZone::UTC).date();
    let withdrawn = AcceptanceFile {
        benchmark: Some(BenchmarkGlob::new("*passwd*")),
        why: "not on purpose".to_owned(),
        until: Some(until.to_string()),
        created: (accepted.created.parse::<Timestamp>().unwrap() + SignedDuration::from_secs(60)).to_string(),
        ..accepted.clone()
    };
    store::accept(&mut files, withdrawn, Some(&accepted.from)).unwrap();
    night.alert(&[], &[]).expect_code(0);
    assert_eq!(night.states(), vec!["open"; count]);
}

#[test]
fn an_issue_that_a_person_closed_stays_closed() {
    let night = Night::new();
    night.alert(&[], &[]).expect_code(0);
    let count = night.double.issues().len();
    night.double.close_issues();
    night.alert(&[], &[]).expect_code(0);
    assert_eq!(night.states(), vec!["closed"; count]);
}

#[test]
fn a_lost_answer_to_a_new_issue_leaves_exactly_one() {
    for fault in [Fault::DoneThen502, Fault::DoneThenSilence, Fault::NotDone502] {
        let night = Night::new();
        night.double.fail("POST", "/issues", fault.clone());
        night.alert(&["--limit", "1"], &[]).expect_code(0);
        assert_eq!(night.double.issues().len(), 1, "{fault:?}");
    }
}

#[test]
fn a_read_only_token_is_refused_with_the_permission_that_it_lacks() {
    let night = Night::new();
    night.double.read_only();
    let refused = night.alert(&[], &[]).expect_code(22);
    assert!(refused.stderr.contains("issues: write"), "{}", refused.stderr);
}

#[test]
fn a_dry_run_writes_nothing_and_needs_no_token() {
    let night = Night::new();
    let said = night.alert(&["--dry-run"], &[]).expect_code(0).stdout;
    assert!(said.contains("would open: "), "{said}");
    let without = night.alert(&["--dry-run"], &[("GITHUB_TOKEN", "")]).expect_code(0).stdout;
    assert_eq!(said, without);
    assert_eq!(night.double.count("POST"), 0);
    night.alert(&[], &[("GITHUB_TOKEN", "")]).expect_code(2);
}

#[test]
fn an_issue_of_another_author_with_our_marker_is_left_alone() {
    let night = Night::new();
    night.alert(&["--limit", "1"], &[]).expect_code(0);
    let ours = night.double.issues()[0].clone();
    let forged = Night::new();
    let mut copy = ours;
    copy["user"] = json!({ "login": "mallory" });
    copy["number"] = json!(77);
    forged.double.add_issue(copy.clone());
    forged.alert(&["--limit", "1"], &[]).expect_code(0);
    let issues = forged.double.issues();
    assert_eq!((issues.len(), &issues[0]), (2, &copy));
    assert_eq!(issues[1]["user"]["login"], BOT);
}

/// Writes the result of a bisection of a benchmark of the history.
fn bisection(night: &Night, benchmark: &str) {
    let golden = include_str!("../fixtures/record/bisection-v1.json");
    let mut file: Value = serde_json::from_str(golden).unwrap();
    file["suite"] = history::SUITE.into();
    file["benchmark"] = benchmark.into();
    file["headline"] = "@org/team <img src=x> got worse in `3.11.0`".into();
    night.world.write("bisect.json", file.to_string());
}

#[test]
fn a_bisection_is_one_comment_on_the_issue_about_its_benchmark() {
    let night = Night::new();
    bisection(&night, "../../../etc/passwd");
    let found = ["--bisection", "bisect.json"];
    let dry = night.alert(&[&found[..], &["--dry-run"]].concat(), &[]).expect_code(0).stdout;
    assert!(dry.contains("would link the bisection of") && night.double.comments().is_empty(), "{dry}");
    night.alert(&found, &[]).expect_code(0);
    let comments = night.double.comments();
    let body = &comments[0].body;
    assert_eq!(comments.len(), 1);
    assert!(body.contains("https://github.com/o/r/actions/runs/7"), "{body}");
    // The comment contains no working mention or markup.
    assert!(body.contains("\n`` @org/team <img src=x> got worse in `3.11.0` ``\n"), "{body}");
    let log = night.double.log();
    let commented: Vec<&String> =
        log.iter().filter(|line| line.starts_with("POST") && line.ends_with("/comments")).collect();
    let issues = night.double.issues();
    let about = issues.iter().find(|issue| issue["title"].as_str().unwrap().contains("passwd")).unwrap();
    let path = format!("/repos/o/r/issues/{}/comments", about["number"]);
    assert!(commented.len() == 1 && commented[0].ends_with(&path), "{commented:?}");
    // The result of the next night replaces this one.
    night.alert(&found, &[("GITHUB_RUN_ID", "8")]).expect_code(0);
    let comments = night.double.comments();
    assert_eq!(comments.len(), 1);
    assert!(comments[0].body.contains("actions/runs/8"), "{}", comments[0].body);
}

#[test]
fn a_bisection_that_no_issue_is_about_is_said_and_posts_nothing() {
    let night = Night::new();
    bisection(&night, "elsewhere/cpu/main");
    let said = night.alert(&["--bisection", "bisect.json"], &[]).expect_code(0).stdout;
    assert!(said.contains("no open issue is about"), "{said}");
    assert!(night.double.comments().is_empty());
    night.world.write("bisect.json", "{}");
    let refused = night.alert(&["--bisection", "bisect.json"], &[]).expect_code(21);
    assert!(refused.stderr.contains("bisect.json"), "{}", refused.stderr);
}

/// The header and body of a request.
type Delivery = (String, Vec<u8>);

/// Answers requests one after the other with these statuses, and returns the received requests.
fn receiver(statuses: Vec<u16>) -> (String, std::thread::JoinHandle<Vec<Delivery>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://127.0.0.1:{}/hook/T0PS3CR3T", listener.local_addr().unwrap().port());
    let received = std::thread::spawn(move || {
        let answer = |status: u16| {
            let (mut stream, _) = listener.accept().unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let (mut head, mut length) = (String::new(), 0);
            loop {
                let mut line = String::new();
                reader.read_line(&mut line).unwrap();
                let lower = line.to_ascii_lowercase();
                if let Some(text) = lower.strip_prefix("content-length: ") {
                    length = text.trim().parse().unwrap();
                }
                if line.trim().is_empty() {
                    break;
                }
                head.push_str(&lower);
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            stream.write_all(format!("HTTP/1.1 {status} X\r\nContent-Length: 0\r\n\r\n").as_bytes()).unwrap();
            (head, body)
        };
        statuses.into_iter().map(answer).collect()
    });
    (url, received)
}

#[test]
fn a_webhook_gets_signed_json_and_is_tried_again() {
    let night = Night::new();
    let (url, received) = receiver(vec![503, 200]);
    let variables = [("BENCHGATE_WEBHOOK_URL", url.as_str()), ("BENCHGATE_WEBHOOK_SECRET", "s3cret")];
    let outcome = night.alert(&[], &variables).expect_code(0);
    assert!(!format!("{}{}", outcome.stdout, outcome.stderr).contains("T0PS3CR3T"));
    let received = received.join().unwrap();
    assert_eq!(received.len(), 2);
    assert_eq!(received[0].1, received[1].1);
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, b"s3cret");
    for (head, body) in &received {
        let line = head.lines().find(|line| line.starts_with("x-benchgate-signature-256: sha256=")).unwrap();
        let digits = line.rsplit('=').next().unwrap();
        let tag: Vec<u8> = (0..digits.len() / 2)
            .map(|at| u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).unwrap())
            .collect();
        ring::hmac::verify(&key, body, &tag).unwrap();
        let message: Value = serde_json::from_slice(body).unwrap();
        assert_eq!(message["schema"], "benchgate/alert/v1");
        assert_eq!(message["issues"][0]["action"], "opened");
    }
}

#[test]
fn a_webhook_that_refuses_is_an_error_that_does_not_show_its_address() {
    let night = Night::new();
    let (url, received) = receiver(vec![404]);
    let refused = night.alert(&[], &[("BENCHGATE_WEBHOOK_URL", &url)]).expect_code(22);
    assert!(refused.stderr.contains("404") && !refused.stderr.contains("T0PS3CR3T"), "{}", refused.stderr);
    received.join().unwrap();
}
