"""Mathematical-modelling contest problems as Gymnasium environments with replayed, Lean-certified rewards.

Importing this package registers every task: ``gymnasium.make("tbmm/cumcm-2024-a")``.
"""

from __future__ import annotations

import gymnasium

from tbmm_env.data import data_path

__version__ = "0.1.0"
__all__ = ["__version__"]


def _register() -> None:
    for entry in sorted(data_path("tasks").glob("*/task.toml")):
        name = f"tbmm/{entry.parent.name}"
        if name not in gymnasium.registry:
            gymnasium.register(
                id=name,
                entry_point="tbmm_env.env:ModelingEnv",
                vector_entry_point="tbmm_env.vector:ModelingVectorEnv",
                kwargs={"task": entry.parent.name},
            )


_register()
