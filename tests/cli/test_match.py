"""Claims about matching: an engine's tensors, described as JSON, against specs."""
import copy
import json
import unittest
from support import Case, SPECS

DENSE = SPECS / 'minimax-m3-dense-fp8.yaml'
SPARSE = SPECS / 'minimax-m3-sparse-fp8.yaml'
NHD = SPECS / 'nhd-fp16.yaml'

FP8 = 'fp8_e4m3fn'
REQUEST = {
    'operation': 'decode',
    'longest': 8192,
    'tensors': {
        'q': {'dtype': 'bf16', 'shape': [4, 16, 128]},
        'k_cache': {'dtype': FP8, 'shape': [100, 1, 8, 128, 16]},
        'v_cache': {'dtype': FP8, 'shape': [100, 1, 8, 128, 16]},
        'k_scale': {'dtype': 'fp32', 'shape': [100, 1, 128]},
        'v_scale': {'dtype': 'fp32', 'shape': [100, 1, 128]},
        'page_table': {'dtype': 'int32', 'shape': [4, 64]},
        'lengths': {'dtype': 'int32', 'shape': [4]},
        'out': {'dtype': 'bf16', 'shape': [4, 16, 128]},
    },
}


class Match(Case):
    def described(self, change=lambda request: None):
        request = copy.deepcopy(REQUEST)
        change(request)
        return self.file('request.json', json.dumps(request))

    def declines(self, change, target='gfx950', spec=DENSE):
        """The (code, field) pairs that one spec declines with."""
        answer = self.json('match', '--request', self.described(change), '--target', target, spec, code=1)
        self.assertEqual(answer['chosen'], None)
        for decline in answer['answers'][0]['declines']:
            self.assertTrue(decline['found'] and decline['allowed'] and decline['message'], decline)
        return [(d['code'], d['field']) for d in answer['answers'][0]['declines']]

    def test_the_spec_that_serves_is_chosen_and_the_others_say_why_not(self):
        answer = self.json('match', '--request', self.described(), '--target', 'gfx950', NHD, SPARSE, DENSE)
        self.assertTrue(answer['ok'])
        self.assertEqual(answer['chosen'], 2)
        self.assertEqual(answer['answers'][2]['dims']['k_stride_b'], 16384)
        self.assertEqual(answer['answers'][2]['declines'], [])
        self.assertIn('bind.page', [d['code'] for d in answer['answers'][1]['declines']])
        out, _ = self.heddle('match', '--request', self.described(), '--target', 'gfx950', NHD, SPARSE, DENSE)
        self.assertIn('minimax-m3-dense-fp8 serves decode on gfx950', out)

    def test_the_answer_has_the_contract_key(self):
        answer = self.json('match', '--request', self.described(), '--target', 'gfx950', DENSE)
        self.assertEqual(answer['answers'][0]['key'], self.json('key', DENSE)['key'])

    def test_declines_are_a_table_with_code_field_found_and_allowed(self):
        request = self.described(lambda r: r['tensors']['page_table'].update(dtype='int64'))
        out, errors = self.heddle('match', '--request', request, '--target', 'gfx950', DENSE, code=1)
        lines = [line.split() for line in out.splitlines()]
        self.assertEqual(lines[1], ['code', 'field', 'found', 'allowed'])
        self.assertEqual(lines[2], ['bind.dtype', 'page_table', 'int64', 'int32'])
        self.assertEqual(errors, 'try: heddle new --from %s\n' % request)

    def test_what_no_other_spec_would_cure_is_explained_instead(self):
        def hint(change, *specs):
            return self.heddle('match', '--request', self.described(change), '--target', 'gfx950', *specs, code=1)[1]

        def padded_badly(request):
            request['tensors']['k_cache'].update(strides=[32776, 16384, 2048, 16, 1])

        self.assertEqual(hint(lambda r: r.update(longest=1 << 30), DENSE), 'try: heddle explain match.length\n')
        self.assertEqual(hint(padded_badly, DENSE), 'try: heddle explain bind.stride-alignment\n')
        self.assertEqual(hint(lambda r: r['tensors']['k_cache'].update(dtype='uint8'), DENSE), 'try: heddle explain bind.dtype\n')
        # A spec among them that has another fault alone is worth a spec of the tensors.
        self.assertIn('try: heddle new --from', hint(lambda r: r['tensors']['page_table'].update(dtype='int64'), DENSE, NHD))

    def test_scales_of_the_host_are_numbers(self):
        spec = self.file('numbers.yaml', DENSE.read_text().replace('granularity: token_head', 'granularity: tensor\n  source: argument')
                         .replace('  k: [b, h, s]\n', '').replace('  v: [b, h, s]\n', '').replace('  writer:', '  #'))

        def numbers(**values):
            def change(request):
                del request['tensors']['k_scale'], request['tensors']['v_scale']
                request.update(values)
            return change

        both = self.described(numbers(k_scale=0.02, v_scale=0.01))
        self.assertEqual(self.json('match', '--request', both, '--target', 'gfx950', DENSE, spec, code=0)['chosen'], 1)
        self.assertEqual(self.declines(numbers(k_scale=0.02), spec=spec), [('bind.missing', 'v_scale')])
        self.assertEqual(self.declines(lambda request: None, spec=spec), [
            ('bind.unneeded', 'k_scale'), ('bind.unneeded', 'v_scale'), ('bind.missing', 'k_scale'), ('bind.missing', 'v_scale')])
        self.assertEqual(self.declines(numbers(k_scale=0.02, v_scale=0.01)), [
            ('bind.missing', 'k_scale'), ('bind.missing', 'v_scale'), ('bind.unneeded', 'k_scale'), ('bind.unneeded', 'v_scale')])

    def test_each_misfit_has_its_code(self):
        def tensor(name, **values):
            return lambda request: request['tensors'][name].update(values)

        def rows(request):
            request['tensors']['q']['shape'] = request['tensors']['out']['shape'] = [16, 16, 128]

        for change, expected in [
            (rows, ('bind.rows', 'q')),
            (lambda r: r.update(prefix=True), ('match.prefix', 'query.rows')),
            (tensor('k_cache', shape=[100, 1, 8, 8, 16]), ('bind.page', 'k_cache')),
            (tensor('k_cache', dtype='fp8_e4m3fnuz'), ('bind.dialect', 'k_cache')),
            (tensor('v_cache', strides=[32768, 16384, 2048, 8, 1]), ('bind.strides', 'v_cache')),
            (tensor('v_cache', strides=[16392, 16384, 2048, 16, 1]), ('bind.stride-alignment', 'v_cache')),
            (tensor('k_cache', align=8), ('bind.alignment', 'k_cache')),
            (tensor('k_scale', shape=[1, 12800]), ('bind.shape', 'k_scale')),
            (tensor('page_table', dtype='int64'), ('bind.dtype', 'page_table')),
            (tensor('q', shape=[4, 12, 128]), ('bind.heads-per-kv', 'q')),
            (lambda r: r.update(longest=8193), ('match.length', 'longest')),
            (lambda r: r.update(kv_heads=8), ('match.contradiction', 'kv_heads')),
            (lambda r: r.update(lse=True), ('match.lse', 'output.lse')),
            (lambda r: r.update(window=128), ('match.window', 'mask.window')),
            (lambda r: r.update(incumbent='mine'), ('match.incumbent', 'incumbent')),
            (lambda r: r['tensors'].pop('lengths'), ('bind.missing', 'lengths')),
        ]:
            self.assertEqual(self.declines(change), [expected])

    def test_padded_strides_and_wide_page_tables_match(self):
        def change(request):
            for name in ('k_cache', 'v_cache'):
                request['tensors'][name]['strides'] = [32768, 16384, 2048, 16, 1]
            request['tensors']['page_table']['strides'] = [2048, 1]
        answer = self.json('match', '--request', self.described(change), '--target', 'gfx950', DENSE)
        self.assertEqual(answer['answers'][0]['dims']['v_stride_b'], 32768)
        self.assertEqual(answer['answers'][0]['dims']['table_pages'], 2048)

    def test_a_permuted_view_matches_by_its_axes(self):
        spec = self.small()
        request = {'operation': 'write', 'tensors': {
            'k': {'dtype': 'bf16', 'shape': [5, 2, 64]}, 'v': {'dtype': 'bf16', 'shape': [5, 2, 64]},
            'k_cache': {'dtype': 'bf16', 'shape': [9, 16, 2, 64], 'axes': ['b', 's', 'h', 'd'], 'strides': [2048, 64, 1024, 1]},
            'v_cache': {'dtype': 'bf16', 'shape': [9, 2, 16, 64]},
            'slot_mapping': {'dtype': 'int64', 'shape': [5]}}}
        path = self.file('write.json', json.dumps(request))
        answer = self.json('match', '--request', path, '--target', 'gfx950', spec)
        self.assertEqual(answer['answers'][0]['dims']['k_stride_h'], 1024)

    def test_targets_decline_whether_unknown_or_unlisted(self):
        self.assertEqual(self.declines(lambda r: None, target='gfx906'), [('match.target', 'targets')])
        spec = self.small()
        self.assertIn(('match.target', 'targets'), self.declines(lambda r: None, target='gfx942', spec=spec))

    def test_a_kernel_known_to_be_better_takes_over_from_an_incumbent(self):
        request = self.described(lambda r: r.update(incumbent='mine'))
        self.heddle('match', '--request', request, '--target', 'gfx950', DENSE, code=1)
        self.heddle('match', '--request', request, '--target', 'gfx950', '--better-than', 'mine', DENSE)

    def test_a_request_may_come_from_standard_input(self):
        self.heddle('match', '--request', '-', '--target', 'gfx950', DENSE, stdin=json.dumps(REQUEST))

    def test_faults_of_the_request_have_their_place(self):
        path = self.file('request.json', '{"rows": 1,\n "raws": 2}')
        _, errors = self.heddle('match', '--request', path, '--target', 'gfx950', DENSE, code=1)
        self.assertIn('request.json:2:2: error: expected a known key: operation, ', errors)
        self.assertIn('did you mean rows? [request.syntax]', errors)
        self.heddle('match', '--request', 'absent.json', '--target', 'gfx950', DENSE, code=3)

    def test_a_spec_that_is_not_valid_is_said_so(self):
        bad = self.small(replace=[('page: 16', 'page: x')])
        _, errors = self.heddle('match', '--request', self.described(), '--target', 'gfx950', bad, code=1)
        self.assertIn('kv.page', errors)

    def test_request_and_target_are_needed(self):
        self.assertIn('--request is missing', self.heddle('match', DENSE, code=2)[1])
        self.assertIn('--target is missing', self.heddle('match', '--request', '-', DENSE, code=2)[1])


if __name__ == '__main__':
    unittest.main()
