"""Drives runs without anybody, one turn at a time: `Driver`, `Model` and `StateOperations` for embedding programs."""

from interlock.drive.models.protocol import Model
from interlock.drive.run.driver import Driver
from interlock.drive.state import StateOperations

__all__ = ["Driver", "Model", "StateOperations"]
