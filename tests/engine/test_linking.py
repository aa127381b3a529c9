"""Images of kernels: the code that was compiled, wherever it is put; whatever an image cannot have stays with LLVM."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import pytest

from metrics.engine import machine_code
from metrics.engine.linking import MAGIC, Unlinkable, link
from metrics.engine.machine_code import target_machine
from runs.formats.scanning import judgement_lines, kernel, line_judge
from tests.engine.test_machine_code import LINKED, ROOT

FUNCTIONS = """
@weights = internal unnamed_addr constant [4 x i64] [i64 3, i64 5, i64 7, i64 11], align 64
declare ptr @memcpy(ptr, ptr, i64)
declare ptr @memmove(ptr, ptr, i64)
declare ptr @memset(ptr, i32, i64)
declare double @erf(double)
"""
BODIES = {
    "constants": "define i64 @f(i64 %at) { %p = getelementptr [4 x i64], ptr @weights, i64 0, i64 %at\n"
    "%v = load i64, ptr %p\n ret i64 %v }",
    "calls": "define i64 @f(i64 %to, i64 %from) { %t = inttoptr i64 %to to ptr\n %s = inttoptr i64 %from to ptr\n"
    "%u = call ptr @memset(ptr %t, i32 1, i64 8)\n %m = call ptr @memmove(ptr %t, ptr %s, i64 2)\n"
    "%n = getelementptr i8, ptr %t, i64 4\n %c = call ptr @memcpy(ptr %n, ptr %s, i64 2)\n"
    "%v = load i64, ptr %t\n ret i64 %v }",
    "address": "define i64 @f() { %v = ptrtoint ptr @memset to i64\n ret i64 %v }",
    "unknown": "define double @f(double %x) { %v = call double @erf(double %x)\n ret double %v }",
    "written": "@calls = internal global i64 0\ndefine i64 @f() { %v = load i64, ptr @calls\n %w = add i64 %v, 1\n"
    "store i64 %w, ptr @calls\n ret i64 %w }",
}


def compiled(body: str, machine: Any = None) -> bytes:
    """The object file of a function `f`."""
    made: bytes = (machine or target_machine(linked=True)).emit_object(
        llvm.parse_assembly(FUNCTIONS + BODIES[body])
    )
    return made


def called(image: bytes, *values: int) -> int:
    """What the function of an image returns."""
    memory, address = machine_code._placed(image)
    result: int = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * len(values))(address)(
        *values
    )
    assert len(memory) >= len(image)
    return result


@LINKED
def test_constants_are_found_wherever_the_image_is() -> None:
    image = link(compiled("constants"), "f")
    assert [called(image, at) for at in range(4)] == [3, 5, 7, 11]


@LINKED
def test_the_functions_of_the_c_library_are_called() -> None:
    to, source = ctypes.create_string_buffer(8), ctypes.create_string_buffer(b"\x07\x09")
    image = link(compiled("calls"), "f")
    assert called(image, ctypes.addressof(to), ctypes.addressof(source)) == int.from_bytes(
        bytes([7, 9, 1, 1, 7, 9, 1, 1]), "little"
    )


@LINKED
def test_the_address_of_a_function_is_the_librarys_own() -> None:
    own = ctypes.cast(ctypes.CDLL(None).memset, ctypes.c_void_p).value
    assert called(link(compiled("address"), "f")) == own


@LINKED
def test_what_an_image_cannot_have_is_refused() -> None:
    good = compiled("constants")
    machine = good[:18] + (183).to_bytes(2, "little") + good[20:]
    for made, name, reason in (
        (compiled("unknown"), "f", "a relocation of kind 4 for erf"),
        (compiled("written"), "f", "flags 0x3"),
        (compiled("constants", target_machine()), "f", "a relocation of kind"),
        (good, "g", "g is not in the object file"),
        (good[:40], "f", "not an object file in ELF"),
        (b"\xcf\xfa\xed\xfe" + good[4:], "f", "not an object file in ELF"),
        (machine, "f", "machine 183"),
    ):
        with pytest.raises(Unlinkable, match=reason):
            link(made, name)


@LINKED
def test_every_kernel_is_linked_and_loaded_without_llvm(tmp_path: Path) -> None:
    script = (
        "import sys\nfrom runs.formats.scanning.warm_up import warm_up\nwarm_up()\n"
        "print([name for name in sys.modules if name.startswith(('llvmlite.binding', 'numba'))])"
    )
    # Compiled already: by the tests before this one, or by `make`.
    for each in (*kernel.KERNELS, *line_judge.KERNELS, *judgement_lines.KERNELS):
        each.load()
        assert each._object().startswith(MAGIC)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, env=environment, check=True, capture_output=True
    )
    found = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    )
    assert found.stdout.strip() == "[]"


def test_the_processor_is_told_from_others_without_llvm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def told(text: str) -> tuple[str, ...]:
        (tmp_path / "cpuinfo").write_text(text)
        monkeypatch.setattr(machine_code, "_PROCESSORS", tmp_path / "cpuinfo")
        return machine_code._processor()

    one = (
        "processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 17\nmodel name\t: AMD EPYC\n"
        "stepping\t: 1\ncpu MHz\t\t: {}\nflags\t\t: sse2 avx2{}\n\nprocessor\t: 1\nvendor_id\t: other\n"
    )
    monkeypatch.delenv(machine_code.PROCESSOR, raising=False)
    assert told(one.format(2000, "")) == told(one.format(3000, ""))
    assert told(one.format(2000, "")) != told(one.format(2000, " avx512f"))
    # Of another kind, as on ARM, LLVM tells it.
    by_llvm = (llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten())
    assert told("processor\t: 0\nBogoMIPS\t: 50.00\nFeatures\t: fp asimd\n") == by_llvm
    monkeypatch.setattr(machine_code, "_PROCESSORS", tmp_path / "absent")
    assert machine_code._processor() == by_llvm
    monkeypatch.setenv(machine_code.PROCESSOR, "x86-64-v3")
    assert machine_code._processor() == ("x86-64-v3",)
