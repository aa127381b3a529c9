"""The addresses of docs/sources.md: each answers, what it names exists, and each number that is printed comes out."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from decimal import ROUND_DOWN, ROUND_HALF_UP, Decimal
from fractions import Fraction
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest
from rest_framework.test import APIClient

from metrics.engine.grammar import parse_measure
from metrics.engine.steps import Matrix
from runs.models import Run, Team, User
from tests.conftest import SESSIONS, evaluate_all, upload
from tests.metrics.scored import make_scored
from tests.test_docs import ROOT

pytestmark = pytest.mark.words
TEXT = (ROOT / "docs/sources.md").read_text()
NUMBERS = re.findall(r"^\| (.+) \| `(.+)` \| `(\S+)`(.*) \| (.+) \| (.+) \|$", TEXT, re.MULTILINE)
ADDRESSES = re.findall(
    r"`((?:runs|collections|session-sets)/\{(?:run|collection|set)\}[^`]+)`", TEXT
)
RANKINGS = re.findall(r"^\| `\{(\w+)\}` \| (\w+) \| ([\d× ]+) \| ([\d ]*)\|$", TEXT, re.MULTILINE)
QRELS = "1 0 a 2\n1 0 b 1\n1 0 c 3\n1 0 n 0\n2 0 x 1\n2 0 y 2\n3 0 z 3\n3 0 w 1\n"
RUNS = (
    "1 Q0 a 1 3 t\n1 Q0 n 2 2 t\n1 Q0 c 3 1 t\n2 Q0 x 1 2 t\n",
    "1 Q0 b 1 9 t\n2 Q0 y 1 9 t\n3 Q0 w 1 8 t\n",
)
# Documents of the two versions, by their levels: rows the first, columns the second.
REJUDGED = ((2780, 134, 51), (691, 1004, 1077))
SESSION_LENGTHS = {
    "1": (28, 7, 10, 4, 5, 4, 1, 1, 0, 0, 0),
    "2": (21, 7, 9, 11, 2, 4, 2, 2, 0, 1, 1),
}
# Thousandths of three runs on 30 topics: BOOL fails on some topics altogether.
TABLE_1 = {
    "AvgPos(of='nCG',gains='0-1-10-100')@200": """
871 878 645 731 944 748 659 807 736 815 946 772 654 714 751 557 973 712 775 743 971 794 632 889 536 689 676 710 538 784
615 556 329 618 782 550 562 555 618 638 804 747 641 591 696 580 789 614 624 563 681 600 555 680 813 534 623 597 673 582
554 254 602 586 888 125 742 607 674 502 112 812 132 668 660 223 771 151 609 553 832 261 634 29 145 239 62 137 519 627
""",
    "AvgPos(of='nDCG',gains='0-1-10-100',dis='jk')@200": """
