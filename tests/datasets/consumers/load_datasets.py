"""Loads exports with the library ``datasets``, pyarrow and pandas; prints what they found as one JSON object.

Usage: load_datasets.py CACHE NAME=FOLDER ...
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

os.environ |= {"HF_HUB_OFFLINE": "1", "HF_HOME": sys.argv[1], "HF_DATASETS_DISABLE_PROGRESS_BARS": "1"}

import datasets
import numpy
import pandas
import pyarrow.parquet


def without_nulls(value: object) -> object:
    """Take away what Arrow adds to objects that differ in their keys; arrays become lists."""
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list | numpy.ndarray):
        return [without_nulls(item) for item in value]
    return value


def as_verl_reads(path: Path, cache: Path) -> object:
    """Messages and tools of the last row by way of pandas and Parquet, which is how verl's SFT data set takes them."""
    made = cache / f"{path.parent.name}.parquet"
    pandas.read_json(path, lines=True).to_parquet(made)
    last = pandas.read_parquet(made, dtype_backend="pyarrow").iloc[-1]
    return without_nulls({"messages": last["messages"], "tools": last["tools"]})


found = {}
for argument in sys.argv[2:]:
    name, _, path = argument.partition("=")
    folder = Path(path)
    files = sorted(str(file) for file in folder.glob("*.parquet"))
    loaded = datasets.load_dataset(path, split="train", cache_dir=sys.argv[1])
    found[name] = {"rows": len(loaded), "columns": loaded.column_names, "last": None}
    if files:
        figures = loaded.select_columns(["prompt_figures"]).cast_column(
            "prompt_figures", datasets.List(datasets.Image())
        )
        found[name]["figure"] = figures[0]["prompt_figures"][0].size
        found[name]["pandas"] = len(pandas.concat([pandas.read_parquet(file) for file in files]))
        found[name]["steps"] = sum(len(row["steps"]) for row in loaded)
        found[name]["types"] = {
            field.name: str(field.type) for field in pyarrow.parquet.read_schema(files[0]) if field.name != "steps"
        }
    else:
        found[name]["last"] = loaded[len(loaded) - 1]
        if "messages" in loaded.column_names:
            found[name]["verl"] = as_verl_reads(folder / "rows.jsonl", Path(sys.argv[1]))
        if "images" in loaded.column_names and name != "data-uri":
            column = loaded.select_columns(["images"]).map(
                lambda row, root=folder: {"images": [str(root / image) for image in row["images"]]}
            )
            images = column.cast_column("images", datasets.List(datasets.Image()))
            found[name]["figure"] = images[0]["images"][0].size
print(json.dumps(found))
