"""Claims about pages of records: bytes packed by hand are read, and written, as the contract says."""
import math
import random
import struct
import unittest
import npy
from support import Case

PAGE, GROUP, CODED, TAIL = 16, 2, 64, 32
RECORD = CODED + 8 + 2 * TAIL  # codes, two fp32 scales, the tail in bf16
LATENT = '''heddle: 1
query: {heads_per_kv: 2}
head_dim: {qk: 96, v: 64}
kv:
  dtype: int8
  page: 16
  k: [b, s, d+72]
  v: k
  tail: {channels: 32, dtype: bf16, at: 72, layout: [b, s, d+36]}
scale:
  granularity: {group: 32}
  k: {inside: k, at: 64, layout: [b, s, d+32]}
'''
INLINE = '''heddle: 1
query: {heads_per_kv: 2}
head_dim: 64
kv: {dtype: int8, page: 16, k: [b, s, h, d+4], v: [b, s, h, d+4]}
scale:
  granularity: token_head
  k: {inside: k, at: 64, layout: [b, s, h]}
  v: {inside: v, at: 64, layout: [b, s, h]}
'''


def signed(data):
    return list(struct.unpack('<%db' % len(data), data))


def attention(q, keys, values, scale):
    logits = [scale * sum(a * b for a, b in zip(q, key)) for key in keys]
    weights = [math.exp(x - max(logits)) for x in logits]
    return [sum(w * v[i] for w, v in zip(weights, values)) / sum(weights) for i in range(len(values[0]))]


