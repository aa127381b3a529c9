"""The gate against the server of this process: verdicts, outputs, statuses, labels."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from statsmodels.stats.weightstats import ttost_paired

from evalhub.client import Ambiguous, Conflict, Hub, NotFound, Refused, cli, commands
from evalhub.client.gate import promote, stem_of
from evalhub.client.verdicts import ordinal, plain
from metrics.models import Evaluation, MetricVector
from runs.models import Collection, Membership, Run, Team, Topic, User
from tests.client.inside import hub_inside
from tests.metrics.scored import make_scored
from tests.shared_data import alice, module_data

__all__ = ["alice", "module_data"]

TOPICS = 50
EVIL = "<b>@everyone | `x` [y](z) #1"


@pytest.fixture
def values() -> Any:
    """Of a baseline, an equal run, one that is clearly worse, one that is a little worse, and one that is always so."""
    rng = np.random.default_rng(5)
    baseline = rng.uniform(0.2, 0.8, TOPICS)
    noise = rng.normal(0, 0.02, (3, TOPICS))
    noise -= noise.mean(axis=1, keepdims=True)
    shifted = baseline + noise - np.array([[0.0], [0.08], [0.01]])
    return np.vstack([baseline, shifted, baseline - 0.125]).round(6)


@pytest.fixture
def hub(alice: User, values: Any) -> Hub:
    """Alice's client of a collection whose runs r0 to r4 have these values; ASL is a cost."""
    make_scored("board", alice.personal_team, np.stack([values, 10 * values]), ["AP", "ASL"])
    board = Collection.objects.get()
    all_judged = {"mean": 1.0, "topics": TOPICS, "content": np.ones(TOPICS).astype("<f8").tobytes()}
    MetricVector.objects.filter(measure="Judged@10").update(**all_judged)
    Topic.objects.create(collection=board, topic_id="1", position=0, title=EVIL)
    return hub_inside(alice)


def test_the_verdict_is_that_of_the_interval(hub: Hub, values: Any) -> None:
    board = hub.collection("board")
    for number, expected in ((1, "fine"), (2, "worse"), (3, "undecided")):
        verdict = board.gate(f"r{number}", "r0", "AP no-worse-than 0.01")
        assert (verdict.verdict, verdict.fine, verdict.worse) == (
            expected,
            expected == "fine",
            expected == "worse",
        )
        (rule,) = verdict.rules
        assert rule["d"] == pytest.approx((values[number] - values[0]).mean(), abs=1e-12)
        p = ttost_paired(values[number], values[0], rule["low"], 10.0)[1][1]
        assert p == pytest.approx(0.05, abs=1e-9)
        # n' = ceil(((t + t) s_d / margin)^2), with the quantiles of 49 degrees of freedom.
        deviation = np.std(values[number] - values[0], ddof=1)
        assert rule["topics_needed"] == np.ceil(((1.676551 + 0.848769) * deviation / 0.01) ** 2)
        lost = values[number] - values[0]
        assert [topic["d"] for topic in rule["worst_topics"]] == pytest.approx(sorted(lost)[:5])
    assert (verdict.qrels, verdict.candidate["number"]) == (1, 4)
    assert verdict.tried == "4th run of team alice on these 50 topics"


def test_margins_rules_and_directions(hub: Hub, values: Any) -> None:
    board = hub.collection("board")
    share = board.gate("r1", "r0", "AP no-worse-than 2%").rules[0]
    assert share["margin"] == pytest.approx(0.02 * values[0].mean())
    # Less is better: r0 has more of it than r2, which is worse of AP.
    assert board.gate("r0", "r2", "ASL no-worse-than 0.1").worse
    assert board.gate("r2", "r0", ["ASL no-drop", "ASL no-worse-than 0.1"]).fine
    both = board.gate(
        "r2", "r0", ["AP no-worse-than 0.2", "AP no-significant-drop", "AP at-least 0.1"]
    )
    assert [rule["verdict"] for rule in both.rules] == ["fine", "worse", "fine"]
    assert both.worse
    assert board.gate("r2", None, "AP at-least 0.1").baseline is None
    constant = board.gate("r4", "r0", "AP no-worse-than 0.12").rules[0]
    assert (constant["verdict"], constant["cautions"][-1]["code"]) == (
        "worse",
        "constant_difference",
    )
    assert board.gate("r0", "r0", "AP no-worse-than 0.01").fine
    for test in ("bootstrap", "randomisation"):
        assert board.gate("r2", "r0", "AP 0.01", test=test).worse


