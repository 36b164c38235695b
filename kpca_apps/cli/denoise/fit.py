"""The work of ``kpca denoise fit`` and ``kpca denoise noise``."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kpca_apps.cli.console import MOST_FAILURES, Console, column_lines, say_line, terminal_width
from kpca_apps.cli.denoise.documents import (
    EXAMPLE_IMAGES,
    FITTED_DICTIONARY,
    MEASURED_NOISE,
    NOISE_PROFILE,
)
from kpca_apps.cli.denoise.options import FitOptions, RunOptions, in_flags
from kpca_apps.cli.results import near
from kpca_apps.denoise.batch.dictionary import are_all_alike, choice_sentence, read_examples
from kpca_apps.denoise.batch.examine.measuring import KnownNoise, measure_file, pooled
from kpca_apps.denoise.batch.inputs import find_images, named_reason
from kpca_apps.denoise.batch.profile import check_target
from kpca_apps.denoise.result import MeasuredFile
from kpca_apps.errors import ConfigError, InputError, OptionError
from kpca_apps.names import one_line
from kpca_apps.report.denoising.text import (
    CHANNELS,
    interval_text,
    is_at_brightest,
    law_text,
    laws_of,
    level_range,
)
from kpca_apps.report.text import number, plural
from kpca_apps.system.files.model_files import check_model_path
from kpca_apps.system.files.output import atomic_write

LARGEST_WHOLE = 128 * 128  # in pixels
MAX_NAME, LEAST_NAME = 40, 12  # maximum and minimum number of characters shown of a long name
MAX_WHOLE = 400  # maximum number of characters shown of names whose short forms are equal


def fit_dictionary(examples: Sequence[str], model: str, options: FitOptions) -> None:
    """Learn a dictionary from image files and save it."""
    from kpca_apps.denoise.dictionary import DictionaryDenoiser

    console = Console(options.quiet)
    dictionary = DictionaryDenoiser(
        options.components,
        bandwidth=options.bandwidth,
        patch_size=options.patch_size,
        stride=options.stride,
        sigma=options.sigma,
        examples_sigma=options.examples_sigma,
        max_examples=options.max_examples,
        n_jobs=options.jobs,
        random_state=options.seed,
    )
    with in_flags():
        dictionary.check_parameters()
    if options.stride is not None and options.patch_size is None:
        raise OptionError(
            "stride", "only works with --patch-size: give both, or leave --stride out"
        )
    if not options.dry_run:
        check_model_path(model, force=options.force)
    with console.stage("Reading"):
        images, names = read_examples(examples)
    _require_usable(images, names, options)
    if options.dry_run:
        if options.json:
            rows = zip(names, images, strict=True)
            listed = [{"name": name, "shape": [*image.shape]} for name, image in rows]
            console.data_json(EXAMPLE_IMAGES, {"images": listed})
            return
        table = [("file", "size", "type")]
        for name, image in zip(names, images, strict=True):
            table.append((one_line(name, MAX_NAME), _size(image.shape), str(images[0].dtype)))
        console.data_lines(column_lines(table))
        return
    with console.stage("Fitting"), in_flags():
        dictionary.fit(images, names=names)
    dictionary.save(model)
    kind = "whole images" if dictionary.patch_size is None else "patches"
    height, width, channels = dictionary.shape_
    n_examples = len(dictionary.subspaces_[0].points)
    console.say(
        f"Learned {n_examples:,} {kind} of {width} x {height} pixels"
        f"{' in colour' if channels > 1 else ''} from {plural(len(images), 'file')}."
    )
    console.say(choice_sentence(dictionary))
    choices = [("noise level", "bandwidth", "components")]
    for one in dictionary.choices_:
        choices.append((f"{one.level:.3g}", f"{one.bandwidth:.4g}", str(one.components)))
    console.lines(["", *column_lines(choices), "(on the scale where the range of values is 1)", ""])
    console.say("The model holds the examples: share it as you would share the images.")
    if options.json:
        console.data_json(
            FITTED_DICTIONARY,
            {
                "model": model,
                "n_examples": n_examples,
                "shape": list(dictionary.shape_),
                "patch_size": dictionary.patch_size,
                "rule": choice_sentence(dictionary),
                "choices": dictionary.choices_,
            },
        )
    else:
        console.data_path(model)


_NOT_SHARED = (
    "a level with a question mark is uncertain, and camera noise and speckle differ from image "
    "to image"
)


def print_noise(inputs: Sequence[str], save: str | None, options: RunOptions) -> int:
    """Print a table of the noise of images; return how many could not be measured.

    If `save` is given, the typical noise of each kind of images is written to this file.
    """
    console = Console(options.quiet)
    if save is not None:
        check_target(save, force=options.force)
    found, notes = find_images(inputs)
    files, known = [], []
    for image in found:
        own = None
        if image.refused:
            file = MeasuredFile(image.name, reason=named_reason(image.name, image.refused))
        else:
            with console.stage(f"Measuring {image.name}"):
                file, own = measure_file(image.source, image.name, data_range=options.data_range)
        files.append(file)
        known += [own] if own is not None else []
        if file.reason:
            say_line(f"failed: {file.reason}")
    measured = [one for one in files if not one.reason]
    if options.json:
        listed = [asdict(one) | {"status": "failed" if one.reason else "ok"} for one in files]
        console.data_json(MEASURED_NOISE, {"images": listed})
    elif measured:
        console.data_lines(_noise_lines(measured))
        for lines in (_channel_lines(measured), _law_lines(measured)):
            if lines:
                console.data_lines(["", *lines])
    for text in (*_noise_sentences(measured), *notes):
        console.say(text)
    if save is not None:
        _save_profile(save, known, len(measured), console)
    return len(files) - len(measured)


def _save_profile(
    path: str, known: Sequence[KnownNoise], n_measured: int, console: Console
) -> None:
    kinds = pooled(known)
    if not kinds:
        raise InputError(
            f"{one_line(path, 200)}: not written, because no image has noise that others of its "
            f"kind share: {_NOT_SHARED}"
        )
    from kpca_apps.report.result_json import to_json

    with atomic_write(path) as file:
        file.write(to_json(NOISE_PROFILE, {"kinds": kinds}).encode())
    for one in kinds:
        console.say(f"Saved from {plural(one.n_images, 'image')}: {_in_words(one.images)}.")
    if left := n_measured - sum(one.n_images for one in kinds):
        were = "was" if left == 1 else "were"
        console.say(f"{plural(left, 'image')} {were} left out: {_NOT_SHARED}.")
    console.say(f"Use it with --profile {near(Path(path))}.")


def _in_words(kind: str) -> str:
    """Describe a kind of images, from `kind_of`, in words.

    >>> _in_words("128 x 96, 1 x float32"), _in_words("A7 at ISO 800, 3 x uint8")
    ('128 x 96 pixels, 1 channel of float32', 'A7 at ISO 800, 3 channels of uint8')
    """
    where, _, what = kind.rpartition(", ")
    pixels = " pixels" if re.fullmatch("[0-9]+ x [0-9]+", where) else ""
    number_of, _, dtype = what.partition(" x ")
    channels = "1 channel" if number_of == "1" else f"{number_of} channels"
    return f"{one_line(where, MAX_NAME)}{pixels}, {channels} of {dtype}"


def _require_usable(
    images: Sequence[NDArray[np.generic]], names: Sequence[str], options: FitOptions
) -> None:
    from kpca_apps.denoise.dictionary.pixels import check_levels

    whole = options.patch_size is None
    for image, name in zip(images, names, strict=True):
        height, width = image.shape[:2]
        if whole and height * width > LARGEST_WHOLE:
            raise ConfigError(
                f"{one_line(name)}: {width} x {height} pixels are too many for an example as a "
                "whole; learn from patches of them: --patch-size 8"
            )
    if are_all_alike(images, whole=whole):
        raise InputError(
            f"{one_line(names[0])}: all examples are equal to it, so there is nothing to learn; "
            "give images that differ"
        )
    with in_flags():
        check_levels(options, images)


def _noise_lines(files: Sequence[MeasuredFile]) -> list[str]:
    marks = any(one.impulses for one in files)
    head = ("sigma", "noise", "shared", *(["impulses"] if marks else []), "type", "size")
    rows = [
        (
            level_range(one) + ("" if one.established else " ?"),
            one.noise,
            "yes" if one.correlated else "no",
            *(["yes" if one.impulses else "no"] if marks else []),
            one.dtype,
            _size(one.shape[:2]),
        )
        for one in files
    ]
    return _named_lines(["file", *(one.name for one in files)], [head, *rows])


def _channel_lines(files: Sequence[MeasuredFile]) -> list[str]:
    colours = [one for one in files if len(one.channel_sigma) > 1]
    rows = [("  ".join(map(number, one.channel_sigma)),) for one in colours]
    names = [one.name for one in colours]
    head = ("sigma of red, green and blue",)
    return _named_lines(["file", *names], [head, *rows]) if rows else []


def _law_lines(files: Sequence[MeasuredFile]) -> list[str]:
    names = ["file"]
    rows: list[tuple[str, ...]] = [("", "variance at x", "nine in ten", "shared (blur)")]
    for one in files:
        laws = laws_of(one)
        for law, channel in zip(laws, CHANNELS[len(laws)] if laws else (), strict=True):
            shared = f"yes ({number(law.blur)} px)" if law.shared else "no"
            rows.append((channel, law_text(law), interval_text((law,)), shared))
            names.append(one.name)
    if not any(channel for channel, *_ in rows):
        rows = [row[1:] for row in rows]
    return _named_lines(names, rows) if len(rows) > 1 else []


def _named_lines(names: Sequence[str], rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Return a table of named rows, with names shortened to fit the terminal."""
    beside = sum(max(map(len, column)) + 2 for column in zip(*rows, strict=True))
    room = max(LEAST_NAME, min(MAX_NAME, terminal_width() - beside))
    each = [*dict.fromkeys(names)]
    shown = dict(zip(each, distinct(each, room), strict=True))
    return column_lines([(shown[n], *row) for n, row in zip(names, rows, strict=True)])


