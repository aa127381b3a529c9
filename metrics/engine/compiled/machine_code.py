"""Kernels as machine code: compiled once, stored as object files, and loaded without the compiler.

Numba compiles them (`metrics.engine.compiled.kernel_compiler`), which takes seconds. Numba's own
cache still needs all of Numba, half a second and 80 MB. An object file needs LLVM alone, 40 ms and
40 MB.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import re
import stat
import tempfile
from collections.abc import Callable
from functools import cache, cached_property
from pathlib import Path
from threading import RLock
from typing import Any

import llvmlite
import llvmlite.binding as llvm
import numpy as np

# Environment variables: a folder for object files, for users who cannot write to that of the code
# or share files with other machines; and the processor to compile for.
FOLDER, PROCESSOR = "EVALHUB_KERNELS", "EVALHUB_KERNELS_CPU"
_COMPILER = "metrics.engine.compiled.kernel_compiler"
_HERE = os.path.dirname(os.path.abspath(__file__))
_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(_HERE)))
_IMPORT = re.compile(r"^from ((?:metrics|runs)[\w.]*) import", re.MULTILINE)
_ARGUMENT = re.compile(r"(\w+?)(\[.*?\])?(?:, |$)")
_DIGEST = 32
_C_TYPES: dict[str, Any] = {
    "void": None, "int64": ctypes.c_int64, "uint64": ctypes.c_uint64, "float64": ctypes.c_double,
}  # fmt: skip
_lock = RLock()


class Kernel:
    """A function of a module of kernels, with one signature in Numba's notation:
    `uint64(uint8[::1], int64)`.

    Call it with NumPy arrays and numbers. An array must have the type, the number of axes and, for
    `::1`, the memory order of the signature, else TypeError is raised; an array that is written to
    must overlap no other. The interpreter's lock is released during the call.
    """

    def __init__(self, module: str, name: str, signature: str) -> None:
        self.module = module
        self.name = name
        self.signature = signature
        self.result, arguments = signature.rstrip(")").split("(", 1)
        self.arguments = [
            Argument(kind, axes) for kind, axes in _ARGUMENT.findall(arguments) if kind
        ]

    def __call__(self, *values: Any) -> Any:
        arguments: list[Any] = []
        for argument, value in zip(self.arguments, values, strict=True):
            argument.append_to(arguments, value)
        return self._function(*arguments)

    def load(self) -> None:
        """Load the kernel, or compile it, now rather than with its first call."""
        self._function  # noqa: B018

    @property
    def compiled(self) -> bool:
        """Return whether its object file exists, for this processor and these sources."""
        return any(_content(path) is not None for path in self._paths)

    @cached_property
    def _function(self) -> Callable[..., Any]:
        with _lock:
            engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), target_machine())
            engine.add_object_file(llvm.ObjectFileRef.from_data(self._object_code()))
            engine.finalize_object()
            address = engine.get_function_address(self.name)

        types = [kind for argument in self.arguments for kind in argument.types]
        function: Any = ctypes.CFUNCTYPE(_C_TYPES[self.result], *types)(address)

        # The engine owns the code.
        function.engine = engine
        return function  # type: ignore[no-any-return]

    def _object_code(self) -> bytes:
        for path in self._paths:
            if (content := _content(path)) is not None:
                return content

        # Loads Numba: half a second.
        from metrics.engine.compiled.kernel_compiler import compile_kernel

        object_code = compile_kernel(self)
        _store(self._paths, object_code)
        return object_code

    @property
    def _paths(self) -> list[str]:
        digests = _digest(self.signature, *_machine()), _digest(*sources(self.module))
        return [
            os.path.join(folder, ".".join((self.module, self.name, *digests, "o")))
            for folder in _folders()
        ]


# The kernels of a module are made from the same texts.
@cache
def _digest(*texts: str) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]


class Argument:
    """An argument of a kernel: a number, or an array, which is passed with its shape."""

    def __init__(self, kind: str, axes: str) -> None:
        self.kind = kind
        # Types compare much faster than their names.
        self.dtype = np.dtype(kind)
        self.dimensions = axes.count(":") - axes.count("::")
        self.contiguous = "::1" in axes
        self.types: list[Any] = [ctypes.c_void_p, *[ctypes.c_int64] * self.dimensions]

        if not self.dimensions:
            self.types = [_C_TYPES[kind]]
        elif not self.contiguous:
            self.types += [ctypes.c_int64] * self.dimensions

    def append_to(self, arguments: list[Any], value: Any) -> None:
        """Append the number to the arguments, or the array's address, its shape and, if they are
        free, its strides."""
        if not self.dimensions:
            arguments.append(value if self.kind == "float64" else int(value))
            return

        contiguous = value.flags.c_contiguous or not self.contiguous
        if value.dtype != self.dtype or value.ndim != self.dimensions or not contiguous:
            message = (
                f"a kernel wants {self.kind} in {self.dimensions} axes, not {value.dtype.name} "
                f"{value.shape}"
            )
            raise TypeError(message)

        arguments += [value.ctypes.data, *value.shape]
        if not self.contiguous:
            arguments += value.strides


def target_machine() -> Any:
    """Return LLVM's description of this machine, or of the processor that the environment names.

    An engine takes ownership of it.
    """
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    name, features = _processor()
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(
        cpu=name, features=features, opt=3, jit=True, codemodel="jitdefault"
    )


def _processor() -> tuple[str, str]:
    """Return LLVM's name and features of this processor, or the name in the environment."""
    if name := os.environ.get(PROCESSOR):
        return name, ""
    return llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()


