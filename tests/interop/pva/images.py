"""Images as area detectors send them, compressed by the field's own libraries: for the golden file, and as PVs of a p4p server.

    python images.py golden > protocols/pva/host/tests/golden_images.txt

Each line of that file is: name, codec, type of the elements, dimensions, colour mode, bytes as hexadecimal digits. `lz4hdf5` is put together here from
blocks of LZ4, as the HDF5 filter 32004 does; everything else is as Blosc, LZ4, bitshuffle, zlib and Pillow made it.
"""

import io
import os
import struct
import sys
import zlib

import bitshuffle
import blosc
import lz4.block
import numpy as np
from p4p import Value
from p4p.nt import NTNDArray
from PIL import Image

# The numbers of pvData's ScalarType, which ADCore puts into `codec.parameters`.
TYPES = {"i1": 1, "i2": 2, "i4": 3, "i8": 4, "u1": 5, "u2": 6, "u4": 7, "u8": 8, "f4": 9, "f8": 10}
NAMES = {"i": "byte short int long", "u": "ubyte ushort uint ulong", "f": "- - float double"}
MONO, RGB1 = 0, 2
LZ4HDF5_BLOCK = 1024


def name_of(dtype):
    return NAMES[dtype[0]].split()[int(dtype[1]).bit_length() - 1]


