//! Assigns benchmarks to shards: the longest goes first, to the least loaded shard (LPT, Graham 1969). The
//! longest shard is at most a third longer than the optimum.

/// The requested division into shards.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Cut {
    Shards(usize),
    /// The fewest shards that each measure for at most this long.
    Seconds(f64),
}

/// The reason why a suite can't be divided as requested.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PackError {
    #[error("{kinds} kinds of runners need at least {kinds} shards (requested: {shards})")]
    TooFewShards { shards: usize, kinds: usize },
}

/// The benchmarks of one shard.
#[derive(Debug, Clone, PartialEq)]
pub struct Load {
    /// Index of the kind of runner.
    pub kind: usize,
    /// Indices of the benchmarks, ascending.
    pub items: Vec<usize>,
    pub seconds: f64,
}

/// Packs items, which are pairs of a kind of runner and a time in seconds. Every item is in one load, and no
/// load is empty. The result is deterministic: items with equal times are taken in order.
///
/// # Errors
/// There are fewer shards than kinds.
pub fn pack(items: &[(usize, f64)], kinds: usize, cut: Cut) -> Result<Vec<Load>, PackError> {
    let groups: Vec<Vec<usize>> =
        (0..kinds).map(|kind| (0..items.len()).filter(|&item| items[item].0 == kind).collect()).collect();
    let used: Vec<usize> = (0..kinds).filter(|&kind| !groups[kind].is_empty()).collect();
    let counts = match cut {
        Cut::Shards(shards) => counts(&groups, &used, items, shards)?,
        Cut::Seconds(most) => {
            let enough = |kind: &usize| {
                let group = &groups[*kind];
                let fits = |count: &usize| {
                    longest_first(items, group, *count).iter().all(|load| load.seconds <= most)
                };
                (1..group.len()).find(fits).unwrap_or(group.len())
            };
            used.iter().map(enough).collect()
        }
    };
    Ok(used
        .iter()
        .zip(counts)
        .flat_map(|(&kind, count)| longest_first(items, &groups[kind], count))
        .collect())
}

/// The number of shards of each kind. Each kind gets one, and every further shard goes to the kind whose
/// longest shard is longest.
fn counts(
    groups: &[Vec<usize>],
    used: &[usize],
    items: &[(usize, f64)],
    shards: usize,
) -> Result<Vec<usize>, PackError> {
    if shards < used.len() {
        return Err(PackError::TooFewShards { shards, kinds: used.len() });
    }
    let mut counts = vec![1; used.len()];
    for _ in used.len()..shards {
        let slowest = |at: &usize| {
            let loads = longest_first(items, &groups[used[*at]], counts[*at]);
            loads.iter().map(|load| load.seconds).fold(0.0, f64::max)
        };
        // Kinds that already have a shard for each benchmark are left out, because another shard would be
        // empty.
        let open = (0..used.len()).filter(|&at| counts[at] < groups[used[at]].len());
        let Some(next) = open.max_by(|a, b| slowest(a).total_cmp(&slowest(b)).then(b.cmp(a))) else { break };
        counts[next] += 1;
    }
    Ok(counts)
}

fn longest_first(items: &[(usize, f64)], group: &[usize], count: usize) -> Vec<Load> {
    let kind = group.first().map_or(0, |&item| items[item].0);
    let mut loads = vec![Load { kind, items: Vec::new(), seconds: 0.0 }; count];
    let mut order = group.to_vec();
    order.sort_by(|&a, &b| items[b].1.total_cmp(&items[a].1).then(a.cmp(&b)));
    for item in order {
        let least = loads.iter_mut().min_by(|a, b| {
            // Among equally loaded shards, the one with fewer items is chosen, so that items without a
            // duration are spread too.
            let by_count = a.items.len().cmp(&b.items.len());
            a.seconds.total_cmp(&b.seconds).then(by_count)
        });
        if let Some(load) = least {
            load.items.push(item);
            load.seconds += items[item].1;
        }
    }
    for load in &mut loads {
        load.items.sort_unstable();
    }
    loads.sort_by_key(|load| load.items.first().copied());
    loads
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items(loads: &[Load]) -> Vec<Vec<usize>> {
        loads.iter().map(|load| load.items.clone()).collect()
    }

    #[test]
    fn the_longest_benchmarks_are_placed_first() {
        let seconds = [(0, 7.0), (0, 1.0), (0, 5.0), (0, 4.0), (0, 3.0)];
        let loads = pack(&seconds, 1, Cut::Shards(2)).unwrap();
        assert_eq!(items(&loads), [vec![0, 4], vec![1, 2, 3]]);
        assert_eq!(loads.iter().map(|load| load.seconds).collect::<Vec<_>>(), [10.0, 10.0]);
    }

    #[test]
    fn a_shard_has_one_kind_of_runner_and_work_to_do() {
        let seconds = [(0, 1.0), (1, 30.0), (0, 1.0), (1, 30.0)];
        let loads = pack(&seconds, 2, Cut::Shards(9)).unwrap();
        assert_eq!(loads.len(), 4, "no shard is empty");
        let three = pack(&seconds, 2, Cut::Shards(3)).unwrap();
        assert_eq!(items(&three), [vec![0, 2], vec![1], vec![3]]);
        assert_eq!(pack(&seconds, 2, Cut::Shards(1)), Err(PackError::TooFewShards { shards: 1, kinds: 2 }));
    }

    #[test]
    fn a_limit_of_time_takes_as_few_shards_as_it_needs() {
        let seconds = [(0, 50.0), (0, 50.0), (0, 20.0), (0, 200.0)];
        assert_eq!(pack(&seconds, 1, Cut::Seconds(320.0)).unwrap().len(), 1);
        assert_eq!(pack(&seconds, 1, Cut::Seconds(200.0)).unwrap().len(), 2);
        // A benchmark is never divided.
        assert_eq!(pack(&seconds, 1, Cut::Seconds(60.0)).unwrap().len(), 4);
    }
}
