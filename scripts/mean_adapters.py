"""The weighted mean of LoRA adapters of one shape, such as those of several training runs from one start.

    python scripts/mean_adapters.py a/adapter=0.4 b/adapter=0.6 -o mean

The mean is that of the weights A and B of each layer, in float32, written in the type of the first adapter. It is no
mean of the products B A, but near it where the runs began with the same adapter and did not go far.
"""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Mapping
from pathlib import Path

from mbr_esd_metric.errors import InputError

_WEIGHTS, _SETTINGS = "adapter_model.safetensors", "adapter_config.json"


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
    shutil.copyfile(first / _SETTINGS, output / _SETTINGS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("adapters", nargs="+", metavar="FOLDER=SHARE")
    parser.add_argument("-o", "--output", required=True, type=Path)
    args = parser.parse_args()
    shares = {}
    for item in args.adapters:
        folder, _, share = item.rpartition("=")
        shares[Path(folder)] = float(share)
    mean(shares, args.output)


if __name__ == "__main__":
    main()
