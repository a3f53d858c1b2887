"""Runs the DuckDB query of docs/object-stores.md over a folder and prints its rows as JSON: `query.py DOCS FOLDER`."""

import json
import re
import sys
from pathlib import Path

import duckdb

query = re.search(r"```sql\n(.*?)```", Path(sys.argv[1]).read_text(), re.DOTALL)[1]
assert "'history/" in query
found = duckdb.sql(query.replace("'history/", f"'{sys.argv[2]}/"))
print(json.dumps([dict(zip(found.columns, row)) for row in found.fetchall()]))