def test_baselines(hub: Hub, alice: User) -> None:
    board = hub.collection("board")
    with pytest.raises(NotFound):
        board.gate("r1", "label:main", "AP 0.01")
    first = board.gate("r1", "label:main", "AP 0.01", no_baseline="pass")
    assert (first.fine, first.baseline, "nothing was compared" in first.notes[0]) == (
        True,
        None,
        True,
    )
    board.label("main", "r0", expected=None)
    assert board.gate("r1", "label:main", "AP 0.01").baseline["tag"] == "r0"
    assert board.run("label:alice/main").tag == "r0"
    for number, tag in ((1, "bm25-1"), (2, "bm25-0123abc"), (3, "bm25x")):
        Run.objects.filter(tag=f"r{number}").update(tag=tag)
    assert board.gate("bm25-0123abc", "previous", "AP 0.5").baseline["tag"] == "bm25-1"
    with pytest.raises(NotFound, match="no earlier run bm25x"):
        board.gate("bm25x", "previous", "AP 0.5")
    assert [stem_of(tag) for tag in ("bm25-2", "main-3f2a1bc", "bm25", "a-b")] == [
        "bm25",
        "main",
        "bm25",
        "a-b",
    ]
    other = Team.objects.create(slug="other")
    Membership.objects.create(team=other, user=alice)
    Run.objects.filter(tag="bm25x").update(team=other)
    board.label("main", "bm25x")
    with pytest.raises(Ambiguous, match="label:other/main"):
        board.run("label:main")


def test_promotion_expects_the_baseline(hub: Hub) -> None:
    board = hub.collection("board")
    verdict = board.gate("r1", "label:main", "AP 0.01", no_baseline="pass")
    promote(board, verdict, "main", "label:main")
    assert board.labels().rows()[0]["tag"] == "r1"
    later = board.gate("r0", "label:main", "AP 0.5")
    board.label("main", "r2")
    with pytest.raises(Conflict, match="by now"):
        promote(board, later, "main", "label:main")
    board.unlabel("main")
    assert board.labels().rows() == []


def test_what_is_stale_is_waited_for_and_few_topics_say_nothing(hub: Hub, alice: User) -> None:
    board = hub.collection("board")
    Evaluation.objects.filter(run__tag="r0").update(state="failed", error_code="evaluation_error")
    with pytest.raises(Exception, match="r0 ended as failed"):
        board.gate("r1", "r0", "AP 0.01")
    make_scored("few", alice.personal_team, np.tile([[0.9], [0.1]], (1, 9)))
    few = hub.collection("few").gate(
        "r1", "r0", ["AP 0.01", "AP no-significant-drop", "AP no-drop"]
    )
    assert [rule["verdict"] for rule in few.rules] == ["undecided", "undecided", "worse"]
    make_scored("one", alice.personal_team, np.array([[0.9], [0.1]]))
    assert hub.collection("one").gate("r1", "r0", "AP 0.01").undecided
    with pytest.raises(Refused, match="APP"):
        hub.collection("few").gate("r1", "r0", "APP 0.01")


