"""Submissions in each task's format: what is written reads back, and the tasks' own scorers give our figures.

`tests/golden/task_scorers.json` has what the scorers of WMT23's quality estimation task and of WMT25's evaluation task
say of the made-up test set; its key "provenance" says of which version.
"""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest

from mbr_esd_metric.adapters.wmt import TestSet, load_test_set
from mbr_esd_metric.adapters.wmt.layout import read_scores
from mbr_esd_metric.adapters.wmt.meta_info import SystemChoice
from mbr_esd_metric.adapters.wmt.submissions import SUBMISSION_FORMATS, About, read_spans
from mbr_esd_metric.adapters.wmt.submitting import take_submission, write_submission
from mbr_esd_metric.cli.main import main
from mbr_esd_metric.core.annotation import Annotation, ErrorSpan
from mbr_esd_metric.core.mqm import mqm_score
from mbr_esd_metric.errors import InputError, OptionError
from mbr_esd_metric.metaeval import evaluate_spans
from tests.helpers.wmt_folder import SEGMENTS, SYSTEMS, marked_words, repeated_spans, write_folder

SCORERS = json.loads((Path(__file__).parents[2] / "golden" / "task_scorers.json").read_text(encoding="utf-8"))


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


@pytest.mark.parametrize("form", list(SUBMISSION_FORMATS))
def test_what_is_written_reads_back(form: str, data: Path, tmp_path: Path) -> None:
    sets = [read(data, "en-de"), read(data, "zh-en")]
    path = tmp_path / "submission"
    # Every translation but those of the standard reference, in two language pairs.
    assert write_submission(path, form, sets, "spans", About("mine")) == 2 * len(SYSTEMS) * SEGMENTS
    for test_set in sets:
        done = take_submission(path, form, test_set, "back-src")
        assert (done.systems, done.translations, done.left_out) == (len(SYSTEMS), len(SYSTEMS) * SEGMENTS, 0)
        stored = test_set.metric("back-src")
        if SUBMISSION_FORMATS[form].spans:
            assert done.spans
            assert spans_of(test_set, "back-src") == spans_of(test_set, "spans-src")
        own = test_set.metric("spans-src").scores
        # WMT26's scores go from 0 to 100; the task of WMT23 has none, so that Score(E) takes their place.
        expected = 4 * (own + 25) if form == "wmt26" else own
        assert stored.scores == pytest.approx(expected)


@pytest.mark.parametrize(
    ("form", "measure", "scorer"), [("qe2023", "f1-corpus", "wmt23"), ("wmt25-task2", "f1-wmt25-corpus", "wmt25")]
)
def test_figures_are_those_of_the_tasks_scorer(form: str, measure: str, scorer: str, data: Path) -> None:
    for lp in ("en-de", "zh-en"):
        test_set = read(data, lp)
        human = [r.of(test_set.systems, test_set.segments) for r in test_set.human_ratings()]
        names = [f"{measure}-precision", f"{measure}-recall", measure]
        values = evaluate_spans(spans_of(test_set, "spans-src"), human, test_set.lengths, names).values
        assert [values[name] for name in names] == pytest.approx(SCORERS[scorer][lp], rel=0, abs=1e-12)


