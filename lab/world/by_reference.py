"""A tuple of arrays that compiled functions pass as one pointer.

A tuple is passed array by array, each as nine numbers: with dozens of arrays a call copies
kilobytes, and compiling takes minutes. Here the arrays' places and shapes lie in one block
of memory, and a function gets the block's address; `s.calls` reads what it needs of it.
The arrays must outlive the reference, which `Reference` sees to.
"""

from typing import Any, Final

import numpy as np
from numba import types
from numba.core import cgutils
from numba.core.typing.templates import AttributeTemplate
from numba.extending import (
    NativeValue,
    infer_getattr,
    lower_getattr_generic,
    models,
    register_model,
    typeof_impl,
    unbox,
)
from numba.np import numpy_support

_WORD: Final = 8


class ReferenceType(types.Type):  # type: ignore[misc]
    """Names and types of the arrays, in order; a nested tuple is a reference again."""

    def __init__(self, fields: tuple[tuple[str, Any], ...]) -> None:
        self.fields = fields
        self.types = dict(fields)
        super().__init__(name=f"Reference({', '.join(f'{n}: {t}' for n, t in fields)})")

    def offset(self, name: str) -> int:
        """Where in the block, in words, what is known of the named array begins."""
        at = 0
        for field, kind in self.fields:
            if field == name:
                return at
            at += _words(kind)
        raise AttributeError(name)


def _words(kind: Any) -> int:
    """An array's address, shape and strides; of a reference, its address."""
    return 1 if isinstance(kind, ReferenceType) else 1 + 2 * kind.ndim


class Reference:
    """The address of a block that says where the arrays of a named tuple are."""

    def __init__(self, arrays: Any) -> None:
        self.arrays = arrays
        self.kind: ReferenceType
        self.address: int
        self.parts = {
            name: Reference(value)
            for name, value in zip(arrays._fields, arrays, strict=True)
            if isinstance(value, tuple)
        }
        kinds: list[tuple[str, Any]] = []
        words: list[int] = []
        for name, value in zip(arrays._fields, arrays, strict=True):
            part = self.parts.get(name)
            if part is not None:
                kinds.append((name, part.kind))
                words.append(part.address)
                continue
            if not value.flags.c_contiguous:
                raise ValueError(f"{name}: want a contiguous array")
            scalar = numpy_support.from_dtype(value.dtype)
            kinds.append((name, types.Array(scalar, value.ndim, "C")))
            words += [value.ctypes.data, *value.shape, *value.strides]
        self.block = np.array(words, np.int64)
        self.address = int(self.block.ctypes.data)
        self.kind = ReferenceType(tuple(kinds))


@typeof_impl.register(Reference)
def _typeof(value: Reference, _: Any) -> ReferenceType:
    return value.kind


register_model(ReferenceType)(models.OpaqueModel)


@unbox(ReferenceType)
def _unbox(_: ReferenceType, obj: Any, c: Any) -> NativeValue:
    address = c.pyapi.object_getattr_string(obj, "address")
    pointer = c.pyapi.long_as_voidptr(address)
    c.pyapi.decref(address)
    return NativeValue(pointer)


@infer_getattr
class _Fields(AttributeTemplate):  # type: ignore[misc]
    key = ReferenceType

    def generic_resolve(self, kind: ReferenceType, name: str) -> Any:
        return kind.types.get(name)


@lower_getattr_generic(ReferenceType)
def _read(context: Any, builder: Any, kind: ReferenceType, value: Any, name: str) -> Any:
    """Read an array's place and shape out of the block; nobody counts references to it."""
    field, at = kind.types[name], kind.offset(name)
    word = context.get_value_type(types.intp)
    block = builder.bitcast(value, word.as_pointer())

    def load(i: int) -> Any:
        return builder.load(cgutils.gep_inbounds(builder, block, at + i))

    if isinstance(field, ReferenceType):
        return builder.inttoptr(load(0), context.get_value_type(field))
    made = context.make_array(field)(context, builder)
    item = context.get_abi_sizeof(context.get_data_type(field.dtype))
    shape = [load(1 + i) for i in range(field.ndim)]
    strides = [load(1 + field.ndim + i) for i in range(field.ndim)]
    items = context.get_constant(types.intp, 1)
    for size in shape:
        items = builder.mul(items, size)
    made.meminfo = cgutils.get_null_value(made.meminfo.type)
    made.parent = cgutils.get_null_value(made.parent.type)
    made.nitems, made.itemsize = items, context.get_constant(types.intp, item)
    made.data = builder.inttoptr(load(0), made.data.type)
    made.shape = cgutils.pack_array(builder, shape)
    made.strides = cgutils.pack_array(builder, strides)
    return made._getvalue()
