"""The language of a board's filter: what it reads, and what it says of what it cannot read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metrics.services.boards.conditions import Condition
from metrics.services.boards.filter import All, Either, Field, Not, Term, Text
from metrics.services.boards.filter_grammar import (
    MAX_DEPTH,
    MAX_LENGTH,
    MAX_STARS,
    MAX_TERMS,
    parse_filter,
)
from runs.errors import InvalidInput

READ: dict[str, Term | None] = {
    "": None,
    " \t ": None,
    "bm25": Text("bm25"),
    "  bm25-rm3_v1.2 ": Text("bm25-rm3_v1.2"),
    "12:30": Text("12:30"),
    '"k1:0.9" "k1=0.9"': All((Text("k1:0.9"), Text("k1=0.9"))),
    "tag:a=b": Field("tag", ("a=b",)),
    "a,b": Text("a,b"),
    "bm25**rm3": Text("bm25*rm3"),
    '"dense (v2): OR -x"': Text("dense (v2): OR -x"),
    '"-x"': Text("-x"),
    "a b": All((Text("a"), Text("b"))),
    'a"b c"': All((Text("a"), Text("b c"))),
    "a OR b": Either((Text("a"), Text("b"))),
    "a b OR c": Either((All((Text("a"), Text("b"))), Text("c"))),
    "a OR b c OR d": Either((Text("a"), All((Text("b"), Text("c"))), Text("d"))),
    "a (b OR c)": All((Text("a"), Either((Text("b"), Text("c"))))),
    "((a))": Text("a"),
    "or": Text("or"),
    "ORACLE": Text("ORACLE"),
    '"OR"': Text("OR"),
    "-a": Not(Text("a")),
    '-"a b" c': All((Not(Text("a b")), Text("c"))),
    "-(a OR b)": Not(Either((Text("a"), Text("b")))),
    "-a OR b": Either((Not(Text("a")), Text("b"))),
    "team:lab": Field("team", ("lab",)),
    "TEAM:Lab": Field("team", ("Lab",)),
    'team:"my lab",b,b': Field("team", ("my lab", "b")),
    "tag:v1:2": Field("tag", ("v1:2",)),
    "status:Failed,queued": Field("status", ("failed", "queued")),
    "-status:stale own:yes": All((Not(Field("status", ("stale",))), Field("own", ("yes",)))),
    "after:2026-01-31 before:2026-02-01": All(
        (Field("after", ("2026-01-31",)), Field("before", ("2026-02-01",)))
    ),
    "k1=0.9": Condition("param", "k1", "=", (0.9,)),
    "stemmer=porter": Condition("param", "stemmer", "=", ("porter",)),
    "model==bm25,dpr": Condition("param", "model", "=", ("bm25", "dpr")),
    "-bm25.k1≤0.9": Not(Condition("param", "bm25.k1", "<=", (0.9,))),
    "AP!=0": Condition("measure", "AP", "!=", (0.0,)),
    "(team:a)b": All((Field("team", ("a",)), Text("b"))),
}


@pytest.mark.parametrize(("text", "tree"), READ.items(), ids=list(READ))
def test_a_filter_is_read(text: str, tree: Term | None) -> None:
    assert parse_filter(text) == tree


REFUSED = {
    "tem:a": "character 1: there is no field tem: here; did you mean team:? Text with a colon needs quotes",
    "xyz:a": "character 1: there is no field xyz: here; fields are team:, tag:, status:, after:, before:, label:, own:",
    "k1:0.9": "character 1: there is no field k1: here; fields are team:",
    "param.k1:0.9": "character 1: there is no field param.k1: here",
    "a -nDCG@10:0.5": "character 4: there is no field nDCG@10: here",
    "tag=BM25": "character 1: write tag:BM25 for tag=BM25; text with = needs quotes",
    "TAG=": "character 1: write tag:... for TAG=",
    "teams=lab": "character 1: write team:lab for teams=lab",
    "nDCG@10 > 0.5": "character 9: > must directly follow what it compares, as in k1>0.9",
    "x nDCG@10>b": "character 10: > needs a number or a date",
    "tag>=b": "character 4: >= needs a number or a date",
    "AP=b": "character 3: a measure is a number",
    "-(a<b)": "character 4: < needs a number or a date",
    "a,b=1": "character 1: a,b is not a name",
    "k1=": "character 3: = needs a value",
    "a http://b": "character 3: there is no field http: here",
    "status:done": "8: status:done is not known; status: takes one of ranked, unranked, stale, queued, evaluating, "
    "failed",
    "x after:2026-02-30": "character 9: after:2026-02-30 is not known; after: takes a date such as 2026-01-31",
    "before:2026-W05-1": "takes a date such as 2026-01-31",
    "after:20260131": "takes a date such as 2026-01-31",
    "own:maybe": "own: takes yes or no",
    "team:": "character 6: team: needs the short name of a team",
    "team: lab": "character 6: team: needs the short name of a team",
    "team:a,": "character 8: team: needs the short name of a team",
    "a OR": "character 5: a term is missing",
    "OR a": "character 1: a term is missing",
    "a OR OR b": "character 6: a term is missing",
    "()": "character 2: a term is missing",
    "(a": "character 1: this bracket is never closed",
    "a)": "character 2: no bracket is open",
    'a "b': "character 3: this quote is never closed",
    'team:"b': "character 6: this quote is never closed",
    '""': "character 1: there is nothing between these quotes",
    "-": "character 2: - goes directly before",
    "a - b": "character 4: - goes directly before",
    "--a": "character 2: - goes directly before",
    "a AND b": "character 3: terms side by side are both meant",
    "NOT b": "character 1: write - before what is not meant",
    "-OR": "character 2: OR belongs between two terms",
    "a\0b": "character 1: this text has a control character",
    "*a" * (MAX_STARS + 1): f"a text has at most {MAX_STARS} *",
    "a " * (MAX_TERMS + 1): f"a filter has at most {MAX_TERMS} terms and values",
    f"team:{'a,' * MAX_TERMS}a": f"a filter has at most {MAX_TERMS} terms and values",
    "(" * (MAX_DEPTH + 1) + "a" + ")" * (MAX_DEPTH + 1): f"at most {MAX_DEPTH} deep",
    "a" * (MAX_LENGTH + 1): "the text has 1,001 characters; at most 1,000 are read",
}  # fmt: skip


@pytest.mark.parametrize(("text", "message"), REFUSED.items())
def test_what_cannot_be_read_is_told_with_its_place(text: str, message: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse_filter(text)
    assert message in refused.value.message
    assert (refused.value.code, refused.value.pointer) == ("bad_filter", "filter")


WORDS = st.text("abAB12._-é%\\'", min_size=1, max_size=8).filter(
    lambda word: not word.startswith("-")
)
PHRASES = st.text("ab OR():,-%", min_size=1, max_size=10).filter(lambda text: text.strip() != "")
FIELDS = st.one_of(
    st.builds(
        Field,
        st.sampled_from(["team", "tag"]),
        st.lists(WORDS, min_size=1, max_size=3, unique=True).map(tuple),
    ),
    st.builds(Field, st.just("status"), st.just(("failed", "stale"))),
    st.builds(
        Field, st.sampled_from(["after", "before"]), st.dates().map(lambda day: (day.isoformat(),))
    ),
)
LEAVES = st.one_of(st.builds(Text, WORDS | PHRASES), FIELDS)


def terms(depth: int) -> st.SearchStrategy[Term]:
    if not depth:
        return LEAVES
    inner = terms(depth - 1)
    several = st.lists(inner, min_size=2, max_size=3).map(tuple)
    return st.one_of(
        LEAVES, st.builds(Not, inner), st.builds(All, several), st.builds(Either, several)
    )


def written(term: Term) -> str:
    """A filter that says what the tree says, with brackets around everything that has parts."""
    match term:
        case Text(text):
            return f'"{text}"'
        case Field(name, values):
            return f"{name}:{','.join(values)}"
        case Not(inner):
            return (
                f"-{written(inner)}"
                if isinstance(inner, Text | Field | All | Either)
                else f"-({written(inner)})"
            )
        case All(parts):
            return f"({' '.join(map(written, parts))})"
        case Either(parts):
            return f"({' OR '.join(map(written, parts))})"


@given(terms(2))
def test_what_is_written_is_read_back(term: Term) -> None:
    text = written(term)
    if len(text) <= MAX_LENGTH:
        assert parse_filter(text) == term


@given(st.text(st.sampled_from('ab12 \t"()-:,*OR\0é') | st.characters(), max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        parse_filter(text)
    except InvalidInput as refused:
        assert refused.pointer == "filter"
