"""Claims about the line of tiles on AMD targets, on the emulated device: decode is attention whatever the contract has lists,
rows, windows, sinks and scales of, and however many parts the line is cut into; a ragged batch leaves no part much longer
than the others."""
from support import CachedCase, EMULATED as TARGETS, SMALL, SPECS
import unittest

ALL = SMALL.replace('targets: [gfx950]\n', '')
ROWS = ALL.replace('rows: 1', 'rows: 3').replace('logits:', 'mask: {window: 40, sinks: per_head}\nlogits:')
INDPTR = ALL.replace('logits:', 'select: {form: indptr, per: kv_head}\nlogits:').replace('page: 16', 'page: 7')
TABLES = ALL.replace('logits:', 'select: {form: table, per: kv_head, index: int64}\nmask: {window: 300}\nlogits:')
TOKENS = ALL.replace('logits:', 'select: {form: tokens, per: kv_head, index: int64}\nlogits:').replace('page: 16', 'page: 1')
BLOCKS = ALL.replace('logits:', 'select: {form: blocks, block: 32, per: row}\nmask: {sinks: per_head}\nlogits:')
GROUPS = ALL.replace('dtype: bf16\n', 'dtype: fp8_e4m3\n').replace('logits:', 'scale: {granularity: group, group: 32}\nlogits:')
WIDE = ALL.replace('heads_per_kv: 2, rows: 1', 'heads_per_kv: 64, rows: 2').replace('head_dim: 64', 'head_dim: {qk: 320, v: 256}')


class Line(CachedCase):
    def right(self, spec, target, *options, variant='line'):
        out = self.heddle('verify', self.file('line.yaml', spec), '--device', 'emu:' + target, '--compiler', 'llvm', '--variant', variant,
                          '--cases', '0', '--only', 'lengths', *options)[0]
        self.assertIn(' 0 bad', out)

    def test_it_computes_attention_over_every_kind_of_list(self):
        for n, spec in enumerate((ROWS, INDPTR, TABLES, TOKENS, BLOCKS, GROUPS)):
            self.right(spec, TARGETS[n % 4], variant='line-w2' if n % 2 else 'line')

    def test_workgroups_share_a_part_where_registers_are_short(self):
        self.right(WIDE, 'gfx1201')

    def imbalance(self, variant):
        """The longest wave over the mean of what runs at a time, one workgroup a compute unit."""
        value = self.json('profile', SPECS / 'nhd-fp16.yaml', '--device', 'emu:gfx1201', '--compiler', 'llvm', '--variant', variant,
                          '--kernel', 'decode', '--shape', '40x2048x1', '--ragged')
        decode = value['operations'][0]['launches'][0]
        return decode['longest_wave'] * 64 * 4 / decode['instructions']['total']

    def test_a_ragged_batch_keeps_parts_even(self):
        self.assertGreater(self.imbalance('direct'), 2 * self.imbalance('line-w4'))


if __name__ == '__main__':
    unittest.main()
