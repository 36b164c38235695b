"""Vector registers of eight or more numbers, for compiled loops over short rows.

Rows of patches and small matrices have about 5 to 64 numbers. Loops that the compiler vectorises by
itself mostly run in their scalar remainders there. A register is used like a number:

    total = fill(zero)
    for i in range(n):
        total += each(a, (i,)) * load(b, (i, j))
    store(out, (j,), total)

`load` reads adjacent numbers of a C-contiguous float32 or float64 array of any dimension, by
default eight; `each` repeats one number in all lanes. The operators +, -, * and / work per lane.
Indices are not checked. The last argument of `load`, `each` and `fill`, a constant multiple of 8,
sets the number of lanes, in several registers of the processor. The order of sums stays the same.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic, lower_builtin, models, register_model, type_callable

WIDTH = 8


class Register(types.Type):
    """Numba type of a register: its number type and its number of lanes."""

    def __init__(self, dtype: types.Type, lanes: int = WIDTH) -> None:
        self.dtype, self.lanes = dtype, lanes
        super().__init__(name=f"Register({dtype}, {lanes})")


@register_model(Register)
class _RegisterModel(models.PrimitiveModel):
    def __init__(self, manager: Any, register: Register) -> None:
        number = manager.lookup(register.dtype).get_value_type()
        super().__init__(manager, register, ir.VectorType(number, register.lanes))  # type: ignore[no-untyped-call]


def _add_operator(operation: Callable[[Any, Any], Any], instruction: str) -> None:
    @type_callable(operation)
    def typed(_context: Any) -> Any:
        def result(a: types.Type, b: types.Type) -> types.Type | None:
            return a if isinstance(a, Register) and a == b else None

        return result

    @lower_builtin(operation, Register, Register)  # type: ignore[untyped-decorator]
    def lowered(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return getattr(builder, instruction)(*args, flags=("contract",))


for _operations, _instruction in (
    ((operator.add, operator.iadd), "fadd"),
    ((operator.sub, operator.isub), "fsub"),
    ((operator.mul, operator.imul), "fmul"),
    ((operator.truediv, operator.itruediv), "fdiv"),
):
    for _operator_function in _operations:
        _add_operator(_operator_function, _instruction)


def _operation(typed: Any) -> Any:
    """Declare a function that compiled code calls, and whose LLVM code is generated here."""
    return intrinsic(prefer_literal=True)(typed)


def _pointer(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    """Return the pointer to the array element at the indices in the second argument."""
    kind, index = signature.args[:2]
    model = context.data_model_manager[kind]
    data, shape, strides = (
        model.get(builder, args[0], name) for name in ("data", "shape", "strides")
    )
    places = [
        context.cast(builder, place, one, types.intp)
        for place, one in zip(cgutils.unpack_tuple(builder, args[1]), index, strict=True)
    ]
    shape, strides = (cgutils.unpack_tuple(builder, sizes, kind.ndim) for sizes in (shape, strides))
    return cgutils.get_item_pointer2(context, builder, data, shape, strides, kind.layout, places)


def _vector_pointer(
    context: Any, builder: Any, signature: Any, args: Any, register: Register
) -> tuple[Any, int]:
    vector = context.get_value_type(register).as_pointer()
    place = builder.bitcast(_pointer(context, builder, signature, args), vector)
    return place, signature.args[0].dtype.bitwidth // 8


def _register(dtype: types.Type, lanes: Any) -> tuple[Register, types.Type]:
    if lanes is None:
        return Register(dtype), types.none
    return Register(dtype, lanes.literal_value), lanes


@_operation
def load(_context: Any, array: Any, index: Any, lanes: Any = None) -> Any:
    """Load a register from adjacent elements along the last axis of an array."""
    register, last = _register(array.dtype, lanes)

    def lowered(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place, align = _vector_pointer(context, builder, signature, args, register)
        return builder.load(place, align=align)

    return register(array, index, last), lowered


@_operation
def store(_context: Any, array: Any, index: Any, register: Any) -> Any:
    """Store a register to adjacent elements along the last axis of an array."""

    def lowered(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place, align = _vector_pointer(context, builder, signature, args, register)
        builder.store(args[2], place, align=align)
        return context.get_dummy_value()

    return types.void(array, index, register), lowered


def _filled(builder: Any, number: Any, lanes: int) -> Any:
    undefined = ir.Constant(ir.VectorType(number.type, lanes), ir.Undefined)
    one = builder.insert_element(undefined, number, ir.Constant(ir.IntType(32), 0))
    first = ir.Constant(ir.VectorType(ir.IntType(32), lanes), [0] * lanes)
    return builder.shuffle_vector(one, undefined, first)


@_operation
def fill(_context: Any, number: Any, lanes: Any = None) -> Any:
    """Return a register with one number in all lanes."""
    register, last = _register(number, lanes)

    def lowered(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return _filled(builder, args[0], register.lanes)

    return register(number, last), lowered


@_operation
def each(_context: Any, array: Any, index: Any, lanes: Any = None) -> Any:
    """Return a register with one element of an array in all lanes."""
    register, last = _register(array.dtype, lanes)

    def lowered(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        number = builder.load(_pointer(context, builder, signature, args))
        return _filled(builder, number, register.lanes)

    return register(array, index, last), lowered


@_operation
def total(_context: Any, register: Any) -> Any:
    """Return the sum of the lanes, whose number is a power of two, by adding halves repeatedly."""

    def lowered(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        lanes = register.lanes
        kind, sums, apart = ir.VectorType(ir.IntType(32), lanes), args[0], lanes // 2
        while apart:
            moved = ir.Constant(kind, [(lane + apart) % lanes for lane in range(lanes)])
            sums = builder.fadd(sums, builder.shuffle_vector(sums, sums, moved))
            apart //= 2
        return builder.extract_element(sums, ir.Constant(ir.IntType(32), 0))

    return register.dtype(register), lowered


@_operation
def where_longer(_context: Any, a: Any, b: Any, x: Any, y: Any) -> Any:
    """Return x in lanes where |a| > |b|, else y."""

    def lowered(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        kind = args[0].type
        name = f"llvm.fabs.v{kind.count}{kind.element.intrinsic_name}"
        size = builder.module.declare_intrinsic(name, (), ir.FunctionType(kind, [kind]))
        lengths = [builder.call(size, [value]) for value in args[:2]]
        return builder.select(builder.fcmp_ordered(">", *lengths), args[2], args[3])

    return a(a, b, x, y), lowered


@_operation
def where_above(_context: Any, a: Any, b: Any, x: Any, y: Any) -> Any:
    """Return x in lanes where a > b, else y."""

    def lowered(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.select(builder.fcmp_ordered(">", *args[:2]), args[2], args[3])

    return a(a, b, x, y), lowered
