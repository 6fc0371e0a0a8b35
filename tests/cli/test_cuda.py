"""Claims about sources for sm_90, where there is no GPU and no CUDA: every one the templates can make is C++ that declares what
it uses. What it computes is for a GPU to say (heddle verify --device cuda:0, tests/edges)."""
import itertools
import pathlib
import subprocess
import tempfile
import unittest
from support import Case, SOURCE, SPECS

CHECK = ['clang-22', '-x', 'cuda', '--cuda-gpu-arch=sm_90a', '--cuda-device-only', '-nocudainc', '-nocudalib', '-std=c++17', '-fsyntax-only',
         '-include', SOURCE / 'tests' / 'data' / 'cuda_builtins.h']
LAYOUT = 'k: [b, h, d/16, s, d%16]\n  v: [b, h, s/16, d, s%16]'


def spec(heads=16, page=64, dtype='fp8_e4m3', layout=LAYOUT, scale='{granularity: token_head, k: [b, h, s], v: [b, h, s]}', head_dim=128, **more):
    lines = ['heddle: 1', 'name: cuda', 'kernels: [write, decode]', 'query: {dtype: bf16, heads_per_kv: %d}' % heads, 'head_dim: %s' % head_dim,
             'kv:\n  dtype: %s\n  page: %d\n  %s' % (dtype, page, layout)]
    lines += ['scale: ' + scale] if scale else []
    lines += ['%s: %s' % item for item in more.items()]
    return '\n'.join(lines) + '\n'


class Cuda(Case):
    def compiles(self, path, *options):
        with tempfile.TemporaryDirectory() as folder:
            self.heddle('emit', path, '--target', 'sm_90', *options, '-o', folder)
            sources = sorted(pathlib.Path(folder).glob('*.hip'))
            self.assertTrue(sources)
            for source in sources:
                done = subprocess.run(CHECK + [source], capture_output=True, text=True)
                self.assertEqual(done.returncode, 0, done.stderr[:3000])

    def test_shipped_specs(self):
        for path in sorted(SPECS.glob('*.yaml')):
            self.compiles(path)

    def test_the_ring_with_what_it_serves(self):
        outputs = ('{dtype: bf16, lse: true}', '{dtype: fp32}')
        scales = (None, '{granularity: tensor}', '{granularity: tensor, source: argument}', '{granularity: token_head, k: [b, h, s], v: [b, h, s]}')
        for n, (output, scale) in enumerate(itertools.product(outputs, scales)):
            path = self.file('ring.yaml', spec(output=output, scale=scale, heads=(16, 6)[n % 2], page=(16, 64, 48, 128)[n % 4],
                                               head_dim=(128, 64, '{qk: 64, v: 128}')[n % 3]))
            self.compiles(path, '--kernel', 'decode', '--variant', 'ring-w4' if n % 2 else 'ring')

    def test_the_ring_with_every_format_and_layout(self):
        blocks, rows, single = (('[b, h, d/%d, s, d%%%d]', '[b, h, s/%d, d, s%%%d]'), ('[b, h, s, d]',) * 2, ('[b, s, h, d]',) * 2)
        classic = ('[b, h, d/%d, s, d%%%d]', '[b, h, d, s]')
        cases = (('bf16', 'bf16', blocks, 64, 128), ('fp16', 'fp16', classic, 16, 128), ('int8', 'int8', blocks, 32, 64), ('fp8_e5m2', 'int8', rows, 16, 128),
                 ('bf16', 'fp8_e4m3', rows, 64, 128), ('fp8_e4m3', 'bf16', blocks, 48, 128), ('bf16', 'bf16', rows, 16, 128), ('fp16', 'fp16', single, 1, 64),
                 ('int8', 'int8', single, 24, 64), ('fp16', 'bf16', single, 16, 128))
        for k, v, (k_list, v_list), page, head_dim in cases:
            x, y = (8 if dtype in ('bf16', 'fp16') else 16 for dtype in (k, v))
            layout = 'k: %s\n  v: %s' % (k_list % (x, x) if '%' in k_list else k_list, v_list % (y, y) if '%' in v_list else v_list)
            scale = None if x == 8 or y == 8 else '{granularity: token_head, k: [b, h, s], v: [b, h, s]}'
            path = self.file('ring.yaml', spec(dtype='{k: %s, v: %s}' % (k, v), layout=layout, page=page, head_dim=head_dim, scale=scale, heads=head_dim // 8))
            self.compiles(path, '--kernel', 'decode', '--variant', 'ring')

    def test_the_ring_over_lists(self):
        for select, scale in (('{form: blocks, block: 128}', '{granularity: tensor, source: argument}'),
                              ('{form: blocks, block: 128, per: row}', '{granularity: token_head}')):
            self.compiles(self.file('lists.yaml', spec(select=select, scale=scale, output='{dtype: bf16, lse: true}')), '--kernel', 'decode')

    def test_the_direct_structure(self):
        hnd = 'k: [b, h, s, d]\n  v: [b, h, s, d]'
        for fields in (dict(mask='{window: 40, sinks: per_head}', logits='{softcap: 5}', output='{dtype: fp16, lse: true}'),
                       dict(scale='{granularity: group, group: 32, dtype: e8m0}', output='{dtype: bf16, lse: true}'),
                       dict(dtype='int8', scale='{granularity: page_head}', layout=hnd, select='{form: indptr}'),
                       dict(dtype='fp8_e5m2', scale='{granularity: token, dtype: fp16}', layout=hnd),
                       dict(dtype='{k: int8, v: fp8_e4m3}', scale='{granularity: tensor, source: argument}', layout=hnd),
                       dict(dtype='{k: fp16, v: bf16}', scale=None, layout=hnd, select='{form: table, per: kv_head, index: int64}')):
            path = self.file('direct.yaml', spec(**fields))
            for variant in ('direct', 'direct-line'):
                self.compiles(path, '--variant', variant)


if __name__ == '__main__':
    unittest.main()
