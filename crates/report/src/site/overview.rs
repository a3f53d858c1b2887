//! The first page: current slowdowns, suites by testbed, and one row for every benchmark.

use std::collections::BTreeSet;

use jiff::SignedDuration;
use maud::{Markup, html};

use super::Site;
use super::benchmark::{commit, in_short, path, ranges};
use super::causes::{Cause, Member, Move, causes, key, sources};
use super::history::{BenchmarkHistory, Timeline};
use super::layout::{name, page, wide};
use super::plot::{day, spark};
use super::silence::{OpenSlowdown, RedRow, Silence};
use super::stability::is_held_red;
use crate::report::{change, quantity};
use benchgate_core::model::counted;

/// Period that counts as this week.
const WEEK: SignedDuration = SignedDuration::from_hours(7 * 24);
/// Number of sessions in a sparkline.
const SPARK: usize = 120;
/// Maximum number of benchmarks listed for one cause.
const LISTED: usize = 12;
/// Maximum number of commits listed for one range.
const COMMITS: usize = 5;

impl Site<'_> {
    /// Renders the first page. `moved` are the changes of level by timeline, benchmark and metric.
    pub(super) fn overview(&self, moved: &[Member<'_>]) -> String {
        let is_listed = |member: &Member<'_>| {
            let same = |open: &Member<'_>| open.is_about(member.timeline, member.benchmark);
            let mut steps = self.open.iter().flat_map(|open| open.cause.steps());
            member.change.is_worse() && steps.any(|step| step.members.iter().any(same))
        };
        let is_of_week = |member: &&Member<'_>| self.now.duration_since(member.at()) <= WEEK;
        let week: Vec<Member<'_>> =
            moved.iter().filter(is_of_week).filter(|it| !is_listed(it)).cloned().collect();
        let week = causes(week);
        let body = html! {
            h1 { "Benchmarks" }
            (self.open())
            (self.attention(&week))
            (self.unstable())
            (self.grid())
            (self.rows(moved))
        };
        page("Overview", "", &body)
    }

    /// Renders the list of current slowdowns.
    fn open(&self) -> Markup {
        // A benchmark may be listed with two metrics.
        let slower = |red: bool| -> BTreeSet<String> {
            let causes = self.open.iter().filter(|open| open.red == red).map(|open| &open.cause);
            causes.flat_map(|cause| &cause.members).map(Member::key).collect()
        };
        let mut reds = slower(true);
        let others = slower(false).difference(&reds).count();
        reds.extend(self.red.iter().map(|red| key(red.timeline, red.benchmark.unwrap_or_default())));
        let red = reds.len();
        let is_cut = |newest: &usize| self.timelines.iter().any(|it| it.sessions.len() >= *newest);
        let newest = self.timelines.iter().filter_map(|timeline| Some(timeline.newest()?.began)).max();
        html! {
            section id="open" {
                h2 { "Open slowdowns" }
                @if self.open.is_empty() && self.red.is_empty() {
                    p.calm {
                        "Nothing is slower than its baseline"
                        @if let Some(newest) = self.newest.filter(is_cut) {
                            " in the newest " (counted(newest, "session")) " of each suite and testbed, the only ones that were read"
                        }
                        "."
                    }
                } @else {
                    p {
                        strong {
                            @match red {
                                0 => { "No benchmark is red now" }
                                1 => { "1 benchmark is red now" }
                                _ => { (red) " benchmarks are red now" }
                            }
                        }
                        @if others > 0 {
                            ", " (others) " slower, but not quarantined"
                        }
                        @if let Some(newest) = newest { " (newest session: " time datetime=(newest) { (day(newest)) } ")" }
                    }
                }
                @for open in self.open { (self.open_slowdown(open)) }
                @for red in self.red { (red_row(red)) }
            }
        }
    }

    fn open_slowdown(&self, OpenSlowdown { cause, red }: &OpenSlowdown<'_>) -> Markup {
        let total = |member: &Member<'_>| change(member.change.now / member.change.from);
        let since = cause.until();
        let days = self.now.duration_since(since).as_hours() / 24;
        html! {
            article.cause.red[*red] {
                h3 {
                    @if *red { span.badge { "red" } " " }
                    @if let Some(worst) = cause.slowest() {
                        a href=(path(worst.timeline, worst.benchmark)) { (name(worst.benchmark)) }
                        @if cause.members.len() > 1 { " and " (cause.members.len() - 1) " more, up to" }
                        " " strong.worse { (total(worst)) }
                        @if !cause.later.is_empty() { " in " (counted(cause.steps().count(), "step")) }
                    }
                    " since " time datetime=(since) { (day(since)) }
                    span.note { " (" (counted(usize::try_from(days).unwrap_or_default(), "day")) ")" }
                }
                @for step in cause.steps() {
                    p.range {
                        @if !cause.later.is_empty() {
                            @if let Some(worst) = step.members.first() { strong { (in_short(&worst.change)) } ", " }
                        }
                        "began between " (day(step.after())) " and " (day(step.until())) ": "
                        (ranges((step.old, step.new), self.repository))
                    }
                    (self.suspects(step))
                }
                // For a single benchmark, the heading already has its name and the total.
                @if let [member] = cause.members.as_slice() {
                    p.range { (values(member)) }
                } @else {
                    ul {
                        @for member in cause.members.iter().take(LISTED) {
                            li {
                                a href=(path(member.timeline, member.benchmark)) { (name(member.benchmark)) }
                                " " strong.worse { (total(member)) } ": " (values(member))
                            }
                        }
                        @if cause.members.len() > LISTED { li { (cause.members.len() - LISTED) " more" } }
                    }
                }
            }
        }
    }

    /// Renders the commits that may have caused a change.
    fn suspects(&self, step: &Cause<'_>) -> Markup {
        let suspects = sources(step.old, step.new).map(|range| (self.commits)(&range)).unwrap_or_default();
        html! {
            @if !suspects.is_empty() {
                ul.commits {
                    @for suspect in suspects.iter().take(COMMITS) {
                        li { (commit(&suspect.id, self.repository)) " " (name(&suspect.subject)) span.note { " by " (name(&suspect.author)) } }
                    }
                    @if suspects.len() > COMMITS { li { (suspects.len() - COMMITS) " more" } }
                }
            }
        }
    }

    fn attention(&self, week: &[Cause<'_>]) -> Markup {
        html! {
            section {
                h2 { @if self.open.is_empty() { "Moved this week" } @else { "Also moved this week" } }
                @if week.is_empty() { p { "No " @if !self.open.is_empty() { "other " } "change of level was found in the seven days before " (day(self.now)) "." } }
                @for cause in week { (self.cause(cause)) }
            }
            section {
                h2 { "Missing" }
                @if self.silent.is_empty() { p { "Everything reports." } }
                ul.silent { @for silence in self.silent {
                    li class=(if silence.explained.is_some() { "explained" } else { "alarm" }) {
                        @match &silence.benchmark {
                            Some(benchmark) => { (name(benchmark)) " in " },
                            None => "The whole testbed in ",
                        }
                        (name(&silence.suite)) " on " (name(self.machine(&silence.testbed))) ": last measured "
                        time datetime=(silence.since) { (day(silence.since)) }
                        @if let Some(why) = &silence.explained { ", " (name(why)) }
                    }
                } }
            }
        }
    }

    fn unstable(&self) -> Markup {
        html! {
            section id="unstable" {
                h2 { "Unstable" }
                @if self.unstable.is_empty() { p { "No benchmark has slow processes more often than the others." } }
                ul { @for unstable in self.unstable { li {
                    a href=(path(unstable.timeline, unstable.benchmark)) { (name(unstable.benchmark)) }
                    " in " (name(&unstable.timeline.suite)) " on " (name(&unstable.timeline.machine)) ": "
                    (unstable.sentence())
                } } }
            }
        }
    }

    fn cause(&self, cause: &Cause<'_>) -> Markup {
        html! {
            article.cause {
                h3 {
                    (counted(cause.members.len(), "change")) " between " (day(cause.after())) " and "
                    (day(cause.until()))
                }
                p.range { "What changed: " (ranges((cause.old, cause.new), self.repository)) }
                ul {
                    @for member in cause.members.iter().take(LISTED) {
                        li class=(if member.change.is_worse() { "worse" } else { "better" }) {
                            a href=(path(member.timeline, member.benchmark)) { (name(member.benchmark)) }
                            " " (name(member.metric)) " " strong { (in_short(&member.change)) }
                            " on " (name(&member.timeline.machine))
                        }
                    }
                    @if cause.members.len() > LISTED { li { (cause.members.len() - LISTED) " more" } }
                }
            }
        }
    }

    /// Returns the display name of a testbed.
    fn machine<'t>(&'t self, testbed: &'t str) -> &'t str {
        let of = self.timelines.iter().find(|timeline| timeline.testbed.id == testbed);
        of.map_or(testbed, |timeline| &timeline.machine)
    }

    /// Renders the suites by testbed.
    fn grid(&self) -> Markup {
        let suites: BTreeSet<&str> = self.timelines.iter().map(|timeline| timeline.suite.as_str()).collect();
        let testbeds: BTreeSet<&str> =
            self.timelines.iter().map(|timeline| timeline.testbed.id.as_str()).collect();
        let timeline = |suite: &str, testbed: &str| {
            self.timelines.iter().find(|timeline| timeline.suite == suite && timeline.testbed.id == testbed)
        };
        let content = html! {
            table.grid {
                caption { "Suites by testbed" }
                thead { tr { th scope="col" { "Suite" } @for testbed in &testbeds { th scope="col" title=(crate::report::clean(testbed)) { (name(self.machine(testbed))) } } } }
                tbody { @for suite in &suites { tr {
                    th scope="row" { (name(suite)) }
                    @for testbed in &testbeds {
                        @match timeline(suite, testbed) {
                            Some(timeline) => td { (self.cell(timeline)) },
                            None => td.none { "–" },
                        }
                    }
                } } }
            }
        };
        html! { section { h2 { "Suites" } (wide("Suites by testbed", &content)) } }
    }

    fn cell(&self, timeline: &Timeline) -> Markup {
        let of =
            |silence: &&Silence| silence.suite == timeline.suite && silence.testbed == timeline.testbed.id;
        let silent: Vec<&Silence> = self.silent.iter().filter(of).collect();
        let whole = silent.iter().any(|silence| silence.benchmark.is_none());
        let held = timeline.newest().filter(|newest| !newest.held.is_empty()).map(|newest| {
            let whole = newest.held.iter().any(|reason| reason.benchmark.is_none());
            let held: BTreeSet<_> =
                newest.held.iter().filter_map(|reason| reason.benchmark.as_ref()).collect();
            let what = if whole { "all benchmarks".to_owned() } else { counted(held.len(), "benchmark") };
            format!("newest session: {what} not added to the baseline")
        });
        html! {
            @if let Some(newest) = timeline.newest() {
                span.state class=(if whole { "alarm" } else { "" }) {
                    @if whole { "silent since " } @else { "newest " } (day(newest.began))
                }
            }
            br;
            (counted(timeline.sessions.len(), "session")) ", "
            (counted(timeline.benchmarks.len(), "benchmark"))
            @if !whole && !silent.is_empty() { br; span.alarm { (silent.len()) " missing" } }
            @if let Some(held) = held { br; span.held { (held) } }
            @if timeline.faults > 0 { br; span.alarm { (counted(timeline.faults, "unusable file")) } }
        }
    }

    fn rows(&self, moved: &[Member<'_>]) -> Markup {
        let suites: BTreeSet<&str> = self.timelines.iter().map(|timeline| timeline.suite.as_str()).collect();
        let testbeds: BTreeSet<&str> =
            self.timelines.iter().map(|timeline| timeline.testbed.id.as_str()).collect();
        let content = html! {
            table.benchmarks {
                caption { "Benchmarks" }
                thead { tr {
                    th scope="col" { "Benchmark" } th scope="col" { "Suite" } th scope="col" { "Testbed" }
                    th scope="col" { "Trend" } th.n scope="col" { "Newest" } th scope="col" { "Last change" }
                    th scope="col" { "State" }
                } }
                tbody { @for timeline in self.timelines { @for (benchmark, history) in &timeline.benchmarks {
                    (self.row(timeline, benchmark, history, moved))
                } } }
            }
        };
        html! {
            section {
                h2 { "All benchmarks" }
                // Filtering needs the script, which shows this element.
                div.filters hidden {
                    label { "Search " input type="search" id="search"; }
                    label { "Suite " select id="suite" { option value="" { "all" }
                        @for suite in &suites { option value=(crate::report::clean(suite)) { (crate::report::clean(suite)) } } } }
                    label { "Testbed " select id="testbed" { option value="" { "all" }
                        @for testbed in &testbeds { option value=(crate::report::clean(testbed)) { (crate::report::clean(self.machine(testbed))) } } } }
                    label { "State " select id="state" { option value="" { "all" }
                        @for state in STATES { option value=(state) { (state) } } } }
                    output id="matches" for="search suite testbed state" {}
                }
                (wide("All benchmarks", &content))
            }
        }
    }

    fn row(
        &self,
        timeline: &Timeline,
        benchmark: &str,
        history: &BenchmarkHistory,
        moved: &[Member<'_>],
    ) -> Markup {
        let main = history.main();
        let newest = main.and_then(|(_, track)| Some((track, track.points.last()?)));
        let metric = main.map(|(metric, _)| metric);
        let of = |member: &&Member<'_>| member.is_about(timeline, benchmark) && Some(member.metric) == metric;
        let last = moved.iter().filter(of).map(|member| &member.change).max_by_key(|moved| moved.at);
        let state = self.state(timeline, benchmark, history, last);
        html! {
            tr data-suite=(crate::report::clean(&timeline.suite)) data-testbed=(crate::report::clean(&timeline.testbed.id))
                data-state=(state) {
                th scope="row" { a href=(path(timeline, benchmark)) { (name(benchmark)) } }
                td { (name(&timeline.suite)) }
                td { (name(&timeline.machine)) }
                td { @if let Some((_, track)) = main { (spark(track, SPARK)) } }
                td.n { @if let Some((track, point)) = newest { (quantity(point.value, &track.unit)) } }
                td { @if let Some(moved) = last {
                    span class=(if moved.is_worse() { "worse" } else { "better" }) { (in_short(moved)) }
                    " " (day(timeline.sessions[moved.at].began))
                } }
                td class=(format!("is-{state}")) { (state) }
            }
        }
    }

    fn state(
        &self,
        timeline: &Timeline,
        benchmark: &str,
        history: &BenchmarkHistory,
        last: Option<&Move>,
    ) -> &'static str {
        let silent = self.silent.iter().any(|silence| {
            silence.suite == timeline.suite
                && silence.testbed == timeline.testbed.id
                && silence.benchmark.as_deref().is_none_or(|silent| silent == benchmark)
        });
        let newest = timeline.sessions.len().checked_sub(1);
        let at_newest = |session: usize| Some(session) == newest;
        if silent {
            return STATES[0];
        }
        if history.failures.last().is_some_and(|(session, _)| at_newest(*session)) {
            return STATES[1];
        }
        if is_held_red(timeline, benchmark) {
            return STATES[7];
        }
        let week = |moved: &&Move| self.now.duration_since(timeline.sessions[moved.at].began) <= WEEK;
        match last.filter(week) {
            Some(moved) if moved.is_worse() => return STATES[2],
            Some(_) => return STATES[3],
            None => {}
        }
        if self.unstable.iter().any(|unstable| unstable.is_about(timeline, benchmark)) {
            return STATES[4];
        }
        let held = history.main().and_then(|(_, track)| track.points.last());
        if held.is_some_and(|point| point.held && at_newest(point.session)) { STATES[5] } else { STATES[6] }
    }
}

/// Renders a benchmark that is red without a change to show.
fn red_row(RedRow { timeline, benchmark, why, since, is_first }: &RedRow<'_>) -> Markup {
    html! {
        article.cause.red {
            h3 {
                span.badge { "red" } " "
                @match benchmark {
                    Some(benchmark) if timeline.benchmarks.contains_key(*benchmark) => {
                        a href=(path(timeline, benchmark)) { (name(benchmark)) }
                    }
                    Some(benchmark) => { (name(benchmark)) }
                    None => { "All benchmarks of " (name(&timeline.suite)) }
                }
                @if *is_first { " since " time datetime=(since) { (day(*since)) } " or earlier" }
                @else { " since " time datetime=(since) { (day(*since)) } }
            }
            p.range { (name(why)) " on " (name(&timeline.machine)) }
        }
    }
}

const STATES: [&str; 8] =
    ["missing", "failing", "worse", "better", "unstable", "quarantined", "steady", "red"];

/// Renders the earlier and the present level of a member, and its machine.
fn values(member: &Member<'_>) -> Markup {
    let of = |value| of_unit(member, value);
    html! { (name(member.metric)) " " (of(member.change.from)) " → " (of(member.change.now)) " on " (name(&member.timeline.machine)) }
}

/// Formats a value of a member's metric with its unit.
fn of_unit(member: &Member<'_>, value: f64) -> String {
    let history = member.timeline.benchmarks.get(member.benchmark);
    let track = history.and_then(|history| history.tracks.get(member.metric));
    track.map_or_else(String::new, |track| quantity(value, &track.unit))
}
