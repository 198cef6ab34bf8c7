"""Loads and stores at an address, for compiled code.

An array argument to a helper that is not inlined costs reference counts, which took the
first scanner from 870 k to 228 k spans a second: compiled code here passes addresses.
Nothing checks them: the caller does.
"""

from pathlib import Path
from typing import Any

import numpy as np
from llvmlite import ir
from numba import from_dtype, njit, types
from numba.extending import intrinsic

from tailburn.collector.compiling import entries_of

# A function that only compiled code calls.
compiled = njit(nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)

# A function that Python calls; the only ones in the cache.
entry = entries_of(Path(__file__).parent)

# Becomes part of its one caller before that is compiled: each level of calls costs LLVM another
# pass over all that lies below it.
inlined = njit(nogil=True, error_model="numpy", inline="always")

_I8 = ir.IntType(8)
_LANES = 16


def _loader(bits: int, result: Any) -> Any:
    """An intrinsic: the unaligned integer of `bits` at an address, widened without sign."""

    @intrinsic
    def load(context: Any, address: Any) -> Any:
        def generate(_: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            pointer = builder.inttoptr(arguments[0], ir.IntType(bits).as_pointer())
            value = builder.load(pointer)
            value.align = 1
            return value if bits == 64 else builder.zext(value, ir.IntType(64))

        return result(types.int64), generate

    return load


def _storer(bits: int) -> Any:
    """An intrinsic: store the low `bits` of an integer at an address, unaligned."""

    @intrinsic
    def store(context: Any, address: Any, value: Any) -> Any:
        def generate(inner: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            value = arguments[1]
            if value.type.width > bits:
                value = builder.trunc(value, ir.IntType(bits))
            pointer = builder.inttoptr(arguments[0], ir.IntType(bits).as_pointer())
            builder.store(value, pointer).align = 1
            return inner.get_dummy_value()

        return types.void(types.int64, value), generate

    return store


load8 = _loader(8, types.int64)
load16 = _loader(16, types.int64)
load32 = _loader(32, types.uint64)
load32i = _loader(32, types.int64)
load64 = _loader(64, types.uint64)
load64i = _loader(64, types.int64)
store8 = _storer(8)
store16 = _storer(16)
store32 = _storer(32)
store64 = _storer(64)


@intrinsic
def copy(context: Any, to: Any, source: Any, count: Any) -> Any:
    """Copy `count` bytes; the ranges may overlap."""

    def generate(inner: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = _I8.as_pointer()
        move = builder.module.declare_intrinsic("llvm.memmove", [pointer, pointer, ir.IntType(64)])
        to, source = (builder.inttoptr(a, pointer) for a in arguments[:2])
        builder.call(move, [to, source, arguments[2], ir.Constant(ir.IntType(1), 0)])
        return inner.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), generate


@intrinsic
def fill(context: Any, to: Any, byte: Any, count: Any) -> Any:
    """Set `count` bytes."""

    def generate(inner: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = _I8.as_pointer()
        set_ = builder.module.declare_intrinsic("llvm.memset", [pointer, ir.IntType(64)])
        byte = builder.trunc(arguments[1], _I8)
        to = builder.inttoptr(arguments[0], pointer)
        builder.call(set_, [to, byte, arguments[2], ir.Constant(ir.IntType(1), 0)])
        return inner.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), generate


@intrinsic
def as_float(context: Any, bits: Any) -> Any:
    """The double with these bits."""

    def generate(_: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.DoubleType())

    return types.float64(types.uint64), generate


@intrinsic
def store_float(context: Any, address: Any, value: Any) -> Any:
    """Store a double at an address."""

    def generate(inner: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = builder.inttoptr(arguments[0], ir.DoubleType().as_pointer())
        builder.store(arguments[1], pointer).align = 1
        return inner.get_dummy_value()

    return types.void(types.int64, types.float64), generate


@intrinsic
def fold(context: Any, a: Any, b: Any) -> Any:
    """Both halves of the 128-bit product and both factors, xored: one round of mixing."""

    def generate(_: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        wide = ir.IntType(128)
        a, b = arguments
        product = builder.mul(builder.zext(a, wide), builder.zext(b, wide))
        low = builder.trunc(product, ir.IntType(64))
        high = builder.trunc(builder.lshr(product, ir.Constant(wide, 64)), ir.IntType(64))
        return builder.xor(builder.xor(low, high), builder.xor(a, b))

    return types.uint64(types.uint64, types.uint64), generate


def reference(dtype: np.dtype[np.void]) -> Any:
    """An intrinsic: the record of this type at an address."""
    record = from_dtype(dtype)

    @intrinsic
    def at(context: Any, address: Any) -> Any:
        def generate(inner: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.inttoptr(arguments[0], inner.get_value_type(record))

        return record(types.int64), generate

    return at


def _external(builder: Any, name: str, kind: Any) -> Any:
    """A function of the C library, which every process of CPython holds."""
    module = builder.module
    return module.globals.get(name) or ir.Function(module, kind, name)


@intrinsic
def print_float(context: Any, to: Any, size: Any, form: Any, digits: Any, value: Any) -> Any:
    """C's `snprintf(to, size, form, digits, value)`."""

    def generate(_: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        to, size, form, digits, value = arguments
        pointer, int_ = _I8.as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(int_, [pointer, ir.IntType(64), pointer], var_arg=True)
        call = builder.call(
            _external(builder, "snprintf", kind),
            [
                builder.inttoptr(to, pointer),
                size,
                builder.inttoptr(form, pointer),
                builder.trunc(digits, int_),
                value,
            ],
        )
        return builder.sext(call, ir.IntType(64))

    result = types.int64(types.int64, types.int64, types.int64, types.int64, types.float64)
    return result, generate


@intrinsic
def parse_float(context: Any, text: Any) -> Any:
    """C's `strtod` of text that ends with a zero byte."""

    def generate(_: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = _I8.as_pointer()
        kind = ir.FunctionType(ir.DoubleType(), [pointer, pointer])
        text = builder.inttoptr(arguments[0], pointer)
        null = ir.Constant(pointer, None)
        return builder.call(_external(builder, "strtod", kind), [text, null])

    return types.float64(types.int64), generate


def _lanes(builder: Any, address: Any) -> Any:
    vector = ir.VectorType(_I8, _LANES)
    value = builder.load(builder.inttoptr(address, vector.as_pointer()))
    value.align = 1
    return value


def _mask(builder: Any, lanes: Any) -> Any:
    return builder.zext(builder.bitcast(lanes, ir.IntType(_LANES)), ir.IntType(64))


@intrinsic
def equal16(context: Any, address: Any, byte: Any) -> Any:
    """Bit i: the byte at `address + i` is `byte`, a constant, for i below 16."""
    literal = byte.literal_value if isinstance(byte, types.IntegerLiteral) else None
    if literal is None:
        return None

    def generate(_: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        splat = ir.Constant(ir.VectorType(_I8, _LANES), [ir.Constant(_I8, literal)] * _LANES)
        return _mask(builder, builder.icmp_unsigned("==", _lanes(builder, arguments[0]), splat))

    return types.int64(types.int64, byte), generate


@intrinsic
def high16(context: Any, address: Any) -> Any:
    """Bit i: the byte at `address + i` is 128 or above, for i below 16."""

    def generate(_: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        zero = ir.Constant(ir.VectorType(_I8, _LANES), [ir.Constant(_I8, 0)] * _LANES)
        return _mask(builder, builder.icmp_signed("<", _lanes(builder, arguments[0]), zero))

    return types.int64(types.int64), generate


@compiled
def signed(value: Any) -> Any:
    """The same bits as int64."""
    return np.int64(value)


@compiled
def same(a: int, b: int, count: int) -> bool:
    """Whether `count` bytes at both addresses are equal."""
    if count >= 8:
        i = 0
        while i + 8 < count:
            if load64(a + i) != load64(b + i):
                return False
            i += 8
        return load64(a + count - 8) == load64(b + count - 8)
    if count >= 4:
        tail = count - 4
        return load32(a) == load32(b) and load32(a + tail) == load32(b + tail)
    for i in range(count):  # noqa: SIM110, numba has no all() of a generator
        if load8(a + i) != load8(b + i):
            return False
    return True


@compiled
def copy_short(to: int, source: int, count: int) -> None:
    """As `copy`, faster for few bytes; the ranges may not overlap."""
    if count > 64:
        copy(to, source, count)
    elif count >= 8:
        i = 0
        while i + 8 < count:
            store64(to + i, load64(source + i))
            i += 8
        store64(to + count - 8, load64(source + count - 8))
    elif count >= 4:
        store32(to, load32(source))
        store32(to + count - 4, load32(source + count - 4))
    else:
        for i in range(count):
            store8(to + i, load8(source + i))


def address_of(array: Any) -> int:
    """Where an array's bytes begin."""
    return int(array.ctypes.data)
