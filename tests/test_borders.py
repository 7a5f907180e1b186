"""What the Python interface says to values of the wrong kind: an error of ours with the fix, no TypeError."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mbr_esd_metric import Annotation, Candidate, ErrorSpan, decide, load_metric
from mbr_esd_metric.errors import InputError, MissingDependencyError, OptionError

SPAN = ErrorSpan(0, 4, "major")
#: What a type checker would refuse.
NONE: Any = None
BYTES: Any = b"[]"
WORD: Any = "high"


@pytest.mark.parametrize(
    ("call", "part"),
    [
        (lambda: Annotation(NONE), "error spans are NoneType; give a list"),
        (lambda: Annotation(SPAN), "error spans are ErrorSpan; give a list"),
        (lambda: ErrorSpan(True, 4, "major"), "whole numbers, not True"),
        (lambda: ErrorSpan(0, WORD, "major"), "whole numbers, not 'high'"),
        (lambda: ErrorSpan(0, 4, "major", confidence=2), r"number in \[0, 1\] or None, not 2"),
        (lambda: ErrorSpan(0, 4, "major", confidence=float("nan")), "not nan"),
        (lambda: ErrorSpan(0, 4, "major", confidence=WORD), "not 'high'"),
        (lambda: decide(NONE, "text"), "candidates are NoneType; give a list of Candidates"),
        (lambda: decide([Candidate(annotation=())], NONE), "the translation is NoneType; give a text"),
        (lambda: decide([Candidate(annotation=()), Candidate(BYTES)], "text"), "candidate 2: text is bytes"),
        (lambda: decide([Candidate(annotation=(), logprob=WORD)], "text"), "candidate 1: logprob is str; give a num"),
        (lambda: decide([Candidate(annotation=(), logprob=True)], "text"), "candidate 1: logprob is bool"),
        (lambda: load_metric(NONE), "a model name is a text such as 'mbr-esd-small', not None"),
        (lambda: load_metric(NONE, n=8), "a model name is a text such as 'mbr-esd-small', not None"),
        (lambda: load_metric(""), "not ''"),
        (lambda: load_metric("mbr-esd-demo").predict(NONE), "samples are NoneType; give a list of dicts"),
    ],
)
def test_wrong_kinds_are_input_errors(call: Callable[[], object], part: str) -> None:
    with pytest.raises(InputError, match=part):
        call()


def test_numbers_of_numpy_are_numbers() -> None:
    span = ErrorSpan(np.int64(0), np.int64(4), "major", confidence=np.float32(0.5))
    assert span == ErrorSpan(0, 4, "major", confidence=0.5)
    assert (type(span.start), type(span.end)) == (int, int)
    assert decide([Candidate(annotation=[span], logprob=np.float32(-1))], "text").index == 0


def test_mbr_corpus_of_one_segment_names_the_way() -> None:
    with pytest.raises(OptionError, match=r"decide_corpus, or `mbr-esd decide --rule mbr-corpus`"):
        decide([Candidate(annotation=())], "text", rule="mbr-corpus")


def test_what_leaves_comets_requirements_says_so() -> None:
    assert str(MissingDependencyError("vllm", "vllm", "x")).endswith('[vllm]" (beside COMET: docs/comet.md)')
    assert str(MissingDependencyError("aiohttp", "server", "x")).endswith('[server]"')
