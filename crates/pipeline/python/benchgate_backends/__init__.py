"""Runs a torch model on one backend, in one fresh process, and times it.

`python -m benchgate_backends REQUEST.json ANSWER.jsonl` does one request; see `protocol.py`.
"""

PROTOCOL = "benchgate-backends/1"
