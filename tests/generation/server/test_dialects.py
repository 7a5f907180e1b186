"""Every dialect: found out by asking, asked in its own words, and as safe against faults as the others.

The servers here are made for the tests after each server's published description of its API. OpenAI's and Ollama's
cannot be had here; vLLM, llama.cpp and `transformers serve` are asked for real in other files.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("aiohttp")

from mbr_esd_metric.core.decision import Candidate
from mbr_esd_metric.core.segment import Segment
from mbr_esd_metric.errors import EngineError, OptionError
from mbr_esd_metric.generation.engine import EngineOptions, Sampling
from mbr_esd_metric.generation.engines.server import ServerEngine
from mbr_esd_metric.generation.server.address import Address
from mbr_esd_metric.generation.server.dialects import DIALECTS, Query
from mbr_esd_metric.generation.server.gbnf import gbnf
from mbr_esd_metric.generation.server.http import InvalidResponse, RequestRejected, Response, TransientError
from mbr_esd_metric.generation.server.replies import final_answer, read_reply
from mbr_esd_metric.metric.cards import load_card
from mbr_esd_metric.metric.run import annotate, signature_of
from mbr_esd_metric.prompting.formats.json import output_grammar, render_answer
from tests.helpers.chat_requests import MODEL, QUICK, requests, sampled
from tests.helpers.chat_server import FAULTS, FakeServer

ALL = list(DIALECTS)


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MBR_ESD_CACHE", str(tmp_path / "cache"))


def texts(samples: Mapping[tuple[str, int], Candidate]) -> dict[tuple[str, int], tuple[str | None, float | None]]:
    """Without the tokens, of which some servers count no more than the sum over a reply."""
    return {key: (sample.text, sample.logprob) for key, sample in samples.items()}


def options(url: str, dialect: str, **more: Any) -> EngineOptions:
    return EngineOptions(model=MODEL, server=(url,), dialect=dialect, concurrency=8, **more)


@pytest.mark.parametrize("name", [name for name in ALL if name != "openai"])
def test_a_server_says_what_it_speaks(name: str) -> None:
    with FakeServer(MODEL, dialect=name) as server:
        identity = ServerEngine(options(server.url, "auto")).identity
    assert identity.get("dialect", "vllm") == name
    # The server is down now, and candidates are found in the store all the same.
    assert ServerEngine(options(server.url, "auto")).identity == identity


def test_what_is_stored_asks_no_server_and_a_dialect_of_an_earlier_run_is_checked_before_a_sample() -> None:
    segments = [Segment("A house.", "Ein Haus.", "a"), Segment("A dog.", "Ein Hund.", "b")]
    with FakeServer(MODEL, dialect="llamacpp") as server:
        card = load_card(f"mbr-esd-server?model={MODEL}&server={server.url}&n=4")
        first = annotate(card, segments[:1])
        asked = len(server.keys)
        assert annotate(card, segments[:1]).signature == first.signature
        assert len(server.keys) == asked
        server.dialect = "vllm"
        assert annotate(card, segments[:1]).signature.get("dialect") == "llamacpp"
        assert annotate(card, segments).signature.get("dialect") is None
        assert "structured_outputs" in server.bodies[-1]


def test_openai_is_known_by_its_address_alone_and_two_dialects_do_not_mix() -> None:
    assert ServerEngine(options("https://api.openai.com/v1", "auto")).identity["dialect"] == "openai"
    with FakeServer(MODEL, dialect="openai") as one, FakeServer(MODEL, dialect="llamacpp") as two:
        assert ServerEngine(options(one.url, "auto")).identity["dialect"] == "plain"
        with pytest.raises(EngineError, match=r"several dialects \(.*plain.*llamacpp.*must not be mixed"):
            print(ServerEngine(EngineOptions(model=MODEL, server=(one.url, two.url))).identity)


@pytest.mark.parametrize("name", ALL)
def test_faults_lose_and_double_nothing(name: str) -> None:
    can = DIALECTS[name]
    count, share = (60, 0.3) if can.per_request > 1 else (10, 0.15)
    with FakeServer(MODEL, dialect=name) as server:
        clean = sampled(server, count, 16)
        sent = server.bodies[0]
        parts = {**sampled(server, 2, 7), **sampled(server, 2, 9, 7)}
        server.share = share
        spoilt = sampled(server, count, 16, policy=dataclasses.replace(QUICK, timeout=2.5))
    assert set(server.spoilt) == set(FAULTS)
    assert set(spoilt) == set(clean)
    assert ("seed" in sent.get("options", sent)) is can.seed
    assert (sent.get("n", 1) > 1) is (can.per_request > 1)
    if can.seed:
        assert texts(spoilt) == texts(clean) == texts({**clean, **parts})
    for sample in clean.values():
        assert sample.truncated or re.fullmatch(output_grammar(), sample.text or "")
        assert (sample.logprob is not None) is can.logprobs
    assert sum(sample.tokens for sample in clean.values()) > len(clean)


@pytest.mark.parametrize(
    ("fault", "message"),
    [("redirect", "redirects to"), ("flood", "sends over 2 MB"), ("packed", "compresses its replies")],
)
def test_what_cannot_be_borne_is_a_clear_end(fault: str, message: str) -> None:
    with FakeServer(MODEL, share=1.0, faults=(fault,)) as server, pytest.raises(EngineError, match=message):
        sampled(server, 1, 1)
    assert server.spoilt == {fault: 1}


@pytest.mark.parametrize("name", ["ollama", "openai", "sglang", "vllm"])
def test_guidance_that_is_ignored_is_an_error(name: str) -> None:
    field = DIALECTS[name].guide
    with FakeServer(MODEL, dialect=name, plain=True) as server:
        with pytest.raises(EngineError, match=f"ignores the field {field}: .*'no JSON'.*dialect=plain"):
            sampled(server, 2, 4)
        assert field in server.bodies[0]


@pytest.mark.parametrize("name", ALL)
def test_what_is_left_out_is_printed_once_a_run_and_is_in_key_and_signature(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "mbr_esd_metric")
    can, segments = DIALECTS[name], [Segment("a", "ein Satz", "segment 1")]
    with FakeServer("served", dialect=name) as server:
        model = f"mbr-esd-llama?model=served&n=4&dialect={name}&server={server.url}"
        first = annotate(load_card(model), segments, progress=True)
        hot = annotate(load_card(f"{model}&temperature=2"), segments, progress=True)
    whole = can.seed and can.top_k and can.guidance in ("regex", "gbnf")
    assert caplog.text.count("left out") == (0 if whole else 1 if can.top_k else 2)
    assert (" at temperature=1; left out: top_k=10" in caplog.text) is not can.top_k
    sent = server.bodies[0].get("options", server.bodies[0])
    assert sent.get("temperature", 2.0) == (2.0 if can.top_k else 1.0)
    assert ("|t:1.0|k:-|" in str(first.signature)) is not can.top_k
    assert hot.signature.get("t") == "2.0"
    assert ("|seed:-|" in str(first.signature)) is not can.seed
    assert (f"|dialect:{name}|" in str(first.signature)) is (name != "vllm")


@pytest.mark.parametrize("name", [name for name in ALL if name != "vllm"])
def test_what_needs_log_probabilities_or_a_grammar_is_refused(name: str) -> None:
    base = f"mbr-esd-llama?dialect={name}&server=http://127.0.0.1:9/v1&n=4"
    segments = [Segment("a", "b", "segment 1")]
    for more in ("&rule=map", "&weights=model"):
        with pytest.raises(OptionError, match=rf"dialect={name} does not return log-prob.*rule=mbr.*vLLM"):
            annotate(load_card(base + more), segments)
    if DIALECTS[name].guidance in ("schema", "none"):
        with pytest.raises(OptionError, match=rf"grounded=true: dialect={name} does not support grammars; remove it"):
            annotate(load_card(base + "&grounded=true"), segments)


@pytest.mark.parametrize("name", ["openai", "ollama"])
def test_a_format_that_is_no_json_is_asked_for_without_a_schema(name: str) -> None:
    def spoil(reply: dict[str, Any], number: int) -> None:
        for choice in reply.get("choices", [reply]):
            choice["message"]["content"] = "Critical:\nno-error\nMajor:\nno-error\nMinor:\nno-error"

    with FakeServer(MODEL, dialect=name, spoil=spoil) as server:
        options = f"model={MODEL}&server={server.url}&dialect={name}&format=gemba-mqm&n=2"
        [decision] = annotate(load_card(f"mbr-esd-server?{options}"), [Segment("A house.", "Ein Haus.", "a")]).decisions
    assert (decision.valid, decision.mqm) == (2, 0)
    assert not {"response_format", "format"} & {*server.bodies[0]}


@pytest.mark.parametrize("name", ["openai", "plain"])
def test_a_model_that_reasons_takes_no_temperature(name: str) -> None:
    for effort, temperature in (("low", None), ("none", 2.0)):
        dialect = dataclasses.replace(DIALECTS[name], reasoning_effort=effort)
        body = Query(*requests(1, 1), MODEL, Sampling(), dialect).body
        assert (body["reasoning_effort"], body.get("temperature")) == (effort, temperature)
    signature = str(signature_of(load_card(f"mbr-esd-llama?dialect={name}&server=http://h/v1&reasoning_effort=low")))
    assert re.search(r"\|reasoning_effort:low\|.*\|t:-\|k:-\|", signature)


def test_an_answer_is_cut_out_of_prose_and_follows_the_first_end_of_thoughts() -> None:
    plain, vllm, answer, example = DIALECTS["plain"], DIALECTS["vllm"], render_answer([]), '{"errors": ["an example"]}'
    assert final_answer(DIALECTS["ollama"], f"Here you are:\n```json\n{answer}\n```") == answer
    for text in (
        f"Sure!\n```json\n{answer}\n```\nBye {{}}",
        f"{{broken {answer}",
        f"<think>{{}}</think>{answer}",
        "{no} " * 1000 + answer + "{no} " * 1000,
        f"Answers look like {example}. Mine is {answer}",
    ):
        assert final_answer(plain, text) == answer
    for text in (f'{{"errors": [], "notes": {example}}}', "nothing of the kind {}"):
        assert final_answer(plain, text) == text
    for thoughts in ("<think>a</think>", " \n<thinking>b <think></thinking>\n\n"):
        assert final_answer(vllm, thoughts + "none </think>") == "none </think>"
    for text in ("<think>never closed", "none <think>a</think>", "<thinker>a</thinker>"):
        assert final_answer(vllm, text) == text


@pytest.mark.parametrize(
    "text",
    [
        "<think>" + "</thin" * 40_000,
        " " * 280_000 + "<think>",
        '{"a":' * 56_000,
        ('{"a":' * 400 + "1" + "}" * 400) * 100,
        '{"a": [' * 400 + "1, " * 90_000,
    ],
    ids=["thoughts", "blanks", "braces", "objects", "lists"],
)
def test_a_long_hostile_text_is_read_in_no_time(text: str) -> None:
    """A pattern holds the interpreter's lock: for as long as it looks, Ctrl-C ends nothing."""
    for name in ("vllm", "openai", "plain"):
        began = time.process_time()
        final_answer(DIALECTS[name], text)
        assert time.process_time() - began < 1.0


