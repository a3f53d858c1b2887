"""Exports models to MLIR with their inputs and eager references.

`python -m benchgate_export` reads one JSON request a line and answers in JSON lines; see `protocol.py`.
"""

PROTOCOL = "benchgate-export/3"
