"""The entries of a phase as CSV, with their answers to the form, parameters, costs and times."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from runs.formats.comma_separated import write_csv
from runs.models import Entry

_COLUMNS = (
    "number", "id", "team", "team_name", "affiliation", "tag", "run", "run_sha256", "role", "label",
    "run_type", "priority", "chosen", "published", "late", "state", "state_reason",
    "state_changed_at", "arrived_at", "paper", "evaluation", "topics", "documents", "description",
)  # fmt: skip
_OF_A_READ = 200
EvaluationStates = Callable[[Sequence[Entry]], Mapping[str, str]]


def entries_csv(
    entries: Any, form: Sequence[Mapping[str, Any]], states: EvaluationStates
) -> Iterator[str]:
    """Yield the entries of a query as CSV, in its order and some hundred at a time.

    The answers have the columns `answer:KEY` in the order of the form, parameters and costs
    `param:KEY` and `cost:KEY` by name. `states` returns the states of the evaluations of entries,
    by the ids of their runs.
    """
    params: set[str] = set()
    costs: set[str] = set()
    for metadata, run_costs in entries.values_list("run__metadata", "run__costs").iterator():
        params.update(metadata or ())
        costs.update(run_costs or ())

    keys = [field["key"] for field in form]
    names = [
        *_COLUMNS,
        *(f"answer:{key}" for key in keys),
        *(f"param:{key}" for key in sorted(params)),
        *(f"cost:{key}" for key in sorted(costs)),
    ]

    def rows() -> Iterator[list[Any]]:
        for batch in _batches(entries):
            evaluations = states(batch)
            for entry in batch:
                run = entry.run
                yield [
                    *_cells(entry, evaluations[str(entry.run_id)]),
                    *(_text(entry.answers.get(key)) for key in keys),
                    *(_text((run.metadata or {}).get(key)) for key in sorted(params)),
                    *(_text((run.costs or {}).get(key)) for key in sorted(costs)),
                ]

    return write_csv(names, rows())


def _batches(entries: Any) -> Iterator[list[Entry]]:
    batch: list[Entry] = []
    for entry in entries.iterator(chunk_size=_OF_A_READ):
        batch.append(entry)
        if len(batch) == _OF_A_READ:
            yield batch
            batch = []

    if batch:
        yield batch


def _cells(entry: Entry, evaluation: str) -> list[Any]:
    run, team = entry.run, entry.participation
    return [
        entry.number,
        str(entry.pk),
        team.team.slug if team else "",
        team.name if team else "",
        team.affiliation if team else "",
        run.tag,
        str(run.pk),
        run.sha256,
        entry.role,
        entry.label,
        entry.run_type,
        entry.priority,
        entry.chosen,
        entry.published,
        entry.late,
        entry.state,
        entry.state_reason,
        entry.state_changed_at,
        entry.arrived_at,
        entry.paper_address,
        evaluation,
        run.topics,
        run.documents,
        run.description,
    ]


def _text(value: Any) -> Any:
    """Return a cell: the choices of a list are separated by semicolons."""
    return "; ".join(map(str, value)) if isinstance(value, list) else value
