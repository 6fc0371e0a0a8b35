"""Claims about verify's limits: kernels with one fault each, planted in a copy of the templates, are bad. They run on the
emulated device."""
import shutil
import tempfile
import unittest
from support import CachedCase, SOURCE

SPEC = """heddle: 1
name: mutant
kernels: [write, decode]
query: {dtype: bf16, heads_per_kv: 2}
head_dim: 64
kv: {dtype: fp8_e4m3, page: 16, k: [b, h, d/16, s, d%16], v: [b, h, s/16, d, s%16]}
scale: {granularity: token_head, k: [b, h, s], v: [b, h, s]}
output: {lse: true}
"""

# What a kernel may get wrong: template, its text, what stands there instead, and a case that finds it.
MUTANTS = {
    'a rising maximum leaves the output as it was': (
        'decode.hip', 'output[b][m][c * RUN + r] *= rescale;', ';', 'tiles'),
    'a rising maximum leaves the sum as it was': (
        'decode.hip', 'sum[b][c] *= exp2_fast(base[b][c] - new_base);', ';', 'tiles'),
    'tokens behind the length count': (
        'decode.hip', 'if (!sees(row, e)) weighted[e] = MASKED;', ';', 'lengths'),
    'values behind the length are not cleared': (
        'decode.hip', 'clear_invisible<coded_values>(words.v, seen_by(0));', ';', 'lengths'),
    'waves meet without their maxima': (
        'decode.hip', 'total += row(w)[1] * exp2_fast(row(w)[0] - lowest);', 'total += row(w)[1];', 'by-policy'),
    'splits meet without their maxima': (
        'merge.hip', 'exp2_fast(shared_row[s][quad][0] - top)', '1.0f', 'split'),
    'each token has the scale of the next': (
        'decode.hip', 'return n * INDICES + index % LIST;', 'return n * INDICES + (index + 1) % LIST;', 'split'),
    'weights keep four bits': (
        'decode.hip', 'packed[p] = Operand::pack(x);',
        'for (int i = 0; i < Operand::PER_WORD; i++) x[i] = float_of(bits_of(x[i]) & 0xfff00000u);\n    packed[p] = Operand::pack(x);',
        'split'),
    'a channel is its neighbour': (
        'decode.hip', 'channel_of(m, group * RUN + r);', 'channel_of(m, (group * RUN + r) ^ 1);', 'plain'),
    'codes are multiplied by the inverse': (
        'write.hip', ': x[i] / stored;', ': x[i] * (1.0f / stored);', 'outliers'),
}


class Mutants(CachedCase):
    def verify(self, code, case, **environment):
        spec = self.file('mutant.yaml', SPEC)
        return self.heddle('verify', spec, '--device', 'emu:gfx942', '--cases', '0', '--only', case, code=code, **environment)[0]

    def test_the_template_as_it_is_is_good(self):
        for case in sorted({m[3] for m in MUTANTS.values()}):
            self.assertIn(' 0 bad', self.verify(0, case))

    def test_each_fault_is_found(self):
        for what, (name, text, instead, case) in MUTANTS.items():
            with self.subTest(what), tempfile.TemporaryDirectory() as folder:
                shutil.copytree(SOURCE / 'templates', folder, dirs_exist_ok=True)
                template = SOURCE / 'templates' / name
                before = template.read_text()
                self.assertIn(text, before)
                with open(folder + '/' + name, 'w', encoding='utf-8') as out:
                    out.write(before.replace(text, instead))
                self.assertIn('BAD', self.verify(1, case, HEDDLE_TEMPLATES=folder), what)


if __name__ == '__main__':
    unittest.main()
