"""Compile a kernel to its object file: Numba generates LLVM's language, and LLVM machine code.

Only a process that compiles imports this module.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import llvmlite.binding as llvm
from numba.core import sigutils

from metrics.engine.compiled.machine_code import Argument, Kernel, target_machine

# The functions of the C library that LLVM calls in kernels.
_C_LIBRARY = ("memset", "memcpy", "memmove")
_SIZES = {"uint8": 1, "int32": 4, "int64": 8, "uint64": 8, "float32": 4, "float64": 8}
_TYPES = {"int64": "i64", "uint64": "i64", "float64": "double"}


def compile_kernel(kernel: Kernel) -> bytes:
    """Compile a kernel to an object file with one symbol: its name.

    Raise ValueError for a function that allocates, may raise an exception, or calls a function that
    is not compiled with it.
    """
    function = getattr(import_module(kernel.module), kernel.name)
    types, _ = sigutils.normalize_signature(kernel.signature)  # type: ignore[no-untyped-call]
    function.compile(types)
    native: str = function.overloads[types].fndesc.llvm_func_name
    module = llvm.parse_assembly(function.inspect_llvm(types) + _entry(kernel, native))
    module.name = kernel.name
    _hide_all_but(kernel.name, module)
    _optimise(module)

    _check(kernel, module)
    object_code: bytes = target_machine().emit_object(module)
    return object_code


def _entry(kernel: Kernel, native: str) -> str:
    """Return a function in C's calling convention around Numba's own.

    Numba's takes seven numbers for an array, and returns its result by reference.

    Numba counts references to arrays; here there are none to count, which the optimiser then sees.
    It also learns that no two arrays overlap.
    """
    result = _TYPES.get(kernel.result, "i64")
    parameters, arguments, instructions = [], ["ptr %result", "ptr %failure"], list[str]()
    for index, argument in enumerate(kernel.arguments):
        own_parameters, own_arguments, own_instructions = _argument(f"%a{index}", argument)
        parameters += own_parameters
        arguments += own_arguments
        instructions += own_instructions

    lines = [
        f"define {result} @{kernel.name}({', '.join(parameters)}) {{",
        *instructions,
        f"%result = alloca {result}",
        "%failure = alloca ptr",
        f"store {result} zeroinitializer, ptr %result",
        f"%status = call i32 @{native}({', '.join(arguments)})",
        # 0 is a result, -2 Python's None.
        "%unlike = add i32 %status, 2",
        "%other = and i32 %unlike, -3",
        "%failed = icmp ne i32 %other, 0",
        "br i1 %failed, label %stop, label %go",
        "stop:",
        "call void @llvm.trap()",
        "unreachable",
        "go:",
        f"%value = load {result}, ptr %result",
        f"ret {result} %value",
        "}",
        "declare void @llvm.trap()",
    ]

    return "\n".join(lines)


def _argument(name: str, argument: Argument) -> tuple[list[str], list[str], list[str]]:
    """Return the entry's parameters for an argument of the kernel, the arguments of Numba's
    function, and the instructions that compute them."""
    if not argument.dimensions:
        kind = _TYPES[argument.kind]
        return [f"{kind} {name}"], [f"{kind} {name}"], []

    axes = range(argument.dimensions)
    shape, strides = [f"{name}n{axis}" for axis in axes], [f"{name}s{axis}" for axis in axes]
    parameters = [f"ptr noalias {name}", *(f"i64 {size}" for size in shape)]
    instructions, items, size = [], "1", str(_SIZES[argument.kind])
    for axis in axes:
        instructions.append(f"{name}i{axis} = mul i64 {items}, {shape[axis]}")
        items = f"{name}i{axis}"

    if argument.contiguous:
        strides[-1] = size
        instructions += [
            f"{strides[axis]} = mul i64 {strides[axis + 1]}, {shape[axis + 1]}"
            for axis in reversed(axes[:-1])
        ]
    else:
        parameters += [f"i64 {stride}" for stride in strides]

    arguments = ["ptr null", "ptr null", f"i64 {items}", f"i64 {size}", f"ptr {name}"]
    return (
        parameters,
        [*arguments, *(f"i64 {number}" for number in (*shape, *strides))],
        instructions,
    )


def _hide_all_but(name: str, module: Any) -> None:
    for symbol in (*module.functions, *module.global_variables):
        if not symbol.is_declaration and symbol.name != name:
            symbol.linkage = "internal"
            symbol.visibility = "default"


def _optimise(module: Any) -> None:
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization = options.slp_vectorization = options.loop_unrolling = True
    builder = llvm.create_pass_builder(target_machine(), options)
    for _ in range(2):
        builder.getModulePassManager().run(module, builder)


def _check(kernel: Kernel, module: Any) -> None:
    needed = {function.name for function in module.functions if function.is_declaration}
    if "llvm.trap" in needed:
        raise ValueError(
            f"{kernel.module}.{kernel.name} may raise an exception, which a kernel cannot"
        )

    missing = sorted(name for name in needed - {*_C_LIBRARY} if not name.startswith("llvm."))
    if missing:
        raise ValueError(
            f"{kernel.module}.{kernel.name} needs {', '.join(missing)}, which is not compiled "
            "with it"
        )
