"""One self-contained page of HTML: no request to a network, and the same bytes each time."""

from __future__ import annotations

import itertools
from pathlib import Path

from matplotlib.figure import Figure

from simnet.errors import InputError
from simnet.experiment.plot.style import inline_svg
from simnet.experiment.report.point import TellingPoint, telling_point
from simnet.experiment.report.sections import sections
from simnet.experiment.sweep.view import view_sweep
from simnet.experiment.telling import Show, tell_nobody
from simnet.writing import write_whole

__all__ = ["page", "report"]

_TEMPLATE = Path(__file__).with_name("page.html")


def report(
    folder: str | Path,
    file: str | Path | None = None,
    *,
    point: int | None = None,
    with_point: bool = True,
    show: Show = tell_nobody,
) -> Path:
    """Write the report of a sweep: tables and pictures, as one file of HTML.

    Parameters
    ----------
    folder : str or Path
        That ``simnet sweep`` wrote.
    file : str or Path, optional
        ``report.html`` in that folder by default.
    point : int, optional
        Number of the point that is run again, and looked at closely; by default, of those with most workers, the least
        efficient one.
    with_point : bool
        Whether to look at one closely.
    show : callable
        Shown how far it is with running it again.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    InputError
        No sweep, no point that has succeeded, no such point, or a file that cannot be written.

    Examples
    --------
    >>> import simnet
    >>> simnet.report("results/sweeps/scan")  # doctest: +SKIP
    """
    path = Path(file) if file is not None else Path(folder) / "report.html"
    text = page(folder, point=point, with_point=with_point, show=show)
    with write_whole(path) as made:
        made.write_text(text, encoding="utf-8")
    return path


def page(folder: str | Path, *, point: int | None = None, with_point: bool = True, show: Show = tell_nobody) -> str:
    """Return the text of a report; see `report`."""
    import jinja2
    from markupsafe import Markup

    view = view_sweep(folder)
    chosen: TellingPoint | None = None
    no_point = "none was asked for"
    if with_point:
        try:
            chosen = telling_point(view, Path(folder), point, show)
        except InputError as error:
            # A point that somebody asks for is there, or they are told.
            if point is not None:
                raise
            no_point = "; ".join(f"{problem.message}, {problem.hint}".rstrip(", ") for problem in error.problems)
    numbers = itertools.count(1)

    def svg(figure: Figure, words: str) -> Markup:
        return Markup(inline_svg(figure, f"figure{next(numbers)}", words))

    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    template = environment.from_string(_TEMPLATE.read_text(encoding="utf-8"))
    return template.render(name=view.name, sections=list(sections(view, chosen, no_point)), svg=svg) + "\n"
