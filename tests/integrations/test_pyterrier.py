"""PyTerrier: experiments return what pt.Experiment returns, and the leaderboard has its values."""

from __future__ import annotations

import gzip
import logging
import os
import random
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import evalhub_client as evh
import evalhub_client.pyterrier as eh
import httpx
import ir_measures
import pandas as pd
import pyterrier as pt
import pytest

TOPICS, DOCUMENTS = 12, 40
METRICS = ["map", "ndcg_cut_10", "P_5", "recip_rank", "recall_20", "bpref", "Rprec", "num_rel_ret"]
REAL = os.environ.get("EVALHUB_REAL_DATA", "")
warnings.filterwarnings("ignore", message=".*shared pipeline components.*")


@pytest.fixture(scope="module")
def topics() -> pd.DataFrame:
    return pd.DataFrame(
        [(f"q{n}", f"words of {n}") for n in range(TOPICS)], columns=["qid", "query"]
    )


@pytest.fixture(scope="module")
def qrels(topics: pd.DataFrame) -> pd.DataFrame:
    """Judgements of half of the documents; one topic has no relevant one."""
    draws = random.Random(1)
    rows = [
        (topic, f"d{n}", 0 if topic == "q3" else draws.choice((0, 0, 1, 2)))
        for topic in topics["qid"]
        for n in range(0, DOCUMENTS, 2)
    ]
    return pd.DataFrame(rows, columns=["qid", "docno", "label"])


def results(topics: pd.DataFrame, seed: int) -> pd.DataFrame:
    """A ranking of every topic, with documents that have the same score."""
    draws = random.Random(seed)
    rows = [
        (topic, f"d{n}", round(draws.gauss(0, 3), 1))
        for topic in topics["qid"]
        for n in range(DOCUMENTS)
    ]
    return pt.model.add_ranks(pd.DataFrame(rows, columns=["qid", "docno", "score"]))


@pytest.fixture(scope="module")
def systems(topics: pd.DataFrame) -> dict[str, Any]:
    """Pipelines with names that PyTerrier's users give them, and one that is a table of results."""
    bm25 = pt.Transformer.from_df(results(topics, 2))
    again = pt.apply.doc_score(lambda row: float(hash_of(row["docno"])))
    return {"BM25": bm25, "BM25 >> again (k=10)": bm25 % 10 >> again, "saved": results(topics, 4)}


def hash_of(text: str) -> int:
    return sum(ord(letter) * 31**place for place, letter in enumerate(text)) % 997


@pytest.fixture
def slug(collection_of: Callable[..., evh.Collection], qrels: pd.DataFrame) -> str:
    return collection_of(judged(qrels), measures=["AP"]).slug


def judged(qrels: pd.DataFrame) -> dict[str, dict[str, int]]:
    return {
        qid: dict(zip(rows["docno"], rows["label"].tolist(), strict=True))
        for qid, rows in qrels.groupby("qid")
    }


OPTIONS: list[dict[str, Any]] = [
    {},
    {"perquery": True},
    {"perquery": "both"},
    {"dataframe": False},
    {"perquery": True, "dataframe": False},
    {"baseline": 0, "correction": "holm"},
    {"round": 3},
    {"highlight": "bold"},
    {"batch_size": 5},
    {"plan": "tree", "verbose": False},
    {"precompute_prefix": True},
    {"filter_by_qrels": True},
]


