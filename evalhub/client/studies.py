"""Studies of a collection: how runs were made, what they cost, which topics are difficult."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any
from urllib.parse import urlencode

from .answers import ChartAnswer, Listed, PageAnswer
from .display import Chart
from .experiments import ids_of
from .output import names_in
from .pools import Reusability, Undecided
from .runs import Run
from .sending import Connection, parameters_of

# The server's largest page of parameters.
_PAGE_ROWS = 100


class Configurations(PageAnswer):
    """How runs were made: a row for each parameter and a column for each run, `team/tag`.

    `kind` is differs, same or ignored; None is a parameter that is not set. With a baseline,
    `since()` has what changed in each other run.
    """

    def _names(self) -> dict[str, str]:
        return {run["id"]: f"{run['team']}/{run['tag']}" for run in self.raw["runs"]}

    def rows(self) -> list[dict[str, Any]]:
        names = list(self._names().values())
        rows = []
        for kind, field in (("differs", "differ"), ("same", "same"), ("ignored", "ignored")):
            for parameter in self.raw[field]:
                values = parameter.get("values") or [parameter["value"]] * len(names)
                row = {"name": parameter["name"], "unit": parameter["unit"], "kind": kind}
                rows.append(row | dict(zip(names, values, strict=True)))

        return rows

    def since(self) -> list[dict[str, Any]]:
        """Return a row for each change since the baseline: `run`, `name`, `change`, values.

        `change` is changed, added or removed; the values are `before` and `after`. Without a
        baseline there are no rows.
        """
        names, rows = self._names(), []
        for changes in self.raw.get("changes", []):
            for change, side in (("changed", None), ("added", "after"), ("removed", "before")):
                for parameter in changes[change]:
                    values = {side: parameter["value"]} if side else parameter
                    row = {
                        "run": names[changes["run"]],
                        "name": parameter["name"],
                        "change": change,
                        "before": values.get("before"),
                        "after": values.get("after"),
                    }
                    rows.append(row)

        return rows


class Difficulty(ChartAnswer):
    """The difficulty of the judged topics: a row for each topic. `chart()` draws the heat map."""

    _first_chart = "heat-map"

    def rows(self) -> list[dict[str, Any]]:
        return [
            {"topic_id": topic["topic_id"], "title": topic["title"], **topic["numbers"]}
            for topic in self.raw["results"]
        ]


class Topic(PageAnswer):
    """One topic with its text and judgements: a row for each run, the best on it first."""

    def rows(self) -> list[dict[str, Any]]:
        rows = []
        for entry in self.raw["results"]:
            run = entry["run"]
            row = {"rank": entry["rank"], "team": run["team"], "tag": run["tag"]}
            row |= {name: entry[name] for name in ("value", "leaderboard_rank", "mean")}
            rows.append({**row, "id": run["id"]})

        return rows


class Importance(ChartAnswer):
    """Which parameters matter for a measure.

    The rows are the changes of one parameter in pairs of runs in which nothing else changed;
    `levels()` has the parameters that go with the measure, and `chart()` draws them.
    """

    _first_chart = "importance"

    def rows(self) -> list[dict[str, Any]]:
        return list(self.raw["matched"])

    def levels(self) -> list[dict[str, Any]]:
        """Return a row for each level of the parameters that go with the measure, strongest first.

        `from` and `to` are the ends of a level of many numbers, `others` marks values of fewer than
        three runs each.
        """
        rows = []
        for parameter in self.raw["associated"]:
            names = ("name", "epsilon_squared", "low", "high", "p")
            first = {name: parameter[name] for name in names}
            for level in parameter["levels"]:
                row = {"value": level["value"], "from": level["low"], "to": level["high"]}
                row |= {name: level[name] for name in ("others", "runs", "mean")}
                rows.append(first | row)

        return rows


class Frontier(ChartAnswer):
    """Effectiveness against cost: a row for each run with the cost, the cheapest first."""

    _first_chart = "frontier"

    def rows(self) -> list[dict[str, Any]]:
        names = {}
        for entry in self.raw["results"]:
            names[entry["run"]["id"]] = f"{entry['run']['team']}/{entry['run']['tag']}"

        rows = []
        for entry in self.raw["results"]:
            run, cost = entry["run"], entry["cost"]
            row = {"team": run["team"], "tag": run["tag"], "mean": entry["mean"]}
            row |= {"cost": cost["value"], "low": cost["low"], "high": cost["high"], "n": cost["n"]}
            row |= {"hardware": entry["hardware"], "status": entry["status"]}
            row |= {"by": names.get(entry["by"], entry["by"]), "p_adjusted": entry["p_adjusted"]}
            rows.append({**row, "id": run["id"]})

        return rows


class CollectionStudies:
    """The part of a collection that explains its values."""

    _hub: Connection
    slug: str
    path: str

    @property
    def page(self) -> str:
        """The address of its page."""
        return f"{self._hub.url}/collections/{self.slug}/"

    def parameters(self, q: str = "", *, filter: str = "") -> Listed:
        """Return the parameters and costs of the runs that you see, with the values that occur.

        `q` is a part of the name; `filter` selects the runs, as on the leaderboard.
        """
        path = f"{self.path}parameters/"
        params = {**_without_empty(q=q, filter=filter), "limit": _PAGE_ROWS}

        body = self._hub.read(path, params)
        # Servers of earlier releases count the rows and give no address of the next page.
        while len(body["results"]) < body["count"]:
            page = self._hub.read(path, {**params, "offset": len(body["results"])})
            if not page["results"]:
                break
            body["results"] += page["results"]

        return Listed(body)

    def configurations(
        self, runs: Iterable[str | Run] = (), *, baseline: str | Run | None = None, filter: str = ""
    ) -> Configurations:
        """Return how 2 to 200 runs were made, side by side.

        These are runs named in any way, those of a `filter`, or all. With a `baseline`, `since()` of
        the answer has what changed in each run since.
        """
        question = self._question(runs=as_list(runs), baseline=baseline, filter=filter)
        body = self._hub.read(f"{self.path}configurations/", question)
        return Configurations(body, self._page_of("configurations/", question))

    def difficulty(
        self, measure: Any = None, rows: int | None = None, **parameters: Any
    ) -> Difficulty:
        """Return how difficult the judged topics are: all, or the first `rows`.

        `sort` is difficulty, spread, disagreement, best or topic; `order` is desc or asc.
        """
        question = _without_empty(measure=measure, **parameters)
        body = self._hub.pages(f"{self.path}difficulty/", question, rows)
        shared = {name: question[name] for name in ("measure", "scores") if name in question}

        return Difficulty(body, self._page_of("topics/", question), partial(self.chart, **shared))

    def topic(
        self, topic: str, measure: Any = None, rows: int | None = None, **parameters: Any
    ) -> Topic:
        """Return a topic with its text, judgements by level and the values of the best `rows` runs."""
        question = _without_empty(topic=topic, measure=measure)
        body = self._hub.pages(
            f"{self.path}topic/", {**question, **_without_empty(**parameters)}, rows
        )
        return Topic(body, self._page_of("topics/", question))

    def importance(self, measure: Any = None, **parameters: Any) -> Importance:
        """Return which parameters matter for a measure: parameters are `runs`, `filter`, `seed`."""
        question = self._question(measure=measure, **parameters)
        body = self._hub.read(f"{self.path}importance/", question)
        page = self._page_of("parameters/importance/", question)

        return Importance(body, page, partial(self.chart, **question))

    def reusability(self, measures: Any = None, **parameters: Any) -> Reusability:
        """Return the runs without what their own team brought to the pool.

        Parameters are `by`, `pooled` and `depth`.
        """
        question = self._question(measures=measures, **parameters)
        if "pooled" in question:
            question["pooled"] = ids_of(self._hub, as_list(question["pooled"]), self.slug)
        return Reusability(self._hub.read(f"{self.path}reusability/", question))

    def undecided(self, a: Any, b: Any, measure: Any = None, **parameters: Any) -> Undecided:
        """Return whether the order of two runs holds whatever their unjudged documents are."""
        question = self._question(runs=[a, b], measure=measure, **parameters)
        return Undecided(self._hub.read(f"{self.path}undecided/", question))

    def frontier(self, measure: Any = None, cost: str | None = None, **parameters: Any) -> Frontier:
        """Return which runs of `runs` or `filter` are worth their cost.

        `across=True` compares runs on different hardware, too.
        """
        question = self._question(y=measure, x=cost, **parameters)
        body = self._hub.read(f"{self.path}frontier/", question)
        return Frontier(body, self._page_of("frontier/", question), partial(self.chart, **question))

    def chart(self, name: str, form: str = "svg", **parameters: Any) -> Chart:
        raise NotImplementedError

    def _page_of(self, path: str, question: dict[str, Any]) -> str:
        """Return the address of the page that shows an answer."""
        query = urlencode(parameters_of(question))
        return f"{self.page}{path}{'?' if query else ''}{query}"

    def _question(self, **parameters: Any) -> dict[str, Any]:
        """Return the parameters that have a value, with the ids of runs that are named in any way."""
        question = _without_empty(**parameters)
        if "runs" in question:
            question["runs"] = ids_of(self._hub, as_list(question["runs"]), self.slug)

        if "baseline" in question:
            (question["baseline"],) = ids_of(self._hub, [question["baseline"]], self.slug)

        return question


def _without_empty(**parameters: Any) -> dict[str, Any]:
    return {name: value for name, value in parameters.items() if value not in (None, "", [])}


def as_list(value: str | Iterable[Any]) -> list[Any]:
    """Return the values of a list, or the names of a text with commas."""
    return names_in(value) if isinstance(value, str) else list(value)
