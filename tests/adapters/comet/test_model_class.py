"""The class that COMET loads, and how COMET's own functions find it."""

from __future__ import annotations

import inspect
import math
import sys
from pathlib import Path
from unittest.mock import Mock

import pytest

from mbr_esd_metric.errors import OptionError
from mbr_esd_metric.metric.card import ModelCard
from tests.helpers.comet_commands import MODEL, SOURCES, TRANSLATIONS
from tests.helpers.refused import refused

pytest.importorskip("comet.models")
pytestmark = pytest.mark.comet

import comet.models  # noqa: E402
from comet import download_model, load_from_checkpoint  # noqa: E402
from comet.models.utils import Prediction  # noqa: E402

from mbr_esd_metric.adapters.comet.model_class import MbrEsdMetric, checkpoint_folder, register  # noqa: E402

SAMPLES = [{"src": s, "mt": t, "ref": "not looked at"} for s, t in zip(SOURCES, TRANSLATIONS, strict=True)]


@pytest.fixture
def model(files: Path) -> MbrEsdMetric:
    loaded = load_from_checkpoint(download_model(MODEL))
    assert type(loaded) is MbrEsdMetric
    return loaded


def test_predict(model: MbrEsdMetric) -> None:
    result = model.predict(samples=SAMPLES, batch_size=8, gpus=0, progress_bar=False, num_workers=0)
    assert type(result) is type(result.metadata) is Prediction
    assert result.scores == result["scores"] == result.metadata.mqm_scores == [0.8, 0.96, 1.0]
    assert result.system_score == pytest.approx(0.92)
    assert math.isnan(model.predict([], gpus=0, progress_bar=False).system_score)
    assert result.metadata.mqm == [-5.0, -1.0, 0.0]
    assert "|n:3|" in result.metadata.signature
    ours, theirs = (inspect.signature(cls.predict).parameters for cls in (MbrEsdMetric, comet.models.CometModel))
    assert list(ours) == list(theirs)
    assert [p.default for p in ours.values()] == [p.default for p in theirs.values()]


def test_what_comets_callers_do_to_a_model(model: MbrEsdMetric) -> None:
    assert model.eval().half().to("cpu") is model
    assert not model.requires_references()
    assert model.is_referenceless()
    model.set_embedding_cache()
    assert model.retrieve_sentence_embedding.cache_info().currsize == 0
    for call in (model.enable_context, model.retrieve_sentence_embedding, lambda: model.predict(SAMPLES, mc_dropout=3)):
        with pytest.raises(OptionError):
            call()


def test_gpus_0_keeps_a_model_on_the_cpu(model: MbrEsdMetric, monkeypatch: pytest.MonkeyPatch) -> None:
    def annotate(card: ModelCard, *_: object, **__: object) -> None:
        raise LookupError(card.device)

    monkeypatch.setattr("mbr_esd_metric.metric.metric.annotate", annotate)
    for gpus, device in ((0, "cpu"), (1, "auto")):
        with pytest.raises(LookupError, match=device):
            model.predict(SAMPLES, gpus=gpus, progress_bar=False)


def test_what_stays_an_exception_in_a_library(model: MbrEsdMetric) -> None:
    hook = sys.excepthook
    with pytest.raises(OptionError, match="did you mean 'mbr-esd-demo'"):
        load_from_checkpoint(download_model("mbr-esd-dmo"))
    assert sys.excepthook is hook
    refused(r"samples\[1\] has no 'mt'", model.predict, [SAMPLES[0], {"src": "a"}], gpus=0, progress_bar=False)


@pytest.mark.parametrize("name", ["./mine", "mbr-esd-mine"])
def test_a_model_folder(files: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    Path("model").rename(name)
    path = download_model(f"{name}?utility=f1")
    card = load_from_checkpoint(path).metric.card
    assert (card.model, card.n, card.decision.utility) == ("some/model", 4, "f1")
    file = Path(name, "checkpoints", "model.ckpt")  # COMET's form of a path; the file may be empty
    file.parent.mkdir()
    file.touch()
    assert load_from_checkpoint(str(file)).metric.card.model == "some/model"
    # The name of the folder is absolute, so that the path works from elsewhere too.
    monkeypatch.chdir(files.parent)
    assert load_from_checkpoint(path).metric.card.n == 4


@pytest.mark.parametrize("name", ["somebody/esd", "mbr-esd-fans/esd"])
def test_a_model_folder_on_the_hub(files: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    download = Mock(spec=[], return_value="model")
    monkeypatch.setattr(comet.models, "snapshot_download", download)
    register()
    registered = comet.models.snapshot_download
    register()
    assert comet.models.snapshot_download is registered
    card = load_from_checkpoint(download_model(f"{name}?n=2", local_files_only=True)).metric.card
    assert (card.model, card.n) == ("some/model", 2)
    download.assert_called_once_with(name, cache_dir=None, local_files_only=True)


def test_the_folder_of_a_name_holds_no_pickle_and_is_for_the_user_alone(files: Path) -> None:
    """The name may hold a password."""
    path = Path(download_model(MODEL, saving_directory="models"))
    assert path.parents[2] == Path("models")
    assert path.stat().st_mode & 0o077 == 0
    content = {p.name: p.read_text(encoding="utf-8") for p in path.parents[1].rglob("*") if p.is_file()}
    assert content == {
        "hparams.yaml": "class_identifier: mbr_esd_metric\n",
        "model.ckpt": f"mbr-esd-metric model: {MODEL}\n",
    }
    assert download_model(MODEL, saving_directory="models") == str(path)
    assert "hunter2" not in checkpoint_folder("mbr-esd-demo?server=http://me:hunter2@host/v1", "models")
