"""`format=gemba-mqm` and `esa`: question, reading and stated scores; equal to those of the package `gemba`."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import random
import runpy
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from mbr_esd_metric import Candidate, DecisionOptions, decide
from mbr_esd_metric.errors import InputError, MissingDependencyError
from mbr_esd_metric.prompting.formats import get_format
from mbr_esd_metric.prompting.formats.gemba_mqm import gemba_score
from mbr_esd_metric.prompting.parse import Invalid, Parsed

CATEGORIES = ("accuracy/mistranslation", "fluency/grammar", "style/awkward", "non-translation", "other")
SRC = "The bank on the corner closed last week."
MT = "Das Ufer an der Ecke schloss."
ANSWER = """\
Critical:
no-error
Major:
accuracy/mistranslation - "Ufer"
accuracy/omission - "last week"
Minor:
fluency/grammar - "schloss"
"""
NOTHING = "Critical:\nno-error\nMajor:\nno-error\nMinor:\nno-error"


@pytest.fixture
def theirs(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module of the package, run for itself: the package starts a service's libraries."""
    spec = importlib.util.find_spec("gemba")
    if spec is None or spec.origin is None:
        pytest.skip("the package gemba is not installed (pip install --no-deps gemba==0.1.3)")
    monkeypatch.setitem(sys.modules, "ipdb", types.ModuleType("ipdb"))  # a debugger that the module imports
    return types.SimpleNamespace(**runpy.run_path(str(Path(spec.origin).with_name("gemba_mqm_utils.py"))))


def test_the_messages_are_the_packages(theirs: Any) -> None:
    prompt = get_format("gemba-mqm").prompt("gemba-mqm")
    texts = {"source_lang": "English", "target_lang": "German", "source_seg": "A {b} c.", "target_seg": "Ein {B} c."}
    ours = [{"role": role, "content": text} for role, text in prompt.turns]
    ours.append({"role": "user", "content": prompt.render("A {b} c.", "Ein {B} c.", "en-de")})
    assert ours == theirs.apply_template(theirs.TEMPLATE_GEMBA_MQM, texts)
    assert prompt.version.startswith("gemba-mqm:")


def test_the_score_is_the_packages_on_whole_and_damaged_answers(theirs: Any) -> None:
    rng = random.Random(0)
    for _ in range(2000):
        lists = [[f'{rng.choice(CATEGORIES)} - "w"' for _ in range(rng.choice([0, 0, 1, 2, 4]))] for _ in range(3)]
        names = ("Critical:", "Major:", "Minor:")
        text = "\n".join("\n".join([name, *(of or ["no-error"])]) for name, of in zip(names, lists, strict=True))
        at, end = sorted(rng.choices(range(len(text) + 1), k=2))
        more = text[:at] + rng.choice(["\n", " ", ":", "no error", "MAJOR:\n"]) + text[at:]
        answer = rng.choice([text, text, text[:at] + text[end:], text[:end] + text[at:], more, text.upper()])
        with contextlib.redirect_stdout(io.StringIO()):
            assert gemba_score(answer) == theirs.parse_mqm_answer(answer, normalize=False), answer


def test_without_the_package_or_with_another_version_the_message_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gemba").mkdir()
    (tmp_path / "gemba" / "__init__.py").write_text("raise RuntimeError('is not run')", encoding="utf-8")
    (tmp_path / "gemba" / "gemba_mqm_utils.py").write_text("x = 1", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "gemba", raising=False)
    with pytest.raises(InputError, match="in an unsupported form"):
        get_format("gemba-mqm").prompt("gemba-mqm")
    monkeypatch.setattr("mbr_esd_metric.prompting.formats.gemba_mqm.find_spec", lambda name: None)
    with pytest.raises(MissingDependencyError, match="gemba"):
        get_format("gemba-mqm").prompt("gemba-mqm")


def read(text: str) -> Parsed | Invalid:
    return get_format("gemba-mqm").parser(MT, source=SRC).parse(text)


def test_the_lists_become_spans_of_both_sides() -> None:
    texts = {"translation": MT, "source": SRC}
    assert [(s.severity, s.category, texts[s.side][s.start : s.end]) for s in read(ANSWER).annotation] == [
        ("major", "accuracy/mistranslation", "Ufer"),
        ("minor", "fluency/grammar", "schloss"),
        ("major", "accuracy/omission", "last week"),
    ]


@pytest.mark.parametrize(
    ("text", "spans", "lost"),
    [
        (ANSWER.upper().replace("UFER", "Ufer").replace("SCHLOSS", "schloss").replace("LAST WEEK", "last week"), 3, 0),
        (NOTHING, 0, 0),
        ('Major:\nnon-translation - "Das Ufer"', 1, 0),
        ('Minor:\naccuracy/addition - "nicht da"', 0, 1),
        ("Minor:\nthe style is awkward", 0, 1),  # no words in quotes: counted, and no place
        ('Minor:\nstyle/awkward - "an" and "der Ecke"', 0, 1),
        *((text, None, 0) for text in ("", "no-error", "The translation is fine.", "Critical:\nno-error\nMajor:")),
        *((text, None, 0) for text in (NOTHING[:-8], '"Ufer"\n' + ANSWER)),
    ],
)
def test_the_number_of_spans(text: str, spans: int | None, lost: int) -> None:
    """What is cut, or in another form, is invalid."""
    parsed = read(text)
    found = None if isinstance(parsed, Invalid) else len(parsed.annotation)
    assert (found, getattr(parsed, "dropped", 0)) == (spans, lost)


def test_the_score_of_real_answers_is_that_of_gembas_parser() -> None:
    """Answers of SmolLM2-135M-Instruct to GEMBA's own question, without a grammar; scores of its `parse_mqm_answer`."""
    scores = json.loads((Path(__file__).parents[1] / "golden" / "gemba_answers.json").read_text(encoding="utf-8"))
    assert len(scores) == 102
    assert {text: gemba_score(text) for text in scores} == scores


def test_the_mean_of_the_stated_scores() -> None:
    said = ("major <Ufer>\nscore 60", "major <Ufer>\nscore 80", "none\nscore 100", "score 3")
    decision = decide([*map(Candidate, said)], MT, format="esa", score="given", source=SRC)
    assert (decision.mqm, decision.annotation.key, decision.invalid) == (pytest.approx(-5.0), ((4, 8, "major"),), 1)
    with pytest.raises(InputError, match="candidate 1 has no stated score"):
        decide([Candidate('{"errors": []}')], MT, score="given")
    options = DecisionOptions("greedy", format="gemba-mqm", score="given", invalid="empty")
    for text, score, errors in ((ANSWER, -11.0, 3), ("The translation is fine.", 0.0, 0)):
        decision = decide([Candidate(text)], MT, options, source=SRC)
        assert (decision.mqm, len(decision.annotation)) == (score, errors)
