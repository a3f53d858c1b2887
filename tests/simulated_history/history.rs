//! Simulated nights with planted changes of every kind, and a list of these changes.

use std::collections::BTreeMap;
use std::path::Path;

use benchgate::model::{BenchmarkGlob, Better, Metric, MetricKind, Testbed, Toolchain};
use benchgate::record::{
    AcceptanceFile, AcceptanceSchema, BaselineBenchmark, BaselineFile, BaselineProcess, BaselineSchema,
    Number, OutcomeRecord, OutcomeStatus, QuarantineCause, QuarantineRecord, SummaryRecord, ValueRecord,
};
use benchgate::store::{Change, Directory, Files, RunName, folder_name};
use jiff::{SignedDuration, Timestamp};
use rand::rngs::ChaCha8Rng;
use rand::{Rng, SeedableRng};

/// The first night.
pub const FIRST: &str = "2024-11-20T02:17:00Z";

/// Names that would have an effect if they were interpreted as markup, paths or commands.
pub const HOSTILE: [&str; 6] = [
    "<script>document.title='owned'</script>/cpu/main",
    "\"><img src=x onerror=\"document.title='owned'\">/cpu/main",
    "'; document.title='owned'; '/cpu/main",
    "\u{202e}txt.exe\u{202c}/cpu/main",
    "../../../etc/passwd",
    "</script><style>*{display:none}</style>/cpu/main",
];

