//! Settings that affect the processors' clock and memory: governor, boost, NUMA nodes.

use std::collections::BTreeMap;
use std::path::Path;

use super::processors::parse_list;
use super::sysfs::read_line;

/// The settings of some processors. What the kernel does not show (most virtual machines show nothing) is
/// absent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Governance {
    /// The governors in use, each with its number of processors.
    pub governors: BTreeMap<String, usize>,
    /// Whether turbo is on: the clock may exceed its nominal value.
    pub boost: Option<bool>,
    /// The memory nodes that the processors belong to.
    pub nodes: Vec<usize>,
}

/// The settings of these processors.
pub fn governance(cpus: &[usize]) -> Governance {
    governance_below(Path::new("/sys/devices/system"), cpus)
}

fn governance_below(system: &Path, cpus: &[usize]) -> Governance {
    let text = |path: &str| read_line(system.join(path));
    let mut governors = BTreeMap::new();
    for cpu in cpus {
        if let Some(governor) = text(&format!("cpu/cpu{cpu}/cpufreq/scaling_governor")) {
            *governors.entry(governor).or_default() += 1;
        }
    }
    let online = parse_list(&text("node/online").unwrap_or_default());
    let holds = |node: &usize| {
        let list = parse_list(&text(&format!("node/node{node}/cpulist")).unwrap_or_default());
        cpus.iter().any(|cpu| list.contains(cpu))
    };
    Governance { governors, boost: boost(system), nodes: online.into_iter().filter(holds).collect() }
}

/// Whether turbo is on: the clock may exceed its nominal value, as the two kinds of driver report it.
pub(super) fn boost(system: &Path) -> Option<bool> {
    let says = |path: &str, on: &str| read_line(system.join(path)).map(|text| text == on);
    says("cpu/intel_pstate/no_turbo", "0").or_else(|| says("cpu/cpufreq/boost", "1"))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn write(system: &Path, path: &str, text: &str) {
        let path = system.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("{text}\n")).unwrap();
    }

    #[test]
    fn governors_boost_and_nodes_are_those_of_the_measured_processors() {
        let system = tempfile::tempdir().unwrap();
        for (cpu, governor) in [(0, "powersave"), (1, "performance"), (2, "performance"), (3, "schedutil")] {
            write(system.path(), &format!("cpu/cpu{cpu}/cpufreq/scaling_governor"), governor);
        }
        write(system.path(), "cpu/intel_pstate/no_turbo", "1");
        write(system.path(), "node/online", "0-1");
        write(system.path(), "node/node0/cpulist", "0-1");
        write(system.path(), "node/node1/cpulist", "2-3");
        let seen = governance_below(system.path(), &[1, 2, 3]);
        assert_eq!(seen.governors, BTreeMap::from([("performance".into(), 2), ("schedutil".into(), 1)]));
        assert_eq!(seen.boost, Some(false));
        assert_eq!(seen.nodes, [0, 1]);
        assert_eq!(governance_below(system.path(), &[1]).nodes, [0]);
    }

    #[test]
    fn a_machine_that_shows_nothing_is_not_an_error() {
        let system = tempfile::tempdir().unwrap();
        assert_eq!(governance_below(system.path(), &[0]), Governance::default());
        write(system.path(), "cpu/cpufreq/boost", "1");
        assert_eq!(boost(system.path()), Some(true));
    }
}
