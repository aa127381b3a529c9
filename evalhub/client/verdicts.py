"""The verdict of a gate: for programs as JSON, for people as Markdown, for CI as JUnit XML."""

from __future__ import annotations

import re
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from .answers import Answer
from .rules import FINE, UNDECIDED, WORSE

_MARKS = {FINE: "✅ fine", WORSE: "❌ worse", UNDECIDED: "⚠️ undecided"}
_SPECIAL = re.compile(r"([\\`*_{}\[\]()#+!|~<>&])")
# Of a user or team; not the cutoff of a measure.
_MENTION = re.compile(r"(?<!\w)@")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
# From this many runs on the same topics, the best of them looks better than it is by luck alone.
_MANY_RUNS = 20


class Verdict(Answer):
    """What a gate says of a run: `verdict` is fine, worse or undecided; `rules` has what each rule says and why.

    `candidate` and `baseline` (None without one) are the runs, with id and SHA-256; `qrels` and
    `engine_version` those of all numbers.
    """

    @property
    def fine(self) -> bool:
        return bool(self.raw["verdict"] == FINE)

    @property
    def worse(self) -> bool:
        return bool(self.raw["verdict"] == WORSE)

    @property
    def undecided(self) -> bool:
        return bool(self.raw["verdict"] == UNDECIDED)

    def rows(self) -> list[dict[str, Any]]:
        shown = (
            "rule",
            "verdict",
            "d",
            "low",
            "high",
            "n",
            "p_adjusted",
            "topics_needed",
            "reason",
        )
        return [{name: rule[name] for name in shown} for rule in self.raw["rules"]]

    @property
    def tried(self) -> str:
        """Say how many runs of the team these topics have seen."""
        candidate = self.raw["candidate"]
        if candidate["number"] is None:
            return ""

        topics = max((rule["n"] for rule in self.raw["rules"]), default=0)
        where = f"on these {topics} topics" if topics else "in this collection"
        return f"{ordinal(candidate['number'])} run of team {candidate['team']} {where}"

    @property
    def advice(self) -> str:
        """Say what follows from having tried often; empty where nothing does."""
        if (self.raw["candidate"]["number"] or 0) < _MANY_RUNS:
            return ""
        return (
            "the best of many runs looks better than it is; before a release, compare on a blind "
            "collection"
        )

    def lines(self) -> list[str]:
        """Return the verdict as sentences for a terminal."""
        against = f" against {_name(self.raw['baseline'])}" if self.raw["baseline"] else ""
        told = [
            f"{self.raw['verdict']}: {_name(self.raw['candidate'])}{against}, qrels "
            f"v{self.raw['qrels']}"
        ]
        for rule in self.raw["rules"]:
            told.append(f"  {rule['verdict']}: {rule['rule']}: {rule['reason']}")
            told += [f"    {caution['code']}: {caution['message']}" for caution in rule["cautions"]]

        told += [f"  {text}" for text in (*self.raw["notes"], self.tried, self.advice) if text]
        return told

    def markdown(self) -> str:
        """Return a table of the rules, the topics that lost most, and a link; safe in a comment, whatever tags and
        topics say."""
        candidate, baseline = self.raw["candidate"], self.raw["baseline"]
        against = f" against {_link(baseline)}" if baseline else ""
        out = [f"### {_MARKS[self.raw['verdict']]}: {_link(candidate)}{against}", ""]

        out += [
            "| rule | verdict | difference | interval | topics | |",
            "| --- | --- | ---: | --- | ---: | --- |",
        ]
        for rule in self.raw["rules"]:
            interval = "" if rule["low"] is None else f"{rule['low']:+.4f} to {rule['high']:+.4f}"
            d = "" if rule["d"] is None else f"{rule['d']:+.4f}"
            cells = (
                plain(rule["rule"]),
                _MARKS[rule["verdict"]],
                d,
                interval,
                str(rule["n"]),
                plain(rule["reason"]),
            )
            out.append(f"| {' | '.join(cells)} |")

        for rule in self.raw["rules"]:
            if rule["worst_topics"]:
                out += ["", f"Lost most, {plain(rule['measure'])}:", ""]
                out += [
                    "| topic | | baseline | candidate | difference |",
                    "| --- | --- | ---: | ---: | ---: |",
                ]
                out += [_topic_line(topic) for topic in rule["worst_topics"]]

            out += [f"\n{plain(caution['message'])}" for caution in rule["cautions"]]

        foot = [
            self.tried,
            self.advice,
            f"collection {self.raw['collection']}, qrels v{self.raw['qrels']}",
        ]

        out += ["", *(plain(note) + "\n" for note in self.raw["notes"])]
        out.append(
            f"{'; '.join(plain(text) for text in foot if text)}. [All numbers]({self.raw['url']})"
        )
        return "\n".join(out) + "\n"

    def junit(self, *, undecided_fails: bool = False) -> str:
        """Return a test suite with a case for each rule: worse fails, undecided is skipped unless it is to fail."""
        cases, failures, skipped = [], 0, 0
        for rule in self.raw["rules"]:
            fails = rule["verdict"] == WORSE or (undecided_fails and rule["verdict"] == UNDECIDED)
            kind = "failure" if fails else "skipped" if rule["verdict"] == UNDECIDED else ""
            failures, skipped = failures + fails, skipped + (kind == "skipped")
            inside = f"<{kind} message={_attribute(rule['reason'])}/>" if kind else ""
            name = (
                f"classname={_attribute('evalhub.' + self.raw['collection'])} "
                f"name={_attribute(rule['rule'])}"
            )
            cases.append(f"  <testcase {name}>{inside}</testcase>\n")

        counts = f'tests="{len(cases)}" failures="{failures}" skipped="{skipped}" errors="0"'
        told = escape(_CONTROL.sub("", "\n".join(self.lines())))
        return (
            f'<?xml version="1.0" encoding="UTF-8"?>\n<testsuite name="evalhub gate" {counts}>\n{"".join(cases)}'
            f"  <system-out>{told}</system-out>\n</testsuite>\n"
        )


def ordinal(number: int) -> str:
    """Return 1st, 2nd, 3rd, 11th, 137th."""
    ending = (
        "th" if 10 <= number % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    )
    return f"{number:,}{ending}"


def plain(text: str) -> str:
    """Return text that Markdown shows as it is: no markup, no mention of a user, one line."""
    one_line = " ".join(_CONTROL.sub("", text).split())
    return _MENTION.sub("@\u200b", _SPECIAL.sub(r"\\\1", one_line))


def _name(run: dict[str, Any]) -> str:
    return f"{run['team']}/{run['tag']}"


def _link(run: dict[str, Any]) -> str:
    return f"[{plain(_name(run))}]({run['page']})"


def _topic_line(topic: dict[str, Any]) -> str:
    values = [f"{topic[name]:.4f}" for name in ("baseline", "candidate")]
    return (
        f"| {plain(topic['topic_id'])} | {plain(topic['text'])} | {' | '.join(values)} | "
        f"{topic['d']:+.4f} |"
    )


def _attribute(text: str) -> str:
    return quoteattr(_CONTROL.sub("", text))
