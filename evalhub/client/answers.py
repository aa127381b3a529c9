"""Wrap the server's JSON: attributes for fields, rows for tables, `raw` for all of it.

A field that a newer server adds is there without a newer client.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from .display import Chart, table_html, text_of

# The measure that says how many documents a topic has: none where a run has not answered it.
RETRIEVED = "NumRet"
# What a row has of its difference from a baseline.
_AGAINST = ("difference", "low", "high", "p_adjusted", "mark")
_SOURCE = ("collection", "run", "qrels", "scores", "test", "correction", "topics")


class Answer:
    """One answer. `rows()` gives it as flat dictionaries, `to_frame()` as a table of pandas."""

    def __init__(self, raw: dict[str, Any], page: str = "") -> None:
        self.raw = raw
        self._page = page

    def __getattr__(self, name: str) -> Any:
        # While an object is copied or unpickled, it has no `raw` yet.
        if name.startswith("_") or name == "raw":
            raise AttributeError(name)

        try:
            return self.raw[name]
        except KeyError:
            raise AttributeError(
                f"the answer has no {name!r}; it has {', '.join(self.raw)}"
            ) from None

    def rows(self) -> list[dict[str, Any]]:
        return [self.raw]

    def source(self) -> str:
        """Say where the numbers come from, for the line under a table."""
        parts = [(name, self.raw.get(name)) for name in _SOURCE]
        return ", ".join(f"{name} {value}" for name, value in parts if isinstance(value, str | int))

    @property
    def page(self) -> str:
        """The address of the page of its collection or run, "" where there is none."""
        return ""

    def to_frame(self) -> Any:
        """Return the rows as a pandas.DataFrame; ImportError where pandas is not installed."""
        from pandas import DataFrame

        return DataFrame(self.rows())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.source() or ', '.join(self.raw)})"

    def _repr_html_(self) -> str:
        return table_html(self.rows(), self.source(), self.page)


class Check(Answer):
    """The result of a dry run: what would be stored, with `warnings`."""


class PageAnswer(Answer):
    """An answer that has a page."""

    def __init__(self, raw: dict[str, Any], page: str = "") -> None:
        super().__init__(raw)
        self._page = page

    @property
    def page(self) -> str:
        return self._page


class ChartAnswer(PageAnswer):
    """An answer that has a page and charts."""

    _first_chart = ""

    def __init__(
        self, raw: dict[str, Any], page: str = "", charts: Callable[..., Chart] | None = None
    ) -> None:
        super().__init__(raw, page)
        self._charts = charts

    def chart(self, name: str | None = None, form: str = "svg", **parameters: Any) -> Chart:
        """Return a chart of the same runs and measures.

        `parameters` are those of docs/api/charts.md.
        """
        if self._charts is None:
            raise AttributeError("only answers of a collection have charts")
        return self._charts(name or self._first_chart, form, **parameters)


class Means(PageAnswer, Mapping[str, "float | None"]):
    """A mapping from measures to the means of a run, with its `coverage`; None is undefined."""

    def __getitem__(self, measure: Any) -> float | None:
        mean: float | None = self.raw["means"][str(measure)]["mean"]
        return mean

    def __iter__(self) -> Iterator[str]:
        return iter(self.raw["means"])

    def __len__(self) -> int:
        return len(self.raw["means"])

    def rows(self) -> list[dict[str, Any]]:
        return [{"measure": measure, **mean} for measure, mean in self.raw["means"].items()]

    def __repr__(self) -> str:
        return repr(dict(self))


class Values(PageAnswer, Mapping[str, "float | None"]):
    """A mapping from topics to a run's values of its first measure; None is undefined, not 0."""

    @property
    def measures(self) -> list[str]:
        return list(self.raw["means"])

    def of(self, measure: Any) -> dict[str, float | None]:
        """Return the values of one of the measures by topic."""
        return {topic["topic_id"]: topic["values"][str(measure)] for topic in self.raw["topics"]}

    def __getitem__(self, topic: str) -> float | None:
        return self.of(self.measures[0])[topic]

    def __iter__(self) -> Iterator[str]:
        return (topic["topic_id"] for topic in self.raw["topics"])

    def __len__(self) -> int:
        return len(self.raw["topics"])

    def rows(self) -> list[dict[str, Any]]:
        return [{"topic": topic["topic_id"], **topic["values"]} for topic in self.raw["topics"]]


