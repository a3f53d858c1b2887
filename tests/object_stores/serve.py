"""A real S3 server (moto) for the tests of object stores: `serve.py PORT_FILE [FOLDER]`.

Serves a bucket `nightly` until stdin is closed, with the files of FOLDER below the prefix `compiler`, and writes its port to PORT_FILE. The files
are put in inside of the process: a hundred thousand uploads over HTTP would take longer than the tests of reading them.
"""

import logging
import os
import sys
from pathlib import Path

from moto.moto_server.threaded_moto_server import ThreadedMotoServer
from moto.s3.models import s3_backends

logging.getLogger("werkzeug").setLevel(logging.ERROR)
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
backend = s3_backends["123456789012"]["aws"]
backend.create_bucket("nightly", "us-east-1")
if len(sys.argv) > 2:
    top = Path(sys.argv[2])
    for path in sorted(top.rglob("*")):
        if path.is_file():
            backend.put_object("nightly", f"compiler/{path.relative_to(top)}", path.read_bytes())
_, port = server.get_host_and_port()
Path(sys.argv[1] + ".new").write_text(str(port))
os.rename(sys.argv[1] + ".new", sys.argv[1])
sys.stdin.read()
server.stop()
