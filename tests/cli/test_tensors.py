"""Claims about reference and run: tensors from files, refused by name when they don't fit, computed right."""
import math
import random
import struct
import unittest
import npy
from support import Case, EMULATED

PAGE, DIM, HEADS, GROUP = 16, 64, 1, 2


class Tensors(Case):
    def setUp(self):
        super().setUp()
        self.random = random.Random(7)
        self.spec = self.small()

    def numbers(self, count):
        return [npy.bf16(self.random.gauss(0, 1)) for _ in range(count)]

    def decode_inputs(self, lengths=(5, 20), pages=4):
        """Files for a decode, page 3 being the first of sequence 1."""
        seqs = len(lengths)
        self.q = self.numbers(seqs * HEADS * GROUP * DIM)
        self.k = self.numbers(pages * HEADS * PAGE * DIM)
        self.v = self.numbers(pages * HEADS * PAGE * DIM)
        self.table = [1, -5, 3, 0][:seqs * 2]
        self.lengths = list(lengths)
        return {
            'q': npy.write(self.folder / 'q.npy', 'u2', (seqs, HEADS * GROUP, DIM), self.q),
            'k_cache': npy.write(self.folder / 'k.npy', 'u2', (pages, HEADS, PAGE, DIM), self.k),
            'v_cache': npy.write(self.folder / 'v.npy', 'u2', (pages, HEADS, PAGE, DIM), self.v),
            'page_table': npy.write(self.folder / 'table.npy', 'i4', (seqs, 2), self.table),
            'lengths': npy.write(self.folder / 'lengths.npy', 'i4', (seqs,), self.lengths),
        }

    def attention(self, seq, head, scale):
        """Attention of one query row, worked out in plain Python: (out, lse)."""
        row = [npy.from_bf16(x) for x in self.q[(seq * GROUP + head) * DIM:][:DIM]]
        logits, values = [], []
        for token in range(self.lengths[seq]):
            at = (self.table[seq * 2 + token // PAGE] * PAGE + token % PAGE) * DIM
            key = [npy.from_bf16(x) for x in self.k[at:at + DIM]]
            values.append([npy.from_bf16(x) for x in self.v[at:at + DIM]])
            logits.append(scale * sum(a * b for a, b in zip(row, key)))
        top = max(logits)
        weights = [math.exp(x - top) for x in logits]
        total = sum(weights)
        out = [sum(w * value[i] for w, value in zip(weights, values)) / total for i in range(DIM)]
        return out, top + math.log(total)

    def arguments(self, inputs, outputs):
        words = []
        for name, path in inputs.items():
            words += ['--in', '%s=%s' % (name, path)]
        for name, path in outputs.items():
            words += ['--out', '%s=%s' % (name, path)]
        return words

    def test_reference_decode_is_attention(self):
        inputs = self.decode_inputs()
        words = self.arguments(inputs, {'out': 'out.npy', 'lse': 'lse.npy'})
        result = self.json('reference', self.spec, '--kernel', 'decode', *words, '--set', 'logits_scale=0.3')
        self.assertEqual(result['dims']['seqs'], 2)
        self.assertEqual(result['logits_scale'], 0.3)
        kind, shape, out = npy.read(self.folder / 'out.npy')
        self.assertEqual((kind, shape), ('u2', (2, GROUP, DIM)))
        kind, shape, lse = npy.read(self.folder / 'lse.npy')
        self.assertEqual((kind, shape), ('f4', (2, GROUP)))
        for seq in range(2):
            for head in range(GROUP):
                wanted, wanted_lse = self.attention(seq, head, 0.3)
                at = (seq * GROUP + head) * DIM
                for bits, number in zip(out[at:at + DIM], wanted):
                    self.assertLessEqual(abs(npy.from_bf16(bits) - number), 2 ** -8 * abs(number) + 1e-12)
                self.assertAlmostEqual(lse[seq * GROUP + head], wanted_lse, places=5)

    def test_the_logits_scale_is_one_over_the_root_of_the_dimension_unless_set(self):
        words = self.arguments(self.decode_inputs(), {'out': 'a.npy'})
        self.heddle('reference', self.spec, '--kernel', 'decode', *words)
        words[-1] = 'out=b.npy'
        self.heddle('reference', self.spec, '--kernel', 'decode', *words, '--set', 'logits_scale=0.125')
        self.assertEqual(npy.read(self.folder / 'a.npy'), npy.read(self.folder / 'b.npy'))

    def test_caches_may_be_flat(self):
        inputs = self.decode_inputs()
        self.heddle('reference', self.spec, '--kernel', 'decode', *self.arguments(inputs, {'out': 'a.npy'}))
        inputs['k_cache'] = npy.write(self.folder / 'flat.npy', 'u2', (len(self.k),), self.k)
        self.heddle('reference', self.spec, '--kernel', 'decode', *self.arguments(inputs, {'out': 'b.npy'}))
        self.assertEqual(npy.read(self.folder / 'a.npy'), npy.read(self.folder / 'b.npy'))

    def test_reference_write_puts_tokens_where_the_slots_say(self):
        tokens, pages = 3, 2
        k, v = self.numbers(tokens * DIM), self.numbers(tokens * DIM)
        empty = [7] * (pages * PAGE * DIM)
        inputs = {
            'k': npy.write(self.folder / 'k.npy', 'u2', (tokens, HEADS, DIM), k),
            'v': npy.write(self.folder / 'v.npy', 'u2', (tokens, HEADS, DIM), v),
            'slot_mapping': npy.write(self.folder / 'slots.npy', 'i8', (tokens,), [20, -1, 3]),
            'k_cache': npy.write(self.folder / 'k0.npy', 'u2', (pages, HEADS, PAGE, DIM), empty),
            'v_cache': npy.write(self.folder / 'v0.npy', 'u2', (pages, HEADS, PAGE, DIM), empty),
        }
        words = self.arguments(inputs, {'k_cache': 'k1.npy', 'v_cache': 'v1.npy'})
        self.heddle('reference', self.spec, '--kernel', 'write', *words)
        for name, rows in [('k1.npy', k), ('v1.npy', v)]:
            wanted = list(empty)
            wanted[20 * DIM:21 * DIM] = rows[:DIM]
            wanted[3 * DIM:4 * DIM] = rows[2 * DIM:]
            self.assertEqual(npy.read(self.folder / name)[2], wanted)
        self.assertEqual(npy.read(self.folder / 'k0.npy')[2], empty, 'inputs are not written to')

    def test_a_device_skips_slots_outside_the_cache_and_the_reference_refuses_them(self):
        pages = 2
        slots = [20, -1, 3, pages * PAGE, 2 ** 57, 2 ** 57 + 5, 2 ** 62, 2 ** 63 - 1, -2 ** 63] # 2^57: pages wrap to the first
        tokens = len(slots)
        k, v = self.numbers(tokens * DIM), self.numbers(tokens * DIM)
        empty = [7] * (pages * PAGE * DIM)
        inputs = {
            'k': npy.write(self.folder / 'k.npy', 'u2', (tokens, HEADS, DIM), k),
            'v': npy.write(self.folder / 'v.npy', 'u2', (tokens, HEADS, DIM), v),
            'slot_mapping': npy.write(self.folder / 'slots.npy', 'i8', (tokens,), slots),
            'k_cache': npy.write(self.folder / 'k0.npy', 'u2', (pages, HEADS, PAGE, DIM), empty),
            'v_cache': npy.write(self.folder / 'v0.npy', 'u2', (pages, HEADS, PAGE, DIM), empty),
        }
        words = self.arguments(inputs, {'k_cache': 'k1.npy', 'v_cache': 'v1.npy'})
        spec = self.small(replace=[('targets: [gfx950]', '')])
        _, errors = self.heddle('reference', spec, '--kernel', 'write', *words, code=1)
        self.assertIn('reference.slot', errors)
        for target in EMULATED:
            self.heddle('run', spec, '--kernel', 'write', '--device', 'emu:' + target, *words)
            for name, rows in [('k1.npy', k), ('v1.npy', v)]:
                wanted = list(empty)
                wanted[20 * DIM:21 * DIM] = rows[:DIM]
                wanted[3 * DIM:4 * DIM] = rows[2 * DIM:3 * DIM]
                self.assertEqual(npy.read(self.folder / name)[2], wanted, target)

    def refused(self, inputs, *messages, code=1, kernel='decode', outputs=None):
        words = self.arguments(inputs, outputs if outputs is not None else {'out': 'out.npy'})
        for verb in (['reference'], ['run', '--device', 'emu:gfx950']):
            _, errors = self.heddle(*verb, self.spec, '--kernel', kernel, *words, code=code)
            for message in messages:
                self.assertIn(message, errors)
            self.assertFalse((self.folder / 'out.npy').exists())

    def test_tensors_that_do_not_fit_are_refused_by_name(self):
        inputs = self.decode_inputs()
        self.refused({**inputs, 'q': npy.write(self.folder / 'x.npy', 'u2', (2, 2, 32), [0] * 128)},
                     'q has shape [2, 2, 32], expected [seqs*rows, q_heads, 64]')
        self.refused({**inputs, 'v_cache': npy.write(self.folder / 'x.npy', 'u2', (1, 1, 16, 64), [0] * 1024)},
                     'v_cache has shape [1, 1, 16, 64], expected [pages, kv_heads, 16, 64] = [4, 1, 16, 64]')
        self.refused({**inputs, 'lengths': npy.write(self.folder / 'x.npy', 'i8', (2,), [1, 1])},
                     'lengths', 'int64', 'expected int32')
        self.refused({**inputs, 'q': npy.write(self.folder / 'x.npy', 'f4', (2, 2, 64), [0] * 256)},
                     'q (', 'float32', 'expected uint16 for bf16')

    def test_missing_unneeded_and_unknown_tensors_are_refused_by_name(self):
        inputs = self.decode_inputs()
        missing = dict(inputs)
        del missing['page_table']
        self.refused(missing, 'page_table is missing: decode needs int32 [seqs, table_pages]')
        self.refused({**inputs, 'sinks': inputs['lengths']}, 'decode takes no tensor sinks')
        self.refused({**inputs, 'k_scale': inputs['lengths']}, 'decode takes no tensor k_scale')
        self.refused({**inputs, 'out': inputs['q']}, 'out is a result of decode: it goes with --out')
        self.refused({**inputs, 'lenghts': inputs['lengths']}, 'did you mean lengths?', code=2)
        self.refused(inputs, 'q is no result of decode', outputs={'q': 'out.npy'})
        self.refused({}, 'error: q is missing', 'error: k_cache is missing', 'error: lengths is missing')

    def test_files_that_are_no_arrays_are_refused(self):
        inputs = self.decode_inputs()
        self.file('text.npy', 'not an array')
        self.refused({**inputs, 'q': 'text.npy'}, 'q (text.npy): this is not a .npy file')
        whole = (self.folder / 'q.npy').read_bytes()
        (self.folder / 'short.npy').write_bytes(whole[:-1])
        self.refused({**inputs, 'q': 'short.npy'}, 'q (short.npy)')
        lying = whole.replace(b'(2, 2, 64)', b'(2, 2, 9999999999)'.ljust(10))
        (self.folder / 'lying.npy').write_bytes(lying)
        self.refused({**inputs, 'q': 'lying.npy'}, 'q (lying.npy)')
        self.refused({**inputs, 'q': 'nowhere.npy'}, 'q (nowhere.npy): can\'t read the file', code=3)

    def test_a_page_outside_the_cache_is_refused_by_the_reference(self):
        inputs = self.decode_inputs()
        inputs['page_table'] = npy.write(self.folder / 'x.npy', 'i4', (2, 2), [4, 0, 0, 0])
        words = self.arguments(inputs, {'out': 'out.npy'})
        self.heddle('reference', self.spec, '--kernel', 'decode', *words, code=1)

    def test_an_empty_batch_gives_empty_results(self):
        inputs = {**self.decode_inputs(),
                  'q': npy.write(self.folder / 'q0.npy', 'u2', (0, GROUP, DIM), []),
                  'page_table': npy.write(self.folder / 't0.npy', 'i4', (0, 2), []),
                  'lengths': npy.write(self.folder / 'l0.npy', 'i4', (0,), [])}
        self.heddle('reference', self.spec, '--kernel', 'decode', *self.arguments(inputs, {'out': 'out.npy'}))
        self.assertEqual(npy.read(self.folder / 'out.npy')[1], (0, GROUP, DIM))

    def test_settings_that_do_not_apply_are_usage_errors(self):
        words = self.arguments(self.decode_inputs(), {'out': 'out.npy'})
        for setting in ['logits_scale', 'logits_scale=', 'logits_scale=x', 'logits_scale=nan', 'logits_scale=-inf',
                        'logits_scale=1e39', 'window=3']:
            self.heddle('reference', self.spec, '--kernel', 'decode', *words, '--set', setting, code=2)
        self.heddle('reference', self.spec, '--kernel', 'write', *words, '--set', 'logits_scale=1', code=2)
        self.heddle('reference', self.spec, *words, code=2)
        fixed = self.small(replace=[('scale: argument', 'scale: rsqrt_d')])
        self.heddle('reference', fixed, '--kernel', 'decode', *words, '--set', 'logits_scale=1', code=2)

    def scaled(self, name, scale):
        contents = self.small(replace=[('dtype: bf16\n  page', 'dtype: fp8_e4m3fn\n  page'), ('logits:', 'scale: %s\nlogits:' % scale)])
        return contents.rename(self.folder / name)

    def test_scales_that_are_arguments_are_set(self):
        """Writes and decodes with numbers, on a device and by the reference: what scales in files give."""
        numbers = self.scaled('numbers.yaml', '{granularity: tensor, source: argument}')
        files = self.scaled('files.yaml', '{granularity: tensor}')
        sets = ['--set', 'k_scale=0.02', '--set', 'v_scale=0.0078125']
        scales = {'k_scale': npy.write(self.folder / 'ks.npy', 'f4', (1,), [0.02]),
                  'v_scale': npy.write(self.folder / 'vs.npy', 'f4', (1,), [0.0078125])}
        tokens, pages = 7, 4
        blank = [0] * (pages * PAGE * DIM)
        rows = {'k': npy.write(self.folder / 'k.npy', 'u2', (tokens, HEADS, DIM), self.numbers(tokens * DIM)),
                'v': npy.write(self.folder / 'v.npy', 'u2', (tokens, HEADS, DIM), self.numbers(tokens * DIM)),
                'slot_mapping': npy.write(self.folder / 's.npy', 'i8', (tokens,), [16, 17, 18, 19, 20, -1, 48]),
                'k_cache': npy.write(self.folder / 'k0.npy', 'u1', (pages, HEADS, PAGE, DIM), blank),
                'v_cache': npy.write(self.folder / 'v0.npy', 'u1', (pages, HEADS, PAGE, DIM), blank)}
        outputs = {'k_cache': 'k1.npy', 'v_cache': 'v1.npy'}
        runs = (['reference'], ['run', '--device', 'emu:gfx950'])
        caches = []
        for verb in runs:
            result = self.json(*verb, numbers, '--kernel', 'write', *self.arguments(rows, outputs), *sets)
            self.assertAlmostEqual(result['k_scale'], 0.02, places=8)
            caches.append([npy.read(self.folder / name) for name in outputs.values()])
            self.heddle(*verb, files, '--kernel', 'write', *self.arguments({**rows, **scales}, outputs))
            caches.append([npy.read(self.folder / name) for name in outputs.values()])
        self.assertNotEqual(caches[0][0][2], blank)
        for other in caches[1:]:
            self.assertEqual(other, caches[0])
        inputs = {**self.decode_inputs((5, 1)), 'k_cache': 'k1.npy', 'v_cache': 'v1.npy'}
        for verb in runs:
            self.heddle(*verb, numbers, '--kernel', 'decode', *self.arguments(inputs, {'out': 'a.npy', 'lse': 'l.npy'}), *sets)
            self.heddle(*verb, files, '--kernel', 'decode', *self.arguments({**inputs, **scales}, {'out': 'b.npy', 'lse': 'm.npy'}))
            self.assertEqual(npy.read(self.folder / 'a.npy'), npy.read(self.folder / 'b.npy'), verb)
            self.assertEqual(npy.read(self.folder / 'l.npy'), npy.read(self.folder / 'm.npy'), verb)
            _, errors = self.heddle(*verb, numbers, '--kernel', 'decode', *self.arguments(inputs, {'out': 'a.npy'}), *sets[:2], code=1)
            self.assertIn('v_scale is missing: decode needs it as a number, since scale.source is argument', errors)
            _, errors = self.heddle(*verb, numbers, '--kernel', 'decode', *self.arguments({**inputs, **scales}, {'out': 'a.npy'}), *sets, code=1)
            self.assertIn('whose scale.source is argument: it is given as a number', errors)
            for wrong in ('k_scale', 'k_scale=', 'k_scale=x', 'k_scale=1e39'):
                self.heddle(*verb, numbers, '--kernel', 'decode', *self.arguments(inputs, {'out': 'a.npy'}), '--set', wrong, code=2)
            _, errors = self.heddle(*verb, files, '--kernel', 'decode', *self.arguments({**inputs, **scales}, {'out': 'a.npy'}), *sets, code=2)
            self.assertIn('the contract has no k_scale that is a number', errors)

    def test_results_that_can_not_be_written_are_a_failure(self):
        words = self.arguments(self.decode_inputs(), {'out': '/proc/nowhere/out.npy'})
        self.heddle('reference', self.spec, '--kernel', 'decode', *words, code=3)

    def test_a_device_of_unknown_kind_is_a_usage_error_and_one_that_is_not_there_a_failure(self):
        words = self.arguments(self.decode_inputs(), {'out': 'out.npy'})
        _, errors = self.heddle('run', self.spec, '--kernel', 'decode', '--device', 'abacus:0', *words, code=2)
        self.assertIn('abacus', errors)
        _, errors = self.heddle('run', self.spec, '--kernel', 'decode', '--device', 'hip:0', *words, code=3,
                                HEDDLE_HIP_LIBRARY='/nowhere/libamdhip64.so')
        self.assertIn('/nowhere/libamdhip64.so', errors)


if __name__ == '__main__':
    unittest.main()