@cache
def _machine() -> tuple[str, ...]:
    return (llvmlite.__version__, *_processor())


@cache
def sources(module: str) -> list[str]:
    """Return the texts of a module and of the EvalHub modules that it imports, in a fixed order."""
    texts: dict[str, str] = {}
    remaining = [module, _COMPILER]
    while remaining:
        if (name := remaining.pop()) not in texts:
            texts[name], imported = _source(name)
            remaining += imported

    return [texts[name] for name in sorted(texts)]


@cache
def _source(module: str) -> tuple[str, list[str]]:
    """Return the text of a module, and the EvalHub modules that it imports."""
    with open(os.path.join(_ROOT, *module.split(".")) + ".py", encoding="utf-8") as file:
        text = file.read()
    return text, _IMPORT.findall(text)


@cache
def _folders() -> tuple[str, ...]:
    """Return the folders for object files: the named one, or that of the code and the user's
    cache."""
    if named := os.environ.get(FOLDER):
        return (named,)
    of_user = os.path.expanduser(os.environ.get("XDG_CACHE_HOME") or "~/.cache")
    return os.path.join(_HERE, "__pycache__"), os.path.join(of_user, "evalhub")


def _content(path: str) -> bytes | None:
    """Return an object file, or None if it is missing or damaged, or another user could write
    it."""
    try:
        with open(path, "rb") as file:
            status = os.fstat(file.fileno())
            content = file.read()
    except OSError:
        return None

    is_trusted = status.st_uid in (0, os.geteuid()) and not status.st_mode & (
        stat.S_IWGRP | stat.S_IWOTH
    )
    is_intact = hashlib.sha256(content[_DIGEST:]).digest() == content[:_DIGEST]
    return content[_DIGEST:] if is_trusted and is_intact else None


def _store(paths: list[str], object_code: bytes) -> None:
    """Write the object file to the first writable folder, if there is one."""
    for path in map(Path, paths):
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
                file.write(hashlib.sha256(object_code).digest() + object_code)
            Path(file.name).chmod(0o644)
            Path(file.name).replace(path)
        except OSError:
            continue

        # Object files of the same kernel from before its sources changed.
        for other in path.parent.glob(f"{path.with_suffix('').stem}.*.o"):
            if other != path:
                other.unlink(missing_ok=True)

        return
