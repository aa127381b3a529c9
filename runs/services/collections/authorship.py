"""The authors of a version of judgements, and the version from which it was made."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from metrics.engine.judgement.judging import Judgements
from runs.errors import FileReport, InvalidInput
from runs.models import Collection, Qrels

_KINDS, _DERIVATIONS = Qrels.AuthorKind, Qrels.Derivation
# Characters of a prompt.
MAX_PROMPT = 100_000


@dataclass(frozen=True)
class Authorship:
    """Who judged, and how the judgements were made from those of a parent.

    `name` is that of the judge, such as a person, a team or a program. `model` and the prompt are
    of a language model or another program that judges.
    """

    kind: str = _KINDS.UNKNOWN
    name: str = ""
    model: str = ""
    prompt: str = ""
    prompt_sha256: str = ""
    parent: Qrels | None = None
    derivation: str = _DERIVATIONS.NONE
    produced_at: datetime | None = None

    @property
    def fields(self) -> dict[str, Any]:
        """Return the fields of a version."""
        return {
            "author_kind": self.kind,
            "author": self.name,
            "model": self.model,
            "prompt": self.prompt,
            "prompt_sha256": self.prompt_sha256,
            "parent": self.parent,
            "derivation": self.derivation,
            "produced_at": self.produced_at,
        }

    @property
    def identity(self) -> dict[str, Any]:
        """Return the fields by which versions with the same judgements differ; empty for unknown
        authors, which any version has."""
        if self == Authorship():
            return {}
        return {name: value for name, value in self.fields.items() if name != "produced_at"}


UNKNOWN = Authorship()


def authorship_of(collection: Collection, fields: dict[str, Any]) -> Authorship:
    """Return the authorship that the fields of an upload describe.

    Raise InvalidInput for fields that contradict each other, which names one of them.
    """
    kind, model, prompt = fields["author_kind"], fields["model"], fields["prompt"]
    digest = fields["prompt_sha256"].lower()

    if kind == _KINDS.MODEL and not model:
        raise InvalidInput("name the model that judged, with its version", pointer="/model")

    if kind not in (_KINDS.MODEL, _KINDS.MIXED):
        for name in ("model", "prompt", "prompt_sha256"):
            if fields[name]:
                message = f"{name} describes a judging model: send author_kind=model, or mixed"
                raise InvalidInput(message, pointer=f"/{name}")

    if fields["author"] and not kind:
        message = f"send author_kind, too: one of {', '.join(_KINDS.values[1:])}"
        raise InvalidInput(message, pointer="/author_kind")

    if prompt:
        of_prompt = hashlib.sha256(prompt.encode()).hexdigest()
        if digest and digest != of_prompt:
            message = f"the SHA-256 of the prompt, as UTF-8, is {of_prompt}; leave it out"
            raise InvalidInput(message, pointer="/prompt_sha256")
        digest = of_prompt

    return Authorship(
        kind=kind,
        name=fields["author"],
        model=model,
        prompt=prompt,
        prompt_sha256=digest,
        parent=_parent(collection, fields["parent"], fields["derivation"]),
        derivation=fields["derivation"],
        produced_at=fields["produced_at"],
    )


def _parent(collection: Collection, version: int | None, derivation: str) -> Qrels | None:
    """Return the parent of a version, by its number."""
    derivations = ", ".join(_DERIVATIONS.values[1:])
    if version is None:
        if derivation == _DERIVATIONS.NONE:
            return None
        message = f"name the version from which these judgements were {derivation} as parent"
        raise InvalidInput(message, pointer="/parent")

    if derivation == _DERIVATIONS.NONE:
        message = f"say how the judgements were made from version {version}: {derivations}"
        raise InvalidInput(message, pointer="/derivation")

    parent = collection.qrels.filter(version=version).first()
    if parent is None:
        message = f"collection {collection.slug} has no version {version} of the judgements"
        raise InvalidInput(message, code="unknown_qrels", pointer="/parent")

    return parent


def of_reduced(qrels: Qrels) -> Authorship:
    """Return the authorship of a version without some of its topics."""
    return Authorship(
        kind=qrels.author_kind,
        name=qrels.author,
        model=qrels.model,
        prompt=qrels.prompt,
        prompt_sha256=qrels.prompt_sha256,
        produced_at=qrels.produced_at,
    )


def check_derivation(
    report: FileReport, judgements: Judgements, parent: Judgements, authorship: Authorship
) -> None:
    """Report each judgement that contradicts how the version was made from its parent.

    `filled` keeps every judgement of the parent, `sampled` has none but those of the parent, and
    `replaced` judges the same documents.
    """
    derivation, version = authorship.derivation, authorship.parent and authorship.parent.version
    levels, levels_of_parent = _levels(judgements), _levels(parent)

    if derivation in (_DERIVATIONS.FILLED, _DERIVATIONS.REPLACED):
        for pair in sorted(levels_of_parent.keys() - levels.keys()):
            message = f"{_in_words(pair)}, which version {version} has, is missing"
            report.problem(0, "missing_judgement", f"{derivation}: {message}")

    if derivation in (_DERIVATIONS.SAMPLED, _DERIVATIONS.REPLACED):
        for pair in sorted(levels.keys() - levels_of_parent.keys()):
            message = f"{_in_words(pair)} is not in version {version}"
            report.problem(0, "added_judgement", f"{derivation}: {message}")

    if derivation in (_DERIVATIONS.FILLED, _DERIVATIONS.SAMPLED):
        for pair in sorted(levels.keys() & levels_of_parent.keys()):
            level, of_parent = levels[pair], levels_of_parent[pair]
            if level != of_parent:
                message = f"{_in_words(pair)} has level {level}, in version {version} {of_parent}"
                report.problem(0, "changed_judgement", f"{derivation}: {message}")


def _levels(judgements: Judgements) -> dict[tuple[bytes, bytes], int]:
    levels = judgements.levels.tolist()
    return {
        (judgements.topic_ids[topic], document): levels[row]
        for (topic, document), row in judgements.places.items()
    }


def _in_words(pair: tuple[bytes, bytes]) -> str:
    topic, document = (part.decode(errors="replace")[:100] for part in pair)
    return f"document {document!r} of topic {topic!r}"
