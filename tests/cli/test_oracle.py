"""The oracle: the best choice among the candidates, and what more of them bring."""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path

import pytest

from mbr_esd_metric.adapters.wmt.layout import Layout
from tests.helpers.command import Command, table_rows
from tests.helpers.wmt_folder import SEGMENTS


@pytest.fixture
def oracle(data: Path, candidates: Path, mbr_esd: Command) -> Command:
    return partial(mbr_esd, f"oracle {candidates} --test-set {data}/wmt23 --lp en-de")


def test_the_oracle_bounds_every_rule_and_finds_the_best_candidate(oracle: Command) -> None:
    rules = ["empty", "map", "majority", "mbr", "mbr-corpus"]
    rows = table_rows(oracle, "--raters mqm.merged mqm.rater2 --measures softf1 --rules", *rules)
    softf1 = {row["rule"]: row["en-de"]["softf1"] for row in rows}
    assert list(softf1) == [*rules, "oracle", "oracle mqm.merged", "oracle mqm.rater2"]
    assert softf1["oracle"] >= max(softf1[rule] for rule in rules)
    # The fourth candidate of each is what the merged rater said, but for words that also stand elsewhere as a whole.
    assert softf1["oracle mqm.merged"] == pytest.approx(1.0, abs=0.005)
    (alone,) = table_rows(oracle, "--rules --raters mqm.merged")
    assert (alone["rule"], alone["en-de"]["spa"]) == ("oracle", pytest.approx(1.0))


def test_an_oracle_of_ratings_that_cannot_compare_systems_is_left_out(
    candidates: Path, own: Layout, mbr_esd: Command
) -> None:
    path = own.human_file("mqm.rater2", "seg.rating")
    lines = path.read_text(encoding="utf-8").splitlines()
    others = [f"{line.partition(chr(9))[0]}\tNone" for line in lines[SEGMENTS:]]
    path.write_text("\n".join([*lines[:SEGMENTS], *others]) + "\n", encoding="utf-8")
    words = f"oracle {candidates} --rules --raters mqm.merged mqm.rater2 --test-set {own.root} --lp en-de"
    printed = mbr_esd(words).out
    assert re.search(r"oracle mqm.merged: \d+ translations in en-de", printed)
    assert "oracle mqm.rater2 is omitted in en-de: no segment is rated for two systems" in printed
    assert printed.count("oracle mqm.rater2") == 1


def test_signatures_say_how_answers_are_read(data: Path, candidates: Path, mbr_esd: Command) -> None:
    lines = [json.loads(line) for line in candidates.read_text(encoding="utf-8").splitlines()]
    stored = {"location": "successive", "invalid": "empty", "weights": "model"}
    own = candidates.with_name("own.jsonl")
    own.write_text("".join(json.dumps({**line, "decision": stored}) + "\n" for line in lines), encoding="utf-8")
    utilities = {"map": "u:mpp", "mbr-corpus": "u:softdice|w:uniform", "oracle": "u:mpp|w:uniform"}
    for path, words, read in (
        (candidates, "", "loc:word|invalid:drop"),
        (candidates, "--location first", "loc:first|invalid:drop"),
        (own, "", "loc:successive|invalid:empty"),
        (own, "--location word", "loc:word|invalid:empty"),
    ):
        where = f"oracle {path} --test-set {data}/wmt23 --lp en-de"
        printed = mbr_esd(where, words, "--utility mpp --rules map mbr-corpus").out
        for rule, utility in utilities.items():
            (line,) = (line for line in printed.splitlines() if line.startswith(f"{rule}: mbr-esd|candidates:"))
            assert f"|d:{rule}|{utility}|" in line
            assert f"|{read}|" in line


def test_sizes_take_prefixes(oracle: Command) -> None:
    rules = ("empty", "map", "majority", "mbr", "oracle")
    rows = table_rows(oracle, "--measures softf1 --sizes 1 3 8")
    table = {(row["rule"], row["n"]): row["en-de"]["softf1"] for row in rows}
    assert list(table) == [(rule, n) for rule in rules for n in (1, 3, 8)]
    # One candidate leaves no choice; with all of them the best is at least as good as any rule's.
    assert {table[rule, 1] for rule in rules[1:]} == {table["oracle", 1]}
    assert table["oracle", 8] >= max(table[rule, 8] for rule in rules)


@pytest.mark.parametrize("words", ["leaderboard --view lambda-sweep --metric spans", "oracle C --sizes 4 --rules mbr"])
def test_two_language_pairs_stand_side_by_side(data: Path, candidates: Path, mbr_esd: Command, words: str) -> None:
    verb, where = words.replace("C", str(candidates)), f"--test-set {data}/wmt23 --lp"
    first, second, both = (table_rows(mbr_esd, verb, where, lps) for lps in ("en-de", "zh-en", "en-de zh-en"))
    assert both == [one | other for one, other in zip(first, second, strict=True)]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--sizes 64", "segment 1 of A: only 8 candidates, fewer than 64"),
        ("--rules mbrr", "did you mean 'mbr'"),
        ("--plot x.png", "add --sizes, for instance --sizes 16 64 256"),
    ],
)
def test_failures_are_one_line(oracle: Command, words: str, message: str) -> None:
    (line,) = oracle(words, status=1).err.splitlines()
    assert message in line


def test_candidates_that_cannot_be_chosen_from_are_named(data: Path, candidates: Path, mbr_esd: Command) -> None:
    bare, where = candidates.with_name("bare.jsonl"), f"--test-set {data}/wmt23 --lp en-de"
    lines = [json.loads(line) for line in candidates.read_text(encoding="utf-8").splitlines()]
    for line in lines:
        line["candidates"] = [{"text": "?" if line["id"] == "1" else one["text"]} for one in line["candidates"]]
    bare.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    message = mbr_esd(f"oracle {bare} {where} --rules map", status=1).err
    assert "bare.jsonl: segment 1 of A: the rule 'map' needs the candidates' log-prob" in message
    message = mbr_esd(f"oracle {bare} {where} --rules mbr-corpus", status=1).err
    assert "segment 2 of A: none of the 8 candidates is valid" in message
