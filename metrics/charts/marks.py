"""The marks of an SVG: a title for each that says something, and a link where it leads to a page.

Vega writes a description of each mark into its `aria-label`. `described` asks for the words of the
tooltip there before Vega draws; `titled` makes them titles, which need no script.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any
from xml.etree import ElementTree as ET

from defusedxml.ElementTree import fromstring

from metrics.charts.look import FONT

# Between the parts of a title, as in "topic 5 · AP 0.9306".
_BETWEEN = " \N{MIDDLE DOT} "
# vl-convert would resolve a path against another host: links name this one while Vega draws.
_HERE = "https://evalhub.invalid"
# The Tab key stops at no link of a chart with more links than these: it has a table.
_MOST_STOPS = 60

_SVG, _XLINK = "{http://www.w3.org/2000/svg}", "{http://www.w3.org/1999/xlink}"
# Attributes that say nothing once the marks have titles, and values that are those of the root.
_SUPERFLUOUS = ("aria-hidden", "aria-label", "aria-roledescription", "class", "font-family", "role")
_DEFAULTS = {"opacity": "1", "font-weight": "normal", "pointer-events": "none"}
# An address of this server, and not of another one.
_PATH = re.compile(r"/(?![/\\])")
# Characters that XML cannot have.
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
_LONG_NUMBER = re.compile(r"(\.\d)\d+")
ET.register_namespace("", _SVG[1:-1])
ET.register_namespace("xlink", _XLINK[1:-1])


def described(vega_lite: dict[str, Any]) -> dict[str, Any]:
    """Return the specification with the words of each tooltip as the description of its marks."""
    for layer in vega_lite["layer"]:
        encoding = layer.setdefault("encoding", {})
        words = map(_words, encoding.pop("tooltip", ()))
        expression = f" + {json.dumps(_BETWEEN)} + ".join(words) or "''"
        encoding["description"] = {"value": {"expr": expression}}

        if link := encoding.get("href"):
            address = f"{json.dumps(_HERE)} + datum[{json.dumps(link['field'])}]"
            encoding["href"] = {"value": {"expr": address}}

    return vega_lite


def _words(part: dict[str, Any]) -> str:
    """Return an expression for the name and the value of a part of a tooltip."""
    value = f"datum[{json.dumps(part['field'])}]"
    if "format" in part:
        value = f"format({value}, {json.dumps(part['format'])})"

    # A line says its own name.
    name = "" if part["field"] == "line" else f"{part.get('title') or part['field']} "
    return f"{json.dumps(name)} + {value}"


def titled(svg: str, caption: str, *, inline: bool) -> str:
    """Return the SVG with titles and links.

    In a page (`inline`) the caption is its label, and no id is that of another chart. In a file the
    caption is its description.
    """
    root: ET.Element = fromstring(svg)
    caption = _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", caption)
    for group in list(root.iter(f"{_SVG}g")):
        if "role-mark" in group.get("class", "").split():
            _title_marks(group)

    links = list(root.iter(f"{_SVG}a"))
    _limit_stops(links)
    _simplify(root)
    root.set("font-family", FONT)

    if inline:
        _rename_ids(root, hashlib.sha256(svg.encode()).hexdigest()[:8])
        root.set("role", "group" if links else "img")
        root.set("aria-label", caption)
    else:
        root.insert(0, _with_text("desc", caption))

    return ET.tostring(root, encoding="unicode")


def _title_marks(group: ET.Element) -> None:
    """Give each mark of a group its description as a title, within its link if it has one."""
    classes = group.get("class", "").split()
    is_line, is_point = "mark-line" in classes, "mark-symbol" in classes

    for item in group:
        mark = item[0] if item.tag == f"{_SVG}a" else item
        title = mark.get("aria-label", "")
        if title:
            # A line is one mark for all of its points: it says its name only.
            item.insert(0, _with_text("title", title.partition(_BETWEEN)[0] if is_line else title))

        if is_point:
            # The middle of a hollow or invisible point answers, too.
            mark.set("pointer-events", "all")

        if item.tag == f"{_SVG}a":
            address = item.attrib.pop(f"{_XLINK}href")
            path = address.removeprefix(_HERE)
            if path == address or not _PATH.match(path):
                raise ValueError(f"a mark leads elsewhere: {address[:80]}")
            item.set("href", path)


def _limit_stops(links: list[ET.Element]) -> None:
    """Leave one link to each page in the order of the Tab key, and none of very many."""
    pages = {link.get("href") for link in links}
    if len(pages) > _MOST_STOPS:
        pages = set()

    for link in links:
        if link.get("href") in pages:
            pages.remove(link.get("href"))
        else:
            link.set("tabindex", "-1")


def _simplify(root: ET.Element) -> None:
    """Remove what is not seen, and what is said elsewhere."""
    for parent in list(root.iter()):
        for child in list(parent):
            background = child.get("class") == "background"
            plain = background and child.get("fill") is None and child.get("stroke") is None
            if plain or child.get("display") == "none":
                parent.remove(child)

    for element in root.iter():
        for name in _SUPERFLUOUS:
            element.attrib.pop(name, None)

        # The content security policy refuses style attributes; these properties are attributes, too.
        for rule in filter(None, element.attrib.pop("style", "").split(";")):
            name, _, value = rule.partition(":")
            element.set(name.strip(), value.strip())

        for name, value in list(element.items()):
            if _DEFAULTS.get(name) == value:
                del element.attrib[name]
            elif name in ("d", "transform"):
                element.set(name, _LONG_NUMBER.sub(r"\1", value))


def _rename_ids(root: ET.Element, name: str) -> None:
    """Begin every id, and what refers to it, with a name."""
    for element in root.iter():
        if own := element.get("id"):
            element.set("id", f"{name}-{own}")

        for attribute, value in element.items():
            if value.startswith("url(#"):
                element.set(attribute, f"url(#{name}-{value.removeprefix('url(#')}")


def _with_text(tag: str, text: str) -> ET.Element:
    element = ET.Element(f"{_SVG}{tag}")
    element.text = text
    return element