def test_what_people_read_is_safe_and_complete(hub: Hub) -> None:
    verdict = hub.collection("board").gate("r2", "r0", ["AP 0.01", "AP at-least 0.1"])
    verdict.raw["rules"][0]["worst_topics"][0] |= {"topic_id": "1", "text": EVIL}
    text = verdict.markdown()
    assert text.startswith("### ❌ worse: [alice/r2](http://localhost/runs/")
    assert r"| AP no-worse-than 0.01 | ❌ worse | -0.0800 |" in text.replace("\\", "")
    assert "Lost most, AP:" in text
    assert (
        "3rd run of team alice on these 50 topics; collection board, qrels v1. [All numbers](http://"
        in text
    )
    assert "<b>" not in text
    assert "@e" not in text
    assert plain("a\nb|\x07@c") == "a b\\|@\u200bc"
    tree = ElementTree.fromstring(verdict.junit())
    assert tree.attrib == {
        "name": "evalhub gate",
        "tests": "2",
        "failures": "1",
        "skipped": "0",
        "errors": "0",
    }
    assert [case.attrib["name"] for case in tree.iter("testcase")] == [
        "AP no-worse-than 0.01",
        "AP at-least 0.1",
    ]
    undecided = hub.collection("board").gate("r3", "r0", "AP 0.01")
    for fails, counts in ((False, ("0", "1")), (True, ("1", "0"))):
        suite = ElementTree.fromstring(undecided.junit(undecided_fails=fails)).attrib
        assert (suite["failures"], suite["skipped"]) == counts
    assert "topics would decide" in " ".join(undecided.lines()) or "may be a small one" in " ".join(
        undecided.lines()
    )
    assert [ordinal(number) for number in (1, 2, 3, 4, 11, 22, 112, 137)] == [
        "1st", "2nd", "3rd", "4th", "11th", "22nd", "112th", "137th",
    ]  # fmt: skip


@pytest.fixture
def evh(
    hub: Hub, alice: User, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> Callable[..., tuple[int, str, str]]:
    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(commands, "hub_of", lambda args: hub_inside(alice))
        status = cli.run(list(arguments))
        return status, *capsys.readouterr()

    return run


def test_the_command_says_it_by_its_status(evh: Any, tmp_path: Path) -> None:
    rule = ("--baseline", "r0", "--rule", "AP no-worse-than 0.01")
    assert evh("gate", "board", "r1", *rule)[0] == 0
    status, out, _ = evh(
        "gate",
        "board",
        "r2",
        *rule,
        "--junit",
        f"{tmp_path}/j.xml",
        "--markdown",
        f"{tmp_path}/m.md",
    )
    assert (status, out.startswith("worse: alice/r2 against alice/r0, qrels v1\n")) == (10, True)
    assert ElementTree.parse(tmp_path / "j.xml").getroot().attrib["failures"] == "1"
    assert (tmp_path / "m.md").read_text().startswith("### ❌ worse")
    assert evh("gate", "board", "r3", *rule)[0] == 0
    assert evh("gate", "board", "r3", *rule, "--undecided", "fail")[0] == 11
    status, out, _ = evh("gate", "board", "r2", *rule, "--format", "json")
    assert (status, json.loads(out)["rules"][0]["measure"]) == (10, "AP")
    assert (
        evh("gate", "board", "r2", *rule, "--format", "csv(rule,verdict)")[1]
        .splitlines()[1]
        .endswith(",worse")
    )
    status, usual, _ = evh("gate", "board", "r2", "--baseline", "r0", "--format", "json")
    first = Collection.objects.get(slug="board").measures[0]
    assert json.loads(usual)["rules"][0]["rule"] == f"{first} no-significant-drop"
    assert status in (0, 10)
    assert evh("gate", "board", "r2", "--rule", "AP 0.01")[0] == 2
    assert evh("gate", "board", "r2", "--baseline", "r0", "--rule", "AP")[0] == 2
    assert evh("gate", "board", "r2", *rule, "--alpha", "0.7")[0] == 2
    assert evh("gate", "board", "r2", "--baseline", "label:no", "--rule", "AP 1")[0] == 4


def test_labels_by_command(evh: Any) -> None:
    assert evh("label", "board", "main", "r0", "--expected", "none")[0] == 0
    assert evh("label", "board", "main", "r1", "--expected", "none")[0] == 9
    status, _, err = evh(
        "gate", "board", "r1", "--baseline", "label:main", "--rule", "AP 0.01", "--promote", "main"
    )
    assert (status, err) == (0, "label main names r1 now\n")
    assert (
        evh(
            "gate",
            "board",
            "r2",
            "--baseline",
            "label:main",
            "--rule",
            "AP 0.01",
            "--promote",
            "main",
        )[0]
        == 10
    )
    assert (
        evh("labels", "board", "--format", "csv(name,team,tag)")[1]
        == "name,team,tag\nmain,alice,r1\n"
    )
    assert evh("label", "board", "main", "--delete")[0] == 0
    assert evh("label", "board", "main")[0] == 2