def same(a: Any, other: Any) -> None:
    """Assert that two results of an experiment are the same."""
    assert type(a) is type(other)
    if isinstance(a, tuple):
        for first, right in zip(a, other, strict=True):
            same(first, right)
    elif isinstance(a, pd.DataFrame):
        pd.testing.assert_frame_equal(a, other, check_exact=True)
    elif isinstance(a, dict):
        assert a == other
    else:  # a Styler
        pd.testing.assert_frame_equal(a.data, other.data, check_exact=True)
        assert a.to_html(uuid="x") == other.to_html(uuid="x")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(
    "options", OPTIONS, ids=lambda options: "-".join(map(str, options)) or "plain"
)
def test_an_experiment_returns_what_pyterrier_returns(
    hub: evh.Hub, slug: str, topics: Any, qrels: Any, systems: Any, options: dict[str, Any]
) -> None:
    theirs = pt.Experiment(
        list(systems.values()), topics, qrels, METRICS, names=list(systems), **options
    )
    ours = eh.Experiment(
        list(systems.values()),
        topics,
        qrels,
        METRICS,
        names=list(systems),
        collection=slug,
        **options,
    )
    same(ours, theirs)
    runs = {run.tag: run for run in hub.collection(slug).runs()}
    assert set(runs) == {"BM25", "BM25-again-k-10", "saved"}
    if not isinstance(ours, dict):
        assert [run.tag for run in ours.evalhub] == ["BM25", "BM25-again-k-10", "saved"]
        assert ours.evalhub.agreement.differences == []
        assert max(row["largest"] for row in ours.evalhub.agreement.rows()) <= 1e-12
    means = pt.Experiment(list(systems.values()), topics, qrels, METRICS, names=list(systems))
    for row, tag in zip(
        means.to_dict("records"), ("BM25", "BM25-again-k-10", "saved"), strict=True
    ):
        ours_of = (
            runs[tag]
            .refresh()
            .means("AP", "nDCG@10", "P@5", "RR", "R@20", "Bpref", "Rprec", "NumRelRet")
        )
        assert list(ours_of.values()) == pytest.approx([row[name] for name in METRICS], abs=1e-12)


def test_systems_of_a_dictionary_and_names_that_pyterrier_makes(
    slug: str, topics: Any, qrels: Any, systems: Any
) -> None:
    ours = eh.Experiment(systems, topics, qrels, ["map"], baseline="BM25", collection=slug)
    same(ours, pt.Experiment(systems, topics, qrels, ["map"], baseline="BM25"))
    named = pt.Transformer.from_df(systems["saved"])
    named.__class__ = type("Mine", (named.__class__,), {"__repr__": lambda self: "Mine(w=1)"})
    unnamed = eh.Experiment([named], topics, qrels, ["map"], collection=slug)
    assert list(unnamed["name"]) == ["Mine(w=1)"]
    assert [run.tag for run in unnamed.evalhub] == ["Mine-w-1"]


@pytest.mark.skipif(not REAL, reason="EVALHUB_REAL_DATA names no collection")
def test_real_runs_have_pyterriers_values(
    hub: evh.Hub, collection_of: Callable[..., evh.Collection], capsys: Any
) -> None:
    """TREC 2003 Robust: eight runs, 100 topics, 128,796 judgements."""
    folder = Path(REAL) / "robust03"
    (path,) = [path for path in (folder / "qrels").iterdir() if path.is_file()]
    qrels = pt.io.read_qrels(str(path))
    collection = collection_of({"0": {"none": 0}})
    collection.upload_qrels(path)
    names = sorted(file for file in (folder / "runs").iterdir())
    frames = {file.name.split(".")[1]: read_run(file) for file in names}
    topics = pd.DataFrame({"qid": qrels["qid"].unique(), "query": ""})
    measures = ["map", "ndcg", "ndcg_cut_10", "P_10", "recip_rank", "Rprec", "bpref", "recall_1000", "infAP",
                "num_rel_ret", "iprec_at_recall_0.10", "success_10", pt.measures.RR @ 10, pt.measures.ERR @ 20,
                pt.measures.Judged @ 10, pt.measures.AP(rel=2)]  # fmt: skip
    result = eh.Experiment(
        frames, topics, qrels, measures, collection=collection.slug, validate="ignore"
    )
    assert result.evalhub.unsent == {}
    rows = result.evalhub.agreement.rows()
    equal = [row for row in rows if not row["reason"]]
    worst = max(equal, key=lambda row: row["largest"])
    strict = {
        "map",
        "ndcg",
        "ndcg_cut_10",
        "P_10",
        "Rprec",
        "bpref",
        "recall_1000",
        "num_rel_ret",
        "success_10",
    }
    far = max(row["largest"] for row in rows if row["measure"] in strict)
    with capsys.disabled():
        text = f"{len(frames)} runs, {sum(row['topics'] for row in equal)} of {sum(row['topics'] for row in rows)} values"
        sys.stdout.write(
            f"\n{text} equal to {worst['largest']:.2g} ({worst['measure']}), trec_eval's to {far:.2g}\n"
        )
        for row in result.evalhub.agreement.differences:
            sys.stdout.write(
                f"  {row['run']}, {row['measure']}: {row['largest']} {row['reason']}\n"
            )
    assert far <= 1e-12
    assert worst["largest"] <= 1e-11
    assert strict <= {row["measure"] for row in equal}
    # trec_eval 9 rounds recall points in its own way, which the note on the measure says.
    assert {row["measure"] for row in rows if "not explained" in row["reason"]} <= {
        "iprec_at_recall_0.10"
    }


