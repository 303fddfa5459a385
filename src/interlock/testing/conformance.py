"""Judges lifecycle events against a plan, for the tests of tools that produce or read them (LIFE-9)."""

from interlock.views.lifecycle.conformance import Fault, FaultCode, faults_of

__all__ = ["Fault", "FaultCode", "faults_of"]
