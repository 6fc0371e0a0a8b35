"""Claims about what is served: contracts of the field, each generated, compiled and executed on an emulated device, where
write has to store what the reference does and decode to give what float64 does (heddle verify). One field or two differ
from a plain contract, and the targets take turns."""
import unittest
from support import Case, EMULATED, SPECS

SHUFFLED = ('[b, h, d/16, s, d%16]', '[b, h, s/16, d, s%16]')
HND = ('[b, h, s, d]', '[b, h, s, d]')
NHD = ('[b, s, h, d]', '[b, s, h, d]')
TOKEN_HEAD = '{granularity: token_head}'


def spec(layout=SHUFFLED, heads=8, rows=1, query='bf16', head_dim=64, dtype='fp8_e4m3', page=16, scale=TOKEN_HEAD,
         kernels='[write, decode]', **more):
    lines = ['heddle: 1', 'name: contract', 'kernels: ' + kernels,
             'query: {dtype: %s, heads_per_kv: %d, rows: %d}' % (query, heads, rows), 'head_dim: %s' % head_dim,
             'kv: {dtype: %s, page: %d, k: %s, v: %s}' % ((dtype, page) + layout)]
    lines += ['scale: ' + scale] if scale else []
    lines += ['%s: %s' % item for item in more.items()]
    return '\n'.join(lines) + '\n'


