"""Gives every trajectory of an ATIF export to Harbor's validator and models; runs where Harbor is installed.

Usage: harbor_accepts.py FOLDER. Prints the number of files, the errors by file, and what the models read.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from harbor.models.trajectories import Trajectory
from harbor.utils.trajectory_validator import TrajectoryValidator

errors = {}
rewards = {}
multimodal = tokens = 0
for path in sorted(Path(sys.argv[1]).glob("*.json")):
    if path.name == "summary.json":
        continue
    validator = TrajectoryValidator()
    if not validator.validate(path):
        errors[path.name] = validator.get_errors()
        continue
    trajectory = Trajectory.model_validate_json(path.read_text(encoding="utf-8"))
    rewards[trajectory.session_id] = trajectory.final_metrics.extra["reward"]
    multimodal += trajectory.has_multimodal_content()
    tokens += sum(len(step.metrics.completion_token_ids or []) for step in trajectory.steps if step.metrics)
print(json.dumps({"errors": errors, "rewards": rewards, "multimodal": multimodal, "completion_tokens": tokens}))
