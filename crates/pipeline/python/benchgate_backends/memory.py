"""Memory use of the process, read between stages and never during timed work."""

from __future__ import annotations

import os
import time


class Memory:
    def __init__(self, host=None, clock=time.monotonic):
        self._host = host or resident
        self._clock = clock
        self._began = clock()
        # Set once the device is known: returns bytes.
        self.device = None
        self.points: list[list] = []

    def note(self, stage: str) -> None:
        device = self.device() if self.device else None
        self.points.append([round(self._clock() - self._began, 4), self._host(), device, stage])


def resident() -> int:
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
