import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits

from kpca_apps.cli.denoise.run import IMAGES
from kpca_apps.denoise.dictionary import DictionaryDenoiser
from kpca_apps.system.stores import buckets
from tests.cli.conftest import Run, assert_refused
from tests.cli.test_denoise import kpca, load, result, save

__all__ = ["kpca"]

MODEL = ("--model", "digits.kpca")


@pytest.fixture
def digits(kpca: Run) -> np.ndarray:
    """Create sixty clean digits in ``clean`` and three noisy ones in ``noisy``."""
    images = np.asarray(load_digits().images[:63] * 15.9, np.uint8)
    noise = np.random.default_rng(0).normal(0, 50, images.shape)
    for number, image in enumerate(images[:60]):
        save(f"clean/{number:02}.png", image)
    for number, image in enumerate(np.clip(images + noise, 0, 255)[60:]):
        save(f"noisy/{number:02}.png", image.astype(np.uint8))
    return images


def test_learn_and_denoise(kpca: Run, digits: np.ndarray) -> None:
    fitted = kpca("fit", "clean", *MODEL, "--sigma", 50)
    assert (fitted.code, fitted.out) == (0, "digits.kpca\n"), fitted.err
    assert "Learned 60 whole images of 8 x 8 pixels from 60 files." in fitted.heard
    assert "what denoised held-out examples best at the noise level given" in fitted.heard
    assert "share it as you would share the images" in fitted.heard

    kpca("run", "noisy", *MODEL, "--jobs", 1).ok()
    model = DictionaryDenoiser.load("digits.kpca")
    for number in range(3):
        before, after = (
            load(f"noisy/{number:02}.png"),
            load(Path("kpca-denoised", IMAGES, f"{number:02}.png")),
        )
        assert np.array_equal(after, np.rint(model.denoise(before)))
        clean = digits[60 + number].astype(float)
        assert np.mean((after - clean) ** 2) < 0.7 * np.mean((before - clean) ** 2)
    shown = result()["dictionary"]
    assert (shown["name"], shown["n_examples"], shown["shape"]) == ("digits.kpca", 60, [8, 8, 1])
    page = Path("kpca-denoised/report/report.html").read_text(encoding="utf-8")
    assert "Learned from 60 whole images" in page
    assert kpca("run", "noisy", *MODEL, "--jobs", 1, "--sigma", 50).code == 4
    above = kpca("run", "noisy", *MODEL, "--jobs", 1, "--sigma", 500, "--out", "other")
    assert (above.code, "above the data range of 255" in above.err) == (5, True)
    assert kpca("run", "noisy", *MODEL, "--jobs", 1, "--sigma", 50, "--force").code == 0
    words = ("--noise", "impulse", "--sigma", 90, "--jobs", 1, "--out", "robust")
    assert kpca("run", "noisy", *MODEL, *words).code == 0
    robust = model.denoise(before, sigma=90.0, noise="impulse")
    assert np.array_equal(load(Path("robust", IMAGES, "02.png")), np.rint(robust))
    assert not np.array_equal(np.rint(robust), np.rint(model.denoise(before, sigma=90.0)))


