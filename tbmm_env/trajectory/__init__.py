"""Episodes on disk: ``Store`` appends and reads them; ``schema`` and ``codec`` say how they become bytes."""

from tbmm_env.trajectory.schema import SCHEMA_VERSION
from tbmm_env.trajectory.segment import Finding
from tbmm_env.trajectory.store import Store, StoredEpisode, StoredPaths

__all__ = ["SCHEMA_VERSION", "Finding", "Store", "StoredEpisode", "StoredPaths"]