class Served(Case):
    def serves(self, target, **fields):
        path = self.file('contract.yaml', spec(**fields))
        result = self.json('verify', path, '--device', 'emu:' + target, '--cases', '1')
        self.assertEqual(result['bad'], 0)
        self.assertGreaterEqual(len(result['cases']), 15)

    def test_a_window_with_sinks(self):
        self.serves('gfx950', mask='{window: 40, sinks: per_head}', output='{dtype: fp32, lse: true}')

    def test_a_softcap(self):
        self.serves('gfx1201', logits='{softcap: 5}', output='{dtype: bf16, lse: true}')

    def test_pages_of_one_token(self):
        self.serves('gfx942', page=1, layout=NHD, dtype='bf16', scale=None, heads=4)

    def test_pages_that_no_tile_divides(self):
        self.serves('gfx1250', page=528, heads=6)

    def test_a_layout_with_the_head_inside_and_slots_split(self):
        self.serves('gfx950', page=12, layout=('[b, s/4, h, d, s%4]', '[b, s, d/32, h, d%32]'))

    def test_channels_outermost_and_single_bytes(self):
        self.serves('gfx1201', page=4, layout=('[b, h, d%2, s, d/2]', '[b, d%4, h, d/4, s]'))

    def test_half_words_that_a_compiler_joins_off_word_boundaries(self):
        self.serves('gfx950', heads=2, dtype='fp16', scale=None,
                    layout=('[b, s/8, h, d/32, s%8, d%32]', '[b, h, d%2, s, d/2]'))

    def test_different_dimensions_of_keys_and_values(self):
        self.serves('gfx942', head_dim='{qk: 192, v: 128}', heads=1)

    def test_dimensions_that_fill_no_product(self):
        self.serves('gfx1250', head_dim='{qk: 80, v: 112}', layout=HND)

    def test_numbers_in_registers_above_255_while_a_barrier_is_waited_for(self):
        self.serves('gfx1250', head_dim='{qk: 320, v: 72}', heads=16, layout=NHD, scale=None)

    def test_many_queries_whose_waves_meet_without_a_tile_of_their_own(self):
        self.serves('gfx1250', head_dim='{qk: 32, v: 64}', heads=64, dtype='fp16', scale=None, page=1568,
                    layout=('[b, h, d/16, s, d%16]', '[b, h, d/16, s/2, d%16, s%2]'))

    def test_more_queries_than_columns(self):
        self.serves('gfx950', heads=24, layout=NHD, dtype='fp16', query='fp16', scale=None)

    def test_rows_of_a_sequence(self):
        self.serves('gfx1201', rows=3, heads=4, mask='{window: 35, sinks: per_head}')

    def test_rows_without_a_causal_mask(self):
        self.serves('gfx942', rows=2, heads=5, mask='{causal: false}')

    def test_a_scale_a_token_over_all_heads(self):
        self.serves('gfx950', scale='{granularity: token, dtype: fp16}', dtype='int8')

    def test_a_scale_a_page(self):
        self.serves('gfx1250', scale='{granularity: page_head, k: [h, b]}', page=24, layout=HND, dtype='fp8_e5m2')

    def test_a_scale_a_head(self):
        self.serves('gfx942', scale='{granularity: head}')

    def test_int8_values_beside_eight_rows_with_a_window_of_their_own_token(self):
        self.serves('gfx1250', heads=16, rows=8, head_dim='{qk: 64, v: 32}', dtype='{k: fp8_e5m2, v: int8}', page=32,
                    layout=('[b, h, d/8, s, d%8]', '[b, h, s/16, d, s%16]'), scale='{granularity: head}',
                    select='{form: indptr, per: row}', mask='{window: 1}')

    def test_half_precision_queries_over_a_bf16_cache(self):
        self.serves('gfx1250', rows=2, layout=('[b, h, d/8, s, d%8]', '[b, s, h, d]'), head_dim='{qk: 64, v: 72}', page=256,
                    dtype='bf16', query='fp16', scale=None)

    def test_half_precision_scales_beside_a_bf16_output(self):
        self.serves('gfx1250', scale='{granularity: tensor, dtype: fp16}', output='{dtype: bf16}')

    def test_scales_that_are_arguments(self):
        self.serves('gfx942', scale='{granularity: tensor, source: argument}', dtype='{k: fp8_e4m3, v: int8}')
        self.serves('gfx1201', scale='{granularity: tensor, source: argument}', output='{dtype: fp32, lse: true}', rows=2)

    def test_scales_that_are_arguments_in_the_ring(self):
        self.serves('gfx1250', scale='{granularity: tensor, source: argument}', layout=HND, head_dim=128)

    def test_scales_that_are_arguments_beside_lists(self):
        self.serves('gfx950', scale='{granularity: tensor, source: argument}', select='{form: blocks, block: 32}')

    def test_powers_of_two_for_groups_of_channels(self):
        self.serves('gfx950', scale='{granularity: group, group: 32, dtype: e8m0}', head_dim=128, page=32)

    def test_groups_that_no_product_fits(self):
        self.serves('gfx1201', scale='{granularity: group, group: {k: 24, v: 48}}', head_dim=96, layout=NHD)

    def test_different_formats_of_keys_and_values(self):
        self.serves('gfx942', dtype='{k: int8, v: fp8_e5m2}', heads=12)

    def test_ragged_lists_of_64_bit_pages_a_head(self):
        self.serves('gfx950', select='{form: indptr, per: kv_head, index: int64}')

    def test_blocks_of_a_row_and_kv_head(self):
        self.serves('gfx942', select='{form: blocks, block: 48}', rows=3, heads=4, output='{dtype: fp32, lse: true}')

    def test_blocks_of_rows_that_share_tables(self):
        self.serves('gfx1201', select='{form: blocks, block: 32, per: row, index: int64}', mask='{sinks: per_head}')

    def test_tokens_of_a_row(self):
        self.serves('gfx1250', select='{form: tokens}', page=1, layout=NHD, dtype='bf16', scale=None, rows=2)

    def test_tokens_of_a_row_and_kv_head(self):
        self.serves('gfx950', select='{form: tokens, per: kv_head}', page=1, layout=HND, scale='{granularity: tensor}')

    def test_short_stretches_of_pages_in_the_ring(self):
        self.serves('gfx1250', page=4, head_dim=256, layout=HND, scale=None)

    def test_a_page_table_a_row(self):
        self.serves('gfx1250', select='{per: row}', rows=3, heads=4)