def read_run(path: Path) -> pd.DataFrame:
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    lines = [line.split() for line in text.decode().splitlines()]
    rows = [(columns[0], columns[2], float(columns[4])) for columns in lines]
    return pt.model.add_ranks(pd.DataFrame(rows, columns=["qid", "docno", "score"]))


def test_a_saved_experiment_is_published(
    slug: str, hub: evh.Hub, topics: Any, qrels: Any, systems: Any, tmp_path: Path
) -> None:
    saved = {
        "BM25": systems["BM25"],
        "rm3": pt.Transformer.from_df(results(topics, 9)),
        "saved": systems["saved"],
    }
    pt.Experiment(saved, topics, qrels, ["map", "ndcg_cut_10", "mrt"], save_dir=str(tmp_path))
    result = eh.publish(tmp_path, collection=slug)
    assert [run.tag for run in result] == ["BM25", "rm3"]
    if (tmp_path / "perquery.csv").exists():
        assert {row["measure"] for row in result.agreement.rows()} == {"map", "ndcg_cut_10"}
        assert result.agreement.differences == []
        assert max(row["largest"] for row in result.agreement.rows()) <= 1e-12
    again = eh.publish(tmp_path, collection=slug)
    assert [run.id for run in again] == [run.id for run in result]
    with pytest.raises(evh.BadSource, match="save_format"):
        eh.publish(tmp_path / "..", collection=slug)


def test_an_experiment_keeps_its_own_folder(
    slug: str, topics: Any, qrels: Any, tmp_path: Path
) -> None:
    """What save_mode='reuse' reads from it is submitted, too."""
    systems = {"BM25": pt.Transformer.from_df(results(topics, 2))}
    first = eh.Experiment(systems, topics, qrels, ["map"], save_dir=str(tmp_path), collection=slug)
    assert (tmp_path / "BM25.res.gz").exists()
    second = eh.Experiment(
        systems,
        topics,
        qrels,
        ["map"],
        save_dir=str(tmp_path),
        save_mode="reuse",
        collection=slug,
        if_taken="suffix",
    )
    same(first, second)
    assert second.evalhub.unsent == {}
    assert len(second.evalhub) == 1


def test_differences_are_told_with_their_reason(
    collection_of: Callable[..., evh.Collection], topics: Any, qrels: Any, systems: Any, caplog: Any
) -> None:
    changed = judged(qrels)
    changed["q1"]["d0"] = 2 - changed["q1"]["d0"] // 2
    changed["q99"] = {"d1": 1}
    slug = collection_of(changed).slug
    few = topics.head(6)
    measures = ["map", pt.measures.nDCG @ 10, pt.measures.Compat(p=0.8)]
    result = eh.Experiment(systems, few, qrels, measures, collection=slug).evalhub.agreement
    reasons = {row["measure"]: row["reason"] for row in result.rows() if row["run"] == "BM25"}
    assert "1 topic (q1): 1 documents are judged differently" in reasons["map"]
    assert "the mean there is over 6 topics" in reasons["nDCG@10"]
    assert "here over 13" in reasons["nDCG@10"]
    assert "PyTerrier and EvalHub differ." in caplog.text
    assert all("not explained" not in row["reason"] for row in result.rows())


def test_rounded_values_are_recognised(slug: str, topics: Any, qrels: Any, tmp_path: Path) -> None:
    systems = {"BM25": pt.Transformer.from_df(results(topics, 2))}
    pt.Experiment(systems, topics, qrels, ["map"], round=3, save_dir=str(tmp_path))
    result = eh.publish(tmp_path, collection=slug)
    if (tmp_path / "perquery.csv").exists():
        assert [row["reason"] for row in result.agreement.rows()] == [
            "values there are rounded to 3 decimals"
        ]