/// The parameters of a history.
#[derive(Debug, Clone)]
pub struct Plan {
    pub seed: u64,
    pub nights: usize,
    pub benchmarks: usize,
    pub processes: usize,
    /// Standard deviation of a benchmark's own noise between nights, as a log ratio.
    pub noise: f64,
    pub hostile: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Planted {
    pub kind: &'static str,
    pub testbed: &'static str,
    pub benchmarks: Vec<usize>,
    pub night: usize,
    /// Number of nights until the change has its full size; many for a gradual change.
    pub takes: usize,
    /// A log ratio.
    pub size: f64,
}

pub const SUITE: &str = "zoo";
pub const OLD_GPU: &str = "gpu-old-chip";
pub const NEW_GPU: &str = "gpu-new-chip";
pub const CPU: &str = "cpu";

pub fn name(benchmark: usize, plan: &Plan) -> String {
    match HOSTILE.get(benchmark).filter(|_| plan.hostile) {
        Some(hostile) => (*hostile).to_owned(),
        None => format!("model-{benchmark:03}/target/main"),
    }
}

/// Returns the time at which a night began.
pub fn began(night: usize) -> Timestamp {
    let first: Timestamp = FIRST.parse().unwrap();
    first + SignedDuration::from_hours(24 * i64::try_from(night).unwrap())
}

pub fn commit(night: usize) -> String {
    format!("{:040x}", 0x5eed_0000_0000_u64 + night as u64)
}

/// Properties of every history of at least a year.
pub fn planted(plan: &Plan) -> Vec<Planted> {
    let (nights, last) = (plan.nights, plan.benchmarks - 1);
    let step = |testbed, night: usize, benchmarks: &[usize], size| Planted {
        kind: "step",
        testbed,
        benchmarks: benchmarks.to_vec(),
        night,
        takes: 1,
        size,
    };
    vec![
        step(CPU, nights / 6, &[0, 2, 3], 0.08),
        step(CPU, nights / 3, &[1], 0.05),
        step(CPU, nights / 2, &[1], -0.05),
        Planted {
            kind: "creep",
            testbed: CPU,
            benchmarks: vec![last],
            night: nights * 6 / 10,
            takes: 40,
            size: 0.12,
        },
        step(CPU, nights - 5, &[4], 0.10),
        step(OLD_GPU, nights / 4, &[2, 5], 0.07),
    ]
}

struct Noise(ChaCha8Rng);

impl Noise {
    /// Returns a number from the standard normal distribution.
    fn normal(&mut self) -> f64 {
        let uniform = |rng: &mut ChaCha8Rng| (f64::from(rng.next_u32()) + 0.5) / 4_294_967_296.0;
        let (u, v) = (uniform(&mut self.0), uniform(&mut self.0));
        (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
    }
}

/// The change of a benchmark up to a given night.
fn shift(planted: &[Planted], testbed: &str, benchmark: usize, night: usize) -> f64 {
    let of = planted.iter().filter(|p| p.testbed == testbed && p.benchmarks.contains(&benchmark));
    of.filter(|p| night >= p.night)
        .map(|p| p.size * (((night - p.night + 1) as f64) / p.takes as f64).min(1.0))
        .sum()
}

/// Nights without a session of the CPU: a machine that was off for a while.
fn is_gap(plan: &Plan, night: usize) -> bool {
    (plan.nights * 3 / 4..plan.nights * 3 / 4 + 9).contains(&night)
}

/// The benchmark that is no longer measured in the newest weeks.
pub fn dropped(plan: &Plan) -> (usize, usize) {
    (plan.benchmarks - 2, plan.nights.saturating_sub(20))
}

/// The benchmark that is occasionally slow on the CPU, and its first such night. In three of four nights, one
/// process is slow.
pub fn unstable(plan: &Plan) -> (usize, usize) {
    (5, plan.nights / 2)
}

/// The slowdown of such a process, as a log ratio.
const NOW_AND_THEN: f64 = 0.4;

pub fn chip_change(plan: &Plan) -> usize {
    plan.nights * 7 / 10
}

/// Writes the history to a folder.
pub fn write(plan: &Plan, folder: &Path) {
    let mut files = Directory::new(folder);
    let planted = planted(plan);
    let mut noise = Noise(ChaCha8Rng::seed_from_u64(plan.seed));
    for night in 0..plan.nights {
        let gpu = if night < chip_change(plan) { OLD_GPU } else { NEW_GPU };
        let testbeds = [(CPU, !is_gap(plan, night)), (gpu, true)];
        for (testbed, _) in testbeds.into_iter().filter(|(_, reports)| *reports) {
            add(&mut files, &session(plan, &planted, testbed, night, &mut noise));
        }
    }
    let accepted = &planted[0];
    let mut acceptance = AcceptanceFile {
        schema: AcceptanceSchema,
        benchgate: "0.1.0".to_owned(),
        sha256: String::new(),
        suite: SUITE.to_owned(),
        testbed: CPU.to_owned(),
        created: began(accepted.night + 2).to_string(),
        from: RunName::new(&began(accepted.night).to_string(), Some(&commit(accepted.night)))
            .unwrap()
            .to_string(),
        benchmark: Some(BenchmarkGlob::new("model-003/*")),
        not_measured: Vec::new(),
        later_runs: None,
        who: "kim <script>".to_owned(),
        why: "bigger tiles, on purpose".to_owned(),
        until: None,
    };
    acceptance.seal();
    let time = acceptance.created.replace(['-', ':'], "");
    let path = format!("{SUITE}/{}/{time}-accept-{}.json", folder_name(CPU), &acceptance.sha256[..8]);
    let change = Change { add: vec![(path, acceptance.to_json())], ..Change::default() };
    files.apply(&change).unwrap();
}

fn add(files: &mut Directory, file: &BaselineFile) {
    let name = RunName::new(&file.created, file.commit.as_deref()).unwrap();
    let path = format!(
        "{}/{}/{}",
        folder_name(&file.suite),
        folder_name(&file.testbed.id),
        name.file(files.encoding())
    );
    files.apply(&Change { add: vec![(path, file.to_json())], ..Change::default() }).unwrap();
}

fn session(plan: &Plan, planted: &[Planted], testbed: &str, night: usize, noise: &mut Noise) -> BaselineFile {
    let (dropped, until) = dropped(plan);
    let is_there = |benchmark: usize| !(testbed == CPU && benchmark == dropped && night >= until);
    // A disturbed session, which is stored but excluded from the baseline.
    let disturbed = night % 97 == 50;
    let today = 0.003 * noise.normal() + if disturbed { 0.25 } else { 0.0 };
    let benchmarks = (0..plan.benchmarks).filter(|at| is_there(*at)).map(|at| {
        let level = (1e6 * (1.0 + at as f64)).ln() + shift(planted, testbed, at, night);
        let tonight = level + today + plan.noise * noise.normal();
        let is_unstable = testbed == CPU && at == unstable(plan).0 && night >= unstable(plan).1;
        let slow = |process: usize| is_unstable && (night * 5 + process * 3).is_multiple_of(8);
        benchmark(plan, at, noise, |process| tonight + if slow(process) { NOW_AND_THEN } else { 0.0 })
    });
    let benchmarks: Vec<BaselineBenchmark> = benchmarks.collect();
    let chip = if testbed == NEW_GPU { "B" } else { "A" };
    let version = format!("3.{}.0", 10 + night / 90);
    let mut file = BaselineFile {
        schema: BaselineSchema,
        benchgate: "0.1.0".to_owned(),
        sha256: String::new(),
        suite: SUITE.to_owned(),
        session: format!("night-{night}-{testbed}"),
        created: began(night).to_string(),
        commit: Some(commit(night)),
        testbed: Testbed {
            id: testbed.to_owned(),
            facts: BTreeMap::from([
                ("os".to_owned(), "linux".to_owned()),
                ("device".to_owned(), if testbed == CPU { "cpu".to_owned() } else { format!("chip {chip}") }),
                ("memory".to_owned(), if testbed == CPU { "64 GiB".to_owned() } else { "80 GiB".to_owned() }),
                ("cores".to_owned(), if testbed == CPU { "8".to_owned() } else { "16".to_owned() }),
                ("kind".to_owned(), testbed.split('-').next().unwrap().to_owned()),
            ]),
            notes: BTreeMap::from([("kernel".to_owned(), format!("6.{}", night / 200))]),
        },
        toolchain: Some(Toolchain {
            version,
            compiler_commit: format!("{:040x}", 0xc0de_0000_u64 + (night / 90) as u64),
            runtime_commit: format!("{:040x}", 0xc0de_0000_u64 + (night / 90) as u64),
            source: "pypi".to_owned(),
        }),
        anchor: None,
        quarantine: if disturbed {
            let why = "host-overloaded: load 9.1 on 8 processors".to_owned();
            vec![QuarantineRecord { cause: QuarantineCause::Undecided, why, benchmark: None }]
        } else {
            Vec::new()
        },
        metrics: vec![
            metric("latency", "ns", MetricKind::Noisy),
            metric("module-size", "bytes", MetricKind::Exact),
        ],
        benchmarks,
        lints: Vec::new(),
    };
    file.seal();
    file
}

fn metric(name: &str, unit: &str, kind: MetricKind) -> Metric {
    Metric { name: name.to_owned().into(), unit: unit.to_owned().into(), better: Better::Lower, kind }
}

fn benchmark(plan: &Plan, at: usize, noise: &mut Noise, level: impl Fn(usize) -> f64) -> BaselineBenchmark {
    let rounded = |value: f64| Number(format!("{value:.8e}").parse().unwrap());
    let processes = (0..plan.processes).map(|process| {
        let median = (level(process) + 0.006 * noise.normal()).exp();
        let summary = SummaryRecord {
            n: 10,
            median: rounded(median),
            undisturbed: Some(rounded(median * 0.998)),
            stddev: Some(rounded(median * 0.004)),
            min: Some(rounded(median * 0.995)),
        };
        BaselineProcess {
            state: BTreeMap::from([("load-1m".to_owned(), rounded(1.0 + 0.2 * noise.normal().abs()))]),
            summaries: BTreeMap::from([("latency".to_owned(), summary)]),
        }
    });
    BaselineBenchmark {
        name: name(at, plan),
        labels: BTreeMap::new(),
        outcome: OutcomeRecord { status: OutcomeStatus::Ok, stage: None, why: None },
        artifact: None,
        verification: None,
        sketches: None,
        processes: processes.collect(),
        anchored: None,
        values: vec![ValueRecord { metric: "module-size".to_owned(), value: Number(40_960.0 + at as f64) }],
        lints: Vec::new(),
    }
}
