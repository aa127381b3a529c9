"""A leaderboard as an entry of BibTeX, with its judgements and the version of the engine."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from metrics.engine import ENGINE_VERSION
from metrics.engine.measures.grammar import Measure
from metrics.exports.latex import escaped
from runs.models import Collection, Qrels

_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]


@dataclass(frozen=True)
class Citation:
    """The content of a citation; `on` is the day on which the leaderboard was read."""

    collection: Collection
    qrels: Qrels
    sort: Measure
    address: str
    on: date
    engine_version: str = ENGINE_VERSION

    @property
    def title(self) -> str:
        title = f"Leaderboard of {self.collection.name} by {self.sort.name}"
        return ", ".join(filter(None, [title, self.qrels.authors]))

    @property
    def bibtex(self) -> str:
        qrels = self.qrels
        note = (
            f"Judgements: version {qrels.version}, SHA-256 {qrels.sha256}. "
            f"Engine: version {self.engine_version}"
        )
        fields = {
            "title": f"{{{escaped(self.title)}}}",
            "howpublished": "EvalHub",
            "year": str(self.on.year),
            "month": _MONTHS[self.on.month - 1],
            "url": self.address,
            "urldate": self.on.isoformat(),
            "note": escaped(note),
        }

        lines = []
        for name, text in fields.items():
            # The name of a month is a macro of BibTeX, which has no braces.
            value = text if name == "month" else f"{{{text}}}"
            lines.append(f"  {name} = {value},")

        return "\n".join([f"@misc{{{self.key},", *lines, "}", ""])

    @property
    def key(self) -> str:
        return f"evalhub-{self.collection.slug}-v{self.qrels.version}-{self.on:%Y%m%d}"
