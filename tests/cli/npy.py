"""Just enough of NumPy's .npy format for the tests: a type string, a shape and a flat list."""
import ast
import struct

CODES = {'u1': 'B', 'i1': 'b', 'u2': 'H', 'i2': 'h', 'i4': 'i', 'u4': 'I', 'i8': 'q', 'f4': 'f', 'f8': 'd', 'f2': 'e'}


def size_of(shape):
    size = 1
    for extent in shape:
        size *= extent
    return size


def write(path, kind, shape, values):
    """kind: 'u2', 'f4' …; values: flat, row-major."""
    assert len(values) == size_of(shape), (len(values), shape)
    order = '|' if kind[1] == '1' else '<'
    header = "{'descr': '%s%s', 'fortran_order': False, 'shape': %r, }" % (order, kind, tuple(shape))
    header += ' ' * (-(10 + len(header) + 1) % 64) + '\n'
    with open(path, 'wb') as file:
        file.write(b'\x93NUMPY\x01\x00' + struct.pack('<H', len(header)) + header.encode())
        file.write(struct.pack('<%d%s' % (len(values), CODES[kind]), *values))
    return str(path)


def read(path):
    """(kind, shape, flat values)"""
    with open(path, 'rb') as file:
        data = file.read()
    assert data[:8] == b'\x93NUMPY\x01\x00'
    length = struct.unpack('<H', data[8:10])[0]
    header = ast.literal_eval(data[10:10 + length].decode())
    kind, shape = header['descr'][1:], header['shape']
    assert not header['fortran_order'] and (10 + length) % 64 == 0
    values = struct.unpack('<%d%s' % (size_of(shape), CODES[kind]), data[10 + length:])
    return kind, shape, list(values)


def bf16(value):
    """The bits of a number rounded to bf16, to nearest even."""
    bits = struct.unpack('<I', struct.pack('<f', value))[0]
    return ((bits + 0x7fff + (bits >> 16 & 1)) >> 16) & 0xffff


def from_bf16(bits):
    return struct.unpack('<f', struct.pack('<I', bits << 16))[0]
