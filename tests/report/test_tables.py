"""One table in five formats."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mbr_esd_metric.report.tables import Cell, Column, Table, blocks, render_all, with_status

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


def render_table(table: Table, form: str = "text") -> str:
    return render_all([table], form)


@pytest.mark.parametrize(("form", "expected"), [("text", TEXT), ("markdown", MARKDOWN), ("latex", LATEX), ("tsv", TSV)])
def test_formats(form: str, expected: str) -> None:
    assert render_table(TABLE, form) == expected
    if form == "tsv":
        cells = ((Cell(value),) for value in ("a\tb\nc", 0.1 + 0.2, 2 / 3, 1e-9, 15500.0))
        assert (
            render_table(Table("", (Column("x", "x"),), tuple(cells)), form)
            == "x\na b c\n0.3\n0.666667\n1e-09\n15500\n"
        )


def test_json_holds_everything_and_several_tables_are_one_document() -> None:
    content = json.loads(render_table(TABLE, "json"))
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
    same = Table("", (column,), ((Cell(0.50001),), (Cell(0.50002),)))
    assert "**" not in render_table(same, "markdown")
    different = Table("", (column,), ((Cell(0.501),), (Cell(0.502),), (Cell(0.502),)))
    assert render_table(different, "markdown").count("**") == 4


def test_the_status_of_metrics_is_shown_in_every_format() -> None:
    """The marks are mt-metrics-eval's; people are no metric."""
    columns = (Column("metric", "metric"), Column("input", "input"), Column("spa", "SPA"))
    rows = [
        (Cell(name), Cell(source), Cell(0.5)) for name, source in (("Ours", "src"), ("ours_2", "src"), ("chrF", "x"))
    ]
    known: dict[str, Any] = {"Ours": "primary", "ours_2": "contrastive", "chrF": "baseline"}
    table = with_status(Table("t", columns, (*rows, (Cell("human"), Cell(), Cell(0.5))), ("n",)), known.__getitem__)
    note = "*: contrastive submission, or none; _: baseline"
    assert table.notes == (note, "n")
    text = render_table(table)
    assert [line.split()[0] for line in text.splitlines()[4:8]] == ["Ours", "*ours_2", "_chrF", "human"]
    assert [row["metric_status"] for row in json.loads(render_table(table, "json"))["rows"]] == [*known.values(), None]
    assert render_table(table, "tsv").splitlines()[2] == "ours_2\tcontrastive\tsrc\t0.5"


def lps(*names: str) -> Table:
    """Two rows with a label, three columns a language pair, and a remark behind them."""
    columns = [Column("metric", "metric")]
    for name in names:
        columns += [Column("spa", "SPA", name), Column("f1", "F1", name), Column("major", "major", name, digits=0)]
    columns.append(Column("remark", "remark"))
    rows = [
        (Cell("one"), *[cell for _ in names for cell in (Cell(0.5), Cell(0.25), Cell(12.0))], Cell("said")),
        (Cell("human"), *[Cell(), Cell(), Cell(7.0)], *[Cell()] * 3 * (len(names) - 1), Cell()),
    ]
    return Table("board", tuple(columns), tuple(rows), ("a note",))


def test_a_wide_table_is_cut_between_language_pairs() -> None:
    table = lps("en-de", "en-es", "ja-zh")
    narrow = [render_table(block) for block in blocks(table, 50)]
    assert max(len(line) for text in narrow for line in text.splitlines()) <= 50
    assert all(text.count("SPA") == 1 and "one" in text for text in narrow)
    assert [("board" in text, "a note" in text, "remark" in text) for text in narrow] == [
        (True, False, False),
        (False, False, False),
        (False, True, True),
    ]
    # The humans have nothing in the last language pairs.
    assert [text.count("human") for text in narrow] == [1, 0, 0]
    assert blocks(table, 500) == [table]
    assert len(blocks(lps("en-de"), 10)) == 1
