"""scansion train --cache: the model of the same files in memory, from files that were written once."""

import os

import numpy as np
import pytest

import scansion as sc
from scansion.formats import blocks

KINDS = {
    "crf": ["-t", "template"],
    "frequent": ["-t", "template", "--min-freq", "3"],
    "online": ["-a", "asgd", "--seed", "3", "--dev", "test.txt"],
    "semicrf": ["--model", "semicrf"],
    "hierarchical": ["--model", "hierarchical", "--labels=-1,-1", "--features", "words"],
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_model_is_that_of_files_in_memory(call, here, tmp_path, monkeypatch, kind):
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 500)
    cache = tmp_path / "cache"
    given = ["train", "train.txt", "test.txt", *KINDS[kind], "--max-iterations", "5"]
    assert call(*given, "-o", tmp_path / "plain")[0] == 0
    code, _, first = call(*given, "-o", tmp_path / "one", "--cache", cache)
    assert code == 0, first
    code, _, second = call(*given, "-o", tmp_path / "two", "--cache", cache)
    assert code == 0, second
    assert "same files" in second and "same files" not in first
    plain, one, two = (sc.load(tmp_path / name) for name in ("plain", "one", "two"))
    for model in (one, two):
        np.testing.assert_array_equal(model.model_.weights, plain.model_.weights)
        assert model.reading_ == plain.reading_ and model.attributes_ == plain.attributes_
    assert len(list(cache.iterdir())) == 2


def test_it_is_written_again_when_something_changes(call, here, tmp_path):
    cache, file = tmp_path / "cache", tmp_path / "data.txt"
    text = (here / "train.txt").read_text()
    file.write_text(text)
    given = ["train", file, "-o", tmp_path / "model", "--max-iterations", "2", "--cache", cache]
    assert call(*given)[0] == 0
    os.utime(file, ns=(1, 1))
    assert "same files" not in call(*given)[2]
    assert "same files" not in call(*given, "--features", "pos")[2]
    assert len(list(cache.iterdir())) == 6
    for _ in range(2):  # standard input has no name to know it by
        code, _, said = call("train", "-", "--format", "columns", *given[2:], stdin=text.encode())
        assert code == 0 and "same files" not in said
    assert len(list(cache.iterdir())) == 8


def test_what_is_wrong_leaves_nothing(call, here, tmp_path):
    cache = tmp_path / "cache"
    (tmp_path / "empty.txt").write_text("")
    code, _, said = call("train", tmp_path / "empty.txt", "-o", tmp_path / "model", "--cache", cache)
    assert code == 1 and "no sequences" in said and not list(cache.iterdir())
    code, _, said = call("train", "train.txt", "-o", tmp_path / "model", "--cache", here / "train.txt")
    assert code == 1 and "train.txt" in said and len(said.splitlines()) == 1