def test_what_is_handed_in_twice_counts_as_the_tasks_scorer_counts_it(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "odd.tsv"
    for lp in ("en-de", "zh-en"):
        test_set = read(data, lp)
        write_submission(path, "wmt25-task2", [test_set], "spans", About("m"))
        path.write_text(repeated_spans(path.read_text(encoding="utf-8")), encoding="utf-8")
        where = ["--data", str(data), "--test-set", "made", "--lp", lp, "--reference", "refA"]
        assert main(["wmt", "import", str(path), *where, "--name", "odd"]) == 0
        marked = sum(1 for row in spans_of(test_set, "spans-src") for cell in row if cell)
        assert f"{marked} spans repeat others" in capsys.readouterr().out
        human = [r.of(test_set.systems, test_set.segments) for r in test_set.human_ratings()]
        names = ["f1-wmt25-corpus-precision", "f1-wmt25-corpus-recall", "f1-wmt25-corpus"]
        values = evaluate_spans(spans_of(test_set, "odd-src"), human, test_set.lengths, names).values
        golden = SCORERS["wmt25"][f"{lp} repeated"]
        assert [values[name] for name in names] == pytest.approx(golden, rel=0, abs=1e-12)
        # What looks at a set, and Score(E), sees the same as without the repeats.
        sets = ["f1-corpus", "softf1", "f1", "softdice-corpus"]
        for name in ("odd-src", "spans-src"):
            values |= {name: evaluate_spans(spans_of(test_set, name), human, test_set.lengths, sets).values}
        assert values["odd-src"]["softf1"] == values["spans-src"]["softf1"]
        assert values["odd-src"]["softdice-corpus"] == values["spans-src"]["softdice-corpus"]
        assert test_set.metric("odd-src").scores.tolist() == test_set.metric("spans-src").scores.tolist()
        assert main(["leaderboard", *where, "--tasks", "spans", "--metric", "odd"]) == 0
        assert f"{marked} repeat others" in capsys.readouterr().out


def test_errors_without_a_penalty_are_left_out_and_counted(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    test_set = read(data)
    path = tmp_path / "submission.tsv"
    write_submission(path, "wmt25-task2", [test_set], "spans", About("m"))
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("\tmajor", "\tundecided"), encoding="utf-8")
    where = ["--data", str(data), "--test-set", "made", "--lp", "en-de", "--reference", "refA"]
    assert main(["wmt", "import", str(path), *where, "--name", "odd"]) == 0
    count = text.count("\tmajor")
    assert count > 10
    assert f"; {count} left out: error of severity 'undecided'" in capsys.readouterr().out


def test_a_submission_for_the_rated_translations_alone(data: Path, tmp_path: Path) -> None:
    test_set = read(data)
    path = tmp_path / "rated.tsv"
    rated = int((test_set.gold == test_set.gold).sum())
    assert write_submission(path, "wmt25-task2", [test_set], "spans", About("m"), rated=True) == rated
    done = take_submission(path, "wmt25-task2", test_set, "rated-src")
    assert (done.translations, done.without) == (rated, test_set.gold.size - rated)
    human = [r.of(test_set.systems, test_set.segments) for r in test_set.human_ratings()]
    found = [evaluate_spans(spans_of(test_set, name), human, test_set.lengths) for name in ("rated-src", "spans-src")]
    assert found[0].values == found[1].values
    where = ["--data", str(data), "--test-set", "made", "--lp", "en-de", "--reference", "refA"]
    for view in (["--k", "20"], ["--statistics", "spa", "seg-kendall-item", "sys-pearson"], ["--tasks", "error-free"]):
        assert main(["leaderboard", *where, *view, "--metric", "rated", "noise"]) == 0
    # A rated one that is missing is still an error.
    lines = path.read_text(encoding="utf-8").splitlines()
    path.write_text("\n".join(lines[:-1]) + "\n", encoding="utf-8")
    with pytest.raises(InputError, match="nothing on segment"):
        take_submission(path, "wmt25-task2", test_set, "less-src")


def test_the_figures_of_wmt23s_own_test_set_are_its_scorers(mqm_folder: Path, tmp_path: Path) -> None:
    """Its gold has 47 errors without characters, which the scorer counts, 11 of them behind the last character."""
    table = mqm_folder.parent / "wmt_qe_2023" / "2023_en-de_test.tsv.gz"
    if not table.is_file():
        pytest.skip(f"no {table}")
    assert main(["wmt", "import", str(table), "--test-set", "wmt23.qe", "-o", str(tmp_path)]) == 0
    test_set = load_test_set(tmp_path, "wmt23.qe", "en-de")
    (human,) = (r.of(test_set.systems, test_set.segments) for r in test_set.human_ratings())
    assert sum(len(annotation.points) for annotation in human[0] if annotation is not None) == 47
    (texts,) = test_set.outputs.values()
    rows = []
    for number, text in enumerate(texts):
        found = marked_words(text or "", number)
        errors = [*found.key, *((at, at, severity) for at, severity in found.points)] or [(-1, -1, "no-error")]
        columns = [" ".join(map(str, column)) for column in zip(*errors, strict=True)]
        rows.append("\t".join(["en-de", "m", str(number), text or "", *columns]))
    path = tmp_path / "predictions.txt"
    path.write_text("\n".join(["1", "1", "1", *rows]) + "\n", encoding="utf-8")
    take_submission(path, "qe2023", test_set, "marked-src")
    stored = test_set.metric("marked-src").ratings
    assert stored is not None
    names = ["f1-corpus-precision", "f1-corpus-recall", "f1-corpus"]
    predicted = stored.of(test_set.systems, test_set.segments)
    values = evaluate_spans(predicted, [human], test_set.lengths, names).values
    assert [values[name] for name in names] == pytest.approx(SCORERS["wmt23"]["2023_en-de_test"], rel=0, abs=1e-12)
    # Written again, they are there as well.
    for metric, matrix in (("marked-src", predicted), (None, human)):
        write_submission(tmp_path / "again", "qe2023", [test_set], metric, About("m"))
        lines = [line.split("\t") for line in (tmp_path / "again").read_text(encoding="utf-8").splitlines()]
        fields = [row for row in lines if len(row) == 7 and row[0] == "en-de"]
        assert len(fields) == len(texts)
        empty = sum(
            start == end != "-1" for row in fields for start, end in zip(row[4].split(), row[5].split(), strict=True)
        )
        assert empty == sum(len(annotation.points) for annotation in matrix[0] if annotation is not None)


def test_gold_is_written_for_the_rated_translations(data: Path, tmp_path: Path) -> None:
    test_set = read(data)
    rated = int((test_set.gold == test_set.gold).sum())
    for form, header in (("qe2023", "lp"), ("wmt25-task2", "doc_id")):
        path = tmp_path / form
        assert write_submission(path, form, [test_set], None, About("gold")) == rated
        assert path.read_text(encoding="utf-8").startswith(header)
    predicted = tmp_path / "predictions.tsv"
    assert write_submission(predicted, "wmt25-task2", [test_set], "spans", About("m"), rated=True) == rated
    keys = [
        [line.split("\t")[:6] for line in (tmp_path / p).read_text().splitlines()] for p in ("wmt25-task2", predicted)
    ]
    assert keys[0] == keys[1]


def test_gold_of_one_rater_is_of_what_that_one_rated(data: Path, tmp_path: Path) -> None:
    path = data / "made" / "human-scores" / "en-de.mqm.merged.seg.rating"
    lines = path.read_text(encoding="utf-8").splitlines()
    some = [line if number % 2 else f"{line.split()[0]}\tNone" for number, line in enumerate(lines)]
    path.with_name("en-de.mqm.rater2.seg.rating").write_text("\n".join(some) + "\n", encoding="utf-8")
    test_set = read(data)
    there = sum("None" not in line for line in some)
    assert write_submission(tmp_path / "g", "qe2023", [test_set], None, About("gold"), raters="mqm.rater2") == there


def test_lines_are_as_the_tasks_say(data: Path, tmp_path: Path) -> None:
    test_set = read(data)
    path = tmp_path / "predictions.txt"
    write_submission(path, "qe2023", [test_set], "flat", About("silence", 5, 6, 7))
    lines = path.read_text(encoding="utf-8").splitlines()
    assert lines[:3] == ["5", "6", "7"]
    assert lines[4].split("\t") == ["en-de", "silence", "1", test_set.outputs["A"][1], "-1", "-1", "no-error"]
    write_submission(tmp_path / "scores", "wmt25-task1", [test_set], "length", About("m"))
    table = (tmp_path / "scores" / "systems.tsv").read_text(encoding="utf-8").splitlines()
    stored = read_scores(test_set.layout.metric_scores("length-src", "sys"))["A"][0][1]
    assert table[1].split("\t")[5:] == ["A", "all", "", repr(stored)]
    segments = (tmp_path / "scores" / "segments.tsv").read_text(encoding="utf-8").splitlines()
    assert segments[13].split("\t")[:8] == ["t1", "13", "en", "de", "official", "A", "talks", "MQM"]
    write_submission(tmp_path / "all.jsonl", "wmt26", [test_set], "spans", About("m"))
    items = [json.loads(line) for line in (tmp_path / "all.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [item["item_id"] for item in items[7:9]] == [
        "official_###_en_###_de_###_news_###_n1_###_7",
        "official_###_en_###_de_###_news_###_n2_###_0",
    ]
    first = items[0]
    for system in SYSTEMS:
        clean = first["task1_pred"][system]["errors"] == []
        assert first["task3_pred"][system] == int(clean)
        assert (first["task2_pred"][system] == 100.0) == clean
    write_submission(tmp_path / "all.jsonl", "wmt26", [test_set], "spans", About("m", error_free=90.0))
    items = [json.loads(line) for line in (tmp_path / "all.jsonl").read_text(encoding="utf-8").splitlines()]
    assert all(
        item["task3_pred"][system] == int(score >= 90) for item in items for system, score in item["task2_pred"].items()
    )


def test_spans_of_a_task() -> None:
    assert read_spans("-1", "-1", "no-error") == Annotation()
    assert read_spans("0 5", "3 9", "major minor", length=7) == Annotation(
        [ErrorSpan(0, 3, "major"), ErrorSpan(5, 7, "minor")]
    )
    found = read_spans(
        "4 missing 1 6 9 9 10", "5 missing 2 4 9 12 12", "minor major undecided " + "minor " * 4, length=9
    )
    assert found == Annotation([ErrorSpan(4, 5, "minor")]).missing(["major"])
    assert found.points == ((9, "minor"), (9, "minor"))  # where WMT23's scorer counts them
    assert pickle.loads(pickle.dumps(found)).points == found.points
    assert not found.pointing([]).points
    with pytest.raises(ValueError, match="2 starts, 1 ends"):
        read_spans("1 2", "3", "minor minor")


def test_a_submission_that_does_not_fit_is_refused(data: Path, tmp_path: Path) -> None:
    test_set = read(data)
    path = tmp_path / "s.tsv"
    write_submission(path, "wmt25-task2", [test_set], "spans", About("m"))
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text("".join(lines[:-1]), encoding="utf-8")
    with pytest.raises(InputError, match="segment 24 of system refB"):
        take_submission(path, "wmt25-task2", test_set, "back-src")
    fields = lines[1].split("\t")
    path.write_text("".join([lines[0], "\t".join([*fields[:7], "other text", *fields[8:]])]), encoding="utf-8")
    with pytest.raises(InputError, match="line 2: another text of system A, segment 1"):
        take_submission(path, "wmt25-task2", test_set, "back-src")
    path.write_text("".join(lines).replace("\tofficial\t", "\tchallenge_x\t"), encoding="utf-8")
    with pytest.raises(InputError, match="nothing of en-de"):
        take_submission(path, "wmt25-task2", test_set, "back-src")
    path.write_text("".join(lines).replace("\tA\t", "\tother\t"), encoding="utf-8")
    assert take_submission(path, "wmt25-task2", test_set, "back-src").left_out == SEGMENTS
    with pytest.raises(InputError, match="--overwrite"):
        take_submission(path, "wmt25-task2", test_set, "back-src")
    with pytest.raises(OptionError, match="wmt25-task2"):
        take_submission(path, "wmt25-task4", test_set, "back-src")


def test_what_cannot_be_submitted_is_refused(data: Path, tmp_path: Path) -> None:
    test_set = read(data)
    with pytest.raises(InputError, match="no error spans"):
        write_submission(tmp_path / "s", "qe2023", [test_set], "length", About("m"))
    with pytest.raises(OptionError, match="length"):
        write_submission(tmp_path / "s", "qe2023", [test_set], "lenght", About("m"))
    with pytest.raises(OptionError, match="--range"):
        write_submission(tmp_path / "s", "wmt26", [test_set], "spans", About("m"), score_range=(-2.0, 0.0))
    with pytest.raises(OptionError, match="no translation of the chosen systems"):
        write_submission(tmp_path / "s", "qe2023", [test_set], "spans", About("m"), choice=SystemChoice(("refA",)))


def test_the_commands(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    where = ["--data", str(data), "--test-set", "made", "--lp", "en-de", "--reference", "refA"]
    path = str(tmp_path / "predictions.tsv")
    submit = ["wmt", "submit", *where, "--task", "wmt25-task2", "-o", path]
    assert main([*submit, "--metric", "spans"]) == 0
    assert f"{len(SYSTEMS) * SEGMENTS} translations" in capsys.readouterr().out
    take = ["wmt", "import", path, *where, "--name", "theirs"]
    assert main(take) == 0
    assert "scores and error spans" in capsys.readouterr().out
    board = ["leaderboard", *where, "--k", "0", "--table", "json", "--measures", "f1-wmt25-corpus-parts"]
    assert main([*board, "--metric", "spans", "theirs"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert rows[0]["en-de"] == rows[1]["en-de"]
    assert main([*submit, "--metric", "spans", "--exclude", SYSTEMS[0]]) == 0
    assert f"{(len(SYSTEMS) - 1) * SEGMENTS} translations" in capsys.readouterr().out
    assert main(submit) == 1
    assert "--people" in capsys.readouterr().err
    assert main([*submit, "--metric", "spans", "--range", "0", "1"]) == 1
    assert "--range" in capsys.readouterr().err
    spans = spans_of(read(data), "theirs-src")
    assert read(data).metric("theirs-src").scores.tolist() == [[mqm_score(a or ()) for a in row] for row in spans]


def test_submissions_as_the_participants_of_wmt23_wrote_them(data: Path, tmp_path: Path) -> None:
    test_set = read(data)
    path = tmp_path / "predictions.txt"
    write_submission(path, "qe2023", [test_set], "spans", About("m"))
    lines = path.read_text(encoding="utf-8").splitlines()
    rows = [line.split("\t") for line in lines[3:]]
    # a tab at the end of each line; a text with quotes, quoted as in CSV; two texts whose numbers are each other's
    rows[0][2], rows[4][2] = rows[4][2], rows[0][2]
    rows = [
        [*row[:3], f'"{row[3].replace(chr(34), chr(34) * 2)}"' if '"' in row[3] else row[3], *row[4:], ""]
        for row in rows
    ]
    path.write_text("\n".join([*lines[:3], *("\t".join(row) for row in rows)]) + "\n", encoding="utf-8")
    assert take_submission(path, "qe2023", test_set, "theirs-src").translations == len(rows)
    assert spans_of(test_set, "theirs-src") == spans_of(test_set, "spans-src")
    # other blanks than in the test set
    blanks = [[*row[:3], " " + row[3].replace(" ", "  ", 1), *row[4:]] for row in rows]
    for row in blanks:
        if row[6] != "no-error":
            first = row[3].index("  ", 1) - 1  # of the text before
            for column, last in ((4, first), (5, first + 1)):
                row[column] = " ".join(str(int(at) + 1 + (int(at) > last)) for at in row[column].split())
    path.write_text("\n".join([*lines[:3], *("\t".join(row) for row in blanks)]) + "\n", encoding="utf-8")
    take_submission(path, "qe2023", test_set, "blanks-src")
    assert spans_of(test_set, "blanks-src") == spans_of(test_set, "spans-src")
    for column, word, message in (
        (6, "Majr", "line 4: severity 'Majr'; the task has major"),
        (2, "x", "line 4: 'x' is no number of a segment"),
        (2, "1", r"line \d+: a second row for segment"),
    ):
        worse = [[*rows[0][:column], word, *rows[0][column + 1 :]], *rows[1:]]
        if word == "1":
            worse = [*rows, rows[1]]
        path.write_text("\n".join([*lines[:3], *("\t".join(row) for row in worse)]) + "\n", encoding="utf-8")
        with pytest.raises(InputError, match=message):
            take_submission(path, "qe2023", test_set, "worse-src")
    next(row for row in rows if len(row[5].split()) == 1 and row[6] != "no-error")[5] = "end"
    path.write_text("\n".join([*lines[:3], *("\t".join(row) for row in rows)]) + "\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"line \d+: offsets '\d+' and 'end'"):
        take_submission(path, "qe2023", test_set, "worse-src")


def test_a_submission_of_another_task_or_language_pair_is_told(data: Path, tmp_path: Path) -> None:
    test_set = read(data)
    path = tmp_path / "s"
    write_submission(path, "wmt25-task2", [test_set], "spans", About("m"))
    for form, message in (
        ("qe2023", "line 1: 14 fields between tabs, not the 7 of qe2023"),
        ("wmt26", "line 1: not JSON .*; give one JSON object a line"),
        ("wmt25-task2", "nothing of zh-en; there is: en-de"),
    ):
        with pytest.raises(InputError, match=message):
            take_submission(path, form, read(data, "zh-en"), "back-src")
    write_submission(path, "qe2023", [test_set], "spans", About("m"))
    with pytest.raises(InputError, match="no column doc_id, .* in the header; is it a table of WMT25"):
        take_submission(path, "wmt25-task2", test_set, "back-src")
