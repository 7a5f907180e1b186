"""GEMBA's own question and reading, from the package `gemba`: equal to what the package itself makes of them."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import random
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from mbr_esd_metric.elicit.formats import get_format
from mbr_esd_metric.elicit.formats.gemba_mqm import gemba_score
from mbr_esd_metric.errors import InputError, MissingDependencyError
from tests.helpers.foreign import module_of

CATEGORIES = ("accuracy/mistranslation", "fluency/grammar", "style/awkward", "non-translation", "other")


@pytest.fixture
def theirs(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module of the package, run for itself: the package starts a service's libraries."""
    spec = importlib.util.find_spec("gemba")
    if spec is None or spec.origin is None:
        pytest.skip("the package gemba is not installed (pip install --no-deps gemba==0.1.3)")
    monkeypatch.setitem(sys.modules, "ipdb", types.ModuleType("ipdb"))  # a debugger that the module imports
    return module_of(Path(spec.origin).with_name("gemba_mqm_utils.py"))


def test_the_messages_are_the_packages(theirs: Any) -> None:
    prompt = get_format("gemba-mqm").prompt("gemba-mqm")
    texts = {"source_lang": "English", "target_lang": "German", "source_seg": "A {b} c.", "target_seg": "Ein {B} c."}
    ours = [{"role": role, "content": text} for role, text in prompt.turns]
    ours.append({"role": "user", "content": prompt.render("A {b} c.", "Ein {B} c.", "en-de")})
    assert ours == theirs.apply_template(theirs.TEMPLATE_GEMBA_MQM, texts)
    assert prompt.version.startswith("gemba-mqm:")


def an_answer(rng: random.Random) -> str:
    """An answer in the form; every second one is damaged."""
    lines = []
    for name in ("Critical:", "Major:", "Minor:"):
        errors = [f'{rng.choice(CATEGORIES)} - "w{rng.randint(0, 9)}"' for _ in range(rng.choice([0, 0, 1, 2, 4]))]
        lines += [name, *(errors or ["no-error"])]
    said = "\n".join(lines)
    start, end = sorted(rng.choices(range(len(said) + 1), k=2))
    inserted = said[:start] + rng.choice(["\n", " ", ":", "no error", "MAJOR:\n"]) + said[start:]
    return rng.choice([said, said, said, said[:start] + said[end:], said[:end] + said[start:], inserted, said.upper()])


def test_the_score_is_the_packages_on_whole_and_damaged_answers(theirs: Any) -> None:
    rng = random.Random(0)
    for _ in range(2000):
        answer = an_answer(rng)
        with contextlib.redirect_stdout(io.StringIO()):
            expected = theirs.parse_mqm_answer(answer, normalize=False)
        assert gemba_score(answer) == expected, answer


def test_without_the_package_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mbr_esd_metric.elicit.formats.gemba_mqm.find_spec", lambda name: None)
    with pytest.raises(MissingDependencyError, match="gemba"):
        get_format("gemba-mqm").prompt("gemba-mqm")


def test_another_version_of_the_package_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "gemba"
    package.mkdir()
    for name, text in (("__init__.py", "raise RuntimeError('is not run')"), ("gemba_mqm_utils.py", "x = 1")):
        (package / name).write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "gemba", raising=False)
    with pytest.raises(InputError, match="in a form unknown here"):
        get_format("gemba-mqm").prompt("gemba-mqm")