def test_a_measure_that_evalhub_has_not_is_listed(
    slug: str, topics: Any, qrels: Any, systems: Any
) -> None:
    measure = ir_measures.define_byquery(lambda qrels, run: 0.5, name="Half")
    result = eh.Experiment(systems, topics, qrels, ["map", measure], collection=slug).evalhub
    (missing,) = [row for row in result.agreement.rows() if row["measure"] != "map"]
    assert (missing["run"], missing["measure"]) == ("", "Half")
    assert missing["reason"].startswith("EvalHub has no such measure: unknown measure 'Half'")
    assert len(result) == 3


def test_a_measure_that_another_one_disturbs_is_told(slug: str, topics: Any, qrels: Any) -> None:
    """ir_measures 0.4 gives nDCG the gains of another nDCG that is asked for with it."""
    measures = [pt.measures.nDCG @ 20, pt.measures.nDCG(gains={1: 5, 2: 1}) @ 20]
    rows = eh.Experiment(
        {"BM25": results(topics, 2)}, topics, qrels, measures, collection=slug
    ).evalhub.agreement.rows()
    wrong = [row for row in rows if row["reason"]]
    assert all("where this measure is requested alone" in row["reason"] for row in wrong)
    assert all("not explained" not in row["reason"] for row in rows)


def test_results_are_returned_when_the_server_refuses(
    hub: evh.Hub, slug: str, topics: Any, qrels: Any, caplog: Any
) -> None:
    """The tag is taken by another run: the experiment is not lost, and can be sent later."""
    eh.Experiment(
        {"BM25": pt.Transformer.from_df(results(topics, 2))},
        topics,
        qrels,
        ["map"],
        collection=slug,
    )
    other = {"BM25": pt.Transformer.from_df(results(topics, 3)), "new": results(topics, 5)}
    result = eh.Experiment(other, topics, qrels, ["map"], collection=slug)
    same(result, pt.Experiment(other, topics, qrels, ["map"]))
    assert [run.tag for run in result.evalhub] == ["new"]
    assert isinstance(result.evalhub.unsent["BM25"], evh.Conflict)
    assert "BM25 was not submitted" in caplog.text
    with pytest.raises(evh.Conflict):
        eh.flush()
    hub.collection(slug).run("BM25").withdraw()
    assert [run.tag for run in eh.flush()] == ["BM25"]
    assert eh.flush() == []


def test_what_cannot_be_sent_is_refused_before_the_systems_run(
    slug: str, topics: Any, qrels: Any
) -> None:
    ran = []
    system = pt.apply.generic(ran.append)
    with pytest.raises(evh.BadSource, match="both become the tag a-b"):
        eh.Experiment(
            [system, system], topics, qrels, ["map"], names=["a > b", "a < b"], collection=slug
        )
    with pytest.raises(evh.BadSource, match="does not say which run"):
        eh.Experiment([system], topics, qrels, ["map"], names=["test"], collection=slug)
    with pytest.raises(evh.NotFound):
        eh.Experiment(
            [system], topics, qrels, ["map"], names=["a"], collection="no-such-collection"
        )
    with pytest.raises(TypeError, match="Unknown kwargs"):
        eh.Experiment([system], topics, qrels, ["map"], names=["a"], collection=slug, no_option=1)
    assert ran == []
    assert eh.flush() == []


def test_a_stage_submits_what_went_by(
    hub: evh.Hub, slug: str, topics: Any, qrels: Any, caplog: Any
) -> None:
    frame = results(topics, 2)
    with eh.Submit(slug, "mono", description="a stage") as stage:
        pipeline = pt.Transformer.from_df(frame) >> stage
        theirs = pt.Experiment([pipeline], topics, qrels, ["map"], names=["x"], batch_size=5)
        passed = pipeline(topics)
        pd.testing.assert_frame_equal(passed, pt.Transformer.from_df(frame)(topics))
        assert caplog.text == ""
    run = hub.collection(slug).run("mono").wait(60)
    assert run.description == "a stage"
    assert run.means("AP")["AP"] == pytest.approx(theirs["map"][0], abs=1e-12)
    changed = frame.assign(score=-frame["score"])
    later = eh.Submit(slug, "later", hub=hub)
    later(frame)
    later(changed[changed["qid"] == "q1"])
    assert "came again with other results, which replace the first: q1" in caplog.text
    (run,) = eh.flush()
    lines = [line.split() for line in run.file().decode().splitlines()]
    scores = {line[2]: float(line[4]) for line in lines if line[0] == "q1"}
    again = changed[changed["qid"] == "q1"]
    assert scores == dict(zip(again["docno"], again["score"], strict=True))
    assert len(lines) == len(frame)
    assert eh.Submit(slug, "nothing").close() is None
    with pytest.raises(pt.validate.InputValidationError):
        eh.Submit(slug, "queries")(topics)


