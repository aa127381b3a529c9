"""What other libraries hand over: their dictionaries, their files, their measures. The libraries themselves are met by
`make integrations`; here their shapes stand in for them."""

from __future__ import annotations

import json
import logging
import sys
import warnings
from collections import namedtuple
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import httpx
import pytest

from evalhub.client import BadSource, Coverage, Hub, UploadWarning
from evalhub.client import ir_datasets as importing
from evalhub.client import sentence_transformers as training
from evalhub.client.predictions import read_map, read_mteb, read_sentence_transformers
from evalhub.client.sources import read_source, tag_of_file
from tests.client.conftest import problem, raw_run
from tests.client.test_sources import Table, bytes_of

RESULTS = {"1": {"1": 9.0, "a": 2.0}, "2": {"b": 1.0}, "3": {"3": 1.0}}


def test_documents_of_the_topics_own_id_are_left_out_where_that_is_asked_for() -> None:
    whole, dropped = read_source(RESULTS, "x"), read_source(RESULTS, "x", drop_identical=True)
    assert (
        (whole.identical, whole.dropped)
        == (dropped.identical, not dropped.dropped)
        == (("1", "3"), False)
    )
    assert bytes_of(dropped) == b"1 Q0 a 1 2.0 x\n2 Q0 b 1 1.0 x\n"
    assert RESULTS["1"] == {"1": 9.0, "a": 2.0}, "the dictionary is its owner's"
    with pytest.raises(BadSource, match="no document is left"):
        read_source({"1": {"1": 1.0}}, "x", drop_identical=True)
    with pytest.raises(BadSource, match="not for a run file"):
        read_source(b"1 Q0 1 1 1.0 x\n", drop_identical=True)


@pytest.mark.parametrize("blind", [False, True])
def test_who_drops_a_relevant_document_is_warned(hub_of: Callable[..., Hub], blind: bool) -> None:
    def server(request: httpx.Request) -> httpx.Response:
        if request.url.path.endswith("/file/"):
            if blind:
                return problem(403, "blind")
            return httpx.Response(200, text="1 0 1 2\n2 0 2 1\n\n3 0 3 0\n")
        if request.method == "GET":
            return httpx.Response(200, json={"active_qrels": 1})
        return httpx.Response(202, json=raw_run("x"))

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UploadWarning)
        hub_of(server).collection("c").submit(RESULTS, tag="x", drop_identical=True)
    warning = "drop_identical left out 1 relevant document, such as that of topic 1"
    assert [warning in str(entry.message) for entry in caught] == ([] if blind else [True])


def test_who_keeps_them_is_warned_and_who_drops_them_says_how_many(
    hub_of: Callable[..., Hub],
) -> None:
    sent: list[bytes] = []

    def server(request: httpx.Request) -> httpx.Response:
        if request.method == "POST":
            sent.append(request.content)
        return httpx.Response(202, json=raw_run("x"))

    collection = hub_of(server).collection("c")
    with pytest.warns(UploadWarning, match="1 topic retrieves the document of its own id, such as"):
        collection.submit({"1": RESULTS["1"]}, tag="x")
    sent.clear()
    with pytest.warns(UploadWarning, match="2 topics retrieve the document of their own id"):
        collection.submit(RESULTS, tag="x")
    assert b"dropped_identical" not in sent[0]
    collection.submit(RESULTS, tag="x", drop_identical=True, metadata={"k": 1})
    assert json.loads(sent[1].partition(b'name="metadata"\r\n\r\n')[2].split(b"\r\n")[0]) == {
        "k": 1,
        "dropped_identical": 2,
    }


def values_of(
    answered: dict[str, float | None], judged: int, aggregate: str = "mean"
) -> dict[str, Any]:
    """The answer of `runs/{id}/values/` to AP and NumRet, where the topics that are not named were not answered."""
    named = [
        {"topic_id": topic, "values": {"AP": value, "NumRet": 1.0}}
        for topic, value in answered.items()
    ]
    rest = [
        {"topic_id": f"-{n}", "values": {"AP": 0.0, "NumRet": 0.0}}
        for n in range(judged - len(named))
    ]
    means = {
        "AP": {
            "mean": sum(value or 0 for value in answered.values()) / judged,
            "aggregate": aggregate,
        }
    }
    means["NumRet"] = {"mean": len(named), "aggregate": "sum"}
    return {
        "means": means,
        "topics": named + rest,
        "coverage": {"answered": len(named), "judged": judged},
    }


