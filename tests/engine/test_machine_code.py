"""Kernels as object files: what is loaded is what was compiled here from these sources, or it is compiled again."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from metrics.engine.agreement import standings
from metrics.engine.compiled import kernel_compiler, machine_code
from metrics.engine.compiled.machine_code import FOLDER, Kernel, sources
from metrics.engine.judgement import search
from metrics.engine.significance import moments, pair_pass
from runs.formats.scanning import judgement_lines, kernel, line_judge

ROOT = Path(__file__).resolve().parent.parent.parent
KERNELS = [
    *kernel.KERNELS,
    *line_judge.KERNELS,
    *judgement_lines.KERNELS,
    *search.KERNELS,
    *pair_pass.KERNELS,
    *moments.KERNELS,
    *standings.KERNELS,
]
ODD = """
import math
import numpy as np
from metrics.engine.compiled.kernels.words import compiled

@compiled
def double(values):
    for at in range(len(values)):
        values[at] *= 2

@compiled
def total(values):
    found = 0.0
    for row in range(values.shape[0]):
        for column in range(values.shape[1]):
            found += values[row, column]
    return found

@compiled
def allocates(size):
    return np.zeros(size).sum()

@compiled
def error_function(value):
    return math.erf(value)

@compiled
def raises(value):
    if value > 1:
        raise ValueError("too large")
    return value
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where object files are kept for a test."""
    monkeypatch.setenv(FOLDER, str(tmp_path / "kernels"))
    machine_code._folders.cache_clear()
    yield tmp_path / "kernels"
    machine_code._folders.cache_clear()


@pytest.fixture
def odd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module of kernels beside the project's own."""
    (tmp_path / "odd_kernels.py").write_text(ODD)
    monkeypatch.syspath_prepend(tmp_path)
    original = sources
    monkeypatch.setattr(
        machine_code, "sources", lambda name: [ODD] if name == "odd_kernels" else original(name)
    )
    return "odd_kernels"


def compiled_by(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the kernels that are compiled from now on."""
    names: list[str] = []
    original = kernel_compiler.compile_kernel

    def compile_kernel(kernel: Kernel) -> bytes:
        names.append(kernel.name)
        return original(kernel)

    monkeypatch.setattr(kernel_compiler, "compile_kernel", compile_kernel)
    return names


def test_a_kernel_is_compiled_once_and_loaded_from_then_on(
    odd: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled = compiled_by(monkeypatch)
    for _ in range(2):
        values = np.arange(4.0)
        double = Kernel(odd, "double", "void(float64[::1])")
        double(values)
        assert values.tolist() == [0, 2, 4, 6]
        assert double.compiled
    assert compiled == ["double"]


@pytest.mark.parametrize("harm", ["cut", "altered", "foreign"])
def test_a_file_that_was_cut_altered_or_left_to_others_is_not_loaded(
    odd: str, folder: Path, harm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    Kernel(odd, "double", "void(float64[::1])").load()
    (file,) = folder.iterdir()
    content = file.read_bytes()
    file.write_bytes(
        {"cut": content[:-1], "altered": content[:-1] + bytes([content[-1] ^ 1])}.get(harm, content)
    )
    file.chmod(0o666 if harm == "foreign" else 0o644)
    compiled = compiled_by(monkeypatch)
    double, values = Kernel(odd, "double", "void(float64[::1])"), np.ones(3)
    assert not double.compiled
    double(values)
    assert (values.tolist(), compiled) == ([2, 2, 2], ["double"])


@pytest.mark.parametrize(("what", "files"), [("_machine", 2), ("sources", 1)])
def test_another_processor_has_a_file_of_its_own_and_another_source_takes_the_place_of_the_old(
    odd: str, folder: Path, what: str, files: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    Kernel(odd, "double", "void(float64[::1])").load()
    before = set(folder.iterdir())
    monkeypatch.setattr(machine_code, what, lambda *_: ["another"])
    changed = Kernel(odd, "double", "void(float64[::1])")
    assert not changed.compiled
    changed.load()
    after = set(folder.iterdir())
    assert len(after) == files
    assert len(after - before) == 1


def test_without_a_folder_to_write_to_kernels_work_all_the_same(odd: str, folder: Path) -> None:
    folder.write_text("not a folder")
    values = np.ones(2)
    Kernel(odd, "double", "void(float64[::1])")(values)
    assert values.tolist() == [2, 2]


@pytest.mark.parametrize("signature", ["float64(float64[:, ::1])", "float64(float64[:, :])"])
def test_arrays_are_read_by_their_strides(odd: str, folder: Path, signature: str) -> None:
    values = np.arange(12.0).reshape(3, 4)
    total = Kernel(odd, "total", signature)
    assert total(values) == 66
    if "::1" not in signature:
        assert total(values[::2, 1:3]) == values[::2, 1:3].sum()
        assert total(values.T[::-1]) == 66


@pytest.mark.parametrize(
    "values",
    [np.ones((2, 2), np.float32), np.ones(4), np.ones((4, 4)).T[:, ::2], np.ones((2, 2), np.int64)],
)
def test_an_array_of_another_type_shape_or_order_is_refused(
    odd: str, folder: Path, values: np.ndarray
) -> None:
    with pytest.raises(TypeError, match="a kernel wants float64 in 2 axes"):
        Kernel(odd, "total", "float64(float64[:, ::1])")(values)
    with pytest.raises(ValueError, match="argument"):
        Kernel(odd, "total", "float64(float64[:, ::1])")()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "signature", "reason"),
    [
        ("allocates", "float64(int64)", "may raise an exception"),
        ("error_function", "float64(float64)", "needs erf, which is not compiled with it"),
        ("raises", "int64(int64)", "may raise an exception"),
    ],
)
def test_what_needs_the_compiler_at_run_time_is_refused(
    odd: str, folder: Path, name: str, signature: str, reason: str
) -> None:
    with pytest.raises(ValueError, match=reason):
        Kernel(odd, name, signature).load()
    assert not folder.exists()


@pytest.mark.slow
@pytest.mark.parametrize("module", sorted({each.module for each in KERNELS}))
def test_every_kernel_is_made_from_all_that_it_imports_of_ours(module: str) -> None:
    """What a module of kernels imports, and it again, was read for the key of its object files."""
    texts = sources(module)
    process = subprocess.run(
        [sys.executable, "-c", f"import sys, {module}; print(*sys.modules)"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.split()  # fmt: skip
    ours = [
        ROOT.joinpath(*name.split(".")).with_suffix(".py")
        for name in process
        if re.match(r"metrics|runs", name)
    ]
    assert all(path.read_text() in texts for path in ours if path.exists())
