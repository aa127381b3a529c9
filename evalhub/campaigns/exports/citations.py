"""How a snapshot is cited: as text, and in the forms that programs read."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from typing import Any
from urllib.parse import urlsplit

from metrics.exports.latex import escaped

_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_SPDX = "https://spdx.org/licenses/"


@dataclass(frozen=True)
class Cited:
    """What a citation names; a field that nobody filled is empty.

    `address` is the permanent address of the snapshot, `before` that of the snapshot that it
    supersedes, and `site` that of the server. `author` is an organisation; if there are `people`,
    they are named instead. `licence` is an SPDX identifier, `supplements` the DOI of a paper, and
    `derived_from` the DOI of the judgements.
    """

    title: str
    author: str
    campaign: str
    campaign_address: str
    number: int
    sha256: str
    address: str
    site: str
    at: datetime
    before: str = ""
    doi: str = ""
    published_by: str = ""
    licence: str = ""
    rights: str = ""
    people: tuple[str, ...] = ()
    supplements: str = ""
    derived_from: str = ""

    @property
    def on(self) -> datetime:
        return self.at.astimezone(UTC)

    @property
    def publisher(self) -> str:
        return self.published_by or f"EvalHub at {urlsplit(self.site).netloc}"

    @property
    def named(self) -> str:
        """Return the authors, as text."""
        return "; ".join(self.people) or self.author

    @property
    def text(self) -> str:
        """Return the suggested citation."""
        where = f"https://doi.org/{self.doi}" if self.doi else self.address
        return (
            f"{self.named} ({self.on.year}). {self.title}, snapshot {self.number} [Data set]. "
            f"{self.publisher}. sha256:{self.sha256}; {where}"
        )


def citation_cff(cited: Cited) -> str:
    """Return a CITATION.cff, version 1.2.0. Texts are quoted as in JSON, which YAML reads."""
    lines = [
        "cff-version: 1.2.0",
        "message: Cite these results as below.",
        "type: dataset",
        f"title: {_quoted(cited.title)}",
        "authors:",
        *_cff_authors(cited),
        f"version: {_quoted(str(cited.number))}",
        f"date-released: {_quoted(cited.on.date().isoformat())}",
        f"url: {_quoted(cited.address)}",
        *([f"doi: {_quoted(cited.doi)}"] if cited.doi else []),
        *([f"license: {_quoted(cited.licence)}"] if cited.licence else []),
        "identifiers:",
        "  - type: other",
        f"    value: {_quoted(f'sha256:{cited.sha256}')}",
        "    description: SHA-256 of the manifest in canonical JSON (RFC 8785)",
    ]
    return "".join(f"{line}\n" for line in lines)


def _name_parts(name: str) -> tuple[str, str]:
    """Return family name and given names of "family, given"; without a comma, the name and ""."""
    family, comma, given_names = name.partition(",")
    return (family.strip(), given_names.strip()) if comma else (name, "")


def _cff_authors(cited: Cited) -> Iterator[str]:
    for name in cited.people or (cited.author,):
        family, given_names = _name_parts(name)
        if given_names:
            yield f"  - family-names: {_quoted(family)}"
            yield f"    given-names: {_quoted(given_names)}"
        else:
            yield f"  - name: {_quoted(name)}"


def datacite(cited: Cited) -> str:
    """Return metadata of DataCite's schema 4 as JSON, ready for a DOI."""
    related = [_related_url(cited.campaign_address, "IsVersionOf")]
    if cited.before:
        related.append(_related_url(cited.before, "IsNewVersionOf"))

    related += [
        {"relatedIdentifier": doi, "relatedIdentifierType": "DOI", "relationType": relation}
        for doi, relation in (
            (cited.supplements, "IsSupplementTo"),
            (cited.derived_from, "IsDerivedFrom"),
        )
        if doi
    ]
    people = [_datacite_person(name) for name in cited.people]

    return _json_text(
        {
            "schemaVersion": "http://datacite.org/schema/kernel-4",
            **({"doi": cited.doi} if cited.doi else {}),
            "creators": people or [{"name": cited.author, "nameType": "Organizational"}],
            "titles": [{"title": cited.title}],
            "publisher": {"name": cited.publisher},
            "publicationYear": cited.on.year,
            "types": {
                "resourceTypeGeneral": "Dataset",
                "resourceType": "Results of an evaluation campaign",
            },
            "version": str(cited.number),
            "url": cited.address,
            "dates": [{"date": cited.on.date().isoformat(), "dateType": "Created"}],
            "identifiers": [{"identifier": f"sha256:{cited.sha256}", "identifierType": "SHA-256"}],
            "relatedIdentifiers": related,
            **({"rightsList": _rights_list(cited)} if cited.licence or cited.rights else {}),
            "language": "en",
        }
    )


