"""A saved folder is what was saved: damage and foreign files are refused by name, nothing changes in silence."""

from __future__ import annotations

import json
import random
import shutil
import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from maskmatch import ExportedMatcher, MaskMatcher, MaskMatchError, export
from maskmatch.files import write_folder
from maskmatch.model.encoder import Encoder
from maskmatch.storage.integrity import read_stable
from refusals import refusal
from saving_tools import SHORT, Tiny, edit_json
from toy_data import LABELS, TEXTS, TRUTH

if TYPE_CHECKING:
    from pathlib import Path

METHODS = ["mask-matching", "semantic-matching", "fine-tuning", "soft-prompt", "prompt-tuning"]


def flip_bit(path: Path, place: int) -> None:
    data = bytearray(path.read_bytes())
    data[place // 8] ^= 1 << place % 8
    path.write_bytes(data)


def damaged_copies(folder: Path, tmp_path: Path, seed: int, tries: int) -> Any:
    """Copies of a folder with one flipped bit each, with the name of the damaged file."""
    draw = random.Random(seed)
    names = sorted(path.name for path in folder.iterdir() if path.name != "README.md")
    for number in range(tries):
        copy = tmp_path / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(folder, copy)
        name = names[number % len(names)]
        flip_bit(copy / name, draw.randrange(8 * (copy / name).stat().st_size))
        yield copy, name


def check_refused(load: Any, folder: Path, tmp_path: Path, seed: int) -> None:
    """Every damaged copy is refused by the name of the file, or is the same: 1e-05 is 1E-05 in JSON."""
    expected, refused, same = load(folder).predict_proba(TEXTS), 0, 0
    for copy, name in damaged_copies(folder, tmp_path, seed, tries=24):
        try:
            found = load(copy).predict_proba(TEXTS)
        except MaskMatchError as error:
            refused += name in str(error)
        else:
            same += 1
            np.testing.assert_array_equal(found, expected)
    assert refused + same == 24
    assert same <= 2


@pytest.mark.parametrize("method", METHODS)
def test_no_flipped_bit_changes_an_answer_in_silence(tiny: Tiny, tmp_path: Path, method: str) -> None:
    matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS, method=method).fit(TEXTS, TRUTH, **SHORT)
    folder = matcher.save_pretrained(tmp_path / "model")
    check_refused(MaskMatcher.from_pretrained, folder, tmp_path, seed=1)


@pytest.mark.parametrize("int8", [False, True])
def test_no_flipped_bit_changes_an_answer_of_an_export_in_silence(tiny: Tiny, tmp_path: Path, int8: bool) -> None:
    export(MaskMatcher.from_pretrained(tiny("bert"), LABELS), tmp_path / "export", int8=int8)
    check_refused(ExportedMatcher.from_pretrained, tmp_path / "export", tmp_path, seed=2)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("part", ["model.safetensors", "labels.safetensors", "head.safetensors"])
def test_files_of_another_classifier_are_refused(tiny: Tiny, tmp_path: Path, method: str, part: str) -> None:
    folders = []
    for seed in (1, 2):
        matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS, method=method, learn_temperature=True)
        folders.append(matcher.fit(TEXTS, TRUTH, **SHORT, seed=seed).save_pretrained(tmp_path / str(seed)))
    shutil.copy(folders[1] / part, folders[0] / part)
    assert part in refusal(MaskMatcher.from_pretrained, folders[0])


@pytest.mark.parametrize("part", ["model.onnx", "labels.safetensors"])
def test_files_of_another_export_are_refused(tiny: Tiny, tmp_path: Path, part: str) -> None:
    for name, labels in (("one", LABELS), ("other", [*LABELS[1:], "parcel"])):
        matcher = MaskMatcher.from_pretrained(tiny("bert"), labels)
        if name == "other":
            matcher.fit(["where is my parcel"] * 3, labels, **SHORT)
        export(matcher, tmp_path / name)
    shutil.copy(tmp_path / "other" / part, tmp_path / "one" / part)
    assert part in refusal(ExportedMatcher.from_pretrained, tmp_path / "one")
    if part == "labels.safetensors":  # vectors of other labels are noticed in any case
        assert part in refusal(ExportedMatcher.from_pretrained, tmp_path / "one", verify=False)
    else:
        assert ExportedMatcher.from_pretrained(tmp_path / "one", verify=False).predict(TEXTS)


def test_folders_without_digests_are_checked_for_nan(tiny: Tiny, tmp_path: Path) -> None:
    folder = MaskMatcher.from_pretrained(tiny("bert"), LABELS).save_pretrained(tmp_path / "model")
    edit_json(folder / "maskmatch.json", lambda data: None)  # as an earlier version saved it
    weights = load_file(folder / "model.safetensors")
    name = next(iter(weights))
    weights[name].view(-1)[0] = float("nan")
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    assert "holds NaN or inf" in refusal(MaskMatcher.from_pretrained, folder)