def test_the_mean_of_other_programs_is_over_the_answered_topics() -> None:
    coverage = Coverage(values_of({"1": 0.5, "2": 0.25, "3": 0.0}, judged=4), "bm25")
    assert coverage.rows() == [
        {"measure": "AP", "mean": 0.1875, "mean_of_answered": 0.25, "answered": 3, "judged": 4}
    ]
    assert str(coverage) == "bm25: BEIR would print AP 0.2500 (3 topics), EvalHub 0.1875 (4)"
    assert str(Coverage(values_of({"1": 0.5}, judged=1), "bm25")) == ""
    none = Coverage(values_of({}, judged=1), "bm25")
    assert str(none) == "bm25: BEIR has no mean of AP (0 topics), EvalHub 0.0000 (1)"
    assert (
        Coverage(values_of({"1": 0.5}, judged=2, aggregate="geometric mean"), "bm25").rows() == []
    )
    undefined = Coverage(values_of({"1": None, "2": 0.5}, judged=3), "bm25")
    assert undefined.rows()[0]["mean_of_answered"] == 0.5


def test_files_of_ranx(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "bm25.json"
    path.write_text(json.dumps(RESULTS))
    source = read_source(path)
    assert (source.tag, tag_of_file(path), source.identical) == ("bm25", "bm25", ("1", "3"))
    assert bytes_of(source).startswith(b"1 Q0 1 1 9.0 bm25\n")
    path.write_text('[{"a": 1}]')
    with pytest.raises(BadSource, match="a record has a topic"):
        read_source(path)
    for text in ("{", '{"1": [3]}'):
        path.write_text(text)
        with pytest.raises(BadSource, match=r"not JSON|a record has a topic"):
            read_source(path)
    packed = tmp_path / "dense.lz4"
    packed.write_bytes(b"x")
    monkeypatch.setitem(sys.modules, "ranx", None)
    with pytest.raises(BadSource, match="where ranx is installed"):
        read_source(packed)
    kind = type("Run", (), {"__module__": "ranx", "to_dict": lambda self: RESULTS, "name": None})
    library = SimpleNamespace(Run=SimpleNamespace(from_file=lambda path: kind()))
    monkeypatch.setitem(sys.modules, "ranx", library)
    assert read_source(packed).tag == "dense"
    monkeypatch.setitem(
        sys.modules,
        "pandas",
        SimpleNamespace(read_parquet=lambda path: Table("q_id", "doc_id", "score")),
    )
    packed.rename(tmp_path / "dense.parquet")
    assert bytes_of(read_source(tmp_path / "dense.parquet")).startswith(
        b"2 Q0 \xc3\xa4 1 1.5 dense\n"
    )


def test_predictions_of_sentence_transformers(tmp_path: Path) -> None:
    path = tmp_path / "predictions.jsonl"
    lines = [
        {
            "query_id": "1",
            "query": "q",
            "results": [{"corpus_id": "a", "score": 0.5}, {"corpus_id": 7, "score": 1}],
        }
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert read_sentence_transformers(path) == {"1": {"a": 0.5, "7": 1}}
    for text, says in (
        ('{"query_id": "1"}', ":1: a line of predictions has"),
        ("[", ":1: a line"),
        (path.read_text() * 2, ":2: query 1 is there twice"),
    ):
        path.write_text(text)
        with pytest.raises(BadSource, match=says):
            read_sentence_transformers(path)


def mteb_file(folder: Path, task: str, **subsets: Any) -> None:
    folder.mkdir(exist_ok=True)
    meta = {
        "model_name": "intfloat/e5-small",
        "revision": "ffb93f3bd4047442299a41ebb6fa998a38507c52",
    }
    (folder / f"{task}_predictions.json").write_text(
        json.dumps({"mteb_model_meta": meta, **subsets})
    )


def test_predictions_of_mteb(tmp_path: Path) -> None:
    folder = tmp_path / "predictions"
    mteb_file(folder, "SciFact", default={"test": RESULTS})
    mteb_file(folder, "MIRACL", de={"dev": RESULTS}, sw={"dev": {"1": {"a": 1.0}}})
    (tmp_path / "map.toml").write_text('SciFact = "scifact"\n"MIRACL/sw" = "miracl-sw"\n')
    collections = read_map(tmp_path / "map.toml")
    runs, rest = read_mteb(folder, collections)
    assert rest == ["MIRACL/de/dev"]
    assert [(run.name, run.collection, run.tag) for run in runs] == [
        ("MIRACL/sw", "miracl-sw", "intfloat-e5-small-ffb93f3"),
        ("SciFact", "scifact", "intfloat-e5-small-ffb93f3"),
    ]
    assert runs[0].results == {"1": {"a": 1.0}}
    assert runs[1].metadata["revision"].startswith("ffb93f3bd")
    assert runs[1].metadata["mteb_split"] == "test"
    for wrong, says in (
        ({"MIRACL": "m"}, "MIRACL means several runs in .*: MIRACL/de/dev, MIRACL/sw/dev"),
        ({"SciFac": "s"}, "no predictions of SciFac; it has MIRACL/de/dev"),
    ):
        with pytest.raises(BadSource, match=says):
            read_mteb(folder, wrong)
    path = folder / "SciFact_predictions.json"
    path.write_text(path.read_text().replace("intfloat/e5-small", "no_model_name/available"))
    with pytest.raises(BadSource, match="does not say which model it is of"):
        read_mteb(folder, collections)
    assert {run.tag for run in read_mteb(folder, collections, "mine")[0]} == {"mine"}
    (folder / "STS_predictions.json").write_text("[1, 2]")
    with pytest.raises(BadSource, match=r"STS_predictions.* is not a file of predictions"):
        read_mteb(folder, collections)
    with pytest.raises(BadSource, match="has no file"):
        read_mteb(tmp_path / "none", collections)
    for text, says in (("a = ", "is not TOML"), ("[SciFact]\n", "write SciFact = ")):
        (tmp_path / "map.toml").write_text(text)
        with pytest.raises(BadSource, match=says):
            read_map(tmp_path / "map.toml")


Query = namedtuple("Query", "query_id title description parts")
Part = namedtuple("Part", "number text")
Qrel = namedtuple("Qrel", "query_id doc_id relevance iteration")
Sub = namedtuple("Sub", "query_id doc_id relevance subtopic_id")
Sampled = namedtuple("Sampled", "query_id doc_id relevance method iprob")


class Dataset:
    """A dataset of ir_datasets, as far as it is asked; `judgements` are of one type."""

    def __init__(self, *judgements: Any) -> None:
        self.judgements = judgements

    def has_queries(self) -> bool:
        return True

    has_qrels = has_queries

    def queries_iter(self) -> Iterator[Any]:
        yield Query("1", "ähnlich", "says more", (Part("1", "a part"),))

    def qrels_iter(self) -> Iterator[Any]:
        yield from self.judgements

    def qrels_cls(self) -> Any:
        return type(self.judgements[0])

    def qrels_defs(self) -> dict[int, str]:
        return {1: "relevant"}

    def documentation(self) -> dict[str, Any]:
        return {"desc": "<p>Some &amp; more</p>", "bibtex_ids": ["Doe2020"]}


@pytest.fixture
def datasets(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Stands in for ir_datasets: what it loads by name."""
    known: dict[str, Any] = {}
    library = ModuleType("ir_datasets")
    library.load = known.__getitem__  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "ir_datasets", library)
    monkeypatch.setattr(importing.metadata, "version", lambda name: "0.6.3")
    return known


class Stored:
    """A server that keeps one collection; `seen` has its changes."""

    def __init__(self) -> None:
        self.collection: dict[str, Any] = {}
        self.qrels: list[dict[str, Any]] = []
        self.seen: list[tuple[str, str, bytes]] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        path = request.url.path.removeprefix("/api/v1/")
        if request.method != "GET":
            self.seen.append((request.method, path, request.content))
        if request.method == "GET" and path.endswith("/qrels/"):
            return httpx.Response(200, json={"results": self.qrels, "next": None})
        if request.method == "GET":
            return (
                httpx.Response(200, json=self.collection)
                if self.collection
                else problem(404, "not_found")
            )
        if path.endswith("/qrels/"):
            file = (
                request.content.partition(b'name="file"')[2]
                .partition(b"\r\n\r\n")[2]
                .rpartition(b"\r\n--")[0]
            )
            self.qrels.append({"sha256": importing.hashlib.sha256(file).hexdigest()})
        elif path == "collections/" or request.method == "PATCH":
            empty = {"description": "", "level_labels": {}}
            self.collection = {**(self.collection or empty), **json.loads(request.content)}
        return httpx.Response(201, json={})


def test_an_import_is_complete_and_the_second_one_sends_nothing(
    hub_of: Callable[..., Hub], datasets: dict[str, Any]
) -> None:
    datasets["lab/tiny"] = Dataset(Qrel("1", "d1", 1, "0"), Qrel("1", "d2", 0, "0"))
    server = Stored()
    hub = hub_of(server)
    summary = importing.import_collection(hub, "tiny", "lab/tiny", team="lab")
    assert summary["uploaded"] == "topics and judgements"
    assert (summary["topics"], summary["judgements"], summary["iteration"]) == (1, 2, "ignore")
    assert [(method, path) for method, path, _ in server.seen] == [
        ("POST", "collections/"), ("PUT", "collections/tiny/topics/"), ("POST", "collections/tiny/qrels/"),
        ("PATCH", "collections/tiny/"),
    ]  # fmt: skip
    topic = {
        "_id": "1",
        "title": "ähnlich",
        "description": "says more",
        "parts": [{"number": "1", "text": "a part"}],
    }
    assert json.dumps(topic, ensure_ascii=False).encode() + b"\n" in server.seen[1][2]
    assert b"1 0 d1 1\n1 0 d2 0\n" in server.seen[2][2]
    assert server.collection["level_labels"] == {"1": "relevant"}
    assert server.collection["description"].startswith(
        "Imported from ir_datasets 0.6.3, lab/tiny.\n\nSome & more\n\n"
    )
    server.seen.clear()
    server.collection["description"] = "Ours. " + server.collection["description"]
    assert importing.import_collection(hub, "tiny", "lab/tiny")["uploaded"] == "nothing"
    assert server.seen == []
    datasets["lab/tiny"].judgements += (Qrel("1", "d3", 1, "0"),)
    assert importing.import_collection(hub, "tiny", "lab/tiny")["uploaded"] == "judgements"
    assert server.collection["description"].startswith("Ours. Imported")


@pytest.mark.parametrize(
    ("name", "judgement", "line", "iteration"),
    [
        ("web", Sub("1", "d1", 1, "history"), b"1 history d1 1\n", b"subtopic"),
        ("cord19/trec-covid/round1", Qrel("1", "d1", 2, "0.5"), b"1 0.5 d1 2\n", b"round"),
        ("robust", Qrel("1", "d1", 2, "Q0"), b"1 Q0 d1 2\n", b"ignore"),
        (
            "plain",
            namedtuple("Plain", "query_id doc_id relevance")("1", "d1", 1.0),
            b"1 0 d1 1\n",
            b"ignore",
        ),
    ],
)
def test_the_second_column_means_what_the_dataset_says(
    hub_of: Callable[..., Hub],
    datasets: dict[str, Any],
    name: str,
    judgement: Any,
    line: bytes,
    iteration: bytes,
) -> None:
    datasets[name], server = Dataset(judgement), Stored()
    importing.import_collection(hub_of(server), "c", name)
    (body,) = (body for _, path, body in server.seen if path.endswith("/qrels/"))
    assert line in body
    assert b'name="iteration"\r\n\r\n' + iteration + b"\r\n" in body


@pytest.mark.parametrize(
    ("judgement", "says"),
    [
        (Sampled("1", "d1", 1, 0, 0.5), "a sample with probabilities"),
        (
            namedtuple("Other", "query_id doc_id quality")("1", "d1", 1),
            "have no relevance; they have query_id",
        ),
        (Qrel("1", "d1", 0.5, "0"), "query 1, document d1: level 0.5 is not a whole number"),
    ],
)
def test_what_cannot_be_imported_is_refused_before_anything_is_sent(
    hub_of: Callable[..., Hub], datasets: dict[str, Any], judgement: Any, says: str
) -> None:
    datasets["d"], server = Dataset(judgement), Stored()
    with pytest.raises(BadSource, match=says):
        importing.import_collection(hub_of(server), "c", "d")
    with pytest.raises(BadSource, match="has no dataset 'nothing'"):
        importing.import_collection(hub_of(server), "c", "nothing")
    assert server.seen == []


class Inner:
    """An InformationRetrievalEvaluator, as far as it is asked."""

    greater_is_better, description, primary_metric = True, "Information Retrieval", "cosine_ndcg@10"
    score_function_names = ("cosine",)

    def __init__(self, write_predictions: bool) -> None:
        self.write_predictions = write_predictions
        if write_predictions:
            self.predictions_file = "dev_predictions.jsonl"

    def __call__(
        self, model: Any, output_path: str | None = None, epoch: float = -1, steps: int = -1
    ) -> Any:
        if self.write_predictions and output_path:
            line = {"query_id": "1", "results": [{"corpus_id": "a", "score": 0.5}]}
            name = self.predictions_file.replace(".jsonl", "_cosine.jsonl")
            Path(output_path, name).write_text(json.dumps(line) + "\n")
        return {"cosine_ndcg@10": 0.25}


@pytest.fixture
def hub_evaluator(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The class, made with a stand-in for the library's own base class."""
    library = SimpleNamespace(SentenceEvaluator=type("SentenceEvaluator", (), {}))
    monkeypatch.setitem(sys.modules, "sentence_transformers.evaluation", library)
    evaluator_class = training.HubEvaluator
    assert issubclass(evaluator_class, library.SentenceEvaluator)
    yield evaluator_class
    del training.__dict__["HubEvaluator"]


@pytest.mark.parametrize("wanted", [True, False])
def test_an_evaluator_sends_what_the_inner_one_ranked(
    hub_of: Callable[..., Hub], hub_evaluator: Any, tmp_path: Path, wanted: bool
) -> None:
    sent: list[bytes] = []

    def server(request: httpx.Request) -> httpx.Response:
        sent.append(request.content)
        return httpx.Response(202, json=raw_run("x"))

    inner = Inner(wanted)
    before = dict(vars(inner))
    evaluator = hub_evaluator(inner, "dev", hub=hub_of(server))
    model = SimpleNamespace(model_card_data=SimpleNamespace(base_model="microsoft/mpnet-base"))
    assert evaluator(model, str(tmp_path), epoch=0.5, steps=100) == {"cosine_ndcg@10": 0.25}
    assert evaluator(model) == {"cosine_ndcg@10": 0.25}
    assert [b'name="tag"\r\n\r\n' + tag + b"\r\n" in body for tag, body in zip(
        (b"microsoft-mpnet-base-0.5-100", b"microsoft-mpnet-base"), sent, strict=True
    )] == [True, True]  # fmt: skip
    assert b"1 Q0 a 1 0.5 microsoft-mpnet-base-0.5-100\n" in sent[0]
    assert bool(list(tmp_path.glob("*.jsonl"))) is wanted, (
        "what nobody asked for is not left behind"
    )
    assert before == vars(inner)
    assert (len(evaluator.runs), evaluator.primary_metric) == (2, "cosine_ndcg@10")


def test_no_failure_reaches_the_training_and_the_first_is_told(
    hub_of: Callable[..., Hub], hub_evaluator: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    evaluator = hub_evaluator(
        Inner(False), "dev", name="mine", hub=hub_of(lambda request: problem(403, "x"))
    )
    for steps in (1, 2):
        assert evaluator(SimpleNamespace(), epoch=1.0, steps=steps) == {"cosine_ndcg@10": 0.25}
    assert [record.getMessage() for record in caplog.records] == [
        "the evaluation was not sent to EvalHub, and later failures are not logged: x happened"
    ]
    with pytest.raises(TypeError, match="ranks documents"):
        hub_evaluator(SimpleNamespace(), "dev", hub=hub_of(problem))
