"""Generators by name: those that come with simnet, and those that installed packages add."""

from __future__ import annotations

import inspect
from collections.abc import Callable

from simnet.errors import InputError
from simnet.extensions import Extensions
from simnet.topology.edge import edge_cloud
from simnet.topology.files import topology_from_graph
from simnet.topology.model import Topology
from simnet.topology.switched import dragonfly, fat_tree, leaf_spine, rail_optimised, star
from simnet.topology.switchless import full_mesh, nvlink_node, ring, torus

__all__ = ["EXTENSIONS", "GENERATORS", "generated", "generator_function", "generator_names"]

GENERATORS: dict[str, Callable[..., Topology]] = {
    generate.__name__: generate
    for generate in (
        *(star, leaf_spine, fat_tree, ring, torus, full_mesh, dragonfly, rail_optimised, nvlink_node),
        edge_cloud,
    )
}
"""Every generator that comes with simnet by the name that a specification calls it."""

EXTENSIONS = Extensions("topology", "simnet.topologies")
"""Generators that installed packages add: functions with keyword parameters, one of them the name of the topology."""


def generator_names() -> tuple[str, ...]:
    """Return the names that a specification may use: `GENERATORS`, and those that installed packages add.

    Returns
    -------
    tuple of str
    """
    return (*GENERATORS, *EXTENSIONS.names(GENERATORS))


def generator_function(name: str) -> Callable[..., Topology]:
    """Return the function of a generator.

    Parameters
    ----------
    name : str
        One of `generator_names`.

    Returns
    -------
    callable
        Takes keyword parameters, returns a `Topology`.

    Raises
    ------
    InputError
        What a package adds under the name cannot be loaded, or is no generator; names the package.
    """
    if name in GENERATORS:
        EXTENSIONS.require_unclaimed(name)
        return GENERATORS[name]
    function: Callable[..., Topology] = EXTENSIONS.load(name)
    with EXTENSIONS.blaming(name, "is no generator"):
        if "name" not in inspect.signature(function).parameters:
            raise TypeError("a function is wanted with keyword parameters, one of them called name")
    return function


def generated(generator: str, **arguments: object) -> Topology:
    """Return what a generator makes.

    Parameters
    ----------
    generator : str
        One of `generator_names`.
    **arguments
        Of its function.

    Returns
    -------
    Topology

    Raises
    ------
    InputError
        What the generator refuses; of one that a package adds, also that it failed, or what is wrong with what it made.
    """
    function = generator_function(generator)
    if generator in GENERATORS:
        return function(**arguments)
    with EXTENSIONS.blaming(generator, "failed"):
        made = function(**arguments)
        if not isinstance(made, Topology):
            raise TypeError(f"it returned a {type(made).__name__}, and no simnet.topology.Topology")
        try:
            topology_from_graph(made.graph)
        except InputError as error:
            first = error.problems[0]
            raise EXTENSIONS.refusal(generator, f"made a wrong topology: {first.message}", first.hint) from None
    return made
