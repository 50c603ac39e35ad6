"""simnet: a discrete-event simulator of the networks that machine-learning training runs on.

>>> import simnet
>>> result = simnet.run("resnet50_16gpu", overrides={"training.workers": 8})  # doctest: +SKIP
>>> result.summary.scaling_efficiency  # doctest: +SKIP
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from simnet.calibration import Calibration, calibrate
    from simnet.errors import InputError, SimnetError, SimulationError
    from simnet.experiment.compare import Comparison, compare
    from simnet.experiment.explain import Explanation, explain
    from simnet.experiment.plot.of_sweep import plot
    from simnet.experiment.report import report
    from simnet.experiment.result import Result, load_result
    from simnet.experiment.run import run
    from simnet.experiment.scaling import scaling
    from simnet.experiment.sweep import load_sweep, sweep

__all__ = [
    "Calibration",
    "Comparison",
    "Explanation",
    "InputError",
    "Result",
    "SimnetError",
    "SimulationError",
    "__version__",
    "calibrate",
    "compare",
    "explain",
    "load_result",
    "load_sweep",
    "plot",
    "report",
    "run",
    "scaling",
    "sweep",
]

__version__ = "0.1.0"

# Resolved at first use: importing pandas, numba and networkx takes longer than `simnet --help` may.
_HOME = {
    "Calibration": "simnet.calibration",
    "Comparison": "simnet.experiment.compare",
    "Explanation": "simnet.experiment.explain",
    "InputError": "simnet.errors",
    "Result": "simnet.experiment.result",
    "SimnetError": "simnet.errors",
    "SimulationError": "simnet.errors",
    "calibrate": "simnet.calibration",
    "compare": "simnet.experiment.compare",
    "explain": "simnet.experiment.explain",
    "load_result": "simnet.experiment.result",
    "load_sweep": "simnet.experiment.sweep",
    "plot": "simnet.experiment.plot.of_sweep",
    "report": "simnet.experiment.report",
    "run": "simnet.experiment.run",
    "scaling": "simnet.experiment.scaling",
    "sweep": "simnet.experiment.sweep",
}


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)
