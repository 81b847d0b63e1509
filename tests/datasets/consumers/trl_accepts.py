"""Gives every row of chat exports to TRL's own functions for conversational rows.

Of TRL only ``data_utils.py`` is loaded, from an unpacked wheel: it needs no torch, and of transformers two names for
annotations. Usage: trl_accepts.py DATA_UTILS FOLDER ...
"""

from __future__ import annotations

import importlib.util
import json
import sys
import types
from pathlib import Path

stub = types.ModuleType("transformers")
stub.PreTrainedTokenizerBase = stub.ProcessorMixin = object
sys.modules["transformers"] = stub
spec = importlib.util.spec_from_file_location("trl_data_utils", sys.argv[1])
trl = importlib.util.module_from_spec(spec)
spec.loader.exec_module(trl)

counts = {"rows": 0, "conversational": 0, "images": 0, "places": 0}
for folder in sys.argv[2:]:
    for line in (Path(folder) / "rows.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        images = [object() for _ in row.get("images", [])]
        counts["rows"] += 1
        counts["conversational"] += trl.is_conversational(row)
        filled = trl.prepare_multimodal_messages(row["messages"], images)
        parts = [part for message in filled for part in message["content"] if part["type"] == "image"]
        assert [part["image"] for part in parts] == images
        counts["images"] += len(images)
        counts["places"] += len(parts)
print(json.dumps(counts))
