"""A model folder's file, which may come from anywhere: flat, small, plain values, or one line that says why not."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
import yaml

from mbr_esd_metric.errors import MbrEsdError
from mbr_esd_metric.files.untrusted import LARGEST_YAML, read_flat_yaml
from mbr_esd_metric.messages import printable
from mbr_esd_metric.metric.cards import load_card

HEAD = "class_identifier: mbr_esd_metric\n"
_ALIASES = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{new}: &{new} [{', '.join(['*' + old] * 9)}]\n" for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)
HOSTILE = {
    "aliases of aliases": _ALIASES,
    "an alias": "n: &x 3\nn_max: *x\n",
    "a tag of Python's": "n: !!python/object/apply:os.system [ls]\n",
    "a list in a list in a list": "n: " + "[" * 5000 + "\n",
    "a key twice": "n: 2\nn: 3\n",
    "two documents": "n: 2\n---\nn: 3\n",
    "NUL that is escaped": 'lp: "a\\0b"\n',
    "half a pair": 'lp: "\\uD800"\n',
    "no character": 'lp: "\\UFFFFFFFF"\n',
    "a terminal's escape in a key": '"\\e[2J": 2\n',
    "a long value": f"lp: {'a' * 1001}\n",
    "no key": "just a text\n",
    "a long file": "# " + "x" * LARGEST_YAML + "\n",
}


@pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE.keys())
def test_what_is_not_flat_is_one_line_that_names_the_file(tmp_path: Path, content: str) -> None:
    path = tmp_path / "hparams.yaml"
    path.write_bytes((HEAD + content).encode())
    began = time.process_time()
    with pytest.raises(MbrEsdError) as raised:
        load_card(str(tmp_path))
    assert time.process_time() - began < 10
    message = str(raised.value)
    assert str(path) in message
    assert len(message) < 1500 + len(str(path))
    assert message == printable(message)


def test_what_people_write_reads_as_yaml_reads_it(tmp_path: Path) -> None:
    values = {"n": 16, "grounded": True, "adapter": None, "temperature": 0.5, "prompt": "v1", "lp": "no", "seed": "7"}
    path = tmp_path / "hparams.yaml"
    path.write_text(yaml.safe_dump(values, sort_keys=False), encoding="utf-8")
    expected = {"n": "16", "grounded": "true", "adapter": None, "temperature": "0.5", "prompt": "v1", "lp": "no"}
    assert read_flat_yaml(path) == {**expected, "seed": "7"}
    path.write_bytes(b"\xef\xbb\xbf# a comment\r\nn: 16 # more\r\ngrounded: True\r\nadapter:\r\n")
    assert read_flat_yaml(path) == {"n": "16", "grounded": "true", "adapter": None}


def test_a_description_is_shown_as_one_line_that_no_terminal_obeys(tmp_path: Path) -> None:
    (tmp_path / "hparams.yaml").write_text(HEAD + 'description: "red\\n\\e[31m \\u202egnp"\n')
    described = load_card(str(tmp_path)).description
    assert described.startswith("red ")
    assert described == printable(described)
