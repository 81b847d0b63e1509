"""Reads a Parquet export with ray.data and prints what it found. Usage: read_ray.py FOLDER"""

from __future__ import annotations

import json
import os
import sys

os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "disabled"}

import ray
import ray.data

ray.init(address="local", num_cpus=1, include_dashboard=False, object_store_memory=100 * 2**20, log_to_driver=False)
rows = ray.data.read_parquet(sys.argv[1], file_extensions=["parquet"])
taken = rows.map(lambda row: {"reward": row["reward"], "steps": len(row["steps"]), "task": row["task"]}).take_all()
print(
    json.dumps(
        {"rows": len(taken), "reward": sum(row["reward"] for row in taken), "steps": sum(row["steps"] for row in taken)}
    )
)
ray.shutdown()
