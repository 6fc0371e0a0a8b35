"""Claims about check, key, diff, emit, targets and cache."""
import hashlib
import json
import unittest
from support import Case, SMALL, SPECS

SHIPPED = sorted(SPECS.glob('*.yaml'))
DENSE = SPECS / 'minimax-m3-dense-fp8.yaml'


class Specs(Case):
    def test_every_shipped_spec_is_fine(self):
        self.assertGreaterEqual(len(SHIPPED), 5)
        for result in self.json('check', *SHIPPED):
            self.assertTrue(result['ok'], result)
            self.assertEqual(len(result['key']), 64)
            self.assertTrue(result['served']['decode'])

    def test_errors_are_all_shown_with_their_lines(self):
        path = self.file('bad.yaml', SMALL.replace('page: 16', 'page: none').replace('bf16, heads_per_kv: 2',
                                                                                  'bf17, heads_per_kv: 2'))
        _, errors = self.heddle('check', path, code=1)
        self.assertIn('bad.yaml:4:', errors)
        self.assertIn('bad.yaml:8:', errors)
        self.assertIn('^', errors)
        result = self.json('check', path, code=1)[0]
        self.assertFalse(result['ok'])
        self.assertEqual({4, 8}, {item['line'] for item in result['diagnostics']})

    def test_what_is_valid_but_not_served_is_declined_with_its_place(self):
        path = self.small(replace=[('head_dim: 64', 'head_dim: 1000')])
        _, errors = self.heddle('check', path, code=1)
        self.assertRegex(errors, r'small.yaml:5:\d+: error: .*head')
        self.heddle('check', '--syntax', path)

    def test_a_file_that_is_not_there_is_a_failure(self):
        for verb in ['check', 'key', 'emit', 'build']:
            self.assertIn('nowhere.yaml', self.heddle(verb, 'nowhere.yaml', code=3)[1])
        self.assertIn('directory', self.heddle('key', self.folder, code=3)[1])
        self.heddle('diff', DENSE, 'nowhere.yaml', code=3)

    def test_hostile_files_are_refused(self):
        for name, contents in [('empty', ''), ('list', '[]'), ('deep', '[' * 5000), ('two', SMALL + '---\n' + SMALL),
                               ('binary', '\x00\x01\x02'), ('large', '#' * (1 << 20) + 'x')]:
            path = self.file(name + '.yaml', contents)
            for verb in ['check', 'key', 'emit', 'build']:
                self.heddle(verb, path, code=1)

    def test_every_verb_says_in_json_what_is_wrong_with_a_spec(self):
        path = self.file('bad.yaml', SMALL.replace('page: 16', 'page: none'))
        for verb in ['check', 'key', 'emit', 'build']:
            result = self.json(verb, path, code=1)
            result = result[0] if isinstance(result, list) else result
            self.assertFalse(result['ok'], verb)
            self.assertIn('kv.page', [item['field'] for item in result['diagnostics']], verb)

    def test_a_spec_beyond_the_limit_is_refused_by_the_limits_name(self):
        for size in [(1 << 20) + 1, (1 << 20) + 2, 3 << 20]:
            result = self.json('check', self.file('large.yaml', '#' * size), code=1)[0]
            self.assertEqual([item['code'] for item in result['diagnostics']], ['spec.size'])
            self.assertIn('1048576', result['diagnostics'][0]['message'])

    def test_a_byte_order_mark_changes_nothing(self):
        path = self.folder / 'marked.yaml'
        path.write_bytes(b'\xef\xbb\xbf' + SMALL.encode())
        self.assertEqual(self.heddle('key', path), self.heddle('key', self.small()))

    def test_a_spec_comes_from_standard_input_too(self):
        self.assertEqual(self.heddle('key', '-q', '-', stdin=DENSE.read_text()), self.heddle('key', '-q', DENSE))

    def test_the_key_is_the_hash_of_the_canonical_text(self):
        canonical, _ = self.heddle('key', '--text', DENSE)
        key = self.heddle('key', '--quiet', DENSE)[0].strip()
        self.assertEqual(hashlib.sha256(canonical.encode()).hexdigest(), key)
        self.assertTrue(self.heddle('key', DENSE)[0].endswith('sha256: %s\n' % key))
        self.assertEqual(self.json('key', DENSE)['key'], key)
        self.assertEqual(self.heddle('key', '--quiet', self.file('canonical.yaml', canonical))[0].strip(), key)

    def test_diff_names_the_fields(self):
        a, b = self.small(), self.file('other.yaml', SMALL.replace('page: 16', 'page: 64').replace('small', 'large'))
        self.assertIn('kv.page: 16 → 64', self.heddle('diff', a, b, code=1)[0])
        result = self.json('diff', a, b, code=1)
        self.assertEqual(result['differences'], [{'field': 'kv.page', 'a': '16', 'b': '64'}])
        self.assertFalse(result['same'])

    def test_specs_that_mean_the_same_do_not_differ(self):
        a, b = self.small(), self.file('other.yaml', SMALL.replace('name: small', 'name: other') + 'about: words\n')
        self.assertIn('same contract', self.heddle('diff', a, b)[0])
        self.assertTrue(self.json('diff', a, b)['same'])

    def test_emit_is_deterministic_and_tells_where_files_lie(self):
        first, _ = self.heddle('emit', DENSE, '-o', 'a/b')
        self.heddle('emit', DENSE, '-o', 'c')
        names = [line.split('/')[-1] for line in first.splitlines()]
        self.assertIn('minimax-m3-dense-fp8.decode.gfx950.hip', names)
        self.assertEqual(len(names), 20)
        for name in names:
            self.assertEqual((self.folder / 'a/b' / name).read_bytes(), (self.folder / 'c' / name).read_bytes())
        descriptor = json.loads((self.folder / 'c/minimax-m3-dense-fp8.decode.gfx950.json').read_text())
        self.assertEqual(descriptor['target'], 'gfx950')

    def test_emit_prints_one_source_that_includes_nothing(self):
        source, errors = self.heddle('emit', DENSE, '--target', 'gfx950', '--kernel', 'decode')
        self.assertNotIn('#include', source)
        self.assertEqual(errors, '')
        result = self.json('emit', DENSE, '--target', 'gfx950', '--kernel', 'decode')
        self.assertEqual([item['source'] for item in result], [source])
        self.assertEqual(result[0]['descriptor']['operation'], 'decode')

    def test_build_takes_templates_of_a_folder_and_says_when_it_can_not(self):
        template = (SPECS.parent / 'templates/write.hip').read_text()
        builtin = self.json('build', DENSE, '--target', 'gfx950', '--compiler', 'llvm')
        (self.folder / 'write.hip').write_text(template + '// changed\n')
        changed = self.json('build', DENSE, '--target', 'gfx950', '--compiler', 'llvm', HEDDLE_TEMPLATES=str(self.folder))
        self.assertEqual([a['key'] == b['key'] for a, b in zip(builtin, changed)], [False, True])  # write, decode
        error = self.heddle('build', DENSE, '--target', 'gfx950', code=3, HEDDLE_TEMPLATES='/nowhere')[1]
        self.assertIn('emit.templates', error)

    def test_emit_prefers_templates_of_a_folder(self):
        plain = self.heddle('emit', DENSE, '--target', 'gfx950', '--kernel', 'write')[0]
        template = (SPECS.parent / 'templates/write.hip').read_text()
        self.file('write.hip', '// changed for the test\n' + template)
        changed = self.heddle('emit', DENSE, '--target', 'gfx950', '--kernel', 'write', '--templates', self.folder)[0]
        self.assertNotEqual(plain, changed)
        self.assertIn('// changed for the test', changed)

    def test_emit_that_can_not_write_is_a_failure(self):
        self.file('taken', '')
        self.assertIn('taken', self.heddle('emit', DENSE, '-o', 'taken', code=3)[1])
        self.heddle('emit', DENSE, '-o', '/proc/nowhere', code=3)

    def test_targets_are_listed(self):
        names = [target['name'] for target in self.json('targets')]
        self.assertEqual(names, ['gfx942', 'gfx950', 'gfx1201', 'gfx1250', 'sm_90'])
        self.assertIn('fp8_e4m3fnuz', self.heddle('targets', '--verbose')[0])


if __name__ == '__main__':
    unittest.main()
