"""What explains the values of a collection: how runs were made, what they cost, and which topics are difficult."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any
from urllib.parse import urlencode

from .answers import Drawn, Listed, Placed
from .display import Chart
from .experiments import ids_of
from .output import names_in
from .runs import Run
from .sending import Connection, parameters_of

# The server's largest page of parameters.
_PARAMETERS_OF_A_PAGE = 100


class Configurations(Placed):
    """How runs were made: a row for each parameter with its `kind` (differs, same or ignored) and a column for each
    run, `team/tag`, in which None is not set. With a baseline, `since()` has what changed in each
    other run."""

    def _names(self) -> dict[str, str]:
        return {run["id"]: f"{run['team']}/{run['tag']}" for run in self.raw["runs"]}

    def rows(self) -> list[dict[str, Any]]:
        names = list(self._names().values())
        rows = []
        for kind, field in (("differs", "differ"), ("same", "same"), ("ignored", "ignored")):
            for one in self.raw[field]:
                values = one.get("values") or [one["value"]] * len(names)
                first = {"name": one["name"], "unit": one["unit"], "kind": kind}
                rows.append({**first, **dict(zip(names, values, strict=True))})

        return rows

    def since(self) -> list[dict[str, Any]]:
        """Return a row for each change since the baseline: `run`, `name`, `change` (changed, added or removed),
        `before` and `after`; none without a baseline."""
        names, rows = self._names(), []
        for changes in self.raw.get("changes", []):
            for change, ends in (("changed", None), ("added", "after"), ("removed", "before")):
                for one in changes[change]:
                    values = {ends: one["value"]} if ends else one
                    row = {"run": names[changes["run"]], "name": one["name"], "change": change}
                    rows.append(
                        {**row, "before": values.get("before"), "after": values.get("after")}
                    )

        return rows


class Difficulty(Drawn):
    """The judged topics with what all runs reach on each: a row for each topic. `chart()` draws the heat map."""

    _first_chart = "heat-map"

    def rows(self) -> list[dict[str, Any]]:
        return [
            {"topic_id": one["topic_id"], "title": one["title"], **one["numbers"]}
            for one in self.raw["results"]
        ]


class Topic(Placed):
    """One topic with its text and judgements: a row for each run, the best on it first."""

    def rows(self) -> list[dict[str, Any]]:
        shown = ("value", "leaderboard_rank", "mean")
        return [
            {"rank": one["rank"], "team": one["run"]["team"], "tag": one["run"]["tag"]}
            | {name: one[name] for name in shown}
            | {"id": one["run"]["id"]}
            for one in self.raw["results"]
        ]


class Importance(Drawn):
    """Which parameters matter for a measure. The rows are the changes of one parameter in pairs of runs in which
    nothing else changed; `levels()` has the parameters that go with the measure. `chart()` draws
    those."""

    _first_chart = "importance"

    def rows(self) -> list[dict[str, Any]]:
        return list(self.raw["matched"])

    def levels(self) -> list[dict[str, Any]]:
        """Return a row for each level of each parameter that goes with the measure, the strongest parameter first.

        `from` and `to` are the ends of a level of many numbers, `others` marks values of fewer than
        three runs each.
        """
        shown = ("name", "epsilon_squared", "low", "high", "p")
        rows = []
        for one in self.raw["associated"]:
            first = {name: one[name] for name in shown}
            for level in one["levels"]:
                ends = {"value": level["value"], "from": level["low"], "to": level["high"]}
                rows.append(
                    {**first, **ends, **{name: level[name] for name in ("others", "runs", "mean")}}
                )

        return rows


class Frontier(Drawn):
    """Effectiveness against cost: a row for each run that has the cost, the cheapest first. `chart()` draws them."""

    _first_chart = "frontier"

    def rows(self) -> list[dict[str, Any]]:
        names = {
            one["run"]["id"]: f"{one['run']['team']}/{one['run']['tag']}"
            for one in self.raw["results"]
        }
        rows = []
        for one in self.raw["results"]:
            row = {"team": one["run"]["team"], "tag": one["run"]["tag"], "mean": one["mean"]}
            row |= {
                "cost": one["cost"]["value"],
                **{name: one["cost"][name] for name in ("low", "high", "n")},
            }
            row |= {
                "hardware": one["hardware"],
                "status": one["status"],
                "by": names.get(one["by"], one["by"]),
            }
            rows.append({**row, "p_adjusted": one["p_adjusted"], "id": one["run"]["id"]})

        return rows


class Studied:
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
        params = {**_without_empty(q=q, filter=filter), "limit": _PARAMETERS_OF_A_PAGE}

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
        """Return how 2 to 200 runs were made, side by side: those that are named in any way, those of a `filter`, or
        all. With a `baseline`, `since()` of the answer has what changed in each run since."""
        question = self._question(runs=as_list(runs), baseline=baseline, filter=filter)
        body = self._hub.read(f"{self.path}configurations/", question)
        return Configurations(body, self._page_of("configurations/", question))

    def difficulty(
        self, measure: Any = None, rows: int | None = None, **parameters: Any
    ) -> Difficulty:
        """Return the judged topics with what the runs reach on each: all, or the first `rows`.

        `sort` is difficulty, spread, disagreement, best or topic; `order` is desc or asc.
        """
        question = _without_empty(measure=measure, **parameters)
        body = self._hub.pages(f"{self.path}difficulty/", question, rows)
        shared = {name: question[name] for name in ("measure", "scores") if name in question}

        return Difficulty(body, self._page_of("topics/", question), partial(self.chart, **shared))

    def topic(
        self, topic: str, measure: Any = None, rows: int | None = None, **parameters: Any
    ) -> Topic:
        """Return a topic with its text, its judgements by level and what all runs, or the best `rows`, reach on it."""
        question = _without_empty(topic=topic, measure=measure)
        body = self._hub.pages(
            f"{self.path}topic/", {**question, **_without_empty(**parameters)}, rows
        )
        return Topic(body, self._page_of("topics/", question))

    def importance(self, measure: Any = None, **parameters: Any) -> Importance:
        """Return which parameters matter for a measure, of the runs of `runs` or `filter`; `seed`."""
        question = self._question(measure=measure, **parameters)
        body = self._hub.read(f"{self.path}importance/", question)
        page = self._page_of("parameters/importance/", question)

        return Importance(body, page, partial(self.chart, **question))

    def frontier(self, measure: Any = None, cost: str | None = None, **parameters: Any) -> Frontier:
        """Return which runs are worth their cost, of those of `runs` or `filter`; `across=True` compares runs on
        different hardware, too."""
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
