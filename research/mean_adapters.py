"""The weighted mean of LoRA adapters of one shape, such as those of several training runs from one start.

    python research/mean_adapters.py a/adapter=0.4 b/adapter=0.6 -o mean/adapter

The mean is that of the weights A and B of each layer, in float32, written in the type of the first adapter. It is no
mean of the products B A, but near it where the runs began with the same adapter and did not go far.
"""

from __future__ import annotations

import argparse
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from running import run

from mbr_esd_metric.errors import InputError

_WEIGHTS, _SETTINGS = "adapter_model.safetensors", "adapter_config.json"


def shares_of(items: Sequence[str]) -> dict[Path, float]:
    """Folder -> share, from FOLDER=SHARE.

    Raises:
        InputError: names the item, or the folder without an adapter.
    """
    shares: dict[Path, float] = {}
    for item in items:
        name, _, share = item.rpartition("=")
        folder = Path(name)
        if not name or not re.fullmatch(r"[0-9]*\.?[0-9]+", share) or float(share) == 0:
            raise InputError(f"give FOLDER=SHARE with a share above 0, such as a/adapter=0.4, not {item!r}")
        if not (folder / _WEIGHTS).is_file():
            raise InputError(f"{folder}: no {_WEIGHTS}; in a model folder it is in {folder / 'adapter'}")
        if folder in shares:
            raise InputError(f"{folder} is given twice; give it once, with the sum of its shares")
        shares[folder] = float(share)
    return shares


def mean(shares: Mapping[Path, float], output: Path) -> None:
    """Write the mean; the shares are divided by their sum.

    Raises:
        InputError: for adapters of different shapes.
    """
    from safetensors.torch import load_file, save_file

    weights = {folder: load_file(folder / _WEIGHTS) for folder in shares}
    first = next(iter(weights))
    shapes = {folder: {name: one.shape for name, one in found.items()} for folder, found in weights.items()}
    for folder in shares:
        if shapes[folder] != shapes[first]:
            raise InputError(f"{folder} has other layers or another rank than {first}")
    total = sum(shares.values())
    summed = {
        name: sum(share / total * weights[folder][name].float() for folder, share in shares.items()).to(one.dtype)
        for name, one in weights[first].items()
    }
    output.mkdir(parents=True, exist_ok=True)
    save_file(summed, output / _WEIGHTS, metadata={"format": "pt"})
    (output / _WEIGHTS).chmod(0o644)  # safetensors lets the owner alone read it
    shutil.copyfile(first / _SETTINGS, output / _SETTINGS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("adapters", nargs="+", metavar="FOLDER=SHARE", help="a PEFT adapter, and its share of the mean")
    parser.add_argument("-o", "--output", required=True, type=Path, help="folder of the new adapter")
    args = parser.parse_args()
    mean(shares_of(args.adapters), args.output)
    print(f"{args.output}: the mean of {len(args.adapters)} adapters; name it in the hparams.yaml of a model")


if __name__ == "__main__":
    run(main)
