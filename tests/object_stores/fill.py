"""Uploads the files of a folder to azurite, eight at a time: `fill.py PORT FOLDER`. Creates the container `nightly`."""

import base64
import datetime
import hashlib
import hmac
import http.client
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import local
from urllib.parse import quote

# The account that every azurite has; it is documented and no secret.
ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
kept = local()


def put(port, path, query, headers, body):
    headers = {
        "x-ms-date": datetime.datetime.now(datetime.timezone.utc).strftime("%a, %d %b %Y %H:%M:%S GMT"),
        "x-ms-version": "2021-08-06",
        **headers,
    }
    canonical = "".join(f"{name}:{value}\n" for name, value in sorted(headers.items()))
    resource = f"/{ACCOUNT}/{ACCOUNT}{path}" + "".join(f"\n{name}:{value}" for name, value in sorted(query.items()))
    length = str(len(body)) if body else ""
    text = f"PUT\n\n\n{length}\n\n\n\n\n\n\n\n\n{canonical}{resource}"
    signature = base64.b64encode(hmac.new(base64.b64decode(KEY), text.encode(), hashlib.sha256).digest()).decode()
    headers["Authorization"] = f"SharedKey {ACCOUNT}:{signature}"
    address = f"/{ACCOUNT}{path}" + ("?" + "&".join(f"{name}={value}" for name, value in query.items()) if query else "")
    if not hasattr(kept, "connection"):
        kept.connection = http.client.HTTPConnection("127.0.0.1", port)
    kept.connection.request("PUT", address, body, headers)
    answer = kept.connection.getresponse()
    said = answer.read()
    if answer.status != 201:
        raise SystemExit(f"{path}: {answer.status} {said[:400]}")


def main():
    port, top = int(sys.argv[1]), Path(sys.argv[2])
    put(port, "/nightly", {"restype": "container"}, {}, b"")
    files = [path for path in sorted(top.rglob("*")) if path.is_file()] if top.is_dir() else []

    def upload(path):
        key = quote(f"/nightly/compiler/{path.relative_to(top)}", safe="/")
        put(port, key, {}, {"x-ms-blob-type": "BlockBlob"}, path.read_bytes())

    with ThreadPoolExecutor(8) as pool:
        for _ in pool.map(upload, files):
            pass


main()