def _datacite_person(name: str) -> dict[str, str]:
    family, given_names = _name_parts(name)
    if not given_names:
        return {"name": name, "nameType": "Organizational"}

    return {
        "name": f"{family}, {given_names}",
        "nameType": "Personal",
        "familyName": family,
        "givenName": given_names,
    }


def _rights_list(cited: Cited) -> list[dict[str, str]]:
    """Return the licence and the words about rights as DataCite has them."""
    rights = []
    if cited.licence:
        spdx = {
            "rightsIdentifier": cited.licence,
            "rightsIdentifierScheme": "SPDX",
            "schemeUri": _SPDX,
        }
        rights.append(
            {"rights": cited.licence, "rightsUri": f"{_SPDX}{cited.licence}.html", **spdx}
        )

    if cited.rights:
        rights.append({"rights": cited.rights})

    return rights


def zenodo(cited: Cited) -> str:
    """Return the body of a request to Zenodo's deposit API that creates a draft.

    Zenodo's licence identifiers are those of SPDX in lower case. Without a licence it takes its
    own default.
    """
    related = [
        {"identifier": cited.address, "relation": "isIdenticalTo", "resource_type": "dataset"},
        {"identifier": cited.campaign_address, "relation": "isPartOf"},
    ]
    if cited.before:
        related.append({"identifier": cited.before, "relation": "isNewVersionOf"})

    if cited.supplements:
        related.append({"identifier": cited.supplements, "relation": "isSupplementTo"})

    if cited.derived_from:
        related.append({"identifier": cited.derived_from, "relation": "isDerivedFrom"})

    description = (
        f"{cited.text} The archive has the manifest, whose SHA-256 this is in canonical JSON "
        "(RFC 8785), and the tables that it names; SHA256SUMS has the digests of all files."
    )

    metadata = {
        "title": f"{cited.title}, snapshot {cited.number}",
        "upload_type": "dataset",
        "description": f"<p>{escape(description)}</p>",
        "creators": [{"name": name} for name in cited.people or (cited.author,)],
        "publication_date": cited.on.date().isoformat(),
        "version": str(cited.number),
        "language": "eng",
        "imprint_publisher": cited.publisher,
        "keywords": ["information retrieval", "evaluation campaign"],
        "related_identifiers": related,
        **({"license": cited.licence.lower()} if cited.licence else {}),
        **({"notes": escape(cited.rights)} if cited.rights else {}),
        **({"doi": cited.doi} if cited.doi else {}),
    }

    return _json_text({"metadata": metadata})


def bibtex(cited: Cited) -> str:
    """Return an entry of BibTeX."""
    authors = cited.people or (cited.author,)
    fields = {
        "author": " and ".join(
            escaped(name) if _name_parts(name)[1] else f"{{{escaped(name)}}}" for name in authors
        ),
        "title": f"{{{escaped(f'{cited.title}, snapshot {cited.number}')}}}",
        "howpublished": escaped(f"Data set, {cited.publisher}"),
        "year": str(cited.on.year),
        "month": _MONTHS[cited.on.month - 1],
        **({"doi": cited.doi} if cited.doi else {}),
        "url": cited.address,
        "note": f"SHA-256 {cited.sha256}",
    }

    # The name of a month is a macro of BibTeX, which has no braces.
    lines = [
        f"  {name} = {text if name == 'month' else f'{{{text}}}'}," for name, text in fields.items()
    ]

    return "\n".join([f"@misc{{evalhub-{cited.campaign}-s{cited.number},", *lines, "}", ""])


def ris(cited: Cited) -> str:
    """Return a reference in the RIS format."""
    rows = [
        ("TY", "DATA"),
        *(("AU", " ".join(name.split())) for name in cited.people or (cited.author,)),
        ("TI", " ".join(cited.title.split())),
        ("PY", str(cited.on.year)),
        ("DA", f"{cited.on:%Y/%m/%d}/"),
        ("ET", str(cited.number)),
        ("PB", cited.publisher),
        *([("DO", cited.doi)] if cited.doi else []),
        ("UR", cited.address),
        ("N1", f"sha256:{cited.sha256}"),
        ("ER", ""),
    ]

    return "".join(f"{name}  - {text}\r\n" for name, text in rows)


