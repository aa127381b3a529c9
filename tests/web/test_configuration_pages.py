"""Pages that compare configurations: side by side, of two and of many compared runs, and of a run since a baseline."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from rest_framework.test import APIClient

from metrics.pages.tracking.configurations import distinct_texts
from runs.models import Collection, Label, ParameterKey, Run, User
from runs.services.tracking.parameters import store_parameters
from tests.conftest import GOOD, POOR
from tests.metrics.boards import make_board, simulated
from tests.shared_data import alice, api, collection, module_data, submit
from tests.web.test_parameter_pages import text_of

__all__ = ["alice", "api", "collection", "module_data", "submit"]

PAGE = "/collections/board/configurations/"
METADATA: list[dict[str, Any]] = [
    {"k1": 0.9, "b": 0.4, "model": "<b>", "seed": 1},
    {"k1": 1.2, "b": 0.4, "model": "<b>", "seed": 2},
    {"k1": "1.2", "b": 0.4, "note": "new"},
    *({"k1": 0.9, "b": 0.4, "model": "<b>", "seed": number} for number in range(3, 25)),
]


@pytest.fixture(scope="module")
def board(alice: User) -> Collection:
    """25 ranked runs; all after r2 are made as r0 is."""
    collection = make_board(alice.personal_team, {"AP": simulated(25, 20)})
    runs = sorted(Run.objects.all(), key=lambda run: int(run.tag[1:]))
    for run, metadata in zip(runs, METADATA, strict=True):
        run.metadata = metadata
    Run.objects.bulk_update(runs, ["metadata"])
    store_parameters(collection, runs)
    ParameterKey.objects.filter(name="seed").update(role="ignored")
    return collection


def run_id(tag: str) -> str:
    return str(Run.objects.get(tag=tag).pk)


def page_of(client: Client, path: str, status: int = 200, **query: Any) -> str:
    answer = client.get(path, query)
    assert answer.status_code == status, answer.content
    return str(answer.content.decode())


def test_changes_since_the_baseline_are_marked(client: Client, board: Collection) -> None:
    runs = ",".join(map(run_id, ("r0", "r1", "r2")))
    page = page_of(client, PAGE, runs=runs, baseline=run_id("r0"))
    names = re.findall(r'<a href="/runs/[^"]+">(r\d)</a>', page)
    assert names[0] == "r0"
    cells = {
        name: re.findall(
            r'<td(?: class="([^"]*)")?>\s*(?:<span[^>]*>.\s*</span>)?\s*([^<]*?)</td>', row
        )
        for name, row in re.findall(
            r'<tr><th scope="row" class="fixed">(\w+).*?</th>(.*?)</tr>', page, re.DOTALL
        )
    }
    assert set(cells) == {"k1", "model", "note", "seed"}
    kinds = dict(zip(names, cells["model"], strict=True))
    assert (kinds["r0"][1], kinds["r2"][0].split()[0], kinds["r2"][1]) == (
        "&lt;b&gt;",
        "removed",
        "not set",
    )
    assert dict(zip(names, cells["note"], strict=True))["r2"][1] == "new"
    # A text that looks like a number is in quotes; one of the runs is hidden on a phone.
    assert dict(zip(names, cells["k1"], strict=True))["r2"][1] == "&quot;1.2&quot;"
    assert sum("aside" in kind for kind, _ in cells["k1"]) == 1
    assert "3 of 4 parameters differ among 3 runs; best AP first. Changes from the baseline" in text_of(client.get(PAGE, {
        "runs": runs, "baseline": run_id("r0")}))  # fmt: skip
    beside = page_of(client, PAGE, runs=runs, baseline=run_id("r0"), beside=run_id(names[2]))
    assert re.findall(r'<th scope="col"( class="aside")?>', beside) == ["", ' class="aside"', ""]
    (changes,) = set(re.findall(rf'href="(/runs/{run_id("r2")}/parameters/\?[^"]+)"', page))
    since = text_of(client.get(html.unescape(changes.partition("#")[0])))
    assert 'Changes from r0 Parameter r0 r2 k1 0.9 "1.2"' in since


def test_many_runs_take_pages_and_equal_ones_say_so(client: Client, board: Collection) -> None:
    page = page_of(client, PAGE)
    assert page.count("pin</a>") == 21
    assert "1–20 of 24" in " ".join(page.split())
    assert page_of(client, PAGE, offset="20").count("pin</a>") == 5
    assert page_of(client, PAGE, offset="400").count("pin</a>") == 1
    equal = text_of(client.get(PAGE, {"filter": "param:model -param:k1>1"}))
    assert "No difference in 3 parameters" in equal
    assert "They differ only in ignored ones." in equal
    assert "Show what is the same (3) b 0.4 k1 0.9 model <b>" in equal
    few = text_of(client.get(PAGE, {"filter": "nowhere"}))
    assert "no runs; configurations of 2 to 200 runs are compared" in few
    refused = client.get(PAGE, {"filter": "param:k>1"})
    assert refused.status_code == 400
    assert 'value="param:k&gt;1"' in refused.content.decode()
    bare = make_board(board.team, {"AP": simulated(2, 5)}, "bare")
    assert "None of these runs has parameters" in page_of(
        client, f"/collections/{bare.slug}/configurations/"
    )
    assert f'href="{PAGE}?filter=param%3Anote"' not in page_of(
        client, "/collections/board/parameters/"
    )
    linked = page_of(client, "/collections/board/parameters/", filter="param:model")
    assert f'href="{PAGE}?filter=param%3Amodel"' in linked


def test_many_compared_runs_show_the_parameters_that_differ(
    client: Client, board: Collection
) -> None:
    address = "/collections/board/comparison/"
    many = client.get(address, {"baseline": run_id("r0")})
    assert 'k1 0.9 23 1.2 1 "1.2" 1 model <b> 24 not set 1' in text_of(many)
    assert (
        f"baseline={run_id('r0')}" in re.findall(rf'href="({PAGE}[^"]+)"', many.content.decode())[0]
    )


def test_two_compared_runs_show_the_parameters_that_differ(
    client: Client, api: APIClient, submit: Callable[..., Run]
) -> None:
    same = {"b": 0.4, "model": "BM25"}
    runs = [
        submit(content, tag=tag)
        for tag, content in (("a", GOOD), ("b", POOR), ("c", POOR.replace("q", "z")))
    ]
    for run, metadata in zip(
        runs, ({"k1": 1.2, **same}, {"k1": "1.2", **same}, {"k1": 1.2, **same}), strict=True
    ):
        run.metadata = metadata
        run.save()
    store_parameters(runs[0].collection, runs)
    address = "/collections/small/comparison/"
    two = client.get(address, {"runs": [str(run.pk) for run in runs[:2]]})
    assert (
        'Parameters that differ: 1 Parameter a b k1 1.2 "1.2" 1 of 3 parameters differs.'
        in text_of(two)
    )
    (side_by_side,) = re.findall(
        r'href="(/collections/small/configurations/[^"]+)"', two.content.decode()
    )
    assert "1 of 3 parameters differs among 2 runs" in text_of(
        client.get(html.unescape(side_by_side))
    )
    equal = {"runs": [str(runs[0].pk), str(runs[2].pk)]}
    assert "No difference in 3 parameters" in text_of(client.get(address, equal))
    # The page is not remembered beyond a change of a parameter or of its role.
    assert (
        api.patch(f"/api/v1/runs/{runs[2].pk}/", {"metadata": {"k1": 7}}, format="json").status_code
        == 200
    )
    assert "1 of 3 parameters differs." in text_of(client.get(address, equal))
    ParameterKey.objects.filter(name="k1").update(role="ignored")
    assert "No difference in 2 parameters" in text_of(client.get(address, equal))


def test_a_run_says_what_changed_since_a_label(client: Client, board: Collection) -> None:
    address, main = f"/runs/{run_id('r2')}/parameters/", Run.objects.get(tag="r1")
    assert "Changes from" not in text_of(client.get(address))
    Label.objects.create(collection=board, team=main.team, name="main", run=main)
    assert 'Changes from main, r1 Parameter r1 r2 k1 1.2 "1.2" model <b> not set' in text_of(
        client.get(address)
    )
    assert "Changes from" not in text_of(client.get(f"/runs/{main.pk}/parameters/"))
    text = text_of(client.get(address, {"baseline": run_id("r0")}))
    assert "Changes from r0 Parameter r0 r2 k1 0.9" in text
    assert (
        client.get(address, {"baseline": "00000000-0000-4000-8000-000000000000"}).status_code == 400
    )
    pinned = page_of(client, "/collections/board/", baseline=run_id("r0"))
    assert f'href="/runs/{run_id("r2")}/?baseline={run_id("r0")}"' in pinned
    assert f'href="/runs/{run_id("r2")}/"' in page_of(client, "/collections/board/")


def test_a_baseline_of_others_is_not_told_while_it_is_blind(bob: User, board: Collection) -> None:
    Collection.objects.update(blind=True)
    Run.objects.filter(tag__in=["r2", "r3"]).update(team=bob.personal_team)
    other = Run.objects.get(tag="r0")
    Label.objects.create(collection=board, team=bob.personal_team, name="main", run=other)
    guest = Client()
    guest.force_login(bob)
    page = text_of(guest.get(f"/runs/{run_id('r2')}/parameters/"))
    assert "r0" not in page
    assert "Changes from" not in page
    hidden = guest.get(f"/runs/{run_id('r2')}/parameters/", {"baseline": str(other.pk)})
    assert (hidden.status_code, "Changes from" in text_of(hidden)) == (400, False)
    own = text_of(guest.get(PAGE))
    assert "differ among 2 runs. Pin a run" in own
    assert "best AP first" not in own


def test_values_are_told_apart() -> None:
    assert distinct_texts(["1", 1, True, "true", "", None, "nan", "Text"]) == [
        '"1"', "1", "true", '"true"', '""', "not set", '"nan"', "Text",
    ]  # fmt: skip
    long = ["a" * 500 + "b" + "c" * 500, "a" * 500 + "d"]
    first, second = distinct_texts(long)
    assert (first[:32], second) == ("…" + "a" * 30 + "b", "…" + "a" * 30 + "d")
    assert len(first) == 122
    assert distinct_texts(["x" * 500]) == ["x" * 120 + "…"]