def test_a_path_that_looks_like_an_address_is_one_of_this_disk(
    kpca: Run, digits: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(buckets, "_s3_system", lambda *_: pytest.fail("a store was requested"))
    Path("s3:/bucket").mkdir(parents=True)
    model = ("--model", "./s3:/bucket/digits.kpca")
    assert kpca("fit", "clean", *model, "--sigma", 50).out == f"{model[1]}\n"
    done = kpca("run", "noisy", *model, "--jobs", 1, "--out", "./s3:/out")
    assert (done.code, done.out) == (0, "s3:/out/report/report.html\n"), done.err
    content = json.loads(Path("s3:/out/report/result.json").read_text(encoding="utf-8"))
    assert content["command"] == " ".join(("kpca denoise run noisy", *model, "--out ./s3:/out"))


def test_a_model_is_loaded_once(
    kpca: Run, digits: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert kpca("fit", "clean", *MODEL, "--sigma", 50).code == 0
    load, loaded = DictionaryDenoiser.load, []

    def count_loads(path: str) -> DictionaryDenoiser:
        loaded.append(path)
        return load(path)

    monkeypatch.setattr(DictionaryDenoiser, "load", count_loads)
    assert kpca("run", "noisy", *MODEL, "--jobs", 1).code == 0
    assert loaded == ["digits.kpca"]


def test_an_unsuitable_image_fails_alone(kpca: Run, digits: np.ndarray) -> None:
    assert kpca("fit", "clean", *MODEL, "--components", 20, "--bandwidth", 1e6, "-q").code == 0
    done = kpca("run", "noisy", "in", *MODEL, "--jobs", 1)
    assert done.code == 5
    stderr = done.heard
    assert "failed: in/a.png: is 24 x 28 pixels, but the model learned whole images of 8" in stderr
    assert "failed: in/sub/b.png: " in stderr and "3 of 6 images denoised" in stderr
    dictionary = result()["dictionary"]
    assert dictionary["rule"] == "The bandwidth and the number of components are as given."
    assert dictionary["n_components"] == 20


def test_patches_of_any_images(kpca: Run) -> None:
    words = ("--patch-size", 6, "--max-examples", 80, "--sigma", 20, "--stride", 3)
    fitted = kpca("fit", "in/a.png", "in/c.tif", "--model", "p.kpca", *words, "--json", "--quiet")
    assert (fitted.code, fitted.err) == (0, "")
    info = json.loads(fitted.out)
    assert (info["patch_size"], info["n_examples"], info["shape"]) == (6, 80, [6, 6, 1])
    assert [choice["level"] for choice in info["choices"]] == [pytest.approx(20 / 255)]
    assert kpca("fit", "in/a.png", "in/c.tif", "--model", "q.kpca", *words, "--seed", 7).code == 0
    assert Path("p.kpca").read_bytes() != Path("q.kpca").read_bytes()
    kpca("run", "in/a.png", "--model", "p.kpca", "--jobs", 1).ok()
    colour = kpca("run", "in/sub/b.png", "--model", "p.kpca", "--jobs", 1, "--out", "other")
    assert (colour.code, "has 3 channels" in colour.heard) == (5, True)


def test_every_option_of_fit_reaches_the_dictionary(
    kpca: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []

    class Recorded(DictionaryDenoiser):
        def check_parameters(self) -> None:
            made.append({name: getattr(self, name) for name in given})

    words = (
        "--components 7 --bandwidth 5.0 --patch-size 4 --stride 2 --sigma 3.0 --examples-sigma 1.5 "
        "--max-examples 40 --jobs 2 --seed 9"
    ).split()
    names = (word.removeprefix("--").replace("-", "_") for word in words[::2])
    fields = {"components": "n_components", "jobs": "n_jobs", "seed": "random_state"}
    given = {fields.get(n, n): float(value) for n, value in zip(names, words[1::2], strict=True)}
    monkeypatch.setattr("kpca_apps.denoise.dictionary.DictionaryDenoiser", Recorded)
    assert kpca("fit", "in/a.png", *MODEL, *words, "--dry-run").code == 0
    assert made == [given]


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("in",), 3, "sub/b.png: is 24 x 24"),
        (("large.png",), 2, "--patch-size 8"),
        (("clean", "bad.png"), 3, "bad.png: "),
        (("clean", "deep.png"), 3, "give examples of one type"),
        (("grey", "--patch-size", "4"), 3, "there is nothing to learn"),
        (("clean", "--sigma", "1e300"), 2, "--sigma is 1e+300, above the range of the images, 255"),
        (("clean", "--examples-sigma", "300"), 2, "--examples-sigma is 300, above"),
    ],
)
def test_mistakes_are_one_line_and_make_no_model(
    words: tuple[str, ...], code: int, message: str, kpca: Run, digits: np.ndarray
) -> None:
    Path("bad.png").write_bytes(b"no image")
    for number in range(5):
        save(f"grey/{number}.png", np.full((8, 8), 7, np.uint8))
    save("deep.png", np.zeros((8, 8), np.uint16))
    save("large.png", np.zeros((200, 200), np.uint8))
    assert_refused(kpca("fit", *words, *MODEL), code, message)
    assert not Path("digits.kpca").exists()


def test_a_dry_run_lists_the_examples(kpca: Run, digits: np.ndarray) -> None:
    done = kpca("fit", "clean", *MODEL, "--dry-run")
    assert (done.code, len(done.out.splitlines())) == (0, 61)
    assert done.out.splitlines()[1].split() == ["00.png", "8", "x", "8", "uint8"]
    rows = json.loads(kpca("fit", "clean", *MODEL, "--dry-run", "--json").out)["images"]
    assert rows[0] == {"name": "00.png", "shape": [8, 8]}
    assert not Path("digits.kpca").exists()