627 381 566 659 454 554 637 572 470 557 653 733 701 795 890 722 588 601 680 606 681 498 707 650 313 453 821 350 317 644
195 278 360 335 499 232 497 512 434 556 536 749 746 630 673 371 408 311 212 495 532 358 469 149 546 365 412 538 283 429
233 389 55 353 546 360 336 640 200 29 431 457 382 577 469 196 401 58 441 340 255 526 244 134 96 148 294 374 102 174
""",
}


def collection_of(api: APIClient, slug: str, *qrels: str) -> None:
    assert api.post("/api/v1/collections/", {"slug": slug, "name": slug}).status_code == 201
    for text in qrels:
        assert upload(api, f"collections/{slug}/qrels/", text).status_code == 201


@pytest.fixture
def names(api: APIClient, submit: Callable[..., Run]) -> dict[str, str]:
    assert upload(api, "collections/small/qrels/", QRELS).status_code == 201
    assert (
        api.patch("/api/v1/collections/small/", {"documents": 1000}, format="json").status_code
        == 200
    )
    run, other = (
        str(submit(text, tag=tag).pk) for text, tag in zip(RUNS, ("one", "two"), strict=True)
    )
    timed = SESSIONS.replace('"documents"', '"time": 4.5, "documents"')
    made = upload(api, "collections/small/sessions/", timed)
    evaluate_all()
    return {"run": run, "other": other, "collection": "small", "set": made.json()["id"]}


@pytest.fixture
def examples(api: APIClient, alice: User, collection: str) -> dict[str, str]:
    """The ids of the runs and of the set, and the names of the collections, that rows of numbers are about."""
    found = {}
    for name in dict.fromkeys(row[0] for row in RANKINGS):
        qrels, run = "", ""
        for _, topic, ranking, missed in (row for row in RANKINGS if row[0] == name):
            levels = re.sub(
                r"(\d+) × (\d+)", lambda many: " ".join([many[2]] * int(many[1])), ranking
            ).split()
            qrels += "".join(
                f"{topic} 0 d{rank} {level}\n"
                for rank, level in enumerate(levels, 1)
                if level != "0"
            )
            qrels += "".join(
                f"{topic} 0 m{number} {level}\n" for number, level in enumerate(missed.split())
            )
            run += "".join(
                f"{topic} Q0 d{rank} {rank} {-rank} t\n" for rank in range(1, len(levels) + 1)
            )
        collection_of(api, f"of-{name.lower()}", qrels)
        found[name] = upload(api, f"collections/of-{name.lower()}/runs/", run).json()["id"]

    levels_of_articles = [
        level for level, number in enumerate((14617, 857, 700, 366)) for _ in range(number)
    ]
    collection_of(
        api,
        "articles",
        "".join(f"1 0 d{place} {level}\n" for place, level in enumerate(levels_of_articles)),
    )
    api.patch("/api/v1/collections/articles/", {"documents": 53893}, format="json")
    pairs = [
        (a, b)
        for a, row in enumerate(REJUDGED)
        for b, number in enumerate(row)
        for _ in range(number)
    ]
    versions = (
        "".join(f"1 0 d{place} {pair[side]}\n" for place, pair in enumerate(pairs))
        for side in (0, 1)
    )
    collection_of(api, "rejudged", *versions)

    lines = [
        {"session_id": f"{system}-{queries}-{number}", "topic_id": "1", "system": system,
         "queries": [{"documents": ["a"]}] * queries}
        for system, counts in SESSION_LENGTHS.items()
        for queries, sessions in enumerate(counts, 1)
        for number in range(sessions)
    ]  # fmt: skip
    sent = upload(
        api,
        f"collections/{collection}/sessions/",
        "".join(json.dumps(line) + "\n" for line in lines),
    )
    evaluate_all()

    values = np.array([text.split() for text in TABLE_1.values()], float).reshape(2, 3, 30) / 1000
    make_scored("table1", Team.objects.get(personal_of=alice), values, list(TABLE_1))
    return found | {
        "articles": "articles",
        "rejudged": "rejudged",
        "sessions": sent.json()["id"],
        "table1": "table1",
    }


def ask(api: APIClient, address: str, names: dict[str, str]) -> Any:
    asked = re.sub(r"\{(\w+)\}", lambda found: names[found[1]], address)
    answer = api.get(f"/api/v1/{quote(asked, safe='/?&=,;()@.')}")
    assert answer.status_code == 200, (address, getattr(answer, "content", b"")[:300])
    return answer


def test_every_address_answers(api: APIClient, names: dict[str, str]) -> None:
    assert len(ADDRESSES) > 80
    drawn = 0
    for address in dict.fromkeys(ADDRESSES):
        drawn += ".svg" in address
        # A few pictures are drawn, of the others what they are drawn from.
        ask(api, address.replace(".svg", ".json") if drawn > 2 else address, names)


def test_figures_of_normalised_curves_divide_averages_by_averages() -> None:
    """Both studies of cumulated gain divide the average vector by the averaged ideal one."""
    cumulated_gain = TEXT.partition("## Baeza-Yates")[0]
    addresses = re.findall(r"curves\.svg\?measure=(nD?CG\([^`]+)&", cumulated_gain)
    assert len(addresses) == 6
    for address in addresses:
        assert "norm='average'" in address


def found_at(answer: Any, path: str) -> Iterator[Any]:
    """What stands at a path of an answer; `*` goes through all there is."""
    first, _, rest = path.partition("/")
    if isinstance(answer, dict):
        inner = list(answer.values()) if first == "*" else [answer[first]]
    else:
        inner = answer if first == "*" else [answer[int(first)]]
    for one in inner:
        if rest:
            yield from found_at(one, rest)
        else:
            yield from one if isinstance(one, list) else [one]


def numbers_of(answer: Any, path: str, how: str) -> list[Any]:
    values = list(found_at(answer, path))
    if "step by step" in how:
        values = np.diff(values, prepend=0).tolist()
    if ranks := re.search(r" at ([\d ]+)", how):
        values = [values[int(rank) - 1] for rank in ranks[1].split()]
    return [value * 100 for value in values] if "× 100" in how else values


def digits_of(text: str) -> int:
    return len(text.partition(".")[2])


def shown(value: float, digits: int, rounding: str = ROUND_HALF_UP) -> Decimal:
    # What is a half but for rounding errors is rounded up, as by hand.
    return Decimal(repr(round(value, 9))).quantize(Decimal(1).scaleb(-digits), rounding)


def test_every_printed_number_comes_out(api: APIClient, examples: dict[str, str]) -> None:
    assert len(NUMBERS) > 45
    answers: dict[str, Any] = {}
    for where, address, path, how, printed, here in NUMBERS:
        answer = answers[address] = answers.get(address) or ask(api, address, examples).json()
        values = numbers_of(answer, path, how)
        source, ours = printed.split(), here.split()
        assert len(source) == len(ours) <= len(values), (where, values)
        if isinstance(values[0], bool):
            assert source == ours, where
            assert [mark != "–" for mark in source] == values, where
            continue
        values = values[: len(ours)]
        assert [
            shown(value, digits_of(text)) for value, text in zip(values, ours, strict=True)
        ] == [Decimal(text) for text in ours], (where, values)
        asked = [(Fraction(text), 4 if "/" in text else digits_of(text)) for text in source]
        rounded = [
            Fraction(shown(value, digits)) for value, (_, digits) in zip(values, asked, strict=True)
        ]
        cut = [
            Fraction(shown(value, digits, ROUND_DOWN))
            for value, (_, digits) in zip(values, asked, strict=True)
        ]
        theirs = [Fraction(shown(float(number), digits)) for number, digits in asked]
        kind = re.search(r"\((cut|wrong)\)", where)
        assert [theirs == rounded, all(one in pair for one, *pair in zip(theirs, rounded, cut, strict=True))] == {
            None: [True, True], "cut": [False, True], "wrong": [False, False],
        }[kind and kind[1]], (where, values)  # fmt: skip


def test_shares_that_are_wrong_in_print() -> None:
    counts: Matrix = np.array(REJUDGED, float)
    assert round(100 * counts[1, 0] / counts[1].sum(), 1) == 24.9


def test_every_name_of_ntcir_is_a_measure() -> None:
    rows = re.findall(
        r"^\| [^`|]+ \| (`[^|]+) \|",
        TEXT.partition("## NTCIR")[2].partition("## ")[0],
        re.MULTILINE,
    )
    found = [name for row in rows for name in re.findall(r"`([^`]+)`", row)]
    assert len(found) > 12
    for name in found:
        assert parse_measure(name)
