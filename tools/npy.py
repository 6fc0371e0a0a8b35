"""Reads and writes .npy files with the standard library alone.

heddle's tensors travel as .npy: bf16 as uint16, fp8 as uint8. Values here are flat arrays of stored codes plus a shape.
"""
import array
import ast
import struct
import sys

# typecode of array.array by numpy's descr
CODES = {"|u1": "B", "|i1": "b", "<u2": "H", "<i2": "h", "<i4": "i", "<u4": "I", "<i8": "q", "<u8": "Q", "<f4": "f", "<f8": "d"}
DESCRS = {code: descr for descr, code in CODES.items()}
MAGIC = b"\x93NUMPY"


def save(path, values, shape):
    """`values`: an array.array in row-major order with as many elements as `shape` says."""
    count = 1
    for extent in shape:
        count *= extent
    assert count == len(values), f"{path}: {len(values)} values for shape {shape}"
    body = values if sys.byteorder == "little" else array.array(values.typecode, values)
    if body is not values:
        body.byteswap()
    inner = ", ".join(map(str, shape)) + ("," if len(shape) == 1 else "")
    header = f"{{'descr': '{DESCRS[values.typecode]}', 'fortran_order': False, 'shape': ({inner}), }}"
    header += " " * (-(len(MAGIC) + 4 + len(header) + 1) % 64) + "\n"
    with open(path, "wb") as out:
        out.write(MAGIC + bytes([1, 0]) + struct.pack("<H", len(header)) + header.encode("ascii"))
        out.write(body.tobytes())


def load(path):
    """(values, shape, descr); half floats ('<f2') come back as their codes in an array of 'H'."""
    with open(path, "rb") as source:
        data = source.read()
    if data[:6] != MAGIC:
        raise ValueError(f"{path}: not a .npy file")
    if data[6] == 1:
        (length,) = struct.unpack_from("<H", data, 8)
        start = 10
    else:
        (length,) = struct.unpack_from("<I", data, 8)
        start = 12
    header = ast.literal_eval(data[start : start + length].decode("ascii"))
    if header["fortran_order"]:
        raise ValueError(f"{path}: column-major order is not read here")
    descr = header["descr"]
    values = array.array("H" if descr == "<f2" else CODES[descr])
    values.frombytes(data[start + length :])
    if sys.byteorder != "little":
        values.byteswap()
    return values, header["shape"], descr


def bf16_encode(value):
    """The bf16 code nearest to a finite float, ties to even."""
    (bits,) = struct.unpack("<I", struct.pack("<f", value))
    return (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16


def bf16_decode(code):
    return struct.unpack("<f", struct.pack("<I", code << 16))[0]


def floats(path, codes="bf16"):
    """(values as a list of floats, shape); 16-bit files are read as `codes`: bf16 or fp16."""
    values, shape, descr = load(path)
    if descr == "<f2" or (descr == "<u2" and codes == "fp16"):
        return [struct.unpack("<e", struct.pack("<H", code))[0] for code in values], shape
    if descr == "<u2":
        return [bf16_decode(code) for code in values], shape
    return [float(value) for value in values], shape