def test_the_card_may_be_edited(tiny: Tiny, tmp_path: Path) -> None:
    folder = MaskMatcher.from_pretrained(tiny("bert"), LABELS).save_pretrained(tmp_path / "model")
    (folder / "README.md").write_text("my own words")
    assert MaskMatcher.from_pretrained(folder).labels is not None


def test_no_folder_of_this_machine_is_written(tiny: Tiny, tmp_path: Path) -> None:
    matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS)
    named = {"run_name": str(tmp_path / "run")}
    matcher.fit(TEXTS, TRUTH, **SHORT, checkpoints=tmp_path / "checkpoints", arguments=named)
    matcher.evaluate(TEXTS, TRUTH)
    folder = matcher.save_pretrained(tmp_path / "model")
    export(MaskMatcher.from_pretrained(folder), tmp_path / "export")
    for path in [*folder.iterdir(), *(tmp_path / "export").iterdir()]:
        assert str(tmp_path).encode() not in path.read_bytes(), path.name
        assert str(tiny("bert").parent).encode() not in path.read_bytes(), path.name


def test_a_folder_that_is_replaced_all_the_time_is_always_read_whole(tiny: Tiny, tmp_path: Path) -> None:
    first, second = (MaskMatcher.from_pretrained(tiny("bert"), labels) for labels in (LABELS, LABELS[:2]))
    second.fit(TEXTS[:2], LABELS[:2], **SHORT)  # so that its weights differ, too
    expected = {len(each.labels or ()): each.predict_proba(TEXTS) for each in (first, second)}
    first.save_pretrained(tmp_path / "model")
    stopped = threading.Event()

    def replace() -> None:
        while not stopped.is_set():
            for each in (second, first):
                each.save_pretrained(tmp_path / "model", overwrite=True)

    writer = threading.Thread(target=replace)
    writer.start()
    try:
        for _ in range(20):
            found = MaskMatcher.from_pretrained(tmp_path / "model")
            np.testing.assert_allclose(found.predict_proba(TEXTS), expected[len(found.labels or ())], atol=1e-5)
    finally:
        stopped.set()
        writer.join()


def test_a_folder_that_is_replaced_and_replaced_back_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "model" / "maskmatch.json"
    reads: list[str] = []

    def save(text: str) -> None:
        with write_folder(path.parent, ours=[path.name]) as scratch:
            (scratch / path.name).write_text(text)

    def read() -> str:
        if not reads:  # another process saves twice while this one reads
            save("new")
            reads.append(path.read_text())
            save("old")
        else:
            reads.append(path.read_text())
        return reads[-1]

    save("old")
    assert read_stable(path, read) == "old"
    assert reads == ["new", "old"]


def test_an_encoder_without_digests_stays_readable_by_transformers(tiny: Tiny, tmp_path: Path) -> None:
    from transformers import AutoModel

    folder = MaskMatcher.from_pretrained(tiny("bert"), LABELS).save_pretrained(tmp_path / "model")
    assert isinstance(AutoModel.from_pretrained(folder), torch.nn.Module)


def test_the_error_is_typed(tiny: Tiny, tmp_path: Path) -> None:
    folder = MaskMatcher.from_pretrained(tiny("bert"), LABELS).save_pretrained(tmp_path / "model")
    edit_json(folder / "maskmatch.json", lambda data: data.update(sha256=["nonsense"]))
    with pytest.raises(MaskMatchError, match=r"maskmatch\.json"):
        MaskMatcher.from_pretrained(folder)