def read(name: str, **choice: Any) -> Candidate:
    """The only candidate of a reply with this choice; of Ollama's, which is a reply itself."""
    reply = {"choices": [{"index": 0, "finish_reason": "stop"} | choice]}
    if name == "ollama":
        reply = {"done": True, "done_reason": "stop"} | choice
    query = Query(*requests(1, 1), MODEL, Sampling(), DIALECTS[name])
    (sample,) = read_reply(query, reply, Address.parse("http://h/v1")).samples
    return sample


@pytest.mark.parametrize("name", ["plain", "openai", "sglang"])
def test_content_in_parts_is_joined_and_refused_or_elsewhere_is_told_apart(name: str) -> None:
    """A refusal is paid for, and not asked for again."""
    begin, end = '{"errors"', ": []}"
    thoughts = {"type": "thinking", "thinking": [{"type": "text", "text": "{}"}]}
    for parts in (
        [thoughts, {"type": "text", "text": begin}, {"type": "text", "text": end}],
        [{"type": "reasoning", "text": "hm"}, begin, {"text": end}],
        [{"type": "output_text", "text": begin + end}],
    ):
        assert read(name, message={"content": parts}).text == begin + end
    with pytest.raises(InvalidResponse, match="without content; a model that always reasons.*reasoning_effort=low"):
        read(name, message={"content": [thoughts]})
    refused = read(name, message={"content": None, "refusal": "I cannot help with that."})
    assert (refused.text, refused.truncated) == ("I cannot help with that.", True)
    assert refused == read(name, message={"content": [{"type": "refusal", "refusal": "I cannot help with that."}]})
    filtered = read(name, message={"content": None}, finish_reason="content_filter")
    assert (filtered.text, filtered.truncated) == ("", True)
    assert filtered.withheld == "it withholds the answer: content_filter"
    for field in ("reasoning_content", "tool_calls"):
        with pytest.raises(InvalidResponse, match=f"without content; the server put it into {field}; serve the model"):
            read(name, message={"content": None, field: "thoughts"})


