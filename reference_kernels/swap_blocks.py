"""Blocks of a cache copied between two caches, as a list of (from, to) says: on the device, or to or from the host."""

import numpy as np

from opwalker.views.verify.contract import EXACT, TensorArgument, case

NAMES = ("_C_cache_ops::swap_blocks",)

ARGUMENTS = {
    "src": TensorArgument("[num_src_blocks, ...]", dtype="any"),
    "dst": TensorArgument("[num_dst_blocks, ...]", dtype="as src", mutated=True),
    "block_mapping": TensorArgument("[num_pairs, 2]", layout="on the host, any strides", dtype="int64"),
}
COORDINATES = {"num_dst_blocks": "block", "...": ""}

SIZES = {"src_blocks": 7, "dst_blocks": 5, "shape": (2, 16, 8), "pairs": 4}
CASES = (
    case("on the device", **SIZES),
    case("to the host", **SIZES, dst_on_host=True),
    case("from the host", **SIZES, src_on_host=True),
    case("one block", src_blocks=1, dst_blocks=1, shape=(3,), pairs=1),
    case("prime sizes", src_blocks=13, dst_blocks=11, shape=(3, 5), pairs=7),
    case("more blocks in the mapping than in a row", **SIZES, strided=True),
    case("blocks of fp8", **SIZES, dtypes=("uint8",)),
    case("no pair", src_blocks=2, dst_blocks=2, shape=(4,), pairs=0, empty=True),
    case("large", src_blocks=512, dst_blocks=512, shape=(16, 8, 128), pairs=300, large=True),
)

TOLERANCE = EXACT

WRONG = {
    "DIRECTION": "the columns of the mapping are taken for each other",
    "MAPPING_STRIDE": "the rows of the mapping are taken to lie one behind the other",
}


def inputs(draw, dtype, src_blocks, dst_blocks, shape, pairs, src_on_host=False, dst_on_host=False, strided=False):
    def blocks(count):
        size = (count, *shape)
        return draw.integers(size, dtype, 0, 256) if dtype == "uint8" else draw.normal(size, dtype)

    src, dst = blocks(src_blocks), blocks(dst_blocks)
    # A block may be read twice, and is written once.
    pair = np.stack(
        [draw.integers((pairs,), "int64", 0, src_blocks).values(), draw.distinct(pairs, "int64", dst_blocks).values()],
        axis=-1,
    )
    mapping = draw.values(np.concatenate([pair, pair[:, ::-1]], axis=-1) if strided else pair, "int64").to_host()
    return {
        "src": src.to_host() if src_on_host else src,
        "dst": dst.to_host() if dst_on_host else dst,
        "block_size_in_bytes": int(np.prod(shape)) * src.type.bytes,
        "block_mapping": mapping[:, :2],
    }


def golden(src, dst, block_mapping, **_):
    dst[block_mapping[:, 1]] = src[block_mapping[:, 0]]
    return {"dst": dst}


def library_arguments(names, arguments):
    """Older versions of the op derive the size of a block themselves."""
    return {name: value for name, value in arguments.items() if name in names}
