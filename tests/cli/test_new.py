"""Claims about new and tensors: specs from options, from answers on a terminal, and from tensors, there and back."""
import itertools
import json
import os
import pty
import random
import re
import subprocess
import unittest
from support import Case, HEDDLE, SPECS

BASIC = ['--kv-dtype', 'bf16', '--page', '16', '--head-dim', '128', '--heads-per-kv', '8']

# What tensors don't say, by shipped spec: the options that say it, and the fields that differ without them.
UNSAID = {
    'nhd-fp16': (['--logits-scale', 'rsqrt_d'], ['logits.scale']),
    'vllm-inline-fp8': (['--writer', '{scale_floor: 1e-6, zero_row: floor}'], ['scale.writer.scale_floor', 'scale.writer.zero_row']),
}

LAYOUTS = {
    'nhd': ('[b, s, h, d]', '[b, s, h, d]'),
    'hnd': ('[b, h, s, d]', '[b, h, s, d]'),
    'shuffled': ('[b, h, d/%(x)d, s, d%%%(x)d]', '[b, h, s/%(x)d, d, s%%%(x)d]'),
    'classic': ('[b, h, d/%(x)d, s, d%%%(x)d]', '[b, h, d, s]'),
}
SCALES = ['{granularity: tensor}', '{granularity: tensor, source: argument}', '{granularity: head}', '{granularity: token}', '{granularity: token_head}', '{granularity: token_head, dtype: fp16, k: [b, s, h], v: [b, s, h]}',
          '{granularity: page_head}', '{granularity: group, group: 32}', '{granularity: group, group: {k: 32, v: 16}, dtype: e8m0, k: [b, s, h, d], v: [b, s, h, d]}']