def csl(cited: Cited) -> str:
    """Return an item of the Citation Style Language, in a list as its processors read it."""
    item = {
        "id": f"evalhub-{cited.campaign}-s{cited.number}",
        "type": "dataset",
        "title": cited.title,
        "author": [_csl_name(name) for name in cited.people or (cited.author,)],
        "issued": {"date-parts": [[cited.on.year, cited.on.month, cited.on.day]]},
        "publisher": cited.publisher,
        "version": str(cited.number),
        **({"DOI": cited.doi} if cited.doi else {}),
        "URL": cited.address,
        "note": f"sha256:{cited.sha256}",
    }
    return _json_text([item])


def _csl_name(name: str) -> dict[str, str]:
    family, given_names = _name_parts(name)
    return {"family": family, "given": given_names} if given_names else {"literal": name}


def ro_crate(cited: Cited, files: Mapping[str, bytes]) -> str:
    """Return the metadata of an RO-Crate 1.1 with these files.

    RO-Crate requires a licence: without one, the metadata says whom to ask.
    """
    parts = [
        {
            "@id": name,
            "@type": "File",
            "name": name,
            "encodingFormat": _media_type(name),
            "contentSize": str(len(content)),
        }
        for name, content in files.items()
    ]

    authors = [
        {
            "@id": f"#author-{place}",
            "@type": "Person" if _name_parts(name)[1] else "Organization",
            "name": name,
        }
        for place, name in enumerate(cited.people, 1)
    ] or [{"@id": "#author", "@type": "Organization", "name": cited.author}]
    licences = (
        [{"@id": f"{_SPDX}{cited.licence}", "@type": "CreativeWork", "name": cited.licence}]
        if cited.licence
        else []
    )
    root = {
        "@id": "./",
        "@type": "Dataset",
        "name": cited.title,
        "description": (
            f"Results of campaign {cited.campaign}, snapshot {cited.number}, sha256:{cited.sha256}"
        ),
        "datePublished": cited.on.date().isoformat(),
        "version": str(cited.number),
        "identifier": cited.address,
        "author": [{"@id": author["@id"]} for author in authors]
        if cited.people
        else {"@id": "#author"},
        "publisher": {"@id": "#publisher"},
        "license": {"@id": licences[0]["@id"]}
        if licences
        else "Ask the organisers of the campaign.",
        **({"copyrightNotice": cited.rights} if cited.rights else {}),
        "hasPart": [{"@id": part["@id"]} for part in parts],
    }

    descriptor = {
        "@id": "ro-crate-metadata.json",
        "@type": "CreativeWork",
        "conformsTo": {"@id": "https://w3id.org/ro/crate/1.1"},
        "about": {"@id": "./"},
    }
    publisher = {"@id": "#publisher", "@type": "Organization", "name": cited.publisher}
    graph = [descriptor, root, *authors, publisher, *licences, *parts]

    return _json_text({"@context": "https://w3id.org/ro/crate/1.1/context", "@graph": graph})


# By the ending of an address: the function that writes the text, and its content type.
FORMS: dict[str, tuple[Callable[[Cited], str], str]] = {
    "bib": (bibtex, "application/x-bibtex"),
    "ris": (ris, "application/x-research-info-systems"),
    "csl.json": (csl, "application/vnd.citationstyles.csl+json"),
    "datacite.json": (datacite, "application/vnd.datacite.datacite+json"),
    "zenodo.json": (zenodo, "application/vnd.zenodo.v1+json"),
    "cff": (citation_cff, "text/yaml; charset=utf-8"),
}


def _related_url(address: str, relation: str) -> dict[str, str]:
    return {"relatedIdentifier": address, "relatedIdentifierType": "URL", "relationType": relation}


def _media_type(name: str) -> str:
    types = {"json": "application/json", "tsv": "text/tab-separated-values"}
    return types.get(name.rpartition(".")[2], "text/plain")


def _json_text(value: Any) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False) + "\n"


def _quoted(text: str) -> str:
    return json.dumps(" ".join(text.split()), ensure_ascii=False)
