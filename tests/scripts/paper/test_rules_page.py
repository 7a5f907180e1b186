"""The page of decision rules says what its tables say."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

SCRIPT = Path(__file__).parents[3] / "scripts" / "paper" / "rules_page.py"
TEXT = "one two three four five six seven eight"
HEADER = "system\tdoc\tdoc_seg_id\tglobal_seg_id\trater\tsource\ttarget\tcategory\tseverity"
NO_ERROR = "No-error\tNo-error"
ERROR = {"error_span": "two", "category": "accuracy", "sub_category": "x", "severity": "major"}


def answer(marked: bool) -> str:
    return json.dumps({"errors": [ERROR] if marked else []})


def write(path: Path, records: list[dict[str, object]]) -> str:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return str(path)


def rating(segment: int, source: str, translation: str, marked: bool, rater: str = "r") -> str:
    """A row of the human ratings, with the word "two" marked or no error."""
    target, kind = (translation.replace("two", "<v>two</v>"), "A\tMajor") if marked else (translation, NO_ERROR)
    return f"X\td\t1\t{segment}\t{rater}\t{source}\t{target}\t{kind}"


def made(folder: Path, name: str, useful: bool) -> list[str]:
    """The options for a made set. Most samples are right, the likeliest and the greedy one is wrong: so MBR and
    majority beat MAP, unless the human ratings have nothing to do with the samples. One translation has no candidate
    that can be read."""
    rng = random.Random(name)
    candidates, decoded, scores = [], [], []
    ratings = [HEADER]
    for number in range(40):
        wrong = rng.random() < 0.5
        pair = {"id": str(number), "src": f"s{number}", "mt": f"{TEXT} {number}"}
        samples = [wrong if rng.random() < 0.8 else not wrong for _ in range(9)]
        texts = [answer(marked) for marked in [not wrong, *samples]] if number else ["none"] * 10
        each = [{"text": text, "logprob": -1.0 - i} for i, text in enumerate(texts)]
        candidates.append(pair | {"candidates": each})
        decoded.append(pair | {"candidates": each[:1]})
        scores.append({"src": pair["src"], "mt": pair["mt"], "score": -5.0 * wrong})
        ratings.append(rating(number, pair["src"], pair["mt"], wrong if useful else rng.random() < 0.5))
    human = folder / f"{name}.tsv"
    human.write_text("\n".join(ratings) + "\n")
    files = [write(folder / f"{name}{i}.jsonl", part) for i, part in enumerate((candidates, decoded, scores))]
    single = ["--single", name, "greedy", files[1]]
    return ["--set", name, files[0], str(human), *single, "--scores", name, "gold itself", files[2]]


def page_of(folder: Path, *words: str) -> str:
    """The page that the script writes."""
    subprocess.run([sys.executable, str(SCRIPT), *words, "-o", str(folder / "page.md")], check=True)
    return (folder / "page.md").read_text()


def rows_of(text: str) -> dict[str, list[str]]:
    return {row[0]: row for line in text.splitlines() if (row := [c.strip() for c in line.strip("|").split("|")])}


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("page")
    return page_of(folder, *made(folder, "useful", True), *made(folder, "useless", False), "--resamples", "200")


def test_every_rule_is_in_the_tables(page: str) -> None:
    useful = page.split("## useful\n")[1].split("## useless\n")[0]
    values, to_map, to_greedy = (rows_of(part) for part in useful.split("Difference to ")[:3])
    for rule in ("no error", "majority", "MBR softf1", "MBR mpp", "MBR corpus", "consensus corpus"):
        assert len(values[rule]) == 13
        assert rule in to_map
        assert rule in to_greedy
    assert values["MAP"][1:10] == values["greedy"][1:10], "the decoded answers are the likeliest"
    assert float(values["MBR softdice"][3]) > float(values["MAP"][3])
    assert values["gold itself"][1] == "-"
    assert values["gold itself"][7:10] == ["1.000"] * 3
    assert "none of which can be read for 1 " in useful
    assert int(values["no error"][-1]) == 0 < int(values["greedy"][-1]) < int(values["MAP"][-1])
    assert values["length"][7] == "-" or -1 <= float(values["length"][7]) <= 1


def signs(intervals: list[str]) -> str:
    """The page's signs for a rule's intervals, one interval a set."""
    bounds = [tuple(map(float, re.findall(r"[+-]\d\.\d+", one)[1:])) for one in intervals if one != "-"]
    assert all(("**" in one) == (low > 0 or high < 0) for one, (low, high) in zip(intervals, bounds, strict=False))
    better, worse = sum(low > 0 for low, _ in bounds), sum(high < 0 for _, high in bounds)
    return " ".join([f"+{better}"] * (better > 0) + [f"-{worse}"] * (worse > 0)) or "."


def test_the_conclusions_follow_from_the_tables(page: str) -> None:
    """Each sign counts the sets whose intervals say so."""
    conclusions = page.split("## What follows\n")[1].split("## useful\n")[0]
    tables = page.split("## useful\n")[1].split("## useless\n")
    names = [c.strip() for c in re.findall(r"\| rule \|(.*)\|", page)[0].split("|")][:9]
    seen, mbr = set(), dict.fromkeys(names, 0)
    for base in ("MAP", "greedy", "MBR of the same utility"):
        counted = rows_of(conclusions.split(f"Against {base}:")[1].split("Against")[0])
        by_set = [rows_of(table.split(f"Difference to {base}, ")[1].split("Difference to")[0]) for table in tables]
        rules = [rule for rule, row in by_set[0].items() if len(row) == 1 + len(names) and rule not in ("rule", "---")]
        for rule in rules:
            if all(rows[rule][at] == "-" for rows in by_set for at in range(1, 1 + len(names))):
                assert rule not in counted
                continue
            for at, measure in enumerate(names, 1):
                assert counted[rule][at] == signs([rows[rule][at] for rows in by_set]), (base, rule, measure)
                seen.add(counted[rule][at])
                if base == "MAP" and rule.startswith("MBR"):
                    mbr[measure] += sum(map(int, re.findall(r"\+(\d)", counted[rule][at])))
    assert len(seen) > 2
    by_measure = rows_of(conclusions.split("It depends on the measure:")[1].split("Rule by rule")[0])
    assert {measure: int(by_measure[measure][1]) for measure in names} == mbr
    number, of = map(int, re.findall(r"Significantly better in (\d+) of (\d+)", conclusions)[0])
    assert 0 < number == sum(mbr.values()) < of
    assert "none of 2 sets" in conclusions


def test_a_part_of_a_set_counts_against_greedy_alone(tmp_path: Path) -> None:
    sets = [*made(tmp_path, "all", True), *made(tmp_path, "some", True)]
    page = page_of(tmp_path, *sets, "--part", "some", "--resamples", "50")
    conclusions = page.split("## What follows\n")[1].split("## all\n")[0]
    to_map, to_greedy = (conclusions.split(f"Against {base}:")[1].split("Against")[0] for base in ("MAP", "greedy"))
    assert "+1" in to_map
    assert "+2" not in to_map
    assert "+2" in to_greedy


def test_every_row_is_set_against_a_row_of_scores(tmp_path: Path) -> None:
    """The intervals are those of a plain bootstrap over sources: the same draws for both rows, one after the other."""
    rng = random.Random(2)
    candidates, noisy, ratings = [], [], [HEADER]
    gold, scores = [], {"MAP": list[float](), "length": list[float](), "noise": list[float]()}
    for number in range(20):
        pair = {"id": str(number), "src": f"s{number % 7}", "mt": TEXT + " more" * rng.randrange(4) + f" {number}"}
        wrong = rng.random() < 0.5
        marked = wrong if rng.random() < 0.9 else not wrong
        candidates.append(pair | {"candidates": [{"text": answer(marked), "logprob": -1.0}]})
        for row, score in (("MAP", -5.0 * marked), ("length", -len(pair["mt"])), ("noise", rng.random())):
            scores[row].append(score)
        noisy.append({"src": pair["src"], "mt": pair["mt"], "score": scores["noise"][-1]})
        ratings.append(rating(number, pair["src"], pair["mt"], wrong))
        gold.append(-5.0 * wrong)
    (tmp_path / "human.tsv").write_text("\n".join(ratings) + "\n")
    small = ["--set", "small", write(tmp_path / "c.jsonl", candidates), str(tmp_path / "human.tsv")]
    noise = ["--scores", "small", "noise", write(tmp_path / "noise.jsonl", noisy)]
    words = [*small, *noise, *made(tmp_path, "other", True), "--against"]
    head, table = page_of(tmp_path, *words, "noise", "--resamples", "150").split("Difference to noise, ")
    shown = rows_of(table.split("## other")[0])
    assert shown["rule"] == ["rule", "pearson", "spearman", "kendall"]

    draws = np.random.default_rng(0).multinomial(7, [1 / 7] * 7, size=150)
    picked = [[*range(20)], *([i for i in range(20) for _ in range(draw[i % 7])] for draw in draws)]
    for row in ("MAP", "length"):
        for at, of in ((1, stats.pearsonr), (2, stats.spearmanr)):
            deltas = [
                np.subtract(*(of(np.array(gold)[some], np.array(scores[one])[some])[0] for one in (row, "noise")))
                for some in picked
            ]
            expected = [deltas[0], *np.nanpercentile(deltas[1:], [2.5, 97.5])]
            assert [float(x) for x in re.findall(r"[+-]\d\.\d+", shown[row][at])] == pytest.approx(expected, abs=6e-4)
            assert ("**" in shown[row][at]) == (expected[1] > 0 or expected[2] < 0)
    assert "noise" not in shown
    assert rows_of(head.split("Against noise:")[1].split("Against")[0])["MAP"][1] == "+1"


def test_where_all_have_several_raters_one_is_held_against_the_others(tmp_path: Path) -> None:
    """Three raters who agree on half of the translations, and of whom one is alone on the rest."""
    candidates, ratings = [], [HEADER]
    for number in range(8):
        mt = f"{TEXT} {number}"
        each = [{"text": answer(number % 2 == 0), "logprob": -1.0}, {"text": answer(False), "logprob": -2.0}]
        candidates.append({"id": str(number), "src": f"s{number}", "mt": mt, "candidates": each})
        ratings += [
            rating(number, f"s{number}", mt, number % 2 == 0 or (number == 1 and rater == "a"), rater)
            for rater in "abc"
        ]
    human = tmp_path / "human.tsv"
    human.write_text("\n".join(ratings) + "\n")
    page = page_of(tmp_path, "--set", "three", write(tmp_path / "c.jsonl", candidates), str(human), "--resamples", "20")
    rows = rows_of(page.split("## three\n")[1].split("Difference to ")[0])
    human_row = rows["one rater against the others"]
    # softdice-corpus: of 8 x 3 x 2 / 2 pairs, those of 4 translations are equal, and 2 of 3 of another are not.
    marked_both, marked_one = 4 * 3, 2
    assert float(human_row[5]) == pytest.approx(2 * marked_both / (2 * marked_both + marked_one), abs=5e-4)
    assert rows["everything minor"][10] == "1.00"
    assert float(rows["everything minor"][5]) < float(rows["MAP"][5])


def test_pairs_count_the_lower_score_and_the_place(tmp_path: Path) -> None:
    """One error is marked where it was planted, one elsewhere, and one text is the shorter for it."""
    table, records = ["kind\tlp\tsource\tgood\tbad"], []
    renamed, shorter = TEXT.replace("two", "2"), TEXT.replace(" two", "")
    spoilt = [("name", renamed, "2"), ("name", renamed, "seven"), ("omission", shorter, "one")]
    for number, (kind, bad, marked) in enumerate(spoilt):
        table.append(f"{kind}\ten-de\ts{number}\t{TEXT}\t{bad}")
        for mt, span in ((TEXT, None), (bad, marked)):
            text = json.dumps({"errors": [ERROR | {"error_span": span}] if span else []})
            records.append({"id": mt, "src": f"s{number}", "mt": mt, "candidates": [{"text": text, "logprob": -1.0}]})
    (tmp_path / "pairs.tsv").write_text("\n".join(table) + "\n")
    planted = ["--pairs", "planted", write(tmp_path / "p.jsonl", records), str(tmp_path / "pairs.tsv")]
    page = page_of(tmp_path, *made(tmp_path, "useful", True), "--resamples", "20", *planted)
    rows = rows_of(page.split("## planted\n")[1])
    assert rows["MAP"][1:] == ["3", "0", "2", "2", "1"]
    assert rows["no error"][1:] == ["0", "3", "0", "0", "0"]
    assert rows["length"][1:4] == ["0", "0", "-"]
