"""PO, with errors as translator comments; read by translate-toolkit (extra `documents`).

The file is written line by line here, as the toolkit would wrap lines and end the file in its own way.
"""

from __future__ import annotations

import codecs
import io
import re
from collections import defaultdict
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from mbr_esd_metric.adapters.documents.document import Checked, Document, TranslationUnit, issue_comment
from mbr_esd_metric.errors import InputError, MissingDependencyError
from mbr_esd_metric.files.streams import open_binary, whole_file

#: Our lines begin so; a file that has been marked before loses them first.
_COMMENT = "# mbr-esd: "
_CHARSET = re.compile(rb"(Content-Type:[^\n]*charset=)([\w.:-]+)", re.IGNORECASE)
_KEYWORD = re.compile(rb"\s*(msgctxt|msgid)[\s\"]")


def read_po(path: Path, every: bool = False) -> Document:
    """The messages of a PO file; each plural form is a unit, "7[1]". Fuzzy messages are left out unless `every`."""
    try:
        from translate.storage.pypo import pofile
    except ImportError:
        raise MissingDependencyError("translate-toolkit", "documents", "reading PO files") from None
    with open_binary(path) as file:
        content = file.read()
    charset = _CHARSET.search(content)
    encoding = "utf-8" if charset is None or charset[2] == b"CHARSET" else charset[2].decode()
    try:
        text = content.decode(encoding).encode()
    except LookupError as error:
        raise InputError(f"{path}: {error}; save the file as UTF-8") from None
    except UnicodeError as error:
        line = content.count(b"\n", 0, getattr(error, "start", 0)) + 1
        raise InputError(f"{path}, line {line}: not {encoding}; is the charset of the header right?") from None
    # The toolkit takes the name of an encoding to end before its first "n".
    content = _CHARSET.sub(rb"\1UTF-8", text, count=1)
    try:
        store: Any = pofile(io.BytesIO(content))
    except Exception as error:  # the toolkit raises errors of many kinds
        raise InputError(f"{path}: not PO that can be read ({error})") from None
    language = store.gettargetlanguage() or ""
    units, messages, empty, unready = [], [], [], {}
    listed = (one for one in store.units if one.source and not one.isheader() and not one.isobsolete())
    for number, message in enumerate(listed, 1):
        name = message.getcontext() or str(number)
        sources, targets = _forms(message.source), _forms(message.target) or [""]
        for form, target in enumerate(targets):
            form_name = name if len(sources) == 1 else f"{name}[{form}]"
            if not target.strip():
                empty.append(form_name)
            elif message.isfuzzy() and not every:
                unready[form_name] = "fuzzy"
            else:
                source = sources[min(form, len(sources) - 1)]
                units.append(TranslationUnit(form_name, source, target, (store.getsourcelanguage() or "", language)))
                messages.append(message)
    mark = partial(_mark, path, encoding, store, messages, units)
    return Document(path, tuple(units), mark, tuple(empty), unready)


def _forms(text: Any) -> list[str]:
    """The singular and the plurals of a message."""
    return [str(one) for one in getattr(text, "strings", [text])]


def _mark(
    path: Path,
    encoding: str,
    store: Any,
    messages: Sequence[Any],
    units: Sequence[TranslationUnit],
    checked: Sequence[Checked],
    output: Path,
) -> None:
    comments: dict[int, list[str]] = defaultdict(list)
    for message, unit, one in zip(messages, units, checked, strict=True):
        for span in one.annotation:
            text = unit.translation if span.side == "translation" else unit.source
            comments[id(message)].append(issue_comment(span, text))
    entries = [unit for unit in store.units if not unit.isobsolete()]
    lines = path.read_bytes().splitlines(keepends=True)
    starts = _starts(lines)
    if len(starts) != len(entries):
        raise InputError(f"{path}: {len(entries)} messages and {len(starts)} lines that begin one; run msgcat")
    done = 0
    with whole_file(output) as file:
        for entry, start in zip(entries, starts, strict=True):
            top = start
            while top and lines[top - 1].startswith(b"#") and not lines[top - 1].startswith(b"#~"):
                top -= 1
            # The comments of translators come first, and ours behind them.
            of_people = [at for at in range(top, start) if lines[at].rstrip() == b"#" or lines[at].startswith(b"# ")]
            before = of_people[-1] + 1 if of_people else top
            ending = b"\r\n" if lines[start].endswith(b"\r\n") else b"\n"
            file.writelines(lines[done:top])
            file.writelines(line for line in lines[top:before] if not line.startswith(_COMMENT.encode()))
            for comment in comments.get(id(entry), ()):
                file.write(f"{_COMMENT}{' '.join(comment.split())}".encode(encoding, "replace") + ending)
            done = before
        file.writelines(lines[done:])


def _starts(lines: Sequence[bytes]) -> list[int]:
    """The lines of the first keyword of each message that is not obsolete."""
    starts: list[int] = []
    in_context = False
    for at, line in enumerate(lines):
        if keyword := _KEYWORD.match(line.removeprefix(codecs.BOM_UTF8)):
            if not in_context:
                starts.append(at)
            in_context = keyword[1] == b"msgctxt"
    return starts