class Coverage(Answer):
    """The means of a run over all judged topics, as in EvalHub, and over those that it answers.

    BEIR, MTEB and pytrec_eval print the latter. `str()` is a sentence for each measure if the run
    leaves judged topics unanswered.
    """

    def __init__(self, raw: dict[str, Any], tag: str) -> None:
        super().__init__(raw)
        self.tag = tag

    def rows(self) -> list[dict[str, Any]]:
        answered = [topic["values"] for topic in self.raw["topics"] if topic["values"][RETRIEVED]]
        counts = {"answered": len(answered), "judged": self.raw["coverage"]["judged"]}

        rows = []
        for measure, mean in self.raw["means"].items():
            # A sum or a geometric mean is not what the other programs print.
            if measure == RETRIEVED or mean["aggregate"] != "mean":
                continue

            values = [topic[measure] for topic in answered if topic[measure] is not None]
            answered_mean = math.fsum(values) / len(values) if values else None
            row = {"measure": measure, "mean": mean["mean"], "mean_of_answered": answered_mean}
            rows.append(row | counts)

        return rows

    def __str__(self) -> str:
        lines = []
        for row in self.rows():
            if row["answered"] >= row["judged"]:
                continue

            topics = f"{row['answered']} topic{'s' * (row['answered'] != 1)}"
            mean = row["mean_of_answered"]
            beir = (
                f"BEIR has no mean of {row['measure']}"
                if mean is None
                else f"BEIR would print {row['measure']} {text_of(mean)}"
            )

            ours = "no mean" if row["mean"] is None else text_of(row["mean"])
            lines.append(f"{self.tag}: {beir} ({topics}), EvalHub {ours} ({row['judged']})")

        return "\n".join(lines)


class Board(ChartAnswer):
    """A leaderboard with the rows of all requested pages in `results`; `chart()` draws its means."""

    _first_chart = "means"

    def source(self) -> str:
        parts = [super().source(), f"{self.raw.get('ranked')} ranked runs"]
        if topics := self.raw.get("topics_filter"):
            parts.append(f"topics {topics}")

        if statistics := self.raw.get("statistics"):
            correction = statistics["correction"] or "no further"
            parts.append(
                f"{statistics['test']} test of {statistics['measure']}, {correction} correction"
            )

        return ", ".join(parts)

    def rows(self) -> list[dict[str, Any]]:
        return [self._row(row) for row in self.raw["results"]]

    def _row(self, row: dict[str, Any]) -> dict[str, Any]:
        flat = {"rank": row["rank"], "team": row["run"]["team"], "tag": row["run"]["tag"]}
        flat |= {measure: value["mean"] for measure, value in row["values"].items()}
        by = self.raw.get("by")
        flat |= {f"{by}:{name}": group["mean"] for name, group in row.get("groups", {}).items()}
        if "entry_status" in row:
            flat["entry_status"] = row["entry_status"]

        if spread := row.get("replicates"):
            flat |= {"replicates": spread["runs"], "sd": spread["deviation"]}

        statistics = row.get("statistics") or {}
        if statistics.get("tier") is not None:
            flat["tier"] = statistics["tier"]

        if statistics.get("baseline"):
            flat |= {name: statistics["baseline"][name] for name in _AGAINST}
        for number, against in enumerate(statistics.get("baselines", []), 1):
            flat |= {f"{name}_{number}": against and against[name] for name in _AGAINST}

        flat |= {name: row["coverage"][name] for name in ("answered", "judged")}
        flat["judged_at_10"] = row["judged_at_10"]
        return {**flat, "state": row["state"], "code": row["code"], "id": row["run"]["id"]}


