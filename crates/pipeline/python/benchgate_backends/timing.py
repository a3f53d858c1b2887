"""Warm-up and repetitions. Knows no torch: what is timed is a callable."""

from __future__ import annotations

import math
import time

# Caches, lazily loaded kernels and profiling executors settle within a few calls.
LEAST_WARMUP = 3
MOST_ITERATIONS = 1_000_000


def warm_up(run, seconds: float, clock=time.perf_counter) -> float:
    """Runs until `seconds` are over and at least LEAST_WARMUP times; returns the seconds of the last call."""
    begin, calls, last = clock(), 0, 0.0
    while calls < LEAST_WARMUP or clock() - begin < seconds:
        started = clock()
        run(1)
        last = clock() - started
        calls += 1
    return last


def iterations_for(last: float, min_time: float) -> int:
    return max(1, min(MOST_ITERATIONS, math.ceil(min_time / max(last, 1e-9))))


def repeat(run, repetitions: int, iterations: int, clock=time.perf_counter, around=None):
    """Nanoseconds of one iteration, a value a repetition. `run(n)` runs n iterations and waits for the device.

    `around` makes a repetition's own metrics: called before, it returns what is called after."""
    samples, metrics = [], {}
    for _ in range(repetitions):
        after = around() if around else None
        begin = clock()
        run(iterations)
        took = clock() - begin
        samples.append(took / iterations * 1e9)
        for name, value in (after(iterations) if after else {}).items():
            metrics.setdefault(name, []).append(value)
    return samples, metrics
