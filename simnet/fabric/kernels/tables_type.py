"""How compiled functions are handed tables: by one address, as C would, not array by array.

An array is seven numbers to numba; two dozen of them as arguments of every function would make compiling slow and
every call expensive. So a class of tables is a type of its own to numba: the address of a directory with the address
and the number of rows of each table. ``tables.operations`` is then an array made of these two. Without compiling, it is
a plain attribute. The functions below are those that numba asks for a type (see its *Low-level extension API*).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core.imputils import lower_getattr_generic
from numba.core.typing.templates import AttributeTemplate, infer_getattr
from numba.extending import NativeValue, models, register_model, typeof_impl, unbox
from numba.np.arrayobj import make_array, populate_array
from numba.np.numpy_support import from_dtype
from numpy.typing import NDArray

__all__ = ["directory_of", "record", "register_tables"]


def record(**fields: type) -> np.dtype[Any]:
    """Return the type of a record whose fields can be read as attributes, also in plain Python."""
    hidden = sorted(set(fields) & set(dir(np.record)))
    if hidden:
        raise ValueError(f"numpy's records have an attribute of that name already: {', '.join(hidden)}")
    return np.dtype((np.record, np.dtype(list(fields.items()), align=True)))


def directory_of(tables: Any, layout: Mapping[str, np.dtype[Any]]) -> NDArray[np.int64]:
    """Return address and number of rows of each table, shape (tables, 2)."""
    arrays = [getattr(tables, name) for name in layout]
    return np.array([(array.ctypes.data, len(array)) for array in arrays], dtype=np.int64)


_registered: dict[str, types.Type] = {}
"""The types of tables by name."""


def _registered_type(name: str) -> types.Type:
    return _registered[name]


def register_tables(name: str, tables: type, layout: Mapping[str, np.dtype[Any]]) -> None:
    """Make a class of tables a type that compiled functions can take.

    Parameters
    ----------
    name : str
        Of the type.
    tables : type
        Its objects have an attribute for each table, and `address`, that of what `directory_of` returns.
    layout : mapping
        The tables by name, in order, and the records that they consist of.
    """
    positions = {table: position for position, table in enumerate(layout)}
    arrays = {table: types.Array(from_dtype(record), 1, "C", aligned=True) for table, record in layout.items()}

    class TablesType(types.Type):
        """The type of the tables in compiled functions."""

        def __init__(self) -> None:
            super().__init__(name=name)

        def __reduce__(self) -> tuple[Any, ...]:
            # What is compiled is found again by its types, which have to be the same in another process.
            return _registered_type, (name,)

    kind = _registered[name] = TablesType()

    @register_model(TablesType)
    class _TablesModel(models.PrimitiveModel):
        """A pointer to 64-bit numbers."""

        def __init__(self, manager: Any, kind: TablesType) -> None:
            super().__init__(manager, kind, ir.IntType(64).as_pointer())

    @typeof_impl.register(tables)
    def _type_of_tables(_value: Any, _context: Any) -> TablesType:
        return kind

    @unbox(TablesType)
    def _unbox_tables(_kind: TablesType, value: Any, c: Any) -> NativeValue:
        address = c.pyapi.object_getattr_string(value, "address")
        number = c.pyapi.long_as_ulonglong(address)
        c.pyapi.decref(address)
        return NativeValue(c.builder.inttoptr(number, ir.IntType(64).as_pointer()))

    @infer_getattr
    class _TablesAttributes(AttributeTemplate):
        key = TablesType

        def generic_resolve(self, _kind: TablesType, table: str) -> types.Array | None:  # type: ignore[override]
            return arrays.get(table)

    @lower_getattr_generic(TablesType)
    def _get_table(context: Any, builder: Any, _kind: TablesType, directory: Any, table: str) -> Any:
        """Make an array of what the directory says; nobody changes the directory while a compiled function runs."""
        array_type = arrays[table]
        size = ir.Constant(ir.IntType(64), layout[table].itemsize)
        address, rows = (
            builder.load(builder.gep(directory, [ir.Constant(ir.IntType(64), 2 * positions[table] + i)]))
            for i in (0, 1)
        )
        for number in (address, rows):
            number.set_metadata("invariant.load", builder.module.add_metadata([]))
        array = make_array(array_type)(context, builder)
        data = builder.inttoptr(address, array.data.type)
        populate_array(array, data=data, shape=(rows,), strides=(size,), itemsize=size, meminfo=None)
        return array._getvalue()
