"""Writes what azurite keeps on disk: a container `nightly`, with the files of a folder: `fill.py LOCATION [FOLDER]`.

An upload searches all names that are already there, so uploading 100,000 objects takes more than an hour.
"""

import hashlib
import json
import sys
from pathlib import Path

ACCOUNT = "devstoreaccount1"
EXTENT = "00000000-0000-4000-8000-000000000000"
AT = "2026-01-01T00:00:00.000Z"


def collection(name, indices, data):
    """As LokiJS stores one. Documents are sorted by every key that has an index."""
    for number, document in enumerate(data, 1):
        document |= {"meta": {"revision": 0, "created": 0, "version": 0}, "$loki": number}
    order = list(range(len(data)))
    indices = {key: {"name": key, "dirty": False, "values": order} for key in indices}
    return {
        "name": name, "data": data, "idIndex": None, "binaryIndices": indices, "maxId": len(data), "uniqueNames": [], "transforms": {},
        "disableChangesApi": True, "disableDeltaChangesApi": True, "changes": [], "dirtyIds": [],
    }


def write(path, collections):
    path.write_text(json.dumps({"filename": str(path), "collections": collections, "databaseVersion": 1.5}))


def main():
    location = Path(sys.argv[1])
    top = Path(sys.argv[2]) if len(sys.argv) > 2 else None
    (location / "__blobstorage__").mkdir()
    blobs, offset = [], 0
    named = sorted((f"compiler/{path.relative_to(top)}", path) for path in top.rglob("*.*") if path.is_file()) if top else []
    with open(location / "__blobstorage__" / EXTENT, "wb") as extent:
        for name, path in named:
            content = path.read_bytes()
            extent.write(content)
            properties = {
                "creationTime": AT, "lastModified": AT, "etag": f'"0x{offset:015X}"', "contentLength": len(content),
                "contentType": "application/octet-stream", "blobType": "BlockBlob", "leaseStatus": "unlocked",
                "contentMD5": {"type": "Buffer", "data": list(hashlib.md5(content).digest())}, "leaseState": "available",
                "serverEncrypted": True, "accessTier": "Hot", "accessTierInferred": True, "accessTierChangeTime": AT,
            }
            blobs.append({
                "deleted": False, "accountName": ACCOUNT, "containerName": "nightly", "name": name, "properties": properties,
                "snapshot": "", "isCommitted": True, "persistency": {"id": EXTENT, "offset": offset, "count": len(content)},
            })
            offset += len(content)
    container = {
        "accountName": ACCOUNT, "name": "nightly",
        "properties": {"etag": '"0x1"', "lastModified": AT, "leaseStatus": "unlocked", "leaseState": "available",
                       "hasImmutabilityPolicy": False, "hasLegalHold": False},
    }
    write(location / "__azurite_db_blob__.json", [
        collection("$CONTAINERS_COLLECTION$", ["accountName", "name"], [container]),
        collection("$BLOBS_COLLECTION$", ["accountName", "containerName", "name", "snapshot"], blobs),
        collection("$BLOCKS_COLLECTION$", ["accountName", "containerName", "blobName", "name"], []),
    ])
    if not blobs:
        return
    extent = {"id": EXTENT, "locationId": "Default", "path": EXTENT, "size": offset, "lastModifiedInMS": 1767225600000}
    write(location / "__azurite_db_blob_extent__.json", [collection("$EXTENTS_COLLECTION$", ["id"], [extent])])


main()
