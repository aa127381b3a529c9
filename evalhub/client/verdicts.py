"""The verdict of a gate: JSON for programs, Markdown for people, JUnit XML for CI."""

from __future__ import annotations

import re
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from .answers import Answer
from .rules import FINE, UNDECIDED, WORSE

_MARKS = {FINE: "✅ fine", WORSE: "❌ worse", UNDECIDED: "⚠️ undecided"}
_SPECIAL = re.compile(r"([\\`*_{}\[\]()#+!|~<>&])")
# An @ of a user or team, not that of a measure's cutoff.
_MENTION = re.compile(r"(?<!\w)@")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
# With this many runs on the same topics, the best of them looks better than it is by chance.
_MANY_RUNS = 20


class Verdict(Answer):
    """The result of a gate: `verdict` is fine, worse or undecided; `rules` has the results of rules.

    `candidate` and `baseline` (or None) are the runs, with id and SHA-256; `qrels` and
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
        names = (
            "rule", "verdict", "d", "low", "high", "n", "p_adjusted", "topics_needed", "reason"
        )  # fmt: skip
        return [{name: rule[name] for name in names} for rule in self.raw["rules"]]

    @property
    def tried(self) -> str:
        """How many runs of the team were evaluated on these topics, in words."""
        candidate = self.raw["candidate"]
        if candidate["number"] is None:
            return ""

        topics = max((rule["n"] for rule in self.raw["rules"]), default=0)
        where = f"on these {topics} topics" if topics else "in this collection"
        return f"{ordinal(candidate['number'])} run of team {candidate['team']} {where}"

    @property
    def advice(self) -> str:
        """What to do after many runs on the same topics, or ""."""
        if (self.raw["candidate"]["number"] or 0) < _MANY_RUNS:
            return ""
        return (
            "the best of many runs looks better than it is; before a release, compare on a blind "
            "collection"
        )

    def lines(self) -> list[str]:
        """Return the verdict as sentences for a terminal."""
        against = f" against {_name(self.raw['baseline'])}" if self.raw["baseline"] else ""
        lines = [
            f"{self.raw['verdict']}: {_name(self.raw['candidate'])}{against}, qrels "
            f"v{self.raw['qrels']}"
        ]
        for rule in self.raw["rules"]:
            lines.append(f"  {rule['verdict']}: {rule['rule']}: {rule['reason']}")
            lines += [
                f"    {caution['code']}: {caution['message']}" for caution in rule["cautions"]
            ]

        lines += [f"  {text}" for text in (*self.raw["notes"], self.tried, self.advice) if text]
        return lines

    def markdown(self) -> str:
        """Return a table of the rules, the topics that lost most, and a link.

        Tags and topics are escaped, so that it can be posted as a comment.
        """
        candidate, baseline = self.raw["candidate"], self.raw["baseline"]
        against = f" against {_link(baseline)}" if baseline else ""
        lines = [f"### {_MARKS[self.raw['verdict']]}: {_link(candidate)}{against}", ""]

        lines.append("| rule | verdict | difference | interval | topics | |")
        lines.append("| --- | --- | ---: | --- | ---: | --- |")
        for rule in self.raw["rules"]:
            interval = "" if rule["low"] is None else f"{rule['low']:+.4f} to {rule['high']:+.4f}"
            difference = "" if rule["d"] is None else f"{rule['d']:+.4f}"
            cells = [plain(rule["rule"]), _MARKS[rule["verdict"]], difference, interval]
            cells += [str(rule["n"]), plain(rule["reason"])]
            lines.append(f"| {' | '.join(cells)} |")

        for rule in self.raw["rules"]:
            if rule["worst_topics"]:
                lines += ["", f"Lost most, {plain(rule['measure'])}:", ""]
                lines.append("| topic | | baseline | candidate | difference |")
                lines.append("| --- | --- | ---: | ---: | ---: |")
                lines += [_topic_line(topic) for topic in rule["worst_topics"]]
            lines += [f"\n{plain(caution['message'])}" for caution in rule["cautions"]]

        lines += ["", *(plain(note) + "\n" for note in self.raw["notes"])]
        source = f"collection {self.raw['collection']}, qrels v{self.raw['qrels']}"
        foot = "; ".join(plain(text) for text in (self.tried, self.advice, source) if text)
        lines.append(f"{foot}. [All numbers]({self.raw['url']})")
        return "\n".join(lines) + "\n"

    def junit(self, *, undecided_fails: bool = False) -> str:
        """Return a test suite with a case for each rule.

        A worse rule fails; an undecided one is skipped, or fails with `undecided_fails`.
        """
        cases, failures, skipped = [], 0, 0
        for rule in self.raw["rules"]:
            undecided = rule["verdict"] == UNDECIDED
            outcome = ""
            if rule["verdict"] == WORSE or (undecided_fails and undecided):
                outcome = "failure"
                failures += 1
            elif undecided:
                outcome = "skipped"
                skipped += 1

            element = f"<{outcome} message={_attribute(rule['reason'])}/>" if outcome else ""
            class_name = _attribute("evalhub." + self.raw["collection"])
            names = f"classname={class_name} name={_attribute(rule['rule'])}"
            cases.append(f"  <testcase {names}>{element}</testcase>\n")

        counts = f'tests="{len(cases)}" failures="{failures}" skipped="{skipped}" errors="0"'
        output = escape(_CONTROL.sub("", "\n".join(self.lines())))
        return (
            '<?xml version="1.0" encoding="UTF-8"?>\n'
            f'<testsuite name="evalhub gate" {counts}>\n{"".join(cases)}'
            f"  <system-out>{output}</system-out>\n</testsuite>\n"
        )


def ordinal(number: int) -> str:
    """Return 1st, 2nd, 3rd, 11th, 137th."""
    suffix = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    if 10 <= number % 100 <= 20:
        suffix = "th"
    return f"{number:,}{suffix}"


def plain(text: str) -> str:
    """Return text that Markdown shows as it is: no markup, no mention of a user, one line."""
    line = " ".join(_CONTROL.sub("", text).split())
    return _MENTION.sub("@\u200b", _SPECIAL.sub(r"\\\1", line))


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
