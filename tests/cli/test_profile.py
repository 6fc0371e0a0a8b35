"""Claims about profile and run --stats: tables, JSON, what the counts must be, refusals."""
import unittest
import npy
from support import CachedCase, EMULATED, SPECS

DENSE = SPECS / 'minimax-m3-dense-fp8.yaml'
DEVICE = ('--device', 'emu:gfx950', '--compiler', 'llvm')
CLASSES = ['scalar', 'scalar_memory', 'vector', 'transcendental', 'matrix', 'memory', 'lds', 'scratch', 'branch', 'wait',
           'barrier', 'other']


class Profile(CachedCase):
    def operation(self, name, *options, spec=DENSE):
        value = self.json('profile', spec, *DEVICE, *options)
        self.assertTrue(value['ok'])
        return {item['operation']: item for item in value['operations']}[name]

    def test_decode_reads_each_byte_of_k_and_v_once(self):
        decode = self.operation('decode', '--shape', '2x256x1', '--split', '1')
        launch = decode['launches'][0]
        tensors = {t['tensor']: t for t in launch['tensors']}
        for name in ('k_cache', 'v_cache'):
            self.assertEqual(tensors[name]['loads']['bytes'], 2 * 256 * 128)
            self.assertEqual(tensors[name]['loads']['distinct_bytes'], 2 * 256 * 128)
            self.assertEqual(tensors[name]['lines_read'], 2 * 256)
            self.assertEqual(tensors[name]['stores']['bytes'], 0)
        self.assertEqual(tensors['out']['stores']['distinct_bytes'], 2 * 16 * 128 * 2)

    def test_shuffled_layouts_are_read_in_whole_segments(self):
        decode = self.operation('decode', '--shape', '1x256x1')
        self.assertGreaterEqual(decode['kv_segment_efficiency']['64'], 0.95)
        for size, efficiency in decode['kv_segment_efficiency'].items():
            self.assertTrue(0 < efficiency <= 1, size)

    def test_on_every_target_shuffled_layouts_take_whole_segments_and_each_line_comes_once(self):
        # 64 bytes are what a vector cache delivers at a time. Of a line of 128 two instructions may take a half each: then
        # what counts is that it comes from memory once.
        for target in EMULATED:
            value = self.json('profile', DENSE, '--device', 'emu:' + target, '--compiler', 'llvm', '--kernel', 'decode', '--shape', '1x256x1')
            decode, = value['operations']
            self.assertGreaterEqual(decode['kv_segment_efficiency']['64'], 0.95, target)
            tensors = {t['tensor']: t for t in decode['launches'][0]['tensors']}
            for name in ('k_cache', 'v_cache'):
                self.assertEqual(tensors[name]['lines_read'] * 128, 256 * 128, target + ' ' + name)
                self.assertEqual(tensors[name]['loads']['bytes'], 256 * 128, target + ' ' + name) # with one tile a wave, and none behind it

    def test_matrix_operations_do_at_least_what_attention_asks_for(self):
        decode = self.operation('decode', '--shape', '1x256x1', '--split', '1')
        products = sum(m['multiply_adds'] for m in decode['launches'][0]['matrix'])
        self.assertGreaterEqual(products, 2 * 256 * 128 * 16)
        self.assertEqual(decode['launches'][0]['instructions']['matrix'],
                         sum(m['executed'] for m in decode['launches'][0]['matrix']))

    def test_classes_add_up_and_nothing_claims_to_be_measured(self):
        for item in self.operation('decode', '--shape', '1x256x1', '--split', '2')['launches']:
            self.assertEqual(sum(item['instructions'][c] for c in CLASSES), item['instructions']['total'])
            self.assertGreaterEqual(item['instructions']['total'], item['longest_wave'])
            self.assertFalse(item['estimate']['measured'])
            self.assertIn(item['estimate']['bound'], ('memory', 'matrix', 'vector', 'LDS', 'latency'))
            self.assertEqual(item['estimate']['us'], max(item['estimate']['us_by_bound'].values()))
            self.assertGreaterEqual(item['lds']['cycles'], item['lds']['least_cycles'])

    def test_splits_are_launched_and_merged(self):
        decode = self.operation('decode', '--shape', '1x512x1', '--split', '3')
        self.assertEqual(decode['split'], 3)
        self.assertEqual([item['kernel'] for item in decode['launches']], ['heddle_decode', 'heddle_merge'])
        self.assertEqual(decode['launches'][0]['workgroups'], 3)

    def test_write_stores_the_caches(self):
        write = self.operation('write', '--shape', '1x64x2', '--kernel', 'write')
        tensors = {t['tensor']: t for t in write['launches'][0]['tensors']}
        self.assertEqual(tensors['k_cache']['stores']['distinct_bytes'], 64 * 2 * 128)
        self.assertEqual(tensors['v_scale']['stores']['distinct_bytes'], 64 * 2 * 4)
        self.assertNotIn('kv_segment_efficiency', write)

    def test_counts_do_not_depend_on_threads(self):
        def counted(threads):
            return self.json('profile', DENSE, *DEVICE, '--shape', '3x128x2', HEDDLE_EMU_THREADS=threads)
        self.assertEqual(counted('1'), counted('2'))

    def test_the_table_names_the_hottest_instructions_and_says_estimate(self):
        out, _ = self.heddle('profile', DENSE, *DEVICE, '--shape', '1x128x1', '--top', '40')
        self.assertIn('counted, not timed', out)
        self.assertIn('estimate, from datasheet figures, not measured', out)
        self.assertRegex(out, r'segment efficiency of K/V reads: \d\.\d+ of 32 bytes')
        self.assertRegex(out, r'k_cache +global_load|k_cache +buffer_load')
        self.assertRegex(out, r'k_cache +load +\d+ +16\.0 KiB')

    def test_top_limits_the_list(self):
        decode = self.operation('decode', '--shape', '1x128x1', '--top', '2')
        self.assertEqual(len(decode['launches'][0]['sites']), 2)

    def test_run_counts_when_asked(self):
        tokens, heads, dim, page = 5, 2, 64, 16
        cache = npy.write(self.folder / 'k0', 'f2', (1, page, heads, dim), [0] * (page * heads * dim))
        rows = npy.write(self.folder / 'rows', 'f2', (tokens, heads, dim), [1] * (tokens * heads * dim))
        slots = npy.write(self.folder / 'slots', 'i8', (tokens,), list(range(tokens)))
        words = ['run', SPECS / 'nhd-fp16.yaml', *DEVICE, '--kernel', 'write']
        for name, path in [('k', rows), ('v', rows), ('slot_mapping', slots), ('k_cache', cache), ('v_cache', cache)]:
            words += ['--in', '%s=%s' % (name, path)]
        words += ['--out', 'k_cache=' + str(self.folder / 'k1')]
        stats = self.json(*words, '--stats')['stats']
        tensors = {t['tensor']: t for t in stats[0]['tensors']}
        self.assertEqual(tensors['k_cache']['stores']['distinct_bytes'], tokens * heads * dim * 2)
        self.assertEqual(tensors['k']['loads']['distinct_bytes'], tokens * heads * dim * 2)
        self.assertNotIn('stats', self.json(*words))
        self.assertIn('estimate, from datasheet figures', self.heddle(*words, '--stats')[0])
        self.assertNotIn('estimate', self.heddle(*words)[0])

    def test_a_contract_without_a_writer_or_with_page_lists_is_profiled_too(self):
        reader = self.small(replace=[('kernels: [write, decode]', 'kernels: [decode]'),
                                     ('logits:', 'select: {form: indptr}\nlogits:')])
        value = self.json('profile', reader, *DEVICE, '--shape', '2x48x1')
        self.assertEqual([item['operation'] for item in value['operations']], ['decode'])
        tensors = {t['tensor']: t for t in value['operations'][0]['launches'][0]['tensors']}
        self.assertEqual(tensors['k_cache']['lines_read'], 2 * 48)  # 64 bf16 channels are a line
        self.assertIn('kv_indices', tensors)

    def test_what_is_asked_for_wrongly_is_refused(self):
        for words, message in [
            (['--shape', '4x4'], 'not a shape'),
            (['--shape', '65x16x1'], 'at most 64'),
            (['--top', '-1'], 'allowed are'),
        ]:
            _, errors = self.heddle('profile', DENSE, *DEVICE, *words, code=2)
            self.assertIn(message, errors)
        _, errors = self.heddle('profile', DENSE, code=2)
        self.assertIn('--device is missing', errors)


if __name__ == '__main__':
    unittest.main()
