"""YAML files as in Rails: nested mappings and lists of texts, optionally below the language code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import yaml

from mbr_esd_metric.adapters.documents.keys.entries import HASH, Entry, StringFile, decoded
from mbr_esd_metric.errors import InputError

#: Maximum number of texts in a file, which nested aliases can multiply.
_MOST = 1_000_000
#: A language code as the only key of a file; and a Ruby symbol, which is not text.
_LANGUAGE = re.compile(r"[a-z]{2,3}(?:[-_](?:[A-Za-z]{2,8}|\d{3}))*")
_SYMBOL = re.compile(r":\w+")


def read_yaml(path: Path) -> StringFile:
    """The texts of a YAML file; keys are literal, so that ``no:`` is Norwegian. Raises `InputError` with the line of an
    error."""
    text, encoding = decoded(path)
    # The faster libyaml loader, if PyYAML was built with it.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        root = yaml.compose(text, Loader=loader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{path}, line {mark.line + 1}" if mark is not None else str(path)
        why = getattr(error, "problem", None) or str(error).partition("\n")[0]
        raise InputError(f"{where}: invalid YAML ({why}); fix the file") from None
    except RecursionError:
        raise InputError(f"{path}: mappings nested too deeply") from None
    language = ""
    if isinstance(root, yaml.MappingNode) and len(root.value) == 1:
        key, inner = root.value[0]
        if isinstance(inner, yaml.MappingNode) and _LANGUAGE.fullmatch(key.value):
            language, root = key.value, inner
    entries: list[Entry] = []
    for entry in _entries(root, "", root) if root is not None else ():
        entries.append(entry)
        if len(entries) > _MOST:
            raise InputError(f"{path}: more than {_MOST:,} texts; aliases inside aliases?")
    return StringFile(path, tuple(entries), language, HASH, encoding)


def _entries(node: yaml.Node, key: str, place: yaml.Node) -> Iterator[Entry]:
    """The texts below a node whose key is at `place`."""
    if isinstance(node, yaml.MappingNode):
        for name, value in node.value:
            inner = key if name.tag.endswith(":merge") else f"{key}.{_name(name)}" if key else _name(name)
            yield from _entries(value, inner, name)
    elif isinstance(node, yaml.SequenceNode):
        for number, value in enumerate(node.value):
            yield from _entries(value, f"{key}[{number}]", value)
    elif _is_text(node):
        yield Entry(key, node.value, place.start_mark.line + 1, place.start_mark.column + 1)


def _name(node: yaml.Node) -> str:
    return str(node.value) if isinstance(node, yaml.ScalarNode) else ""


def _is_text(node: yaml.Node) -> bool:
    """Whether a scalar is a text, including YAML 1.1 booleans other than true and false."""
    kind = node.tag.rpartition(":")[2]
    if kind == "bool":
        return node.value.lower() not in ("true", "false")
    return kind == "str" and not _SYMBOL.fullmatch(node.value)
