"""Episodes on disk: ``Store`` appends and reads them; ``schema`` and ``codec`` say how they become bytes."""

from tbmm_env.trajectory.schema import SCHEMA_VERSION, Summary
from tbmm_env.trajectory.segment import Finding
from tbmm_env.trajectory.store import Store, StoredEpisode, StoredPaths, StoredSummary

__all__ = ["SCHEMA_VERSION", "Finding", "Store", "StoredEpisode", "StoredPaths", "StoredSummary", "Summary"]
