"""Claims about view: a cache's memory under another contract, as shapes, strides and a key, or a decline."""
import json
import unittest
from support import Case, SPECS

DENSE = SPECS / 'minimax-m3-dense-fp8.yaml'
SPARSE = SPECS / 'minimax-m3-sparse-fp8.yaml'
CACHE = {'dtype': 'fp8_e4m3fn', 'shape': [100, 4, 8, 128, 16]}
SCALE = {'dtype': 'fp32', 'shape': [100, 4, 128]}
TENSORS = {'q': {'dtype': 'bf16', 'shape': [3, 64, 128]}, 'k_cache': CACHE, 'v_cache': CACHE, 'k_scale': SCALE, 'v_scale': SCALE,
           'page_table': {'dtype': 'int32', 'shape': [3, 64]}, 'lengths': {'dtype': 'int32', 'shape': [3]}}


class Views(Case):
    def setUp(self):
        super().setUp()
        self.request = self.file('request.json', json.dumps({'tensors': TENSORS}))

    def view(self, *words, spec=DENSE, **options):
        return self.json('view', spec, '--request', self.request, *words, **options)

    def test_short_pages_of_the_dense_cache_are_the_sparse_contract(self):
        seen = self.view('--page', '16', '--same-storage')
        self.assertEqual(seen['meaning'], 'same-storage')
        self.assertEqual(seen['key'], self.json('key', SPARSE)['key'])
        self.assertEqual(seen['canonical'], self.json('key', SPARSE)['canonical'])
        self.assertEqual(seen['tensors']['k_cache']['shape'], [800, 4, 8, 16, 16])
        self.assertEqual(seen['tensors']['v_cache']['shape'], [800, 4, 1, 128, 16])
        self.assertEqual(seen['tensors']['k_scale']['shape'], [800, 4, 16])
        self.assertEqual((seen['page_id'], seen['absent']), ('page * 8 + part', ['page_table']))

    def test_heads_become_pages_after_pages_were_split(self):
        seen = self.view('--page', '16', '--same-storage', '--collapse-heads')
        self.assertEqual(seen['page_id'], '(page * 8 + part) * 4 + kv_head')
        self.assertEqual((seen['parts'], seen['heads']), (8, 4))
        self.assertEqual(seen['tensors']['k_cache'], {'dtype': 'fp8_e4m3fn', 'shape': [3200, 1, 8, 16, 16],
                                                      'strides': [2048, 2048, 256, 16, 1]})
        self.assertEqual(seen['tensors']['q']['shape'], [12, 16, 128])
        self.assertEqual(seen['absent'], ['page_table', 'lengths'])
        out, _ = self.heddle('view', DENSE, '--request', self.request, '--collapse-heads')
        self.assertIn('same-bytes', out)
        self.assertIn('page id: page * 4 + kv_head', out)

    def test_a_view_is_what_match_takes(self):
        seen = self.view('--page', '16', '--same-storage')
        tensors = dict(seen['tensors'], page_table={'dtype': 'int32', 'shape': [3, 512]})
        request = self.file('viewed.json', json.dumps({'tensors': tensors}))
        self.heddle('match', '--request', request, '--target', 'gfx950', SPARSE)

    def test_slots_outermost_in_a_page_split_into_pages_of_one_token(self):
        spec = self.small(replace=[('[b, h, s, d]', '[b, s, h, d]')])
        request = self.file('small.json', json.dumps({'tensors': {'k_cache': {'dtype': 'bf16', 'shape': [9, 16, 2, 64]}}}))
        seen = self.json('view', spec, '--request', request, '--page', '1')
        self.assertEqual((seen['meaning'], seen['page_id']), ('same-bytes', 'page * 16 + part'))
        self.assertEqual(seen['tensors']['k_cache']['shape'], [144, 1, 2, 64])

    def test_what_can_not_be_viewed_is_declined_with_its_code(self):
        for words, code in [(['--page', '16'], 'view.meaning'), (['--page', '48'], 'view.page'), (['--page', '256'], 'view.page')]:
            answer = self.view(*words, code=1)
            self.assertFalse(answer['ok'])
            self.assertEqual([d['code'] for d in answer['diagnostics']], [code])
        empty = self.file('empty.json', '{"tensors": {}}')
        answer = self.json('view', DENSE, '--request', empty, '--collapse-heads', code=1)
        self.assertEqual(answer['diagnostics'][0]['code'], 'view.shape')

    def test_words_that_are_missing_are_usage_errors(self):
        self.assertIn('--request is missing', self.heddle('view', DENSE, '--page', '16', code=2)[1])
        self.assertIn('--page or --collapse-heads', self.heddle('view', DENSE, '--request', self.request, code=2)[1])
        self.heddle('view', DENSE, '--request', self.request, '--page', '0', code=2)
        self.heddle('view', DENSE, '--request', 'absent.json', '--page', '16', code=3)


if __name__ == '__main__':
    unittest.main()
