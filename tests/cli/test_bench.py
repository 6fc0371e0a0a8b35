"""Claims about bench, on the emulated device: shapes, splits, forms of output, refusals."""
import csv
import io
import unittest
from support import CachedCase, SMALL, SPECS

SPEC = SPECS / 'nhd-fp16.yaml'
COMMAND = ('bench', SPEC, '--device', 'emu:gfx950', '--compiler', 'llvm')


class Bench(CachedCase):
    def test_every_shape_is_checked_at_every_split_and_has_no_time(self):
        value = self.json(*COMMAND, '--shape', '2x40x1x4', '--shape', '1x64x2', '--split', '1,3,auto')
        self.assertTrue(value['ok'])
        self.assertTrue(value['device']['emulated'])
        self.assertEqual([item['split'] for item in value['results']], [1, 3, 1] * 2)
        self.assertEqual([item['by_policy'] for item in value['results']], [False, False, True] * 2)
        for item in value['results']:
            self.assertTrue(item['ok'], item['problem'])
            self.assertFalse(item['timed'])
            self.assertNotIn('decode_us', item)
            self.assertLess(item['rms'], 2.5e-3)
            self.assertEqual(item['page'], 16)

    def test_pages_are_dealt_to_what_has_lists_of_its_own(self):
        """A sequence, a kv head or a row: by a table or ragged lists, the same bytes, right at every split."""
        for form, per in (('indptr', 'sequence'), ('indptr', 'kv_head'), ('table', 'row')):
            spec = self.file('lists.yaml', SMALL + 'select: {form: %s, per: %s}\n' % (form, per))
            for item in self.json('bench', spec, '--device', 'emu:gfx950', '--shape', '3x70x2', '--ragged', '--split', '1,2')['results']:
                self.assertTrue(item['ok'], item['problem'])
                self.assertEqual(item['tokens'], 70 + 14 + 8)
                self.assertEqual(item['bytes'], item['tokens'] * 2 * 2 * 64 * 2)
                self.assertEqual(item['rows'], 1)

    def test_rows_share_k_and_v_and_are_the_contracts_or_fewer(self):
        spec = self.small(replace=[('rows: 1', 'rows: 3')])
        command = ('bench', spec, '--device', 'emu:gfx950', '--shape', '2x40x1')
        item = self.json(*command)['results'][0]
        fewer = self.json(*command, '--rows', '2')['results'][0]
        self.assertEqual((item['rows'], fewer['rows']), (3, 2))
        self.assertTrue(item['ok'] and fewer['ok'], item['problem'] + fewer['problem'])
        self.assertEqual(item['contract'], fewer['contract'])
        self.assertEqual((item['bytes'], fewer['bytes']), (2 * 40 * 2 * 64 * 2,) * 2)
        out, _ = self.heddle(*command, '--ragged')
        self.assertRegex(out, r'2x40x1x2 3 rows ragged +16 ')
        _, errors = self.heddle(*command, '--rows', '4', code=1)
        self.assertIn('1 to 3', errors)
        self.assertIn('[bench.rows]', errors)

    def test_capacity_is_room_in_ragged_lists_too(self):
        command = ('bench', self.file('lists.yaml', SMALL + 'select: {form: indptr}\n'), '--device', 'emu:gfx950', '--shape', '2x70x1')
        plain, roomy = self.json(*command)['results'] + self.json(*command, '--capacity', '4000')['results']
        self.assertTrue(roomy['ok'], roomy['problem'])
        self.assertEqual((plain['tokens'], plain['bytes']), (roomy['tokens'], roomy['bytes']))
        self.assertEqual(plain['split'], 1)
        self.assertGreater(roomy['split'], 1, 'as for sequences of 4000 tokens')

    def test_a_row_with_a_list_of_its_own_is_a_sequence(self):
        spec = self.small(replace=[('rows: 1', 'rows: 3'), ('logits:', 'select: {form: indptr, per: row}\nlogits:')])
        item = self.json('bench', spec, '--device', 'emu:gfx950', '--shape', '2x40x1')['results'][0]
        self.assertEqual((item['ok'], item['rows'], item['tokens']), (True, 1, 80))
        _, errors = self.heddle('bench', spec, '--device', 'emu:gfx950', '--shape', '2x40x1', '--rows', '2', code=1)
        self.assertIn('bench.rows', errors)

    def test_bytes_are_those_of_k_and_v(self):
        item = self.json(*COMMAND, '--shape', '3x40x2x4')['results'][0]
        self.assertEqual(item['tokens'], 120)
        self.assertEqual(item['bytes'], 120 * 2 * 2 * 64 * 2)  # heads, K and V, channels, bytes each

    def test_another_group_or_page_is_another_contract_and_said_so(self):
        same, changed = self.json(*COMMAND, '--shape', '1x40x1', '--shape', '1x40x1x2')['results']
        paged = self.json(*COMMAND, '--shape', '1x40x1', '--page', '32')['results'][0]
        self.assertEqual([same['changed'], changed['changed'], paged['changed']], [False, True, True])
        self.assertEqual(len({same['contract'], changed['contract'], paged['contract']}), 3)
        self.assertEqual(same['contract'], self.json('key', SPEC)['key'])
        out, _ = self.heddle(*COMMAND, '--shape', '1x40x1x2')
        self.assertIn('the spec with heads_per_kv 2', out)

    def test_csv_has_a_line_a_result(self):
        out, _ = self.heddle(*COMMAND, '--shape', '2x40x1x4', '--split', '1,2', '--csv', '--ragged')
        rows = list(csv.DictReader(io.StringIO(out)))
        self.assertEqual([row['split'] for row in rows], ['1', '2'])
        self.assertEqual({row['us'] for row in rows}, {''})
        self.assertEqual({row['good'] for row in rows}, {'1'})
        self.assertEqual({row['rows'] for row in rows}, {'1'})
        self.assertEqual(None, rows[0].get(None))

    def test_the_table_says_that_there_are_no_times(self):
        out, _ = self.heddle(*COMMAND, '--shape', '2x40x1x4')
        self.assertIn('there are no times', out)
        self.assertRegex(out, r'2x40x1x4 +16 +auto:1 ')

    def test_a_chart_is_written(self):
        chart = self.folder / 'chart.svg'
        self.heddle(*COMMAND, '--shape', '1x40x1x4', '--svg', chart)
        self.assertTrue(chart.read_text().startswith('<svg '))

    def test_a_page_that_the_layout_cannot_have_is_declined(self):
        spec = SPECS / 'minimax-m3-dense-fp8.yaml'
        _, errors = self.heddle('bench', spec, '--device', 'emu:gfx950', '--shape', '1x40x1', '--page', '24', code=1)
        self.assertIn('[b, h, s/16, d, s%16]', errors)
        self.assertIn('bench.page', errors)

    def test_what_every_shape_declines_is_said_once_and_with_what_to_type(self):
        spec = self.small()
        _, errors = self.heddle('bench', spec, '--device', 'emu:gfx950', '--rows', '2', '--shape', '1x40x1', '--shape', '2x40x1', code=1)
        self.assertEqual(errors.count('[bench.rows]'), 1, errors)
        self.assertTrue(errors.endswith('try: heddle explain bench.rows\n'), errors)

    def test_what_is_asked_for_wrongly_is_refused(self):
        for words, message in [
            (['--shape', '4x4'], 'not a shape'),
            (['--split', '0'], 'numbers from 1'),
            (['--split', '2,'], 'numbers from 1'),
            (['--preset', 'decod'], 'did you mean decode'),
            (['--json', '--csv'], 'exclude each other'),
            (['--repeat', '3'], '7 to 101'),
            (['--count', '0'], '1 to 512'),
        ]:
            _, errors = self.heddle(*COMMAND, *words, code=2)
            self.assertIn(message, errors)
        _, errors = self.heddle('bench', SPEC, code=2)
        self.assertIn('--device is missing', errors)


if __name__ == '__main__':
    unittest.main()
