"""All contact with untrusted processes and files: boxes, their backends, their root filesystem."""

from tbmm_env.sandbox.base import ANSWER_PATH, Box, BoxSpec, OnCheck, Sandbox, SandboxName, select
from tbmm_env.sandbox.image import Image

__all__ = ["ANSWER_PATH", "Box", "BoxSpec", "Image", "OnCheck", "Sandbox", "SandboxName", "select"]