class New(Case):
    def differences(self, a, b):
        done = subprocess.run([HEDDLE, 'diff', str(a), str(b), '--json'], capture_output=True, text=True, cwd=self.folder)
        return [one['field'] for one in json.loads(done.stdout)['differences']]

    def there_and_back(self, spec, *options, tensors=()):
        """The tensors of a spec, and the spec that is made of them."""
        request = self.file('tensors.json', self.heddle('tensors', spec, *tensors)[0])
        made = self.file('made.yaml', self.heddle('new', '--from', request, *options)[0])
        return self.differences(spec, made)

    # ---- from tensors ----

    def test_every_shipped_spec_goes_there_and_back(self):
        for path in sorted(SPECS.glob('*.yaml')):
            options, fields = UNSAID.get(path.stem, ([], []))
            for heads in ('1', '4'):
                self.assertEqual(self.there_and_back(path, tensors=['--kv-heads', heads]), fields, path.stem)
                self.assertEqual(self.there_and_back(path, *options, tensors=['--kv-heads', heads]), [], path.stem)
            value = self.json('new', '--from', self.folder / 'tensors.json', *options)
            self.assertIn(path.stem, value['same'])
            self.heddle('check', '-q', self.folder / 'made.yaml')
            self.assertIn(path.stem, value['serves'])
            # What is found without being told is said to be assumed.
            value = self.json('new', '--from', self.folder / 'tensors.json')
            assumed = {field['field'] for field in value['fields'] if field['source'] == 'assumed'}
            for field in fields:
                self.assertTrue(any(field.startswith(name) for name in assumed), field)

    def test_bytes_are_taken_for_codes_and_that_is_said(self):
        for name in ('vllm-inline-fp8', 'deepseek-mla-fp8-656'):
            options, fields = UNSAID.get(name, ([], []))
            request = self.file('t.json', self.heddle('tensors', name)[0].replace('fp8_e4m3fnuz', 'uint8'))
            made = self.file('made.yaml', self.heddle('new', '--from', request, *options)[0])
            self.assertEqual(self.differences(name, made), [])
            self.assertRegex(made.read_text(), r'dtype: fp8_e4m3 +# assumed: uint8')
            made.write_text(self.heddle('new', '--from', request, *options, '--kv-dtype', 'int8')[0])
            self.assertIn('dtype: int8\n', made.read_text())

    def test_heads_of_records_are_not_taken_for_tokens(self):
        told = json.loads(self.heddle('tensors', 'deepseek-mla-fp8-656')[0])
        del told['kv_heads']
        told['tensors']['k_cache'] = {'dtype': 'uint8', 'shape': [64, 16, 8, 656]}
        made = self.heddle('new', '--from', self.file('t.json', json.dumps(told)))[0]
        self.assertRegex(made, r'\n  page: 16 ')
        self.assertRegex(made, r'\n  heads_per_kv: 2 ')

    def test_bytes_beside_a_format_are_taken_for_codes_too(self):
        shape = {'shape': [64, 16, 8, 132]}
        for k, v, words in (('int8', 'uint8', '{k: int8, v: fp8_e4m3}'), ('uint8', 'int8', '{k: fp8_e4m3, v: int8}'),
                            ('uint8', 'fp8_e4m3fn', 'fp8_e4m3')):
            request = self.file('t.json', json.dumps({'tensors': {
                'q': {'dtype': 'bf16', 'shape': [2, 56, 128]}, 'k_cache': {'dtype': k, **shape}, 'v_cache': {'dtype': v, **shape}}}))
            made = self.file('made.yaml', self.heddle('new', '--from', request, '--page', '16')[0])
            self.assertRegex(made.read_text(), r'dtype: %s +# assumed: uint8' % re.escape(words))
            self.heddle('check', '-q', made)

    def test_bytes_of_nothing_but_codes_have_to_be_named_as_match_wants_them_named(self):
        def tensors(k, v, **more):
            told = {'k_cache': {'dtype': k, 'shape': [64, 16, 8, 128]}, 'v_cache': {'dtype': v, 'shape': [64, 16, 8, 128]}}
            rest = {'q': {'dtype': 'bf16', 'shape': [2, 64, 128]}, 'page_table': {'dtype': 'int32', 'shape': [2, 8]},
                    'lengths': {'dtype': 'int32', 'shape': [2]}}
            return self.file('t.json', json.dumps({'kv_heads': 8, **more, 'tensors': {**rest, **told}}))

        for k, v in (('uint8', 'uint8'), ('fp8_e4m3fn', 'uint8'), ('uint8', 'fp8_e4m3fn')):
            errors = self.heddle('new', '--from', tensors(k, v), code=1)[1]
            for name, dtype in (('k_cache', k), ('v_cache', v)):
                self.assertEqual(name + ' is uint8' in errors, dtype == 'uint8', errors)
            self.assertIn('--kv-dtype', errors)
            made = self.file('made.yaml', self.heddle('new', '--from', tensors(k, v), '--kv-dtype', 'fp8_e5m2')[0])
            self.assertIn('dtype: fp8_e5m2\n', made.read_text())
            # What new declines of the tensors, match does: with the bytes named both take them.
            self.heddle('match', made, '--request', tensors(k, v), '--target', 'gfx950', code=1)
            self.heddle('match', made, '--request', tensors('fp8_e5m2', 'fp8_e5m2'), '--target', 'gfx950')
        # Where the layout is open too, both are said at once.
        errors = self.heddle('new', '--from', tensors('uint8', 'uint8', kv_heads=0), code=1)[1]
        self.assertIn('new.ambiguous', self.json('new', '--from', tensors('uint8', 'uint8', kv_heads=0), code=1)['diagnostics'][0]['code'])
        self.assertIn('can be read in several ways', errors)
        self.assertIn('k_cache is uint8', errors)

    def test_layouts_formats_and_scales_go_there_and_back(self):
        count = 0
        for (name, (k, v)), (dtype, x), (i, scale) in itertools.product(LAYOUTS.items(), [('bf16', 8), ('fp8_e4m3', 16)], enumerate(SCALES)):
            page = (16, 64)[(i + len(name)) % 2]
            if dtype == 'bf16' and i > 1:
                continue
            lines = ['heddle: 1', 'query: {dtype: fp16, heads_per_kv: 4}', 'head_dim: {qk: 128, v: 96}',
                     'kv: {dtype: %s, page: %d, k: %s, v: %s}' % (dtype, page, k % {'x': x}, v % {'x': x}), 'output: {dtype: fp32}']
            if dtype != 'bf16':
                lines.append('scale: ' + scale)
            spec = self.file('spec.yaml', '\n'.join(lines) + '\n')
            self.assertEqual(self.there_and_back(spec, tensors=['--kv-heads', '3', '--pages', '40']), [], (name, lines))
            count += 1
        self.assertGreater(count, 40)

    def test_bytes_behind_codes_are_no_scales_where_those_are_numbers(self):
        spec = self.file('spec.yaml', 'heddle: 1\nquery: {heads_per_kv: 8}\nhead_dim: 128\n'
                         'kv: {dtype: fp8_e4m3, page: 16, k: [b, s, h, d+4], v: [b, s, h, d+4]}\nscale: {granularity: tensor, source: argument}\n')
        self.assertEqual(self.there_and_back(spec), [])

    def test_selection_and_masks_go_there_and_back(self):
        for select in ['select: {form: table, index: int64}', 'select: {form: table, per: kv_head}', 'select: {form: indptr}', 'select: {form: indptr, per: kv_head}',
                       'select: {form: blocks, block: 64}', 'select: {form: blocks, block: 32, per: row}', 'select: {form: tokens}', 'select: {form: tokens, per: kv_head}',
                       'mask: {causal: false, window: 100, sinks: per_head}', 'logits: {softcap: 30.0}', 'output: {lse: true}', 'query: {heads_per_kv: 8, rows: 4}']:
            page = 1 if 'tokens' in select else 16
            lines = ['heddle: 1', 'head_dim: 64', 'kv: {dtype: bf16, page: %d, k: [b, s, h, d], v: [b, s, h, d]}' % page, select]
            if not select.startswith('query'):
                lines.append('query: {heads_per_kv: 8}')
            spec = self.file('spec.yaml', '\n'.join(lines) + '\n')
            self.assertEqual(self.there_and_back(spec, '--page', page), [], select)

    def tensors(self, **tensors):
        return self.file('t.json', json.dumps({'tensors': {'q': {'dtype': 'bf16', 'shape': [4, 32, 128]}, **tensors}}))

    def layout(self, request, *options):
        value = self.json('new', '--from', request, *options)
        fields = {field['field']: field['value'] for field in value['fields']}
        return fields['kv.k'], int(fields['kv.page'])

    def test_what_is_made_of_tensors_serves_them_in_the_shapes_they_have(self):
        """Caches as engines have them: their shapes, a dimension of 1 or none for what there is one of, are those that a match takes."""
        def cache(*shape, dtype='bf16', **more):
            return {'dtype': dtype, 'shape': list(shape), **more}

        table = {'page_table': cache(8, 256, dtype='int32'), 'lengths': cache(8, dtype='int32')}
        ragged = {'kv_indptr': cache(9, dtype='int32'), 'kv_indices': cache(2000, dtype='int32'), 'last_page_len': cache(8, dtype='int32')}
        fnuz, half_page = 'fp8_e4m3fnuz', [8 * 2 * 16 * 128, 16 * 128, 128, 1]
        for k, v, lists, heads, made in (
            (cache(1000, 8, 8, 16, 16, dtype=fnuz), cache(1000, 8, 128, 16, dtype=fnuz), table, 8, ('[b, h, d/16, s, d%16]', '[b, h, d, s]')),
            (cache(1000, 8, 8, 16, 16, dtype=fnuz), cache(1000, 8, 1, 128, 16, dtype=fnuz), table, 8, ('[b, h, d/16, s, d%16]', '[b, h, s/16, d, s%16]')),
            (cache(65536, 8, 128), cache(65536, 8, 128), ragged, 8, ('[b, h, d]', '[b, h, d]')),
            (cache(65536, 1, 8, 128), cache(65536, 1, 8, 128), ragged, 8, ('[b, s, h, d]', '[b, s, h, d]')),
            (cache(1000, 8, 16, 128, strides=half_page), cache(1000, 8, 16, 128, strides=half_page), table, 8, ('[b, h, s, d]', '[b, h, s, d]')),
            (cache(65536, 1, 576), None, ragged, 1, ('[b, h, d]', 'k')),
            (cache(65536, 1, 128), cache(65536, 1, 128), ragged, 1, ('[b, h, d]', '[b, h, d]')),
            (cache(100, 1, 128, 16), cache(100, 1, 128, 16), table, 1, ('[b, h, d, s]', '[b, h, d, s]')),
            (cache(100, 2, 128, 1), cache(100, 2, 128, 1), table, 2, ('[b, h, d, s]', '[b, h, d, s]')),
            (cache(1024, 64, 576), None, table, 1, ('[b, s, d]', 'k')),
            (cache(1024, 64, 1, 576), None, table, 1, ('[b, s, h, d]', 'k')),
        ):
            q = cache(8, 16, k['shape'][-1] if v is None else 128)
            given = {'q': q, 'k_cache': k, 'out': cache(8, 16, 512 if v is None else 128), **({'v_cache': v} if v else {}), **lists}
            request = self.file('t.json', json.dumps({'kv_heads': heads, 'tensors': given}))
            spec = self.folder / 'made.yaml'
            value = self.json('new', '--from', request, '-o', spec, '--force')
            fields = {field['field']: field['value'] for field in value['fields']}
            self.assertEqual((fields['kv.k'], fields['kv.v']), made)
            self.heddle('match', spec, '--request', request, '--target', 'gfx942')
            self.assertEqual(value['declines'], [])

    def test_what_random_tensors_are_read_as_serves_them(self):
        """What is made of a complete description is taken by a match of it, whatever has an extent of 1 or no dimension at all."""
        draw, made = random.Random(4), 0
        for _ in range(60):
            heads, page, dim, pages = draw.choice([1, 2, 8]), draw.choice([1, 4, 16, 64]), draw.choice([64, 80, 128]), draw.choice([7, 100])
            dtype, x = draw.choice([('bf16', 8), ('fp8_e4m3fn', 16)])
            layouts = {'nhd': [('b', pages), ('s', page), ('h', heads), ('d', dim)], 'hnd': [('b', pages), ('h', heads), ('s', page), ('d', dim)],
                       'kx': [('b', pages), ('h', heads), ('d', dim // x), ('s', page), ('d', x)], 'hds': [('b', pages), ('h', heads), ('d', dim), ('s', page)],
                       'vx': [('b', pages), ('h', heads), ('s', max(page // x, 1)), ('d', dim), ('s', min(page, x))]}
            left_out = {axis for axis, extent in (('s', page), ('h', heads)) if extent == 1 and draw.random() < 0.5}

            def cache(name):
                shape = [extent for axis, extent in layouts[name] if not (axis in left_out and extent == 1)]
                strides = [1]
                for extent in shape[:0:-1]:
                    strides.insert(0, strides[0] * extent)
                strides[0] *= draw.choice([1, 2])  # K and V in turn in one buffer
                return {'dtype': dtype, 'shape': shape, 'strides': strides}

            k, v = draw.choice([('nhd', 'nhd'), ('hnd', 'hnd'), ('kx', 'vx'), ('kx', 'hds'), ('hds', 'hds')])
            request = self.file('t.json', json.dumps({'kv_heads': heads, 'tensors': {
                'q': {'dtype': 'bf16', 'shape': [3, heads * 4, dim]}, 'k_cache': cache(k), 'v_cache': cache(v), 'out': {'dtype': 'bf16', 'shape': [3, heads * 4, dim]},
                'page_table': {'dtype': 'int32', 'shape': [3, 9]}, 'lengths': {'dtype': 'int32', 'shape': [3]}}}))
            spec = self.folder / 'made.yaml'
            done = subprocess.run([HEDDLE, 'new', '--from', request, '--page', str(page), '-o', spec, '--force'], capture_output=True, text=True, cwd=self.folder)
            if done.returncode == 1 and 'new.' in done.stderr:  # several readings, or none
                continue
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertNotIn('decline', done.stdout)
            self.heddle('match', spec, '--request', request, '--target', 'gfx950')
            made += 1
        self.assertGreater(made, 45)

    def test_what_keeps_tensors_from_being_served_is_said_beside_the_spec_of_them(self):
        plain = {'dtype': 'bf16', 'shape': [100, 16, 8, 128]}
        index = {'page_table': {'dtype': 'int32', 'shape': [4, 8]}, 'lengths': {'dtype': 'int64', 'shape': [4]}}
        request = self.tensors(k_cache=plain, v_cache=plain, **index)
        report = self.heddle('new', '--from', request, '--kv-heads', '8', '-o', 'made.yaml')[0]
        self.assertIn('lengths is int64, expected int32 [bind.dtype]', report)
        hint = self.heddle('match', 'made.yaml', '--request', request, '--target', 'gfx950', code=1)[1]
        self.assertEqual(hint, 'try: heddle explain bind.dtype\n')
        ragged = {'kv_indptr': {'dtype': 'int32', 'shape': [5]}, 'kv_indices': {'dtype': 'int32', 'shape': [90]}}
        request = self.tensors(k_cache=plain, v_cache=plain, **ragged)
        report = self.heddle('new', '--from', request, '--kv-heads', '8', '-o', 'made.yaml', '--force')[0]
        self.assertIn('last_page_len', report)
        hint = self.heddle('match', 'made.yaml', '--request', request, '--target', 'gfx950', code=1)[1]
        self.assertEqual(hint, 'try: heddle explain bind.missing\n')
        # Dimensions in another order than memory's: what they are has to be said.
        view = {'dtype': 'bf16', 'shape': [100, 16, 4, 128], 'strides': [8192, 128, 2048, 1]}
        request = self.tensors(k_cache=view, v_cache=view, page_table=index['page_table'], lengths={'dtype': 'int32', 'shape': [4]})
        report = self.heddle('new', '--from', request, '--kv-heads', '4', '-o', 'made.yaml', '--force')[0]
        self.assertIn('"axes"', report)
        hint = self.heddle('match', 'made.yaml', '--request', request, '--target', 'gfx950', code=1)[1]
        self.assertEqual(hint, 'try: heddle explain bind.page\n')
        self.assertIn('axes', self.heddle('explain', 'bind.page')[0])
        # A flat query is there, in a shape that says nothing of heads.
        request = self.file('t.json', json.dumps({'tensors': {'q': {'dtype': 'bf16', 'shape': [4, 4096]}, 'k_cache': plain, 'v_cache': plain}}))
        self.assertIn('q has 2 dimensions', self.heddle('new', '--from', request, code=1)[1])

    def test_strides_decide_and_not_the_order_of_dimensions(self):
        # vLLM's logical NHD over memory that is HND, and the other way round.
        view = {'dtype': 'bf16', 'shape': [100, 16, 4, 128], 'strides': [8192, 128, 2048, 1]}
        request = self.tensors(k_cache=view, v_cache=view)
        self.assertEqual(self.layout(request, '--kv-heads', '4'), ('[b, h, s, d]', 16))
        # K and V in turn in one buffer, with gaps between pages: strides of pages are free.
        turn = {'dtype': 'bf16', 'shape': [100, 16, 4, 128], 'strides': [20000, 512, 128, 1]}
        self.assertEqual(self.layout(self.tensors(k_cache=turn, v_cache=turn), '--kv-heads', '4'), ('[b, s, h, d]', 16))
        # Channels with a gap behind them, slot by slot.
        gap = {'dtype': 'bf16', 'shape': [100, 4, 16, 128], 'strides': [16384, 4096, 256, 1]}
        self.assertEqual(self.layout(self.tensors(k_cache=gap, v_cache=gap), '--kv-heads', '4'), ('[b, h, s, d+128]', 16))

    def test_axes_decide_where_shapes_do_not(self):
        plain = {'dtype': 'bf16', 'shape': [100, 16, 8, 128]}
        errors = self.heddle('new', '--from', self.tensors(k_cache=plain, v_cache=plain), code=1)[1]
        self.assertIn('new.ambiguous', errors)
        self.assertIn('page 8, 16 kv heads, k [b, h, s, d]', errors)
        self.assertIn('page 16, 8 kv heads, k [b, s, h, d]', errors)
        for axes, expected in [(['b', 's', 'h', 'd'], ('[b, s, h, d]', 16)), (['b', 'h', 's', 'd'], ('[b, h, s, d]', 8))]:
            said = dict(plain, axes=axes)
            self.assertEqual(self.layout(self.tensors(k_cache=said, v_cache=said)), expected)
        self.assertEqual(self.layout(self.tensors(k_cache=plain, v_cache=plain), '--page', '16'), ('[b, s, h, d]', 16))
        self.assertEqual(self.layout(self.tensors(k_cache=plain, v_cache=plain), '--kv-heads', '16'), ('[b, h, s, d]', 8))

    def test_what_tensors_lack_is_asked_for_by_name(self):
        cache = {'dtype': 'bf16', 'shape': [100, 16, 8, 128]}
        for tensors, code, message in [
            ({'q': {'dtype': 'bf16', 'shape': [4, 32, 128]}}, 'new.missing', 'k_cache'),
            ({'k_cache': cache, 'v_cache': cache}, 'new.missing', '--head-dim'),
            ({'k': {'dtype': 'bf16', 'shape': [4, 8, 128]}, 'k_cache': cache, 'v_cache': cache}, 'new.missing', '--heads-per-kv'),
            ({'q': {'dtype': 'bf16', 'shape': [4, 32, 160]}, 'k_cache': cache, 'v_cache': cache}, 'new.layout', 'head_dim'),
        ]:
            errors = self.heddle('new', '--from', self.file('t.json', json.dumps({'tensors': tensors})), code=1)[1]
            self.assertIn(code, errors)
            self.assertIn(message, errors)
        # Fewer channels than the cache has room for: read as padding, and said to be a guess.
        request = self.file('t.json', json.dumps({'tensors': {'q': {'dtype': 'bf16', 'shape': [4, 32, 96]}, 'k_cache': cache, 'v_cache': cache}}))
        fields = {field['field']: field for field in self.json('new', '--from', request, '--kv-heads', '8')['fields']}
        self.assertEqual((fields['kv.k']['value'], fields['kv.k']['source']), ('[b, s, h, d+32]', 'assumed'))
        self.assertIn('request.syntax', self.heddle('new', '--from', '-', code=1, stdin='{"tensors": 3}')[1])

    # ---- from options and answers ----

    def test_options_make_a_spec_that_is_valid_and_commented(self):
        spec = self.folder / 'mine.yaml'
        report, errors = self.heddle('new', '--layout', 'hnd', *BASIC, '-o', spec)
        self.assertEqual(errors, '')
        self.assertIn('next: heddle check %s' % spec, report)
        self.assertIn('shipped with the same contract: llama3-70b-tp8-bf16', report)
        self.heddle('check', spec)
        text = spec.read_text()
        self.assertIn('name: mine\n', text)
        self.assertRegex(text, r'window: none +# assumed')
        self.assertEqual(self.differences(spec, 'llama3-70b-tp8-bf16'), [])
        # every name of a layout, 8 and 16 bits
        for name, dtype in itertools.product(('nhd', 'hnd', 'shuffled', 'classic', 'latent'), ('fp16', 'int8', 'fp8_e5m2')):
            self.heddle('check', '-', '-q', stdin=self.heddle('new', '--layout', name, *BASIC, '--kv-dtype', dtype)[0])
        made = self.heddle('new', '--k', '[b, s, h, d]', *BASIC, '--kv-dtype', 'fp8_e4m3,int8', '--scale', 'group', '--group', '32,64', '--head-dim', '192,128',
                           '--target', 'gfx950', '--target', 'sm_90', '--rows', '4', '--lse', 'true')[0]
        self.assertIn('targets: [gfx950, sm_90]', made)
        canonical = self.json('key', '-', stdin=made)['canonical']
        for words in ('k: fp8_e4m3', 'v: int8', 'qk: 192', 'lse: true', 'rows: 4'):
            self.assertIn(words, canonical)

    def test_what_is_wrong_is_said_with_what_was_meant(self):
        for options, code, message in [
            (['--layout', 'ndh', *BASIC], 2, 'did you mean nhd?'),
            (['--layout', 'nhd', *BASIC, '--kv-dtype', 'fp8_e4m4'], 1, 'did you mean "fp8_e4m3"?'),
            (['--layout', 'shuffled', *BASIC, '--page', '12'], 1, "needs 8 to divide 12"),
            (['--layout', 'nhd', *BASIC, '--head-dim', '100'], 1, 'decline.head-dim'),
            (['--layout', 'nhd', *BASIC, '--kv-dtype', 'fp8_e4m3fn', '--target', 'gfx950', '--target', 'gfx942'], 1, 'decline.dialect'),
            (['--layout', 'nhd', *BASIC, '--scale', 'tokenhead'], 2, 'did you mean token_head?'),
            (['--layout', 'nhd', *BASIC, '--query-dtype', 'float16'], 2, 'did you mean fp16?'),
            (['--layout', 'nhd', *BASIC[:-2]], 2, '--heads-per-kv is missing'),
            ([], 2, '--layout is missing'),
        ]:
            output, errors = self.heddle('new', *options, code=code, stdin='')
            self.assertEqual(output, '')
            self.assertIn(message, errors)

    def test_a_file_that_is_there_is_left_alone(self):
        spec = self.file('mine.yaml', 'mine')
        self.assertIn('--force', self.heddle('new', '--layout', 'nhd', *BASIC, '-o', spec, code=2)[1])
        self.assertEqual(spec.read_text(), 'mine')
        self.heddle('new', '--layout', 'nhd', *BASIC, '-o', spec, '--force')
        self.heddle('check', '-q', spec)

    def on_terminal(self, answers, *options):
        ours, theirs = pty.openpty()
        process = subprocess.Popen([HEDDLE, 'new', *options], stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.folder)
        os.write(ours, answers.encode())
        output, errors = process.communicate(timeout=60)
        os.close(theirs)
        os.close(ours)
        return process.returncode, output, errors

    def test_on_a_terminal_it_asks(self):
        code, made, errors = self.on_terminal('hdn\nhnd\n\n0\n\n\n\n')
        self.assertEqual(code, 0, errors)
        self.assertIn('did you mean hnd?', errors)
        self.assertIn('a whole number from 1', errors)
        self.assertEqual(self.differences('llama3-70b-tp8-bf16', self.file('made.yaml', made)), [])
        # 8 bits need a scale; what options say isn't asked for
        code, made, errors = self.on_terminal('fp8_e4m3\n\npage_head\n', '--layout', 'nhd', '--head-dim', '128', '--heads-per-kv', '8')
        self.assertEqual(code, 0, errors)
        self.assertIn('granularity: page_head', made)
        self.assertNotIn('lie in memory', errors)
        # the end of the input is no answer
        code, made, errors = self.on_terminal('hnd\n\x04')
        self.assertEqual((code, made), (2, ''))

    # ---- tensors ----

    def test_tensors_are_what_the_spec_s_kernels_take(self):
        for path in SPECS.glob('*.yaml'):
            for kernel in ('write', 'decode'):
                request = self.heddle('tensors', path, '--kernel', kernel, '--target', 'gfx950')[0]
                self.heddle('match', '--request', '-', '--target', 'gfx950', path, stdin=request)
        spec = self.file('numbers.yaml', (SPECS / 'deepseek-mla-fp8.yaml').read_text().replace('granularity: tensor', 'granularity: tensor, source: argument'))
        for kernel in ('write', 'decode'):
            request = self.heddle('tensors', spec, '--kernel', kernel, '--target', 'gfx950')[0]
            self.heddle('match', '--request', '-', '--target', 'gfx950', spec, stdin=request)
        value = self.json('tensors', 'nhd-fp16', '--pages', '7', '--kv-heads', '3', '--seqs', '5')
        self.assertEqual(value['tensors']['k_cache'], {'dtype': 'fp16', 'shape': [7, 16, 3, 64]})
        self.assertEqual(value['tensors']['q'], {'dtype': 'fp16', 'shape': [5, 12, 64]})


if __name__ == '__main__':
    unittest.main()
