"""A signature prints to the text that it was parsed from, and answers by its fields."""

from __future__ import annotations

import pytest

from mbr_esd_metric.core.signature import Signature, differences

OURS = Signature.parse("mbr-esd|model:m|engine:vllm|d:mbr|n:16|t:2.0|u:softf1|w:uniform|prompt:v1|blank:worst|v:1")


@pytest.mark.parametrize(
    "text",
    [
        str(OURS),
        "comet|model:Unbabel/XCOMET-XL|dtype:float16|v:2.2|src|ESD-Conf",
        "BLEU|nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.4.3",
        "empty|v:1",
        "of another tool: a|b:|:c||d",
        "",
    ],
)
def test_a_text_is_printed_as_it_was_parsed(text: str) -> None:
    assert str(Signature.parse(text)) == text


def test_fields_by_name() -> None:
    assert (OURS.get("model"), OURS.get("n"), OURS.samples, OURS.get("seed")) == ("m", "16", 16, None)
    assert Signature.parse("a|n:64").samples == 64
    assert Signature.parse("a|n").samples is None
    assert str(OURS.short) == "mbr-esd|model:m|d:mbr|n:16|u:softf1|v:1"


def test_a_bar_in_a_value_does_not_end_it() -> None:
    signature = Signature.of("mbr-esd", {"model": "a|b"}, "1")
    assert Signature.parse(str(signature)) == signature


def test_candidates_do_not_depend_on_the_decision_or_the_release() -> None:
    """Every other field, also one that this release does not know, says which candidates there are."""
    decided = (
        "mbr-esd|model:m|engine:vllm|d:map|n:16|t:2.0|prompt:v1|score:expected|mqm:da|checks:true|cal:0a1b2c3d|v:2"
    )
    assert OURS.same_candidates(Signature.parse(decided))
    fields = "shots dtype unit context lp dialect format reasoning_effort grounded k seed max unknown"
    for name in fields.split():
        assert not OURS.same_candidates(Signature(OURS.tool, (*OURS.fields, (name, "1")))), name
    for old, new in (
        ("engine:vllm", "engine:server"),
        ("n:16", "n:8"),
        ("prompt:v1", "prompt:v2"),
        ("mbr-esd", "comet"),
    ):
        assert not OURS.same_candidates(Signature.parse(str(OURS).replace(old, new))), new


def test_differences_name_fields_and_values() -> None:
    other = Signature.parse("mbr-esd|model:m|engine:server|d:mbr|n:16|t:2.0|prompt:v1|blank:worst|shots:a|v:2")
    assert differences([OURS, other, OURS], without=("v",)) == {
        "engine": ("vllm", "server"),
        "u": ("softf1", "unset"),
        "w": ("uniform", "unset"),
        "shots": ("unset", "a"),
    }
    assert differences([OURS]) == {}
