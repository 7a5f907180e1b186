"""The public names as a user's program sees them: typed, refused where they are wrong, one option a field."""

from __future__ import annotations

import argparse
import importlib.metadata
import inspect
import json
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import mbr_esd_metric
from mbr_esd_metric import (
    Annotation,
    Candidate,
    Decision,
    DecisionOptions,
    ErrorSpan,
    decide,
    decide_many,
    load_metric,
)
from mbr_esd_metric.cli.decide import configure, flag
from mbr_esd_metric.decoding.options import FIELDS as OPTIONS
from mbr_esd_metric.errors import InputError, OptionError
from mbr_esd_metric.installing import install_command
from mbr_esd_metric.metric.card import settings
from mbr_esd_metric.metric.cards import load_card

MT = "The quick brown fox"
ITEMS = [
    Candidate(annotation=[ErrorSpan(0, 3, "major")]),
    Candidate(annotation=[ErrorSpan(4, 9, "minor")]),
    Candidate(annotation=[]),
]
FIELDS = [field.name for field in fields(DecisionOptions)]

USER = """
from typing import Any

import mbr_esd_metric
from mbr_esd_metric import Candidate, Decision, DecisionOptions, ErrorSpan, InputError, Metric, decide, decide_many
from mbr_esd_metric import decide_corpus, f1, load_metric, metaeval, mqm_score

decision: Decision = decide([Candidate("{}")], "text", DecisionOptions(rule="map"), blank="skip")
span: ErrorSpan = next(iter(decision.annotation))
many: list[Decision] = decide_many([([Candidate("{}")], "text")])
metric: Metric = load_metric("mbr-esd-small", n=8)
score: float = metric.predict([{"src": "a", "mt": "b"}], 8, 0).system_score
spans: list[list[dict[str, Any]]] = metric.predict({"src": ["a"], "mt": ["b"]}, gpus=0).metadata.error_spans
values: float = f1([span], [span], 4) + mqm_score([span])
"""
#: Line that is wrong -> a part of mypy's message.
WRONG = {
    'decide([Candidate("{}")], "text", "map")': 'Argument 3 to "decide" has incompatible type "str"',
    'metric.predict([{"src": "a", "mt": "b"}], batch_sise=8)': 'Unexpected keyword argument "batch_sise"',
    "metric.predict([]).scorez": '"Prediction" has no attribute "scorez"; maybe "scores"?',
    "mbr_esd_metric.decode": 'Module has no attribute "decode"',
}


def test_a_users_file_is_checked(tmp_path: Path) -> None:
    """Each wrong line is an error of mypy --strict, and nothing else is."""
    pytest.importorskip("mypy", reason="needs mypy, of the extra dev")
    path = tmp_path / "user.py"
    path.write_text(USER + "\n".join(WRONG) + "\n", encoding="utf-8")
    # From another folder than the package's, where mypy knows no more of it than what is installed says.
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", path.name]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    errors = re.findall(r"^user\.py:(\d+): error: (.*)", done.stdout, re.MULTILINE)
    first = USER.count("\n") + 1
    assert [int(number) for number, _ in errors] == [*range(first, first + len(WRONG))], done.stdout
    assert all(part in message for part, (_, message) in zip(WRONG.values(), errors, strict=True)), done.stdout


def test_every_public_name_is_an_attribute_and_declared() -> None:
    source = inspect.getsource(mbr_esd_metric)
    for name in mbr_esd_metric.__all__:
        assert getattr(mbr_esd_metric, name) is not None
        assert f"{name}" in source.partition("if TYPE_CHECKING:")[2]
    with pytest.raises(AttributeError, match="no attribute 'decode'"):
        mbr_esd_metric.decode  # type: ignore[attr-defined]  # noqa: B018


def test_one_option_is_one_field() -> None:
    """The keywords of `decide`, the options of a model name and those of the command line are the fields."""
    assert set(FIELDS) <= set(settings(load_card("mbr-esd-demo")))
    parser = argparse.ArgumentParser()
    configure(parser)
    words = [word for name in FIELDS for word in (flag(name), name)]
    read = vars(parser.parse_args(["candidates", "-o", "out", *words]))
    assert {name for name in FIELDS if name in read.values()} == set(FIELDS)


def test_options_and_fields_are_the_same() -> None:
    options = DecisionOptions(rule="map", utility="f1")
    items = [Candidate(annotation=one.annotation, logprob=-float(at)) for at, one in enumerate(ITEMS)]
    assert decide(items, MT, options) == decide(items, MT, rule="map", utility="f1")
    assert decide(items, MT, options, rule="majority") == decide(items, MT, rule="majority", utility="f1")
    with pytest.raises(OptionError, match="pass a DecisionOptions, or fields by name"):
        decide(items, MT, "map")  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="unknown option of a decision 'rul'; did you mean 'rule'"):
        decide(items, MT, rul="map")  # type: ignore[call-arg]
    with pytest.raises(OptionError, match="unknown rule 'foo'; valid: (?!.*oracle)"):
        decide(items, MT, rule="foo")
    with pytest.raises(OptionError, match="decide_corpus, or `mbr-esd decide --rule mbr-corpus`"):
        decide(items, MT, rule="mbr-corpus")


@pytest.mark.parametrize("name", [name for name, one in OPTIONS.items() if one.metadata["valid"] is not None])
def test_an_option_takes_only_what_it_lists(name: str) -> None:
    with pytest.raises(OptionError, match="'nonsense'"):
        DecisionOptions(**{name: "nonsense"})  # type: ignore[arg-type]