def pixels(dtype, width, height, colours=1):
    """A pattern that every byte and bit takes part in. The last index is that of neighbours in memory."""
    y, x, colour = np.mgrid[0:height, 0:width, 0:colours]
    pattern = (7 * (x // 6) + 11 * (y // 4) + x // 30 * y + 50 * colour) % 251
    pattern = pattern / 4 - 10 if dtype[0] == "f" else pattern // 2 - 60 if dtype[0] == "i" else pattern * 257 if dtype != "u1" else pattern
    shaped = pattern.reshape((height, width, colours) if colours > 1 else (height, width))
    return shaped.astype("<" + dtype)


def smooth(width, height, colours=1):
    """A picture that JPEG hardly changes."""
    y, x, colour = np.mgrid[0:height, 0:width, 0:colours]
    pattern = (2 * x + 3 * y + 40 * colour).clip(0, 255).astype("u1")
    return pattern.reshape((height, width, colours) if colours > 1 else (height, width))


def lz4hdf5(data):
    blocks = [data[at : at + LZ4HDF5_BLOCK] for at in range(0, len(data), LZ4HDF5_BLOCK)]
    framed = [min(lz4.block.compress(block, store_size=False), block, key=len) for block in blocks]
    return struct.pack(">QI", len(data), LZ4HDF5_BLOCK) + b"".join(struct.pack(">I", len(one)) + one for one in framed)


def jpeg(array):
    file = io.BytesIO()
    Image.fromarray(array).save(file, "JPEG", quality=95, subsampling=0)
    return file.getvalue()


def chunk(array, compressor, shuffle, block=0):
    blosc.set_nthreads(1)
    blosc.set_blocksize(block)
    return blosc.compress(array.tobytes(), array.itemsize, 5, shuffle, compressor)


def cases():
    """Yields name, codec, element type, colour mode, array, compressed bytes."""
    for dtype in TYPES:
        array = pixels(dtype, 9, 7)
        yield f"plain-{dtype}", "", dtype, MONO, array, array.tobytes()
    for dtype in ("u1", "u2", "f8"):
        array = pixels(dtype, 61, 37)
        data = array.tobytes()
        yield f"zlib-{dtype}", "zlib", dtype, MONO, array, zlib.compress(data)
        yield f"lz4-{dtype}", "lz4", dtype, MONO, array, lz4.block.compress(data, store_size=False)
        yield f"lz4hdf5-{dtype}", "lz4hdf5", dtype, MONO, array, lz4hdf5(data)
        yield f"bslz4-{dtype}", "bslz4", dtype, MONO, array, bitshuffle.compress_lz4(array.ravel()).tobytes()
        for compressor in ("blosclz", "lz4", "lz4hc", "zlib", "zstd"):
            for shuffle, order in ((blosc.NOSHUFFLE, "none"), (blosc.SHUFFLE, "bytes"), (blosc.BITSHUFFLE, "bits")):
                yield f"blosc-{compressor}-{order}-{dtype}", "blosc", dtype, MONO, array, chunk(array, compressor, shuffle)
    array = pixels("u4", 61, 37)
    for shuffle, order in ((blosc.SHUFFLE, "bytes"), (blosc.BITSHUFFLE, "bits")):
        yield f"blosc-blocks-{order}", "blosc", "u4", MONO, array, chunk(array, "blosclz", shuffle, 2048)
    flat = np.zeros((300, 400), "<u2")
    yield "blosc-far", "blosc", "u2", MONO, flat, chunk(flat, "blosclz", blosc.NOSHUFFLE)
    noise = np.random.default_rng(1).integers(0, 256, (40, 30), "u1")
    yield "blosc-stored", "blosc", "u1", MONO, noise, chunk(noise, "lz4", blosc.SHUFFLE)
    # Noise that comes again after zeros refers to places far behind.
    noise, gap = np.random.default_rng(2).integers(0, 256, 500, "u1"), np.zeros(9000, "u1")
    noise = np.concatenate([noise, gap, noise, noise]).reshape(1, -1)
    yield "blosc-noise", "blosc", "u1", MONO, noise, chunk(noise, "blosclz", blosc.NOSHUFFLE, 1 << 16)
    colour = pixels("u1", 20, 10, 3)
    yield "zlib-rgb", "zlib", "u1", RGB1, colour, zlib.compress(colour.tobytes())
    for array, mode in ((smooth(40, 30), MONO), (smooth(40, 30, 3), RGB1)):
        yield f"jpeg-{mode}", "jpeg", "u1", mode, array, jpeg(array)


def dimensions(array):
    return list(reversed(array.shape))


def value(codec, dtype, mode, array, data):
    """An NTNDArray as ADCore sends it."""
    member = f"{name_of(dtype)}Value" if not codec else "byteValue"
    sent = array.ravel() if not codec else np.frombuffer(data, "i1")
    sizes = {"compressedSize": len(data), "uncompressedSize": array.nbytes, "uniqueId": 7}
    name = {"name": codec, "parameters": TYPES[dtype]} if codec else {"name": ""}
    dimension = [{"size": size, "fullSize": size, "binning": 1} for size in dimensions(array)]
    attribute = [{"name": "ColorMode", "value": mode}]
    return Value(NTNDArray.buildType(), {"value": (member, sent), "codec": name, "dimension": dimension, "attribute": attribute, **sizes})


def golden():
    for name, codec, dtype, mode, array, data in cases():
        print(name, codec or "-", name_of(dtype), ",".join(map(str, dimensions(array))), mode, data.hex())


def serve():
    from p4p.server import Server, StaticProvider
    from p4p.server.thread import SharedPV

    provider = StaticProvider("images")
    for name, codec, dtype, mode, array, data in cases():
        provider.add(name, SharedPV(initial=value(codec, dtype, mode, array, data)))
    good = pixels("u2", 61, 37)
    provider.add("unknown", SharedPV(initial=value("h265\x1b[2J", "u2", MONO, good, b"12345")))
    provider.add("damaged", SharedPV(initial=value("lz4", "u2", MONO, good, b"12345")))
    provider.add("huge", SharedPV(initial=value("lz4", "u2", MONO, np.broadcast_to(np.uint16(0), (60000, 60000)), b"12345")))
    with Server(providers=[provider]) as server:
        print("port", server.conf()["EPICS_PVAS_SERVER_PORT"], flush=True)
        sys.stdin.read()
        os._exit(0)


if __name__ == "__main__":
    golden() if sys.argv[1:] == ["golden"] else serve()