def test_labels_and_weights_of_two_classifiers_are_never_mixed(
    tiny: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder is replaced between the check of its files and the loading of its weights."""
    first = MaskMatcher.from_pretrained(tiny("bert"), LABELS)
    second = MaskMatcher.from_pretrained(tiny("bert"), LABELS).fit(TEXTS, TRUTH, **SHORT)
    folder = first.save_pretrained(tmp_path / "model")
    load = Encoder.load

    def replaced_first(*args: Any) -> Any:
        monkeypatch.setattr(Encoder, "load", load)
        second.save_pretrained(folder, overwrite=True)
        return load(*args)

    monkeypatch.setattr(Encoder, "load", replaced_first)
    found = MaskMatcher.from_pretrained(folder)
    np.testing.assert_allclose(found.predict_proba(TEXTS), second.predict_proba(TEXTS), atol=1e-5)


@pytest.mark.parametrize("method", ["fine-tuning", "mask-matching"])
def test_labels_that_are_edited_while_they_are_saved(
    tiny: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS, method=method).fit(TEXTS, TRUTH, **SHORT)
    save = Encoder.save

    def edit_first(*args: Any) -> None:
        matcher.remove_labels(LABELS[:1])
        save(*args)

    expected = matcher.predict_proba(TEXTS)
    monkeypatch.setattr(Encoder, "save", edit_first)
    found = MaskMatcher.from_pretrained(matcher.save_pretrained(tmp_path / "model"))
    assert list(found.labels or ()) == LABELS
    np.testing.assert_allclose(found.predict_proba(TEXTS), expected, atol=1e-5)


@pytest.mark.parametrize("name", ["../secret", "a/b", "", 5])
def test_names_that_lead_out_of_the_folder(tiny: Tiny, tmp_path: Path, name: Any) -> None:
    folder = MaskMatcher.from_pretrained(tiny("bert"), LABELS).save_pretrained(tmp_path / "model")
    edit_json(folder / "maskmatch.json", lambda data: data["files"].append(name))
    assert "list of files" in refusal(MaskMatcher.from_pretrained, folder)


def test_a_classifier_without_its_json_file_is_no_encoder(tiny: Tiny, tmp_path: Path) -> None:
    folder = MaskMatcher.from_pretrained(tiny("bert"), LABELS).save_pretrained(tmp_path / "model")
    (folder / "maskmatch.json").unlink()
    assert "maskmatch.json is missing" in refusal(MaskMatcher.from_pretrained, folder, LABELS)


def test_a_tokenizer_of_another_encoder(tiny: Tiny, tmp_path: Path) -> None:
    shutil.copytree(tiny("bert"), tmp_path / "encoder")
    path = tmp_path / "encoder" / "tokenizer_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "mask_token": "[OTHER]"}))
    assert "the mask token '[OTHER]', for which the encoder has no embedding" in refusal(
        MaskMatcher.from_pretrained, tmp_path / "encoder", LABELS
    )


@pytest.mark.parametrize("changed", [{"mask_id": "x"}, {"mask_id": 10**40}, {"mask_id": 10**6}, {"mask_strips": [1]}])
def test_a_vocabulary_of_an_export_that_cannot_be(tiny: Tiny, tmp_path: Path, changed: dict[str, Any]) -> None:
    export(MaskMatcher.from_pretrained(tiny("bert"), LABELS), tmp_path / "export")
    path = tmp_path / "export" / "export.json"
    data = json.loads(path.read_text())
    path.write_text(json.dumps({**data, "vocabulary": {**data["vocabulary"], **changed}}))
    assert "The vocabulary" in refusal(ExportedMatcher.from_pretrained, tmp_path / "export", verify=False)


def test_a_graph_that_reads_files_outside_its_folder_is_refused(tiny: Tiny, tmp_path: Path) -> None:
    import onnx

    export(MaskMatcher.from_pretrained(tiny("bert"), LABELS), tmp_path / "export")
    path = tmp_path / "export" / "model.onnx"
    model = onnx.load(str(path))
    weights = max(model.graph.initializer, key=lambda each: len(each.raw_data))
    (tmp_path / "outside.bin").write_bytes(weights.raw_data)
    weights.ClearField("raw_data")
    weights.data_location = onnx.TensorProto.EXTERNAL
    weights.external_data.add(key="location", value="../outside.bin")
    path.write_bytes(model.SerializeToString())
    message = refusal(ExportedMatcher.from_pretrained, tmp_path / "export", verify=False)
    assert "keeps weights in other files" in message


def test_an_export_that_is_replaced_while_a_session_starts(
    tiny: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The graph of another export must not meet the labels of this one."""
    from maskmatch.prediction.runtimes import onnx

    first = MaskMatcher.from_pretrained(tiny("bert"), LABELS)
    export(first, tmp_path / "export")
    other = MaskMatcher.from_pretrained(tiny("bert"), LABELS).fit(TEXTS, TRUTH, **SHORT)
    expected = first.predict_proba(TEXTS * 4)
    matcher = ExportedMatcher.from_pretrained(tmp_path / "export", verbose=False)
    start = onnx._start  # noqa: SLF001

    def late(*arguments: Any) -> Any:
        monkeypatch.setattr(onnx, "_start", start)
        export(other, tmp_path / "export")
        return start(*arguments)

    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    monkeypatch.setattr(onnx, "_start", late)
    for _ in range(2):
        np.testing.assert_allclose(matcher.predict_proba(TEXTS * 4, batch_size=2), expected, atol=1e-5)


def test_no_memory_is_no_damage(tiny: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = MaskMatcher.from_pretrained(tiny("bert"), LABELS).save_pretrained(tmp_path / "model")

    def fail(*_: Any) -> None:
        raise MemoryError

    monkeypatch.setattr("maskmatch.storage.folder.move_encoder", fail)
    with pytest.raises(MemoryError):
        MaskMatcher.from_pretrained(folder)