class Records(Case):
    def setUp(self):
        super().setUp()
        self.random = random.Random(5)

    def decode(self, spec, q, caches, width, heads):
        """out of one sequence of 20 tokens on pages 2 and 0, by the reference and on an emulated device."""
        words = []
        inputs = dict(caches, q=('u2', (1, heads * GROUP, len(q) // (heads * GROUP)), q),
                      page_table=('i4', (1, 3), [2, 0, -1]), lengths=('i4', (1,), [20]))
        for name, (kind, shape, values) in inputs.items():
            words += ['--in', '%s=%s' % (name, npy.write(self.folder / (name + '.npy'), kind, shape, values))]
        words += ['--kernel', 'decode', '--set', 'logits_scale=0.05']
        self.heddle('reference', spec, *words, '--out', 'out=a.npy')
        self.heddle('run', spec, '--device', 'emu:gfx950', *words, '--out', 'out=b.npy')
        out = [[npy.from_bf16(x) for x in npy.read(self.folder / name)[2]] for name in ('a.npy', 'b.npy')]
        self.assertEqual(len(out[0]), heads * GROUP * width)
        return out

    def expect(self, out, wanted):
        for name, numbers in zip(('reference', 'device'), out):
            error = math.sqrt(sum((a - b) ** 2 for a, b in zip(numbers, wanted)) / sum(b * b for b in wanted))
            self.assertLessEqual(error, 2.5e-3, name)

    def test_a_latent_cache_packed_by_hand(self):
        spec = self.file('latent.yaml', LATENT)
        pages, tokens = [], {}
        for page in range(3):
            data = b''
            for slot in range(PAGE):
                codes = [self.random.randint(-127, 127) for _ in range(CODED)]
                scales = [2.0 ** self.random.randint(-9, -5) for _ in range(2)]
                tail = [npy.bf16(self.random.gauss(0, 1)) for _ in range(TAIL)]
                data += struct.pack('<%db2f%dH' % (CODED, TAIL), *codes, *scales, *tail)
                tokens[page, slot] = [c * scales[i // 32] for i, c in enumerate(codes)] + [npy.from_bf16(x) for x in tail]
            pages.append(data)
        live = [tokens[2, slot] for slot in range(PAGE)] + [tokens[0, slot] for slot in range(4)]
        q = [npy.bf16(self.random.gauss(0, 1)) for _ in range(GROUP * 96)]
        wanted = []
        for head in range(GROUP):
            row = [npy.from_bf16(x) for x in q[head * 96:][:96]]
            wanted += attention(row, live, [token[:64] for token in live], 0.05)
        shapes = [(3, PAGE, RECORD), (3, PAGE, 1, RECORD), (3, PAGE * RECORD)]
        for shape in shapes:
            out = self.decode(spec, q, {'k_cache': ('i1', shape, signed(b''.join(pages)))}, 64, 1)
            self.expect(out, wanted)

    def test_an_inline_cache_is_written_and_read(self):
        spec, heads, words = self.file('inline.yaml', INLINE), 3, []
        slots = [2 * PAGE + i for i in range(PAGE)] + [0, 1, 2, 3, -1]
        rows = {name: [npy.bf16(self.random.gauss(0, 1)) for _ in range(len(slots) * heads * 64)] for name in 'kv'}
        empty = [0x55] * (3 * PAGE * heads * 68)
        for name in 'kv':
            path = npy.write(self.folder / (name + '0.npy'), 'i1', (3, PAGE, heads, 68), empty)
            words += ['--in', '%s_cache=%s' % (name, path), '--out', '%s_cache=%s1.npy' % (name, name)]
            path = npy.write(self.folder / (name + 'r.npy'), 'u2', (len(slots), heads, 64), rows[name])
            words += ['--in', '%s=%s' % (name, path)]
        words += ['--in', 'slot_mapping=' + npy.write(self.folder / 's.npy', 'i8', (len(slots),), slots)]
        caches, numbers = {}, {}
        for tool in (['reference', spec], ['run', spec, '--device', 'emu:gfx950']):
            self.heddle(*tool, '--kernel', 'write', *words)
            for name in 'kv':
                kind, shape, values = npy.read(self.folder / (name + '1.npy'))
                if name in numbers:
                    self.assertEqual(values, numbers[name], 'the device stores what the reference does')
                numbers[name], caches[name + '_cache'] = values, (kind, shape, values)
        stored = {}
        for name in 'kv':
            data = struct.pack('<%db' % len(numbers[name]), *numbers[name])
            for i, slot in enumerate(slots[:-1]):
                for head in range(heads):
                    at = (slot * heads + head) * 68
                    codes, scale = signed(data[at:at + 64]), struct.unpack('<f', data[at + 64:at + 68])[0]
                    row = [npy.from_bf16(x) for x in rows[name][(i * heads + head) * 64:][:64]]
                    self.assertEqual(scale, struct.unpack('<f', struct.pack('<f', max(map(abs, row)) / 127))[0])
                    for code, x in zip(codes, row):
                        self.assertLessEqual(abs(code * scale - x), scale * 0.5001)
                    stored[name, i, head] = [code * scale for code in codes]
            untouched = set(range(3 * PAGE)) - set(slots)
            for slot in untouched:
                self.assertEqual(data[slot * heads * 68:(slot + 1) * heads * 68], b'\x55' * (heads * 68))
        q = [npy.bf16(self.random.gauss(0, 1)) for _ in range(heads * GROUP * 64)]
        wanted = []
        for head in range(heads * GROUP):
            row = [npy.from_bf16(x) for x in q[head * 64:][:64]]
            keys, values = ([stored[name, i, head // GROUP] for i in range(20)] for name in 'kv')
            wanted += attention(row, keys, values, 0.05)
        self.expect(self.decode(spec, q, caches, 64, heads), wanted)

    def test_another_record_is_refused_by_name(self):
        spec = self.file('latent.yaml', LATENT)
        words = ['--in', 'q=' + npy.write(self.folder / 'q.npy', 'u2', (1, GROUP, 96), [0] * (GROUP * 96)),
                 '--in', 'page_table=' + npy.write(self.folder / 't.npy', 'i4', (1, 1), [0]),
                 '--in', 'lengths=' + npy.write(self.folder / 'l.npy', 'i4', (1,), [1]),
                 '--in', 'k_cache=' + npy.write(self.folder / 'c.npy', 'i1', (1, PAGE, 132), [0] * (PAGE * 132))]
        _, errors = self.heddle('reference', spec, '--kernel', 'decode', *words, '--out', 'out=o.npy', code=1)
        self.assertIn('k_cache', errors)
        self.assertIn('[pages, 16, 136]', errors)


if __name__ == '__main__':
    unittest.main()
