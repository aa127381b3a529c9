"""Entries of a snapshot as records of Every Eval Ever, an exchange format for evaluations.

Source: https://github.com/evaleval/every_eval_ever, eval.schema.json, version 0.2.1.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from evalhub.campaigns.exports.citations import Cited
from metrics.engine.measures.definition import Aggregate, MeasureDefinition
from metrics.engine.measures.external import PREFIX, external_definition
from metrics.engine.measures.grammar import parse_measure

SCHEMA_VERSION = "0.2.1"


def every_eval_ever(manifest: Mapping[str, Any], cited: Cited) -> str:
    """Return a list with a record for each evaluated entry, as JSON."""
    records = [
        _record(manifest, phase, entry, cited)
        for phase in manifest["phases"]
        for entry in phase["entries"]
        if "means" in entry
    ]
    return json.dumps(records, indent=1, ensure_ascii=False) + "\n"


def _record(
    manifest: Mapping[str, Any], phase: Mapping[str, Any], entry: Mapping[str, Any], cited: Cited
) -> dict[str, Any]:
    campaign, team = manifest["campaign"], entry["team"]
    timestamp = str(int(cited.on.timestamp()))
    developer = team or campaign["organiser"]
    model = f"{developer['slug']}/{entry['tag']}"
    details = {
        "run_sha256": entry["run"]["sha256"],
        "arrived_at": entry["arrived_at"],
        "role": entry["role"],
        "run_type": entry["run_type"],
        "late": json.dumps(entry["late"]),
        "description": entry["description"],
    }

    return {
        "schema_version": SCHEMA_VERSION,
        "evaluation_id": f"{campaign['slug']}-{phase['slug']}/{model}/{timestamp}",
        "retrieved_timestamp": timestamp,
        "source_metadata": {
            "source_name": cited.title,
            "source_type": "evaluation_run",
            "source_organization_name": cited.author,
            "source_organization_url": cited.campaign_address,
            "evaluator_relationship": "third_party" if team else "first_party",
            "additional_details": {"snapshot": cited.address, "snapshot_sha256": cited.sha256},
        },
        "model_info": {
            "name": entry["tag"],
            "id": model,
            "developer": developer["name"],
            "additional_details": {name: text for name, text in details.items() if text},
        },
        "eval_library": {"name": "evalhub", "version": manifest["engine_version"]},
        "evaluation_results": list(_results(manifest, phase, entry, cited)),
    }


def _results(
    manifest: Mapping[str, Any], phase: Mapping[str, Any], entry: Mapping[str, Any], cited: Cited
) -> Iterator[dict[str, Any]]:
    collection, statistics = phase["collection"], manifest["statistics"]
    judgements = {
        "qrels_version": str(collection["qrels"]["version"]),
        "qrels_sha256": collection["qrels"]["sha256"],
    }

    for name in phase["measures"]:
        mean = entry["means"][name]
        if mean["mean"] is None:
            continue

        definition, lower_is_better = _definition(name, collection)
        low, high = definition.bounds
        summary = definition.sections()["summary"]

        uncertainty: dict[str, Any] = {"num_samples": mean["topics"]}
        if mean["low"] is not None:
            uncertainty["confidence_interval"] = {
                "lower": mean["low"],
                "upper": mean["high"],
                "confidence_level": statistics["confidence"],
                "method": statistics["intervals"],
            }

        # Entries are ranked by the primary measure alone.
        ranking = (
            {"rank": entry["rank"], "tier": entry["tier"]} if name == phase["measures"][0] else {}
        )

        yield {
            "evaluation_name": f"{phase['name']}: {name}",
            "source_data": {
                "dataset_name": collection["name"],
                "source_type": "url",
                "url": [f"{cited.site}/collections/{collection['slug']}/"],
                "additional_details": judgements,
            },
            "metric_config": {
                "evaluation_description": f"{name}, mean over topics: {summary}",
                "lower_is_better": lower_is_better,
                # The schema asks for both ends.
                "score_type": "continuous",
                "min_score": low if math.isfinite(low) else -sys.float_info.max,
                "max_score": high if math.isfinite(high) else sys.float_info.max,
            },
            "score_details": {
                "score": mean["mean"],
                "details": {key: str(value) for key, value in ranking.items() if value is not None},
                "uncertainty": uncertainty,
            },
        }


def _definition(name: str, collection: Mapping[str, Any]) -> tuple[MeasureDefinition, bool]:
    """Return the definition of a measure, and whether lower values are better."""
    declared = collection.get("external_measures", {}).get(name)
    if declared is None:
        measure = parse_measure(name, collection["documents"])
        return measure.definition, measure.lower_is_better

    definition = external_definition(
        name.removeprefix(PREFIX),
        lower_is_better=declared["lower_is_better"],
        aggregate=Aggregate.MEAN,
        low=declared["low"],
        high=declared["high"],
        description=declared["description"],
    )
    return definition, definition.lower_is_better
