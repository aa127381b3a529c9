"""Parameters and costs in an ir_metadata header.

Parameters are `method` and `data`, and `platform` as the description of the hardware; costs are the
measurements of `resources` (version 0.2, as written by tirex-tracker). Other parts, such as the
actor, are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from runs.errors import FileReport, Unprocessable
from runs.formats.parameters import compact, flatten, merged_metadata, nested

# Keys of the hardware and the software around a run, which are not part of its configuration.
PLATFORM = "platform"
_PARTS = ("method", "data", PLATFORM)
_TIMES = ("wallclock", "user", "system")
_DEVICES = ("cpu", "gpu", "ram")
_QUANTITY = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)\s*([a-zA-Z]+)\s*")
_MILLISECONDS = {"ms": 1.0, "s": 1e3, "min": 6e4, "h": 3.6e6}
_JOULES = {"mJ": 1e-3, "J": 1.0, "kJ": 1e3, "Wh": 3.6e3, "kWh": 3.6e6}
# The reader of headers writes numbers that JSON cannot hold as these texts.
_NOT_FINITE = ("inf", "-inf", "nan")


def with_header(
    header: Mapping[str, Any] | None,
    metadata: Mapping[str, Any],
    costs: Mapping[str, Any],
    report: FileReport,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return metadata and costs, completed by those of the header.

    The report names values of the header that were overridden.
    """
    if not header:
        return dict(metadata), dict(costs)

    try:
        settings = nested(
            _finite({part: header[part] for part in _PARTS if part in header}, report, "")
        )
        merged = merged_metadata(settings, metadata)
    except Unprocessable as error:
        report.warning(
            0, "bad_ir_metadata", f"the header's parameters are ignored: {error.message}"
        )
        settings, merged = {}, dict(metadata)

    measured_costs = header_costs(header)
    requested = {leaf.name: leaf.value for leaf in flatten(metadata).leaves}

    for leaf in flatten(settings).leaves:
        if requested.get(leaf.name, leaf.value) != leaf.value:
            _warn_of_override(report, leaf.name, leaf.value, requested[leaf.name])

    for name in measured_costs.keys() & costs.keys():
        if measured_costs[name] != costs[name]:
            _warn_of_override(report, name, measured_costs[name], costs[name])

    return merged, {**measured_costs, **costs}


def header_costs(header: Mapping[str, Any]) -> dict[str, float]:
    """Return the times in ms and the energies in J of `resources`.

    `energy_j` is the sum of the energies, if that of the CPU is known.
    """
    resources = header.get("resources")
    if not isinstance(resources, Mapping):
        return {}

    costs = {}
    for name in _TIMES:
        if (time := _quantity(resources, "runtime", name, _MILLISECONDS)) is not None:
            costs[f"{name}_ms"] = time

    for device in _DEVICES:
        if (energy := _quantity(resources, device, "energy used system", _JOULES)) is not None:
            costs[f"energy_{device}_j"] = energy

    if "energy_cpu_j" in costs:
        costs["energy_j"] = sum(costs.get(f"energy_{device}_j", 0.0) for device in _DEVICES)

    return costs


def _quantity(
    resources: Mapping[str, Any], part: str, name: str, units: Mapping[str, float]
) -> float | None:
    quantities = resources.get(part)
    text = quantities.get(name) if isinstance(quantities, Mapping) else None
    match = _QUANTITY.fullmatch(text) if isinstance(text, str) and len(text) < 50 else None
    if match is None or match[2] not in units:
        return None

    value = float(match[1]) * units[match[2]]
    return value if value < 1e300 else None


def _finite(value: Any, report: FileReport, name: str) -> Any:
    """Return the value without numbers that are not finite, and report each of them."""
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


def _warn_of_override(report: FileReport, name: str, header: Any, requested: Any) -> None:
    header_value, request_value = (compact(value)[:60] for value in (header, requested))
    message = (
        f"{name[:60]} is {header_value} in the file's header "
        f"and {request_value} in the request, which counts"
    )
    report.warning(0, "header_overridden", message, kind=name)
