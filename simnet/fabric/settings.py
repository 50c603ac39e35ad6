"""How the engine works."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["DEFAULT_ENGINE", "EngineSettings"]


@dataclass(frozen=True)
class EngineSettings:
    """Ways of the engine to be fast, which all give the same times within 1e-9, and a choice of model.

    Parameters
    ----------
    recurrence : bool
        Play schedules that share nothing as a max-plus recurrence.
    skip_periods : bool
        Skip whole periods of a recurrence.
    repeats : bool
        Do not play again, event by event, what comes again and shares nothing. See `simnet.fabric.repeats`.
    local_repair : bool
        Solve rates again only around what changed; otherwise for whole connected components.
    head_of_line : bool
        Have links that are paused, where switches pause or give credit, hold up all of their flows: another model, with
        other times. See `simnet.fabric.kernels.paused`.
    """

    recurrence: bool = True
    skip_periods: bool = True
    local_repair: bool = True
    head_of_line: bool = False
    repeats: bool = True


DEFAULT_ENGINE = EngineSettings()
