#!/usr/bin/env python3
"""Binds symbols of a program or library to older versions of them, so that it also starts where only those exist.

Debian 12 binds two symbols to versions that RHEL 9 lacks, though the older ones do the same:
  hypot@GLIBC_2.35              like 2.2.5, but without the wrapper that sets errno for SVID programs
  condition_variable::wait      GLIBCXX_3.4.30 is 3.4.11 without noexcept
Only the name of the needed version is exchanged, for one whose text is in the file already. A file in which another
symbol needs such a version is refused: the loader would look for that symbol in the older one, too.

Usage: bind_older.py FILE...    changes the files in place
"""
import collections
import io
import pathlib
import struct
import sys

from elftools.elf.elffile import ELFFile
from elftools.elf.hash import ELFHashTable

OLDER = {"GLIBC_2.35": "GLIBC_2.2.5", "GLIBCXX_3.4.30": "GLIBCXX_3.4.11"}
SAME = {"hypot", "_ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE"}
NEED = struct.Struct("<HHIII")  # of the ELF specification: Elf64_Verneed
NEED_VERSION = struct.Struct("<IHHII")  # Elf64_Vernaux
HIDDEN = 0x8000


def symbols_by_version(elf):
    """Names of the symbols by the index of their version."""
    found = collections.defaultdict(set)
    versions = elf.get_section_by_name(".gnu.version").data()
    for symbol, (version,) in zip(elf.get_section_by_name(".dynsym").iter_symbols(), struct.iter_unpack("<H", versions)):
        found[version & ~HIDDEN].add(symbol.name)
    return found


def needed_versions(data, at):
    """(offset, fields) of each version that the file needs; `at`: offset of its section."""
    while True:
        _, _, _, first, following = NEED.unpack_from(data, at)
        version_at = at + first
        while True:
            fields = NEED_VERSION.unpack_from(data, version_at)
            yield version_at, fields
            if not fields[-1]:
                break
            version_at += fields[-1]
        if not following:
            return
        at += following


def bind(path):
    """ValueError: another symbol needs the version, or the file does not have the older one's name."""
    data = bytearray(pathlib.Path(path).read_bytes())
    elf = ELFFile(io.BytesIO(data))
    needs = elf.get_section_by_name(".gnu.version_r")
    strings = elf.get_section(needs["sh_link"])
    symbols, texts = symbols_by_version(elf), strings.data()
    for version_at, (_, flags, index, name_at, following) in list(needed_versions(data, needs["sh_offset"])):
        name = strings.get_string(name_at)
        if name not in OLDER:
            continue
        others = symbols[index] - SAME
        if others:
            raise ValueError(f"{path}: {', '.join(sorted(others))} need {name}, too")
        older = OLDER[name].encode()
        older_at = texts.find(b"\0" + older + b"\0") + 1
        if not older_at:
            raise ValueError(f"{path}: no other symbol needs {OLDER[name]}, so its name is not in the file")
        NEED_VERSION.pack_into(data, version_at, ELFHashTable.elf_hash(older), flags, index, older_at, following)
    pathlib.Path(path).write_bytes(data)


def main():
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        print(__doc__, file=sys.stderr)
        return 2
    try:
        for path in sys.argv[1:]:
            bind(path)
    except ValueError as error:
        print(f"bind_older: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
