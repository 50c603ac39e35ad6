"""How compiled functions are handed the tables: by one address, as C would, not array by array.

An array is seven numbers to numba; two dozen of them as arguments of every function would make compiling slow and
every call expensive. So `Tables` is a type of its own to numba: the address of a directory with the address and the
number of rows of each table. ``tables.operations`` is then an array made of these two. Without compiling, it is a plain
attribute. The functions below are those that numba asks for a type (see its *Low-level extension API*).
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core.imputils import lower_getattr_generic
from numba.core.typing.templates import AttributeTemplate, infer_getattr
from numba.extending import NativeValue, models, register_model, typeof_impl, unbox
from numba.np.arrayobj import make_array, populate_array
from numba.np.numpy_support import from_dtype

from simnet.fabric.kernels.tables import LAYOUT, Tables

__all__: list[str] = []

_POSITIONS = {name: position for position, name in enumerate(LAYOUT)}
_ARRAYS = {name: types.Array(from_dtype(record), 1, "C", aligned=True) for name, record in LAYOUT.items()}


class TablesType(types.Type):
    """The type of `Tables` in compiled functions."""

    def __init__(self) -> None:
        super().__init__(name="Tables")


_TYPE = TablesType()


@register_model(TablesType)
class _TablesModel(models.PrimitiveModel):
    """A pointer to 64-bit numbers."""

    def __init__(self, manager: Any, kind: TablesType) -> None:
        super().__init__(manager, kind, ir.IntType(64).as_pointer())


@typeof_impl.register(Tables)
def _type_of_tables(_value: Tables, _context: Any) -> TablesType:
    return _TYPE


@unbox(TablesType)
def _unbox_tables(_kind: TablesType, value: Any, c: Any) -> NativeValue:
    address = c.pyapi.object_getattr_string(value, "address")
    number = c.pyapi.long_as_ulonglong(address)
    c.pyapi.decref(address)
    return NativeValue(c.builder.inttoptr(number, ir.IntType(64).as_pointer()))


@infer_getattr
class _TablesAttributes(AttributeTemplate):
    key = TablesType

    def generic_resolve(self, _kind: TablesType, name: str) -> types.Array | None:  # type: ignore[override]
        return _ARRAYS.get(name)


@lower_getattr_generic(TablesType)
def _get_table(context: Any, builder: Any, _kind: TablesType, directory: Any, name: str) -> Any:
    """Make an array of what the directory says; nobody changes the directory while a compiled function runs."""
    array_type = _ARRAYS[name]
    size = ir.Constant(ir.IntType(64), LAYOUT[name].itemsize)
    address, rows = (
        builder.load(builder.gep(directory, [ir.Constant(ir.IntType(64), 2 * _POSITIONS[name] + i)])) for i in (0, 1)
    )
    for number in (address, rows):
        number.set_metadata("invariant.load", builder.module.add_metadata([]))
    array = make_array(array_type)(context, builder)
    data = builder.inttoptr(address, array.data.type)
    populate_array(array, data=data, shape=(rows,), strides=(size,), itemsize=size, meminfo=None)
    return array._getvalue()
