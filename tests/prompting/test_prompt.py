"""The question put to the model: the built-in text, template files, and the names of languages."""

from __future__ import annotations

from pathlib import Path

import pytest

from mbr_esd_metric.errors import InputError, OptionError
from mbr_esd_metric.prompting.prompt import load_prompt


def template(tmp_path: Path, text: str) -> str:
    path = tmp_path / "prompt.txt"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_a_prompt_may_name_the_languages_and_else_takes_every_pair(tmp_path: Path) -> None:
    prompt = load_prompt(template(tmp_path, "{source_lang}>{target_lang}: {source} {translation}"))
    assert prompt.render("a", "b", "EN-mas_KE") == "English>Maasai: a b"
    assert load_prompt(template(tmp_path, "{source} {translation}")).render("a", "b", "klingon") == "a b"


def test_every_field_is_replaced_once_and_other_braces_stay(tmp_path: Path) -> None:
    """A segment that looks like a field is not replaced in its turn."""
    prompt = load_prompt(template(tmp_path, "{source}|{translation}|{source_seg}|{target_seg}|{other}|{{source}}"))
    assert prompt.render("{translation}", "{source}") == (
        "{translation}|{source}|{translation}|{source}|{other}|{{translation}}"
    )


def test_a_file_that_hides_the_segment_or_is_no_utf_8_is_refused(tmp_path: Path) -> None:
    for text, missing in (("{target_lang} {source}", "translation"), ("{target_seg}", "source")):
        with pytest.raises(InputError, match=f"has no {{{missing}}}; the model would never see the {missing}"):
            load_prompt(template(tmp_path, text))
    (tmp_path / "latin.txt").write_bytes("{source} {translation} ü".encode("latin-1"))
    with pytest.raises(InputError, match=r"is not UTF-8 \(byte 23\)"):
        load_prompt(str(tmp_path / "latin.txt"))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("no/such.txt", "no/such.txt: prompt file not found"),
        ("prompt.txt", "prompt.txt: prompt file not found"),
        ("v2", "unknown prompt 'v2'.*'v1'.*, or the path of a template file"),
    ],
)
def test_an_unknown_prompt_is_refused(name: str, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        load_prompt(name)
