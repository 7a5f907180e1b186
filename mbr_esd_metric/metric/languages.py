"""The language pair that texts look like, told by py3langid where it is installed (extra `langid`).

It only words a suggestion: a language pair in the prompt changes what a model answers, so the user gives it.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable

from mbr_esd_metric.elicit.prompt import LANGUAGES

#: Characters whose language is told on each side; more changes no answer.
_BEGINNING = 5000


def suggested_lp(sources: Iterable[str], translations: Iterable[str]) -> str | None:
    """A language pair such as "en-de"; None if the two sides look alike, or like no language that a prompt can name."""
    import py3langid

    beginnings = ["\n".join(dict.fromkeys(texts))[:_BEGINNING] for texts in (sources, translations)]
    codes = [py3langid.classify(text)[0] for text in beginnings]
    return "-".join(codes) if codes[0] != codes[1] and set(codes) <= LANGUAGES.keys() else None


def language_note(name: str, sources: Iterable[str], translations: Iterable[str]) -> str:
    """The note for a user whose prompt could name the languages and does not."""
    note = "note: the prompt does not say of what languages the texts are"
    if importlib.util.find_spec("py3langid") is None:
        return (
            f"{note}; name them in the model name, such as {name}?lp=en-de (pip install 'mbr-esd-metric[langid]', and "
            "this note suggests the pair)"
        )
    lp = suggested_lp(sources, translations)
    if lp is None:
        return f"{note}; name them in the model name, such as {name}?lp=en-de"
    source, target = (LANGUAGES[code] for code in lp.split("-"))
    return f"{note}. They look like {source} and {target}: {name}?lp={lp} tells it"
