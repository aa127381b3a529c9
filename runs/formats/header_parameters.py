"""What an ir_metadata header says of parameters and costs.

Settings are `method` and `data`, and `platform` as the description of the hardware; the
measurements of `resources` (version 0.2, as written by tirex-tracker) are costs. The other parts,
such as the actor, are none of them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from runs.errors import FileReport, Unprocessable
from runs.formats.parameters import compact, flatten, merged_metadata, nested

# Keys of the hardware and the software around a run: they do not say how it was made.
PLATFORM = "platform"
_PARTS = ("method", "data", PLATFORM)
_TIMES = ("wallclock", "user", "system")
_DEVICES = ("cpu", "gpu", "ram")
_QUANTITY = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)\s*([a-zA-Z]+)\s*")
_MILLISECONDS = {"ms": 1.0, "s": 1e3, "min": 6e4, "h": 3.6e6}
_JOULES = {"mJ": 1e-3, "J": 1.0, "kJ": 1e3, "Wh": 3.6e3, "kWh": 3.6e6}
# As the reader of headers writes numbers that JSON cannot hold.
_NOT_FINITE = ("inf", "-inf", "nan")


def with_header(
    header: Mapping[str, Any] | None,
    metadata: Mapping[str, Any],
    costs: Mapping[str, Any],
    report: FileReport,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return metadata and costs with those of the header where they have none; the report names what was overridden."""
    if not header:
        return dict(metadata), dict(costs)
    try:
        found = nested(
            _finite({part: header[part] for part in _PARTS if part in header}, report, "")
        )
        merged = merged_metadata(found, metadata)
    except Unprocessable as error:
        report.warning(
            0, "bad_ir_metadata", f"the header's parameters are ignored: {error.message}"
        )
        found, merged = {}, dict(metadata)
    measured = header_costs(header)
    given = {leaf.name: leaf.value for leaf in flatten(metadata).leaves}
    for leaf in flatten(found).leaves:
        if given.get(leaf.name, leaf.value) != leaf.value:
            _warn(report, leaf.name, leaf.value, given[leaf.name])
    for name in measured.keys() & costs.keys():
        if measured[name] != costs[name]:
            _warn(report, name, measured[name], costs[name])
    return merged, {**measured, **costs}


def header_costs(header: Mapping[str, Any]) -> dict[str, float]:
    """Return the times in ms and the energies in J of `resources`; `energy_j` is their sum where that of the CPU is
    known."""
    resources = header.get("resources")
    if not isinstance(resources, Mapping):
        return {}
    found = {}
    for name in _TIMES:
        if (time := _quantity(resources, "runtime", name, _MILLISECONDS)) is not None:
            found[f"{name}_ms"] = time
    for device in _DEVICES:
        if (energy := _quantity(resources, device, "energy used system", _JOULES)) is not None:
            found[f"energy_{device}_j"] = energy
    if "energy_cpu_j" in found:
        found["energy_j"] = sum(found.get(f"energy_{device}_j", 0.0) for device in _DEVICES)
    return found


def _quantity(
    resources: Mapping[str, Any], part: str, name: str, units: Mapping[str, float]
) -> float | None:
    inside = resources.get(part)
    text = inside.get(name) if isinstance(inside, Mapping) else None
    read = _QUANTITY.fullmatch(text) if isinstance(text, str) and len(text) < 50 else None
    if read is None or read[2] not in units:
        return None
    value = float(read[1]) * units[read[2]]
    return value if value < 1e300 else None


def _finite(value: Any, report: FileReport, name: str) -> Any:
    """Return the value without numbers that are not finite, each of which is reported."""
    if isinstance(value, dict):
        inner = {
            key: _finite(item, report, f"{name}.{key}" if name else key)
            for key, item in value.items()
        }
        return {key: item for key, item in inner.items() if item not in _NOT_FINITE}
    if isinstance(value, list):
        return [_finite(item, report, name) for item in value]
    if value in _NOT_FINITE:
        report.warning(
            0,
            "not_finite",
            f"{name[:60]} of the header is not a finite number and left out",
            kind=name,
        )
    return value


def _warn(report: FileReport, name: str, header: Any, given: Any) -> None:
    said, kept = (compact(value)[:60] for value in (header, given))
    message = f"{name[:60]} is {said} in the file's header and {kept} in the request, which counts"
    report.warning(0, "header_overridden", message, kind=name)