def distinct(names: Sequence[str], room: int) -> list[str]:
    """Shorten names in the middle to `room` characters, unless shortened names would be equal.

    >>> distinct(["holiday-by-the-sea-1.png", "holiday-by-the-sea-2.png"], 14)
    ['holida...1.png', 'holida...2.png']
    >>> distinct(["monday-1-by-the-sea.png", "monday-2-by-the-sea.png"], 14)
    ['monday-1-by-the-sea.png', 'monday-2-by-the-sea.png']
    """
    whole = [one_line(name, MAX_WHOLE) for name in names]
    end = (room - 3) // 2
    short = [
        name if len(name) <= room else f"{name[: room - 3 - end]}...{name[-end:]}" for name in whole
    ]
    counts = Counter(short)
    return [cut if counts[cut] == 1 else name for cut, name in zip(short, whole, strict=True)]


def _noise_sentences(files: Sequence[MeasuredFile]) -> list[str]:
    sentences = []
    if any(one.correlated and one.established and one.noise != "poisson" for one in files):
        sentences.append(
            "shared: neighbouring pixels, or the colours, share their noise, as in photographs "
            "from a camera; kpca denoise run takes it as --noise camera."
        )
    if any(map(laws_of, files)):
        sentences.append(
            "poisson: noise of counted light, which grows with brightness, or noise of that kind "
            "that neighbours share; sigma goes from where the image is darkest to where it is "
            "brightest."
        )
    if any(map(is_at_brightest, files)):
        sentences.append("poisson without a range: sigma is the level at the largest value.")
    if any(one.noise == "speckle" for one in files):
        sentences.append(
            "speckle: noise in proportion to the brightness; sigma is its share of it."
        )
    if left := [one for one in files if not one.established]:
        options = [
            f"{one.evidence.option} (for {one_line(one.name, MAX_NAME)})"
            for one in left[:MOST_FAILURES]
            if one.evidence.option
        ]
        instead = f" To remove it as noise, give {', '.join(options)}." if options else ""
        sentences.append(
            "?: no noise could be established, because what was measured may be texture; kpca "
            f"denoise run leaves the image as it is.{instead}"
        )
    if any(one.impulses for one in files):
        sentences.append(
            "impulses: single pixels stand out, as in impulse noise (salt and pepper); try kpca "
            "denoise run --noise impulse."
        )
    return sentences


def _size(shape: Sequence[int]) -> str:
    return f"{shape[1]} x {shape[0]}" + (f" x {shape[2]}" if len(shape) > 2 else "")
