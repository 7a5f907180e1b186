"""One table in five formats."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mbr_esd_metric.report.tables import Cell, Column, Table, blocks, render_all, table_of, with_status

TABLE = Table(
    "wmt24 en-de",
    (
        Column("metric", "metric"),
        Column("spa", "SPA", "en-de", best="max"),
        Column("f1", "F1", "en-de", digits=1, percent=True, best="max"),
        Column("spans", "spans", "ja-zh"),
        Column("ratio", "ratio", "ja-zh", digits=2),
    ),
    (
        (Cell("a_b|c"), Cell(0.86449, 1, True), Cell(0.5), Cell(12), Cell(1.0)),
        (Cell("plain"), Cell(0.5, 2), Cell(0.25), Cell(7), Cell(0.125)),
        (Cell("none"), Cell(), Cell(), Cell(), Cell()),
    ),
    ("100% checked",),
)

TEXT = """\
wmt24 en-de

               en-de          ja-zh
metric           SPA    F1    spans    ratio
--------  ----------  ----  -------  -------
a_b|c     0.864† (1)  50.0       12     1.00
plain      0.500 (2)  25.0        7     0.12
none

100% checked
"""

MARKDOWN = r"""**wmt24 en-de**

| metric   |      en-de SPA |   en-de F1 |   ja-zh spans |   ja-zh ratio |
|:---------|---------------:|-----------:|--------------:|--------------:|
| a_b\|c   | **0.864**† (1) |   **50.0** |            12 |          1.00 |
| plain    |      0.500 (2) |       25.0 |             7 |          0.12 |
| none     |                |            |               |               |

- 100% checked
"""

LATEX = r"""% wmt24 en-de
% 100% checked
\begin{tabular}{lrrrr}
\toprule
 metric   &                      en-de SPA &      en-de F1 &   ja-zh spans &   ja-zh ratio \\
\midrule
 a\_b|c   & \textbf{0.864}$^{\dagger}$ (1) & \textbf{50.0} &            12 &          1.00 \\
 plain    &                      0.500 (2) &          25.0 &             7 &          0.12 \\
 none     &                                &               &               &               \\
\bottomrule
\end{tabular}
"""

TSV = """\
metric	en-de:spa	en-de:spa_rank	en-de:spa_dagger	en-de:f1	ja-zh:spans	ja-zh:ratio
a_b|c	0.86449	1	1	0.5	12	1
plain	0.5	2	0	0.25	7	0.125
none			0			{nothing}
""".format(nothing="")


@pytest.mark.parametrize(("form", "expected"), [("text", TEXT), ("markdown", MARKDOWN), ("latex", LATEX), ("tsv", TSV)])
def test_formats(form: str, expected: str) -> None:
    assert render_all([TABLE], form) == expected


def test_six_digits_and_no_line_end_in_a_cell_of_tsv() -> None:
    rows = [{Column("x", "x"): value} for value in ("a\tb\nc", 0.1 + 0.2, 2 / 3, 1e-9, 15500.0)]
    assert render_all([table_of("", rows)], "tsv") == "x\na b c\n0.3\n0.666667\n1e-09\n15500\n"


def test_json_holds_everything_and_several_tables_are_one_document() -> None:
    content = json.loads(render_all([TABLE], "json"))
    assert (content["title"], content["notes"]) == ("wmt24 en-de", ["100% checked"])
    assert content["rows"][0] == {
        "metric": "a_b|c",
        "en-de": {"spa": 0.86449, "spa_rank": 1, "spa_dagger": True, "f1": 0.5},
        "ja-zh": {"spans": 12, "ratio": 1.0},
    }
    assert content["rows"][2]["en-de"]["spa"] is None
    assert json.loads(render_all([TABLE, TABLE], "json")) == [content] * 2
    assert render_all([TABLE, TABLE]) == f"{TEXT}\n{TEXT}"


def test_nothing_is_best_where_all_are_alike() -> None:
    column = Column("x", "x", best="max")
    for values, marks in (((0.50001, 0.50002), 0), ((0.501, 0.502, 0.502), 4)):
        assert render_all([table_of("", [{column: value} for value in values])], "markdown").count("**") == marks


def test_the_status_of_metrics_is_shown_in_every_format() -> None:
    """The marks are mt-metrics-eval's; people are not metric."""
    known: dict[str, Any] = {"Ours": "primary", "ours_2": "contrastive", "chrF": "baseline", "human": None}
    columns = [Column("metric", "metric"), Column("input", "input"), Column("spa", "SPA")]
    cells = [(Cell(name, metric=name if status else None), "src", 0.5) for name, status in known.items()]
    rows = [dict(zip(columns, row, strict=True)) for row in cells]
    table = with_status(table_of("t", rows, ["n"]), known.__getitem__)
    assert table.notes == ("*: contrastive submission, or none; _: baseline", "n")
    lines = render_all([table]).splitlines()
    assert [line.split()[0] for line in lines[4:8]] == ["Ours", "*ours_2", "_chrF", "human"]
    latex = render_all([table], "latex").splitlines()
    assert latex[1:3] == ["% italic: contrastive submission, or none; underlined: baseline", "% n"]
    assert [line.split()[0] for line in latex[7:11]] == ["Ours", r"\textit{ours\_2}", r"\underline{chrF}", "human"]
    assert [row["metric_status"] for row in json.loads(render_all([table], "json"))["rows"]] == [*known.values()]
    assert render_all([table], "tsv").splitlines()[2] == "ours_2\tcontrastive\tsrc\t0.5"


def wide(*lps: str) -> Table:
    """Two rows with a label, three columns a language pair, and a remark behind them; people have one value."""
    keys = [Column(key, key, lp, digits=1) for lp in lps for key in ("SPA", "F1", "major")]
    metric, remark = Column("metric", "metric"), Column("remark", "remark")
    one = {metric: "one", **dict.fromkeys(keys, 0.5), remark: "said"}
    return table_of("board", [one, {metric: "human", keys[2]: 7.0}], ["a note"])


def test_a_wide_table_is_cut_between_language_pairs() -> None:
    table = wide("en-de", "en-es", "ja-zh")
    narrow = [render_all([block]) for block in blocks(table, 50)]
    assert max(len(line) for text in narrow for line in text.splitlines()) <= 50
    assert all(text.count("SPA") == 1 and "one" in text for text in narrow)
    # The humans have nothing in the last language pairs.
    marks = {word: [word in text for text in narrow] for word in ("board", "human", "remark", "a note")}
    first, last = [True, False, False], [False, False, True]
    assert marks == {"board": first, "human": first, "remark": last, "a note": last}
    assert blocks(table, 500) == [table]
    assert len(blocks(wide("en-de"), 10)) == 1