class Comparison(ChartAnswer):
    """A comparison of runs with a row for every measure, pair and test.

    `chart()` draws which runs differ significantly.
    """

    _first_chart = "significance"

    def source(self) -> str:
        tests = f"tests {', '.join(self.raw.get('tests', []))}"
        topics = [
            f"{row['topics']['used']} topics of {row['measure']}" for row in self.raw["measures"]
        ]
        parts = [super().source(), tests, f"alpha {self.raw.get('alpha')}", *topics]
        return ", ".join(part for part in parts if part)

    def groups(self) -> list[dict[str, Any]]:
        """Return a row for every measure and group of topics of a comparison of two runs `by` a key."""
        return [
            {"measure": measure["measure"], **group}
            for measure in self.raw["measures"]
            for group in measure.get("topic_groups", {}).get("groups", [])
        ]

    def rows(self) -> list[dict[str, Any]]:
        names = {run["id"]: run["tag"] for run in self.raw["runs"]}
        rows = []
        for measure in self.raw["measures"]:
            coverage = {mean["run"]: mean.get("coverage") for mean in measure["means"]}
            for pair in measure["pairs"]:
                first = {"measure": measure["measure"]}
                first |= {side: names.get(pair[side], pair[side]) for side in ("a", "b")}
                first["difference"] = pair["difference"]

                last = {name: pair[name] for name in ("wins", "ties", "losses")}
                for side in ("a", "b"):
                    # Older servers send no coverage.
                    shares = coverage.get(pair[side]) or {}
                    last |= {f"{name}_{side}": shares.get(name) for name in ("answered", "judged")}

                on_judged = pair.get("on_judged") or {}
                last["on_judged"] = on_judged.get("difference")
                # min F' of two runs with replicates.
                methods = (measure.get("methods") or {}).get("test")
                of_methods = {"methods_p_value": methods["p_value"]} if methods else {}
                for test, result in pair["tests"].items():
                    columns = ("low", "high", "p_value", "p_adjusted", "verdict", "withheld")
                    test_on_judged = on_judged.get("tests", {}).get(test, {})
                    rows.append(
                        {
                            **first,
                            "test": test,
                            **{name: result[name] for name in columns},
                            **last,
                            "on_judged_p_adjusted": test_on_judged.get("p_adjusted"),
                            **of_methods,
                        }
                    )

        return rows


class Difference(Answer):
    """Two runs topic by topic."""

    def rows(self) -> list[dict[str, Any]]:
        return list(self.raw["topics"])


class Listed(Answer):
    """One page or more of a list; the rows are in the field `of`."""

    def __init__(self, raw: dict[str, Any], of: str = "results") -> None:
        super().__init__(raw)
        self._of = of

    def rows(self) -> list[dict[str, Any]]:
        return list(self.raw[self._of])


class Curves(Answer):
    """Measures at every rank: a row for each measure and rank."""

    def rows(self) -> list[dict[str, Any]]:
        rows = []
        for curve in self.raw["curves"]:
            names = [name for name in ("mean", "low", "high", "ideal") if curve.get(name)]
            for index, rank in enumerate(self.raw["ranks"]):
                row = {"measure": curve["measure"], "rank": rank}
                rows.append(row | {name: curve[name][index] for name in names})

        return rows


class SessionValues(Answer):
    """The values of a session set: a row for each session. `means` and `systems` have the means."""

    def rows(self) -> list[dict[str, Any]]:
        names = ("number", "session_id", "topic_id", "searcher", "system", "queries")
        return [
            {**{name: row[name] for name in names}, **row["values"]} for row in self.raw["sessions"]
        ]


class SessionBoard(PageAnswer):
    """A leaderboard of systems: a row for each system of each session set."""

    def rows(self) -> list[dict[str, Any]]:
        rows = []
        for row in self.raw["results"]:
            session_set = row["session_set"]
            flat = {"rank": row["rank"], "team": session_set["team"], "tag": session_set["tag"]}
            flat["system"] = row["system"]
            flat |= {measure: value["mean"] for measure, value in row["values"].items()}
            flat |= {"sessions": row["sessions"], "code": row["code"], "id": session_set["id"]}
            rows.append(flat)

        return rows