class Latent(Case):
    """One shared K and V: values are the first channels of K, which may have a tail of another format."""

    def serves(self, target, name, heads=16, rows=1, page=64, changes=()):
        text = (SPECS / (name + '.yaml')).read_text()
        for old, new in [('heads_per_kv: 16', 'heads_per_kv: %d\n  rows: %d' % (heads, rows)), ('page: 64', 'page: %d' % page), *changes]:
            self.assertIn(old, text)
            text = text.replace(old, new)
        result = self.json('verify', self.file('latent.yaml', text), '--device', 'emu:' + target, '--cases', '0')
        self.assertEqual(result['bad'], 0)
        self.assertGreaterEqual(len(result['cases']), 14)

    def test_pages_of_one_token_and_an_odd_number_of_heads(self):
        self.serves('gfx1201', 'deepseek-mla-bf16', heads=20, page=1)

    def test_rows_of_a_sequence(self):
        self.serves('gfx942', 'deepseek-mla-fp8', heads=8, rows=2, page=16)

    def test_few_heads_whose_parts_share_a_product(self):
        self.serves('gfx950', 'deepseek-mla-fp8-656', heads=8)

    def test_a_tail_beside_one_scale_for_the_tensor(self):
        self.serves('gfx1250', 'deepseek-mla-fp8-656', heads=32, changes=[
            ('granularity: group\n  group: 128\n  dtype: fp32\n  k: {inside: k, at: 512, layout: [b, s, d+160]}', 'granularity: tensor\n#')])

    def test_values_in_the_tail_for_rows_of_few_heads(self):
        self.serves('gfx942', 'deepseek-mla-fp8-584', heads=4, rows=2, changes=[('logits:', 'mask: {window: 40}\nlogits:')])

    def test_values_in_the_tail_behind_one_scale_for_the_tensor(self):
        self.serves('gfx950', 'deepseek-mla-fp8-584', heads=8, changes=[
            ('granularity: group\n  group: 64\n  dtype: e8m0\n  k: {inside: k, at: 36864, layout: [b, s, d+1]}', 'granularity: tensor\n#'),
            ('head_dim: 512', 'head_dim: {qk: 512, v: 456}')])

    def test_values_in_a_tail_of_another_wide_format(self):
        self.serves('gfx1201', 'deepseek-mla-bf16', heads=8, changes=[
            ('head_dim: {qk: 576, v: 512}', 'head_dim: 192'), ('k: [b, s, d]', 'k: [b, s, d+64]'),
            ('v: k', 'v: k\n  tail: {channels: 64, dtype: fp16, at: 256, layout: [b, s, d+128]}')])


class Shipped(Case):
    def test_every_spec_on_every_emulated_target(self):
        for target in EMULATED:
            for path in sorted(SPECS.glob('*.yaml')):
                with self.subTest(spec=path.name, target=target):
                    result = self.json('verify', path, '--device', 'emu:' + target, '--cases', '0', '--only', 'split')
                    self.assertEqual(result['bad'], 0)
                    self.assertGreaterEqual(len(result['cases']), 1)


