"""What pictures take of a result, so that they need not know `Result`, which hands itself to them."""

from __future__ import annotations

from typing import Any, Protocol

import pandas as pd

__all__ = ["Drawn"]


class Drawn(Protocol):
    """The tables that are drawn, and the scenario; `simnet.experiment.result.Result` says what each is."""

    @property
    def summary(self) -> pd.DataFrame: ...  # noqa: D102

    @property
    def iterations(self) -> pd.DataFrame: ...  # noqa: D102

    @property
    def workers(self) -> pd.DataFrame: ...  # noqa: D102

    @property
    def collectives(self) -> pd.DataFrame: ...  # noqa: D102

    @property
    def links(self) -> pd.DataFrame: ...  # noqa: D102

    @property
    def scenario(self) -> dict[str, Any]: ...  # noqa: D102

    @property
    def spans(self) -> pd.DataFrame | None: ...  # noqa: D102

    @property
    def load(self) -> pd.DataFrame | None: ...  # noqa: D102
