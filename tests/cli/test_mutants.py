"""Claims about verify's limits: kernels with one fault each, planted in a copy of the templates, are bad. They run on the
emulated device."""
import re
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

# What a kernel may get wrong: an expression of the templates, what stands there instead, and a case that finds it. "…" is any part of one
# statement, {0} in its stead the first such part; spaces are any white space. So a template may name and order things anew.
MUTANTS = {
    'a rising maximum leaves the output as it was': ('output[…] *= rescale;', ';', 'tiles'),
    'a rising maximum leaves the sum as it was': ('sum[…] *= exp2_fast(… - new_base);', ';', 'tiles'),
    'tokens behind the length count': ('if (!sees(…)) weighted[…] = MASKED;', ';', 'lengths'),
    'values behind the length are not cleared': ('clear_invisible<coded_values>(…);', ';', 'lengths'),
    'waves meet without their maxima': ('total += … * exp2_fast(… - lowest);', 'total += {0};', 'by-policy'),
    'splits meet without their maxima': ('exp2_fast(shared_row[…][0] - top)', '1.0f', 'split'),
    'each token has the scale of the next': ('INDICES + … % LIST;', 'INDICES + ({0} + 1) % LIST;', 'split'),
    'weights keep four bits': (
        'packed[…] = Operand::pack(…);',
        'for (int i = 0; i < Operand::PER_WORD; i++) {1}[i] = float_of(bits_of({1}[i]) & 0xfff00000u);\n    packed[{0}] = Operand::pack({1});',
        'split'),
    'a channel is its neighbour': ('channel_of(m, group * RUN + r);', 'channel_of(m, (group * RUN + r) ^ 1);', 'plain'),
    'codes are multiplied by the inverse': (': x[…] / stored;', ': x[{0}] * (1.0f / stored);', 'outliers'),
}


def planted(templates, expression, instead):
    """The template that has the expression, once in all of them, and its text with the fault in it."""
    pattern = re.compile(r'\s*'.join('([^;{}]*?)'.join(map(re.escape, word.split('…'))) for word in expression.split()))
    found = [(name, match) for name, source in templates.items() for match in pattern.finditer(source)]
    if len(found) != 1:
        raise LookupError('"%s" stands in the templates %d times: %s' % (expression, len(found), [(name, m.group()) for name, m in found]))
    name, match = found[0]
    fault = re.sub(r'\{(\d)\}', lambda m: match.group(int(m[1]) + 1), instead)
    return name, templates[name][:match.start()] + fault + templates[name][match.end():]


class Mutants(CachedCase):
    def verify(self, code, case, **environment):
        spec = self.file('mutant.yaml', SPEC)
        return self.heddle('verify', spec, '--device', 'emu:gfx942', '--cases', '0', '--only', case, code=code, **environment)[0]

    def test_the_template_as_it_is_is_good(self):
        for case in sorted({m[2] for m in MUTANTS.values()}):
            self.assertIn(' 0 bad', self.verify(0, case))

    def test_each_fault_is_found(self):
        templates = {path.name: path.read_text() for path in (SOURCE / 'templates').glob('*.hip')}
        for what, (expression, instead, case) in MUTANTS.items():
            with self.subTest(what), tempfile.TemporaryDirectory() as folder:
                shutil.copytree(SOURCE / 'templates', folder, dirs_exist_ok=True)
                name, text = planted(templates, expression, instead)
                with open(folder + '/' + name, 'w', encoding='utf-8') as out:
                    out.write(text)
                self.assertIn('BAD', self.verify(1, case, HEDDLE_TEMPLATES=folder), what)

    def test_a_fault_is_planted_where_it_belongs_or_not_at_all(self):
        templates = {'a.hip': 'total += row(w)[1]\n    * exp2_fast(row(w)[0] - low);\nx[1] = 1;\nx[2] = 1;\n'}
        self.assertEqual(planted(templates, 'total += … * exp2_fast(… - low);', 'total += {0};'), ('a.hip', 'total += row(w)[1];\nx[1] = 1;\nx[2] = 1;\n'))
        for expression in ('total += … * exp2_fast(… - high);', 'x[…] = 1;', 'total += … = 1;'):
            with self.assertRaises(LookupError):
                planted(templates, expression, '')


if __name__ == '__main__':
    unittest.main()
