"""A task's test set without gold, and submissions: they read back, and the tasks' own scorers give our figures.

`tests/golden/task_scorers.json` has what the scorers of WMT23's quality estimation task and of WMT25's evaluation task
say of the made-up test set; its key "provenance" says of which version.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from mbr_esd_metric.adapters.wmt import TestSet, load_test_set
from mbr_esd_metric.adapters.wmt.importing import read_task
from mbr_esd_metric.adapters.wmt.layout import read_scores, write_lines
from mbr_esd_metric.adapters.wmt.rating_files import fit_to_text
from mbr_esd_metric.adapters.wmt.submissions import SUBMISSION_FORMATS, import_submission, read_spans, write_submission
from mbr_esd_metric.core.annotation import Annotation, ErrorSpan
from mbr_esd_metric.errors import InputError, OptionError
from mbr_esd_metric.metaeval import evaluate_spans
from tests.helpers.command import Command
from tests.helpers.refused import refused
from tests.helpers.wmt_folder import SEGMENTS, SYSTEMS, write_folder

SCORERS = json.loads((Path(__file__).parents[2] / "golden" / "task_scorers.json").read_text(encoding="utf-8"))
DATA = Path(__file__).parents[2] / "data" / "wmt"


def read(data: Path, lp: str = "en-de") -> TestSet:
    return load_test_set(data, "made", lp, reference="refA")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    for lp in ("en-de", "zh-en"):
        write_folder(tmp_path / "data", "made", lp)
    return tmp_path / "data"


def spans_of(test_set: TestSet, name: str) -> list[list[Annotation | None]]:
    ratings = test_set.metric(name).ratings
    assert ratings is not None
    return ratings.of(SYSTEMS, SEGMENTS)


def figures(test_set: TestSet, spans: list[list[Annotation | None]], *measures: str) -> list[float]:
    """The values of measures against people."""
    values = evaluate_spans(spans, test_set.human(), test_set.lengths, measures).values
    return [values[measure] for measure in measures]


def parts(measure: str) -> list[str]:
    return [f"{measure}-precision", f"{measure}-recall", measure]


@pytest.mark.parametrize("form", list(SUBMISSION_FORMATS))
def test_what_is_written_reads_back(form: str, data: Path, tmp_path: Path) -> None:
    sets = [read(data, "en-de"), read(data, "zh-en")]
    path = tmp_path / "submission"
    # Every translation but those of the standard reference, in two language pairs.
    assert write_submission(path, form, sets, "spans") == 2 * len(SYSTEMS) * SEGMENTS
    for test_set in sets:
        kind = "scores" if form == "wmt25-task1" else "scores and error spans"
        done = f"back-src, {kind} of {len(SYSTEMS) * SEGMENTS} translations by {len(SYSTEMS)} systems"
        assert import_submission(path, form, test_set, "back-src") == done
        if form != "wmt25-task1":
            assert spans_of(test_set, "back-src") == spans_of(test_set, "spans-src")
        stored = test_set.metric("back-src")
        scores = test_set.metric("spans-src").scores
        # WMT26's scores go from 0 to 100; the task of WMT23 has none, so that Score(E) takes their place.
        assert stored.scores == pytest.approx(4 * (scores + 25) if form == "wmt26" else scores)


@pytest.mark.parametrize("lp", ["en-de", "zh-en"])
def test_figures_are_those_of_the_tasks_scorer(lp: str, data: Path) -> None:
    test_set = read(data, lp)
    plain = spans_of(test_set, "spans-src")
    for scorer, measure in (("wmt23", "f1-corpus"), ("wmt25", "f1-wmt25-corpus")):
        golden = SCORERS[scorer][lp]
        assert figures(test_set, plain, *parts(measure)) == pytest.approx(golden, rel=0, abs=1e-12)
    # Every first span again, an empty one, and errors without a place.
    import_submission(DATA / f"predictions-{lp}.tsv", "wmt25-task2", test_set, "odd-src")
    odd, golden = spans_of(test_set, "odd-src"), SCORERS["wmt25"][f"{lp} repeated"]
    assert figures(test_set, odd, *parts("f1-wmt25-corpus")) == pytest.approx(golden, rel=0, abs=1e-12)
    # What looks at a set, and Score(E), sees the same as without the repeats.
    sets = ("softf1", "softdice-corpus")
    assert figures(test_set, odd, *sets) == figures(test_set, plain, *sets)
    assert test_set.metric("odd-src").scores.tolist() == test_set.metric("spans-src").scores.tolist()


def test_a_submission_for_the_rated_translations_alone(data: Path, tmp_path: Path, mbr_esd: Command) -> None:
    test_set = read(data)
    path = tmp_path / "rated.tsv"
    rated = int((test_set.gold == test_set.gold).sum())
    assert write_submission(path, "wmt25-task2", [test_set], "gold") == rated
    keys = [line.split("\t")[:6] for line in path.read_text(encoding="utf-8").splitlines()]
    write_submission(path, "wmt25-task2", [test_set], "spans")
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    lines = [line for line in lines if line.split("\t")[:6] in keys]
    path.write_text("".join(lines), encoding="utf-8")
    done = import_submission(path, "wmt25-task2", test_set, "rated-src")
    assert f"of {rated} translations by 5 systems; {test_set.gold.size - rated} unrated translations without" in done
    ours, all_spans = (figures(test_set, spans_of(test_set, name), "softf1") for name in ("rated-src", "spans-src"))
    assert ours == all_spans
    for view in ("--k 20", "--statistics spa seg-kendall-item sys-pearson", "--view error-free"):
        mbr_esd(f"leaderboard --test-set {data}/made --lp en-de", view, "--metric rated noise")
    # A rated one that is missing is still an error.
    path.write_text("".join(lines[:-1]), encoding="utf-8")
    refused("nothing on segment", import_submission, path, "wmt25-task2", test_set, "less-src")


def marked_words(text: str, number: int) -> Annotation:
    """Some words of segment `number`, without chance; in every fifth also an error without characters, sometimes at the
    end."""
    marked, at = [], 0
    for place, word in enumerate(text.split()):
        start = text.index(word, at)
        at = start + len(word)
        kind = (7 * number + 3 * place) % 11
        if kind in (0, 5):
            marked.append(ErrorSpan(start, at, "major" if kind else "minor"))
    points = [(len(text) if number % 2 else 3, "minor")] if number % 5 == 0 else []
    return Annotation(marked).with_points(points)


def test_figures_of_wmt23s_test_set_are_its_scorers(mqm_folder: Path, tmp_path: Path, mbr_esd: Command) -> None:
    """Its gold has 47 errors without characters, which the scorer counts, 11 of them behind the last character."""
    table = mqm_folder.parent / "wmt_qe_2023" / "2023_en-de_test.tsv.gz"
    if not table.is_file():
        pytest.skip(f"no {table}")
    mbr_esd("wmt import", table, f"--test-set {tmp_path}/wmt23.qe")
    test_set = load_test_set(tmp_path, "wmt23.qe", "en-de")
    (human,) = test_set.human_ratings()
    assert sum(len(one.points) for one in human.annotations["mt"] if one is not None) == 47
    predicted = [[marked_words(text or "", number) for number, text in enumerate(test_set.outputs["mt"])]]
    golden = SCORERS["wmt23"]["2023_en-de_test"]
    assert figures(test_set, predicted, *parts("f1-corpus")) == pytest.approx(golden, rel=0, abs=1e-12)


def test_gold_of_one_rater_is_of_what_that_one_rated(data: Path, tmp_path: Path) -> None:
    path = read(data).layout.human_file("mqm.merged", "seg.rating")
    lines = path.read_text(encoding="utf-8").splitlines()
    some = [line if number % 2 else f"{line.split()[0]}\tNone" for number, line in enumerate(lines)]
    path.with_name("en-de.mqm.rater2.seg.rating").write_text("\n".join(some) + "\n", encoding="utf-8")
    marked = sum("None" not in line for line in some)
    assert write_submission(tmp_path / "g", "wmt25-task2", [read(data)], "mqm.rater2") == marked
    path.rename(path.with_name("en-de.mqm.rater1.seg.rating"))
    test_set = read(data)
    with pytest.raises(OptionError, match="several sets of human ratings"):
        write_submission(tmp_path / "g", "wmt25-task2", [test_set], "gold")
    rated = int((test_set.gold == test_set.gold).sum())  # scores need no set of ratings
    assert write_submission(tmp_path / "scores", "wmt25-task1", [test_set], "gold") == rated


def test_lines_are_as_the_tasks_say(data: Path, tmp_path: Path) -> None:
    test_set = read(data)
    write_lines(test_set.layout.task("systems"), ["A\tA of the task"])
    write_submission(tmp_path / "scores", "wmt25-task1", [test_set], "length")
    table = (tmp_path / "scores" / "systems.tsv").read_text(encoding="utf-8").splitlines()
    stored = read_scores(test_set.layout.metric_file("length-src", "sys.score"))["A"][0]
    assert table[1].split("\t")[5:] == ["A of the task", "all", "", repr(stored)]
    segments = (tmp_path / "scores" / "segments.tsv").read_text(encoding="utf-8").splitlines()
    assert segments[13].split("\t")[:8] == ["t1", "13", "en", "de", "official", "A of the task", "talks", "MQM"]
    write_submission(tmp_path / "all.jsonl", "wmt26", [test_set], "spans")
    items = [json.loads(line) for line in (tmp_path / "all.jsonl").read_text(encoding="utf-8").splitlines()]
    places = [item["item_id"].removeprefix("official_###_en_###_de_###_") for item in items[7:9]]
    assert places == ["news_###_n1_###_7", "news_###_n2_###_0"]


def test_spans_of_a_task() -> None:
    spans = read_spans("4 missing 1 6 9 9 10", "5 missing 2 4 9 12 12", "minor major neutral " + "minor " * 4)
    cut = fit_to_text(spans, 9)
    assert cut == Annotation([ErrorSpan(4, 5, "minor")]).with_unplaced(["major"])
    assert cut.points == ((9, "minor"), (9, "minor"))  # where WMT23's scorer counts them
    refused("severity 'Majr'; the task has major", read_spans, "1", "2", "Majr")


def test_a_submission_that_does_not_fit_is_refused(data: Path, tmp_path: Path) -> None:
    test_set = read(data)
    path = tmp_path / "s.tsv"
    write_submission(path, "wmt25-task2", [test_set], "spans")
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    fields = lines[1].split("\t")
    other = "\t".join([*fields[:7], "other text", *fields[8:]])
    for text, message in (
        ("".join(lines[:-1]), "segment 24 of system refB"),
        (lines[0] + other, "line 2: another text of system A"),
        ("".join([*lines, lines[1]]), r"line \d+: a second row for segment 1 of system A"),
        ("".join(lines).replace("\tofficial\t", "\tchallenge_x\t"), "nothing of en-de"),
        ("a\tb\n", "no column doc_id, .* in the header"),
    ):
        path.write_text(text, encoding="utf-8")
        refused(message, import_submission, path, "wmt25-task2", test_set, "back-src")
    path.write_text("".join(lines).replace("\tA\t", "\tother\t"), encoding="utf-8")
    assert f"left out: {SEGMENTS} rows" in import_submission(path, "wmt25-task2", test_set, "back-src")
    refused("--overwrite", import_submission, path, "wmt25-task2", test_set, "back-src")
    refused(
        "line 1: not JSON .*; give one JSON object per line", import_submission, path, "wmt26", test_set, "other-src"
    )
    with pytest.raises(InputError, match="nothing of zh-en; there is: en-de"):
        import_submission(path, "wmt25-task2", read(data, "zh-en"), "back-src")


def test_what_cannot_be_submitted_is_refused(data: Path, tmp_path: Path, mbr_esd: Command) -> None:
    submit = f"wmt submit --test-set {data}/made --lp en-de -o {tmp_path}/s"
    for words, message in {
        "--task wmt25-task2 --metric length": "no error spans",
        "--task wmt25-task2 --metric lenght": "length",
        "--task wmt25-task2 --metric spans --range 0 1": "--range",
        "--task wmt26 --metric spans --range -2 0": "--range",
        "--task wmt26 --metric length": "no error spans of system A in en-de, which this task requires",
    }.items():
        assert message in mbr_esd(submit, words, status=1).err


def test_wmt26_from_the_test_set_to_a_submission(tmp_path: Path, mbr_esd: Command) -> None:
    where = f"--test-set {tmp_path}/wmt26 --lp eng_Latn-deu_Latn"
    written = mbr_esd("wmt import", DATA / "mteval-test26.jsonl", f"--test-set {tmp_path}/wmt26").out
    assert "3 systems (references: refA), 5 segments in 2 documents" in written
    refused("no such gold scores", load_test_set, tmp_path, "wmt26", "eng_Latn-deu_Latn")
    blind = load_test_set(tmp_path, "wmt26", "eng_Latn-deu_Latn", blind=True)
    assert blind.systems == ("Gemini_3.1_Pro", "ONLINE_B")
    assert np.isnan(blind.gold).all()
    # Systems have the task's names. White space in a document's name cannot be kept in the layout.
    theirs, back = DATA / "submission26.jsonl", tmp_path / "back.jsonl"
    assert "10 translations by 2 systems" in mbr_esd(f"wmt import theirs={theirs}", where).out
    mbr_esd("wmt submit", where, "--task wmt26 --metric theirs --range 0 100 -o", back)
    assert back.read_bytes() == theirs.read_bytes()
    mbr_esd("wmt score", where, "--model empty --quiet")
    mbr_esd("wmt submit", where, "--task wmt26 --metric empty -o", back)
    first = json.loads(back.read_text(encoding="utf-8").splitlines()[0])
    assert first["task2_pred"] == {"Gemini 3.1 Pro": 100.0, "ONLINE/B": 100.0}


def test_wmt25_keeps_the_tasks_numbers(tmp_path: Path, mbr_esd: Command) -> None:
    where, path = f"--test-set {tmp_path}/wmt25 --lp cs-uk_UA", tmp_path / "predictions.tsv"
    mbr_esd("wmt import", DATA / "mteval-task2-test25.tsv", where)
    mbr_esd("wmt score", where, "--model empty --quiet")
    mbr_esd("wmt submit", where, "--task wmt25-task2 --metric empty -o", path)
    assert path.read_bytes() == (DATA / "submission25.tsv").read_bytes()
    mbr_esd(f"wmt import back={path}", where)


def test_what_is_no_test_set_is_refused(tmp_path: Path) -> None:
    for line, message in (('{"src": "x"}', "no 'item_id'"), ("", "no official segment")):
        (tmp_path / "bad.jsonl").write_text(f"{line}\n", encoding="utf-8")
        refused(message, read_task, tmp_path / "bad.jsonl")
