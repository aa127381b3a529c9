"""Link a kernel's object file to an image: bytes that run wherever in memory they are, without LLVM.

LLVM writes its object files for a linker: sections of code and constants, and relocations, which are the places that
depend on where everything is put. Code that only names places relative to its own (position-independent code) needs the
linker once, when it is compiled; what is then left to fill in are the addresses of the C library's functions.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

# An image begins with these bytes, where its function is, and a place for the address of each function of `GIVEN`.
MAGIC = b"\x90evalhub"
HEAD = struct.Struct("<8sQ")
ADDRESS = struct.Struct("<Q")
# The functions of the C library that kernels may call; any other would need the compiler at run time.
GIVEN = ("memset", "memcpy", "memmove")
# A jump to the address in one of those places, which is called in the place of its function, and two bytes of padding.
_JUMP = struct.Struct("<2si2s")
_FILE, _SECTION = struct.Struct("<16sHHIQQQIHHHHHH"), struct.Struct("<IIQQQQIIQQ")
_SYMBOL, _RELOCATION = struct.Struct("<IBBHQQ"), struct.Struct("<QQq")
_OF_64_BITS, _X86_64, _RELOCATABLE = b"\x7fELF\x02\x01\x01", 62, 1
# Tables for unwinding the stack are left out: nothing raises an exception.
_CONTENT, _SYMBOLS, _RELOCATIONS, _UNWINDING = 1, 2, 4, 0x70000001
_WRITTEN, _LOADED, _OF_THREADS = 1, 2, 1024
_RELATIVE, _CALL, _THROUGH_ADDRESS = 2, 4, (9, 41, 42)
_LARGEST_ALIGNMENT = 4096


class Unlinkable(ValueError):
    """The object file has something that an image cannot have; LLVM can load it."""


class _Section(NamedTuple):
    kind: int
    flags: int
    content: bytes
    link: int
    info: int
    alignment: int

    @property
    def loaded(self) -> bool:
        return bool(self.flags & _LOADED and self.content and self.kind != _UNWINDING)


def link(made: bytes, name: str) -> bytes:
    """Return the image of an object file in ELF for x86-64 whose function `name` is called; raise Unlinkable for any
    other."""
    sections = _sections(made)
    image = bytearray(HEAD.pack(MAGIC, 0) + bytes(ADDRESS.size * len(GIVEN)))
    jumps = {}
    for index, function in enumerate(GIVEN):
        jumps[function] = len(image)
        image += _JUMP.pack(b"\xff\x25", _place_of(index) - len(image) - 6, b"\xcc\xcc")
    places = {}
    for index, section in enumerate(sections):
        if section.loaded:
            image += bytes(-len(image) % section.alignment)
            places[index] = len(image)
            image += section.content
    symbols = _symbols(sections)
    for section in sections:
        if section.kind == _RELOCATIONS and section.info in places:
            for offset, about, addend in _RELOCATION.iter_unpack(section.content):
                symbol, where = symbols[about >> 32], places[section.info] + offset
                value = _target(symbol, about & 0xFFFFFFFF, places, jumps) + addend - where
                struct.pack_into("<i", image, where, value)
    entry = next((symbol for symbol in symbols if symbol[0] == name and symbol[1] in places), None)
    if entry is None:
        raise Unlinkable(f"{name} is not in the object file")
    HEAD.pack_into(image, 0, MAGIC, places[entry[1]] + entry[2])
    return bytes(image)


def _place_of(index: int) -> int:
    return HEAD.size + ADDRESS.size * index


def _sections(made: bytes) -> list[_Section]:
    """Return the sections of an object file, of which those that are loaded hold code or constants alone."""
    if len(made) < _FILE.size or not made.startswith(_OF_64_BITS):
        raise Unlinkable("not an object file in ELF with 64 bits")
    _, kind, machine, *_, place, _, _, _, _, _, number, _ = _FILE.unpack_from(made)
    if (kind, machine) != (_RELOCATABLE, _X86_64):
        raise Unlinkable(f"an ELF file of kind {kind} for machine {machine}")
    found = []
    for index in range(number):
        _, kind, flags, _, start, size, link_to, info, alignment, _ = _SECTION.unpack_from(
            made, place + index * _SECTION.size
        )
        found.append(
            _Section(kind, flags, made[start : start + size], link_to, info, alignment or 1)
        )
        odd = kind != _CONTENT or flags & (_WRITTEN | _OF_THREADS) or alignment > _LARGEST_ALIGNMENT
        if found[-1].loaded and odd:
            raise Unlinkable(f"section {index} has kind {kind} and flags {flags:#x}")
    return found


def _symbols(sections: list[_Section]) -> list[tuple[str, int, int]]:
    """Return name, section and offset of each symbol; section 0 has those that are not in the file."""
    for section in sections:
        if section.kind == _SYMBOLS:
            names = sections[section.link].content
            return [
                (names[name : names.index(b"\0", name)].decode(), where, value)
                for name, _, _, where, value, _ in _SYMBOL.iter_unpack(section.content)
            ]
    raise Unlinkable("no symbols")


def _target(
    symbol: tuple[str, int, int], how: int, places: dict[int, int], jumps: dict[str, int]
) -> int:
    """Return to which place of the image a relocation refers."""
    name, section, value = symbol
    if section in places and how in (_RELATIVE, _CALL):
        return places[section] + value
    if section == 0 and name in jumps:
        if how == _CALL:
            return jumps[name]
        if how in _THROUGH_ADDRESS:
            return _place_of(GIVEN.index(name))
    raise Unlinkable(f"a relocation of kind {how} for {name or section}")
