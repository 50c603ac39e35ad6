"""One collective on a cluster, as `simnet collective` is told: from texts to objects, with everything that is wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, TypeAdapter, ValidationError, create_model

from simnet.errors import InputError, Problem, attempt
from simnet.protocols import FlowProtocol
from simnet.scenario.algorithm_options import (
    MOST_WORKERS,
    ChainSpec,
    NoOptions,
    RootedTreeSpec,
    added_options,
    fitted,
    misfits,
    option_arguments,
)
from simnet.scenario.build import build_protocol, build_topology
from simnet.scenario.document import Document, python_document
from simnet.scenario.exchange_models import ArchitectureSpec
from simnet.scenario.fields import Quantity, Whole, Word
from simnet.scenario.overrides import Override, apply_overrides
from simnet.scenario.protocol_models import ProtocolSpec
from simnet.scenario.sections import Choice, Section, problems_of, section_of
from simnet.scenario.sizes import parse_sizes
from simnet.scenario.topology_models import TopologySpec
from simnet.scenario.yaml_document import parse_yaml
from simnet.topology import Topology
from simnet.traffic import COLLECTIVES, algorithm_names
from simnet.workload import DTYPE_BYTES

__all__ = ["DEFAULT_SIZES", "CollectiveSettings", "load_collective"]

DEFAULT_SIZES = "8B:1GiB:x2"

_Built = TypeVar("_Built")


@dataclass(frozen=True, eq=False)
class CollectiveSettings:
    """A collective, how it is done, where, and with how much.

    Parameters
    ----------
    collective, algorithm : str
        Names out of `simnet.traffic.COLLECTIVES`.
    options : mapping
        Options of the algorithm.
    topology : Topology
    protocol : FlowProtocol
    nodes : ndarray, shape (ranks,)
        Node index of each rank.
    sizes_bytes : tuple of float
        Sizes to play [bytes]; of each only whole elements are sent.
    dtype : str
        Name of the type of an element, out of `simnet.workload.DTYPE_BYTES`.
    seed : int
        For the choice between equally short paths.
    launch_s : float
        From the call until the first message, on all ranks at once [s].
    """

    collective: str
    algorithm: str
    topology: Topology
    protocol: FlowProtocol
    nodes: NDArray[np.int64]
    sizes_bytes: tuple[float, ...]
    options: Mapping[str, Any]
    dtype: str = "fp32"
    seed: int = 0
    launch_s: float = 0.0


_OPTIONS: Mapping[str, type[Section]] = {"tree": RootedTreeSpec, "chain": ChainSpec}
"""Options of the algorithms of broadcast and reduce; those of all-reduce are of the architecture of the name."""


def load_collective(
    collective: str,
    *,
    topology: object,
    protocol: object,
    algorithm: object = None,
    ranks: object = None,
    sizes: str = DEFAULT_SIZES,
    dtype: object = "fp32",
    seed: object = 0,
    launch: object = "0 s",
    source: Callable[[str], str] = str,
) -> CollectiveSettings:
    """Return the settings that a person gives. A text is YAML, as on the command line.

    Parameters
    ----------
    collective : str
        A name out of `simnet.traffic.COLLECTIVES`.
    topology, protocol : str or mapping
        As in a scenario.
    algorithm : str or mapping, optional
        A name, or ``{name: {option: value}}``; the usual algorithm where not given.
    ranks : int or str, optional
        The first so many ranks of the topology; all where not given.
    sizes : str
        As `simnet.scenario.sizes.parse_sizes` reads it.
    dtype : str
        Type of an element.
    seed : int or str
        For the choice between equally short paths.
    launch : str
        From the call until the first message, as for starting kernels.
    source : callable
        Returns what messages call a parameter, given its name.

    Returns
    -------
    CollectiveSettings

    Raises
    ------
    InputError
        Everything that is wrong.

    Examples
    --------
    >>> settings = load_collective("all_reduce", topology="nvlink_node_8", protocol="ideal", sizes="1MiB")
    >>> settings.algorithm, len(settings.nodes)
    ('ring', 8)
    """
    given = {
        "collective": collective,
        "topology": topology,
        "protocol": protocol,
        "dtype": dtype,
        "seed": seed,
        "launch": launch,
    }
    given |= {key: value for key, value in (("algorithm", algorithm), ("ranks", ranks)) if value is not None}
    problems: list[Problem] = []
    overrides = [attempt(problems, partial(_override, key, value, source(key))) for key, value in given.items()]
    document = apply_overrides(Document({}, ""), [override for override in overrides if override is not None])
    problems += document.problems

    def part(key: str, annotation: Any, model: type[Section] = Section) -> Any:
        """Return one parameter, validated; None where it is wrong or could not even be read."""
        if key not in document.data:
            return None
        return attempt(problems, lambda: _validated(document, key, annotation, model))

    def placed(key: str, build: Callable[[], _Built]) -> _Built:
        """Return what is built of a parameter; what is wrong with it has its place."""
        with document.placing(key):
            return build()

    name = part("collective", Annotated[str, Word(tuple(COLLECTIVES))])
    topology_spec = part("topology", TopologySpec, TopologySpec)
    protocol_spec = part("protocol", ProtocolSpec, ProtocolSpec)
    count = part("ranks", Annotated[int, Whole(1, MOST_WORKERS)])
    sizes_bytes = attempt(problems, lambda: parse_sizes(sizes, source("sizes")))
    element = part("dtype", Annotated[str, Word(tuple(DTYPE_BYTES))])
    drawn = part("seed", Annotated[int, Whole(0, 2**53)])
    launch_s = part("launch", Annotated[float, Quantity("duration")])
    way = None
    if name is not None:
        model = _algorithm_model(name)
        way = part("algorithm", model, model) if "algorithm" in given else model.model_validate(_usual(name))

    cluster: Topology | None = None
    transport: FlowProtocol | None = None
    if topology_spec is not None:
        cluster = attempt(problems, lambda: placed("topology", lambda: build_topology(topology_spec)))
    if protocol_spec is not None:
        kinds = cluster.compiled.link_kind if cluster is not None else ()
        transport = attempt(problems, lambda: placed("protocol", lambda: build_protocol(protocol_spec, kinds).protocol))
    if cluster is not None and (count is not None or "ranks" not in given):
        problems += _rank_problems(document, cluster, count, way)
    if problems or way is None or cluster is None or transport is None or sizes_bytes is None:
        raise InputError(problems)
    options = option_arguments(name, way.name, way.options)
    return CollectiveSettings(
        collective=name,
        algorithm=way.name,
        topology=cluster,
        protocol=transport,
        nodes=cluster.compiled.rank_nodes[:count],
        sizes_bytes=sizes_bytes,
        options=fitted(options, cluster.compiled, count or len(cluster.compiled.ranks)),
        dtype=element,
        seed=drawn,
        launch_s=launch_s,
    )


def _override(key: str, value: object, source: str) -> Override:
    """Return a parameter as a value to be put into a document; only a text has a place."""
    return Override((key,), parse_yaml(value, source) if isinstance(value, str) else python_document(value, ""))


def _validated(document: Document, key: str, annotation: Any, model: type[Section]) -> Any:
    try:
        return TypeAdapter(annotation).validate_python(document.data[key])
    except ValidationError as error:
        raise InputError(problems_of(document, model, error, (key,))) from None


def _usual(collective: str) -> str:
    """Return the name of the algorithm that is taken where none is given."""
    return next(iter(COLLECTIVES[collective].algorithms))


def _algorithm_model(collective: str) -> type[Choice]:
    fields: dict[str, Any] = {
        name: (_options_of(collective, name) | None, Field(None, description="Its options."))
        for name in algorithm_names(collective)
    }
    return create_model("AlgorithmSpec", __base__=Choice, __module__=__name__, **fields)


def _options_of(collective: str, algorithm: str) -> Any:
    if algorithm not in COLLECTIVES[collective].algorithms:
        return added_options(collective, algorithm)
    if collective == "all_reduce":
        return section_of(ArchitectureSpec, (algorithm,)) or NoOptions
    return _OPTIONS.get(algorithm, NoOptions)


def _rank_problems(
    document: Document, topology: Topology, count: int | None, algorithm: Choice | None
) -> Iterator[Problem]:
    """Return what does not fit the number of ranks."""
    there = len(topology.compiled.ranks)
    ranks = count or there
    if ranks > there:
        message = f"{ranks} ranks are more than topology {topology.name} has"
        yield document.problem(("ranks",), message, f"at most {there} is wanted")
    if algorithm is not None:
        for key, message, hint in misfits(algorithm.options, ranks):
            yield document.problem(("algorithm", algorithm.name, key), message, hint)
