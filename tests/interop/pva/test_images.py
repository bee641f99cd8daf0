"""`hodo pva get` of images that the field's libraries have compressed and p4p serves, and p4p on images that we compress."""

import re
import sys
import zlib

import command
import images
import lz4.block
import numpy as np
import peers
import pva
import pytest
from PIL import Image

CASES = {name: (codec, dtype, array, data) for name, codec, dtype, _, array, data in images.cases()}
# Differences that JPEG may make at the quality of the test.
LOSS = {"jpeg-0": 3, "jpeg-2": 6}


@pytest.fixture(scope="module")
def server():
    with peers.served([sys.executable, images.__file__, "serve"]) as peer:
        yield peer


def test_every_codec_is_shown_with_what_is_in_the_image(server):
    lines = dict(line.split(" ", 1) for line in server.said("get", *CASES).splitlines())
    for name, (codec, dtype, array, data) in CASES.items():
        line = lines[name]
        sizes = " x ".join(map(str, images.dimensions(array)))
        assert line.startswith(f"{images.name_of(dtype)}[{sizes}] {array.nbytes} bytes, "), (name, line)
        assert (f"codec {codec} ({len(data)} bytes)" in line) == bool(codec), (name, line)
        if name not in LOSS:
            found = [float(number) for number in re.search(r", from (\S+) to (\S+), mean (\S+), id 7$", line).groups()]
            assert found == pytest.approx([array.min(), array.max(), array.mean()], abs=1e-6), (name, line)


@pytest.mark.parametrize("name", ["plain-u1", "bslz4-u2", "blosc-blosclz-bits-u2", "lz4hdf5-u2", "zlib-rgb", "jpeg-0", "jpeg-2"])
def test_an_image_is_saved_as_a_picture(server, name, tmp_path):
    server.said("get", "-t", "--image", tmp_path / "image.png", name)
    array = CASES[name][2].astype(int)
    difference = np.abs(np.array(Image.open(tmp_path / "image.png")).astype(int) - array)
    assert difference.max() <= LOSS.get(name, 0)


def test_numbers_that_are_no_pixels_of_a_picture_are_scaled(server, tmp_path):
    server.said("get", "-t", "--image", tmp_path / "image.png", "zlib-f8")
    array = CASES["zlib-f8"][2]
    expected = (array - array.min()) * 65535 / (array.max() - array.min())
    assert np.abs(np.array(Image.open(tmp_path / "image.png")) - expected).max() <= 1


def test_what_cannot_be_decoded_says_why(server, tmp_path):
    said = server.said("get", "unknown", "damaged", "huge").splitlines()
    assert r'codec "h265\u{1b}[2J" is not known' in said[0] and "choose jpeg, zlib, lz4, lz4hdf5, bslz4 or blosc" in said[0] and "\x1b" not in said[0]
    assert "its lz4 data are damaged" in said[1]
    assert "its 7200000000 bytes are more than the 268435456 that are allowed" in said[2]
    file = tmp_path / "image.png"
    assert "damaged: its lz4 data are damaged" in server.said("get", "--image", file, "damaged", status=1)
    assert "--image takes one PV, not 2" in command.refused("pva", "get", "--image", file, "a", "b", status=2, says=[]).stderr
    assert not file.exists()


@pytest.mark.parametrize("codec", ["lz4", "zlib"])
def test_an_image_source_compresses_as_a_detector_does(codec, tmp_path):
    file = tmp_path / "pvs.toml"
    file.write_text(f'[[pv]]\nname = "I"\ntype = "image"\nelement = "ushort"\nsource = "image"\nsize = [40, 30]\ncodec = "{codec}"\n')
    with pva.serving(file) as process, pva.client(process.at, nt=False) as context:
        value = context.get("I")
        data = value.value.tobytes()
        assert (value.codec.name, value.codec.parameters, len(data)) == (codec, images.TYPES["u2"], value.compressedSize)
        data = zlib.decompress(data) if codec == "zlib" else lz4.block.decompress(data, uncompressed_size=value.uncompressedSize)
        rows = np.frombuffer(data, "<u2").reshape(30, 40)
        assert (rows[1:, :-1] == rows[:-1, 1:]).all() and rows[0][1] == rows[0][0] + 1