class Declined(Case):
    """What is not served is said before anything is compiled."""

    def declines(self, code, field, **fields):
        path = self.file('contract.yaml', spec(kernels='[decode]', **fields))
        result = self.json('emit', path, '--target', 'gfx950', code=1)
        said = [(item['code'], item['field']) for item in result['diagnostics']]
        self.assertIn((code, field), said)

    def test_head_dimensions(self):
        self.declines('decline.head-dim', 'head_dim', head_dim=592)
        self.declines('decline.head-dim', 'head_dim.qk', head_dim='{qk: 592, v: 64}')

    def test_blocks_that_cut_pages(self):
        self.declines('decline.select-block', 'select.block', select='{form: blocks, block: 40}')

    def test_tokens_in_pages_of_several(self):
        self.declines('decline.select-page', 'kv.page', select='{form: tokens}')

    def test_windows_over_lists(self):
        self.declines('decline.select-window', 'mask.window', select='{form: blocks, block: 32}', mask='{window: 40}')

    def test_the_foreign_dialect(self):
        self.declines('decline.dialect', 'kv.dtype', dtype='fp8_e4m3fnuz')

    def test_groups_that_the_end_of_v_in_k_cuts(self):
        self.declines('decline.scale-group', 'scale.group', head_dim='{qk: 320, v: 72}', layout=('[b, h, s, d]', 'k'),
                      scale='{granularity: group, group: 32}')

    def test_groups_below_a_matrix_row(self):
        self.declines('decline.scale-group', 'scale.group', scale='{granularity: group, group: {k: 16, v: 8}}')
        (note,) = self.json('check', self.folder / 'contract.yaml')[0]['diagnostics']
        self.assertEqual(note['message'], '8 is not served on gfx942, gfx950, gfx1201 and gfx1250: allowed is a multiple of 16 channels of V, '
                         'the rows of a matrix instruction')

    def test_one_fault_is_one_message_whatever_the_targets_say_of_it(self):
        def said(*arguments, **fields):
            code = 1 if fields.pop('refused', False) else 0
            return [d['message'] for d in self.json('check', self.file('contract.yaml', spec(kernels='[decode]', **fields)), *arguments,
                                                    code=code)[0]['diagnostics']]

        # As it is, where all say the same, or one alone declines and is named.
        self.assertEqual(said(head_dim=592, refused=True), ['592 is not served: allowed is a multiple of 8 up to 512'])
        self.assertEqual(said(head_dim='{qk: 592, v: 528}', refused=True), ['592 is not served: allowed is a multiple of 8 up to 576',
                                                                            '528 is not served: allowed is a multiple of 8 up to 512'])
        own = "or fp8_e4m3, which is every target's own dialect"
        self.assertEqual(said(dtype='fp8_e4m3fnuz'),
                         ['fp8_e4m3fnuz is not served on gfx950, gfx1201, gfx1250 and sm_90: allowed is fp8_e4m3fn, ' + own])
        self.assertEqual(said(dtype='fp8_e4m3fn'), ['fp8_e4m3fn is not served on gfx942: allowed is fp8_e4m3fnuz, ' + own])
        self.assertEqual(said('--target', 'gfx942', dtype='fp8_e4m3fn', refused=True),
                         ['fp8_e4m3fn is not served: allowed is fp8_e4m3fnuz, ' + own])
        self.assertEqual(said('--target', 'gfx942', '--target', 'gfx950', dtype='{k: fp8_e4m3fn, v: fp8_e4m3fnuz}', refused=True),
                         ['fp8_e4m3fn is not served on gfx942: allowed is fp8_e4m3fnuz, ' + own,
                          'fp8_e4m3fnuz is not served on gfx950: allowed is fp8_e4m3fn, ' + own])

    def test_a_kernel_that_no_target_serves_is_said_beside_one_that_all_do(self):
        """No target is named, so those that don't serve are left out: not all of them, for one kernel of two."""
        path = self.file('contract.yaml', spec(select='{form: blocks, block: 40}'))
        checked = self.json('check', path, code=1)[0]
        self.assertEqual((checked['ok'], checked['served']['decode'], len(checked['served']['write'])), (False, [], 5))
        self.assertEqual([(d['code'], d['severity']) for d in checked['diagnostics']], [('decline.select-block', 'error')])
        _, errors = self.heddle('emit', path, '-o', self.folder / 'out', code=1)
        self.assertIn('[decline.select-block]', errors)
        _, errors = self.heddle('build', path, code=3, HEDDLE_WORKER='/nowhere/worker')
        self.assertIn('[decline.select-block]', errors)
        self.heddle('check', path, '--syntax')
        self.heddle('check', self.file('write.yaml', spec(select='{form: blocks, block: 40}', kernels='[write]')))


if __name__ == '__main__':
    unittest.main()