def test_an_answer_is_whole_unless_its_finish_reason_is_a_known_cut() -> None:
    message = {"content": render_answer([])}
    for reason in ("stop", "eos_token", "EOS", "stop_sequence", "end_turn", "tool_calls", "COMPLETE", ""):
        assert not read("openai", message=message, finish_reason=reason).truncated
    for reason in ("length", "MAX_TOKENS", "model_length", "token_limit", "content_filter", "SAFETY"):
        assert read("openai", message=message, finish_reason=reason).truncated
    for reason in ("abort", "error", "cancelled", "insufficient_system_resource"):
        with pytest.raises(InvalidResponse, match="a candidate was cut off"):
            read("openai", message=message, finish_reason=reason)
    for name, reason in itertools.product(("openai", "plain"), (None, "None", "", "null")):
        assert read(name, message=message, finish_reason=reason) == read(name, message=message)
        assert read(name, message={"content": '{"errors": [{"error_sp'}, finish_reason=reason).truncated


@pytest.mark.parametrize("whole", [False, True])
def test_an_event_stream_is_read_as_one_reply(whole: bool) -> None:
    answers = [render_answer([]), '{"errors": [1]}']
    chunks: list[Any] = []
    for place, text in enumerate(answers):
        parts = [text] if whole else [text[:5], text[5:]]
        for number, part in enumerate(parts, 1):
            message = {"message" if whole else "delta": {"role": "assistant", "content": part}}
            chunks.append(
                {"choices": [{"index": place, **message, "finish_reason": "stop" if len(parts) == number else None}]}
            )
    chunks.append({"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 4}})
    events = [": processing", *(f"event: chunk\r\ndata: {json.dumps(chunk)}" for chunk in chunks), "data: [DONE]"]
    body = "\r\n\r\n".join(events).encode()
    query = Query(*requests(1, 2), MODEL, Sampling(), DIALECTS["openai"])
    for headers in ({"content-type": "text/event-stream; charset=utf-8"}, {"content-type": "application/json"}):
        reply = read_reply(query, Response(200, headers, body).json(), Address.parse("http://h/v1"))
        assert [sample.text for sample in reply.samples] == answers
        assert reply.billed == (7, 4)
    with pytest.raises(InvalidResponse, match=r"sent an event stream that was not requested.*disable streaming"):
        Response(200, {"content-type": "text/event-stream"}, b"data: {half").json()


def test_an_error_in_an_event_stream_is_the_servers() -> None:
    chunk, error = {"choices": [{"index": 0, "delta": {"content": "{"}}]}, {"error": {"code": 502, "message": "gone"}}
    body = f"data: {json.dumps(chunk)}\n\ndata: {json.dumps(error)}\n\n".encode()
    query = Query(*requests(1, 1), MODEL, Sampling(), DIALECTS["plain"])
    with pytest.raises(TransientError, match="502 gone"):
        read_reply(query, Response(200, {}, body).json(), Address.parse("http://h/v1"))


def indexed(*indices: object, n: int) -> list[str | None]:
    """The texts that are read of choices with these indices, "no index" for none; each text is its place."""
    choices: list[Any] = [
        {"message": {"content": str(place)}, "finish_reason": "stop"}
        | ({} if index == "no index" else {"index": index})
        for place, index in enumerate(indices)
    ]
    query = Query(*requests(1, n), MODEL, Sampling(), DIALECTS["plain"])
    return [one.text for one in read_reply(query, {"choices": choices}, Address.parse("http://h/v1")).samples]


def test_an_index_counts_only_where_several_choices_carry_distinct_ones() -> None:
    for index in ("no index", None, 0, 1, 7, "0", 0.0):
        assert indexed(index, n=4) == ["0"], index
    for index in ("no index", None, 0, "0"):
        assert indexed(index, index, index, n=3) == ["0", "1", "2"], index
    assert indexed(2, 0, 1, n=3) == indexed(3, 1, 2, n=3) == ["1", "2", "0"]
    assert indexed(0, 2, n=3) == ["0"]
    for odd in ([1, 2], [0, 0, 1], [0, 3, 1], [-1, 0, 1]):
        with pytest.raises(InvalidResponse, match="the reply's choices have the indices"):
            indexed(*odd, n=3)


def test_an_odd_reply_of_ollamas() -> None:
    message = {"content": render_answer([])}
    for change in ({"done": False}, {"done_reason": "load"}):
        with pytest.raises(InvalidResponse, match="a candidate was cut off"):
            read("ollama", message=message, **change)
    with pytest.raises(InvalidResponse, match="without content; .* needs reasoning_effort=low"):
        read("ollama", message={"content": ""})
    with pytest.raises(RequestRejected, match=r"too long for the context of 4096 tokens; split the segment"):
        read("ollama", message=message, prompt_eval_count=4096)


def test_a_deployments_name_is_taken_with_a_note_where_the_server_names_another(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", "mbr_esd_metric")
    with FakeServer(MODEL, dialect="openai", spoil=lambda reply, number: reply.update(model="gpt-5-2025")) as server:
        assert len(sampled(server, 3, 2)) == 6
        named = options(server.url, "openai")
        assert ServerEngine(dataclasses.replace(named, model="deployment")).problem is None, "lists show none of these"
        assert ServerEngine(dataclasses.replace(named, model="")).model == MODEL
    assert caplog.text.count("answered with the model 'gpt-5-2025' instead of 'test-model'") == 1


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (r"\{\"x\": (a|)\}", 'root ::= "{\\"x\\": " ( "a" | "" ) "}"'),
        (r"[^\"\\\x00-\x1f]+", r"root ::= [^\"\\\x00-\x1F] +"),
        (r"(?:你|\.)+", 'root ::= ( "你" | "." ) +'),
        (r"\d\n", 'root ::= [0-9] "\\x0A"'),
        (r"(a|(b(c)?)+){0,3}d", 'root ::= repeated-1 {0,3} "d"\nrepeated-1 ::= "a" | ( "b" ( "c" ) ? ) +'),
        (r"((a){2}){3}", 'root ::= repeated-2 {3}\nrepeated-1 ::= "a"\nrepeated-2 ::= repeated-1 {2}'),
    ],
)
def test_gbnf(expression: str, expected: str) -> None:
    assert gbnf(expression) == expected


@pytest.mark.parametrize("expression", [r"(?=a)b", r"\bword", r"a\1"])
def test_what_gbnf_cannot_say_is_an_error(expression: str) -> None:
    with pytest.raises(ValueError, match="no GBNF"):
        gbnf(expression)