def test_a_collection_is_a_dataset(
    hub: evh.Hub,
    collection_of: Callable[..., evh.Collection],
    topics: Any,
    qrels: Any,
    tmp_path: Path,
) -> None:
    collection = collection_of(judged(qrels))
    (tmp_path / "topics.jsonl").write_text(
        "".join(f'{{"_id": "{row.qid}", "text": "{row.query}"}}\n' for row in topics.itertuples())
    )
    collection.upload_topics(tmp_path / "topics.jsonl")
    dataset = pt.get_dataset(f"evalhub:{collection.slug}")
    pd.testing.assert_frame_equal(dataset.get_topics(), topics, check_dtype=False)
    own = dataset.get_qrels().sort_values(["qid", "docno"], ignore_index=True)
    pd.testing.assert_frame_equal(
        own, qrels.sort_values(["qid", "docno"], ignore_index=True), check_dtype=False
    )
    pd.testing.assert_frame_equal(dataset.get_qrels("1"), dataset.get_qrels(), check_dtype=False)
    sent = results(topics, 2)
    run = collection.submit(sent, tag="bm25").wait(60)
    again = dataset.get_results("bm25")
    assert set(again.columns) == {"qid", "docno", "score", "rank", "query"}
    means = pt.Experiment([again], *dataset.get_topicsqrels(), ["map"], names=["bm25"])
    assert run.means("AP")["AP"] == pytest.approx(means["map"][0], abs=1e-12)
    assert dataset.info_url() == collection.page
    with pytest.raises(KeyError, match="no-such"):
        pt.get_dataset("evalhub:no-such")
    with pytest.raises(ValueError, match="no topics 'narrative'"):
        dataset.get_topics("narrative")
    assert collection.slug in list(eh.CollectionDatasets().list_dataset_names())


class Blinding(httpx.HTTPTransport):
    """The server as a participant of a blind campaign meets it."""

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        if "/values/" in request.url.path or "/qrels/" in request.url.path:
            return httpx.Response(
                403, json={"code": "blind", "detail": "the judgements are not released"}
            )
        return super().handle_request(request)


def test_blind_judgements_stay_blind(slug: str, topics: Any, qrels: Any, caplog: Any) -> None:
    """The participant is told so, and has the result of the experiment."""
    systems = {"BM25": results(topics, 2)}
    with evh.connect(transport=Blinding()) as participant:
        result = eh.Experiment(systems, topics, qrels, ["map"], collection=slug, hub=participant)
        same(result, pt.Experiment(systems, topics, qrels, ["map"]))
        assert len(result.evalhub) == 1
        assert result.evalhub.agreement is None
        assert "not compared with EvalHub's: the judgements are not released" in caplog.text
        dataset = eh.CollectionDataset(
            participant.collection(slug), evh.Answer({"active_qrels": None})
        )
        with pytest.raises(evh.Blind, match="not released"):
            dataset.get_qrels()


def test_datasets_are_listed_without_a_server(monkeypatch: Any, caplog: Any) -> None:
    """PyTerrier asks every provider, configured or not."""
    caplog.set_level(logging.INFO)
    monkeypatch.setenv("EVH_URL", "http://127.0.0.1:9")
    assert eh.CollectionDatasets().list_dataset_names() == []
    monkeypatch.delenv("EVH_URL")
    assert eh.CollectionDatasets().list_dataset_names() == []
    assert "no server is known" in caplog.text


def test_the_page_shows_what_its_example_prints(
    check_page: Any, collection_of: Callable[..., evh.Collection]
) -> None:
    check_page("pyterrier", collection_of({"1": {"a": 1, "b": 0}, "2": {"c": 2}, "3": {"q": 1}}))