def test_a_test_set_is_decided() -> None:
    segments = [(ITEMS, MT), (ITEMS[:1], MT), (ITEMS[1:], MT)]
    decisions: list[Decision] = decide_many(segments)
    assert repr(decisions) == repr([decide(*segment) for segment in segments])
    assert len(decide_many(segments, rule="mbr-corpus")) == 3
    with pytest.raises(InputError, match="segment 2: "):
        decide_many([(ITEMS, MT), ([Candidate()], MT)])


def test_options_are_keywords_too() -> None:
    """The same checks as in the name."""
    assert load_metric("mbr-esd-llama", n=8, utility="f1").card == load_metric("mbr-esd-llama?n=8&utility=f1").card
    with pytest.raises(OptionError, match="unknown model option 'utilty'; did you mean 'utility'"):
        load_metric("mbr-esd-llama", utilty="f1")
    with pytest.raises(OptionError, match="model option 'n' is given twice"):
        load_metric("mbr-esd-llama?n=4", n=8)
    urls = ["http://one/v1", "http://two/v1"]
    card = load_metric("mbr-esd-llama", server=urls, price=(0.1, 0.5), max_cost=None, grounded=True).card
    assert (card.server, card.price, card.max_cost, card.grounded) == (tuple(urls), (0.1, 0.5), None, True)
    with pytest.raises(InputError, match="/nowhere/model: no such model folder"):
        load_metric("/nowhere/model")


def test_repr_names_the_options_of_a_metric() -> None:
    shown = repr(load_metric("mbr-esd-llama?temperature=1&lp=en-de&grounded=true&seed=4&rule=map"))
    for option in ("n=256", "temperature=1.0", "lp=en-de", "grounded=True", "seed=4", "rule=map", "engine=auto"):
        assert option in shown
    assert "top_k" not in shown
    assert "server=https://***@host/v1" in repr(load_metric("mbr-esd-server?model=m&server=https://me:secret@host/v1"))


def test_a_metric_is_like_comets() -> None:
    metric = load_metric("mbr-esd-small")
    prediction = metric.predict({"src": [], "mt": []}, 8, 0)
    assert (prediction.scores, prediction.metadata.error_spans, prediction.metadata.signature) == ([], [], "")
    with pytest.raises(AttributeError, match="unknown name in a prediction 'scorez'; did you mean 'scores'"):
        prediction.scorez  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(TypeError, match="batch_sise"):
        metric.predict([], batch_sise=8)  # type: ignore[call-arg]
    with pytest.raises(InputError, match=r"different lengths: 'src' 1, 'mt' 2"):
        metric.predict({"src": ["a"], "mt": ["b", "c"]})
    with pytest.raises(InputError, match=r"samples\['src'\] is str; pass a list of texts"):
        metric.predict({"src": "a", "mt": "b"})
    with pytest.raises(OptionError, match="mc_dropout"):
        metric.predict([], mc_dropout=3)
    blank = metric.predict({"src": ["a", "b"], "mt": ["", " "]}, progress_bar=False)
    assert (blank.system_score, blank.metadata.mqm) == (0.0, [-25.0, -25.0])


#: What a type checker would refuse.
NONE: Any = None
BYTES: Any = b"[]"
WORD: Any = "high"


@pytest.mark.parametrize(
    ("call", "part"),
    [
        (lambda: Annotation(NONE), "error spans are NoneType; give a list"),
        (lambda: ErrorSpan(0, WORD, "major"), "must be integers, not 'high'"),
        (lambda: ErrorSpan(0, 4, "major", confidence=2), r"number in \[0, 1\] or None, not 2"),
        (lambda: ErrorSpan(0, 4, "major", confidence=WORD), "not 'high'"),
        (lambda: decide(NONE, "text"), "candidates are NoneType; give a list of Candidates"),
        (lambda: decide([Candidate(annotation=())], NONE), "the translation is NoneType; give a text"),
        (lambda: decide([Candidate(annotation=()), Candidate(BYTES)], "text"), "candidate 2: text is bytes"),
        (lambda: decide([Candidate(annotation=(), logprob=WORD)], "text"), "candidate 1: logprob is str; give a num"),
        (lambda: load_metric(NONE, n=8), "a model name must be a text such as 'mbr-esd-small', got None"),
        (lambda: load_metric("mbr-esd-demo").predict(NONE), "samples is NoneType; pass a list of dicts"),
    ],
)
def test_wrong_kinds_are_input_errors(call: Callable[[], object], part: str) -> None:
    with pytest.raises(InputError, match=part):
        call()


@pytest.mark.parametrize(
    ("origin", "command"),
    [
        (None, 'pip install "mbr-esd-metric[comet]"'),
        ({"url": "file:///a%20b", "dir_info": {"editable": True}}, 'pip install -e "/a b[comet]"'),
        (
            {"url": "https://host/x.git", "vcs_info": {"vcs": "git", "commit_id": "abc"}},
            'pip install "mbr-esd-metric[comet] @ git+https://host/x.git@abc"',
        ),
        (
            {"url": "https://host/x.whl", "archive_info": {}},
            'pip install "mbr-esd-metric[comet] @ https://host/x.whl"',
        ),
    ],
)
def test_an_extra_comes_from_where_the_package_came(
    origin: dict[str, Any] | None, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = None if origin is None else json.dumps(origin)
    installed = SimpleNamespace(read_text=lambda name: text if name == "direct_url.json" else None)
    monkeypatch.setattr(importlib.metadata, "distribution", lambda name: installed)
    assert install_command("comet") == command
