"""Claims about packs, the verb cache, and production without a compiler."""
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import unittest
from support import Case, HEDDLE, knows_compilers


class Cache(Case):
    def setUp(self):
        super().setUp()
        self.spec = self.small()
        knows_compilers(self.elsewhere())

    # No compiler is found then: an empty ROCm counts alone, and there is no such clang.
    WITHOUT_COMPILER = {'HEDDLE_ROCM': '/nonexistent', 'HEDDLE_CLANG': '/nonexistent/clang', 'HEDDLE_NVRTC': '/nonexistent'}

    def pack(self, name='kernels.pack', *more):
        self.heddle('pack', self.spec, '--target', 'gfx950', '-o', name, *more)
        return self.folder / name

    def elsewhere(self):
        """A machine's empty cache."""
        return str(self.folder / 'elsewhere')

    def test_packs_from_two_folders_are_the_same_bytes_and_sha256sum_verifies_them(self):
        sums = []
        for name in ['a', 'a much longer name of a folder']:
            folder = self.folder / name
            folder.mkdir()
            shutil.copy(self.spec, folder / ('spec of %s.yaml' % name))
            environment = dict(os.environ, HEDDLE_CACHE_DIR=str(folder / 'cache'), TMPDIR=str(folder), HOME=str(folder))
            if 'HEDDLE_ROCM' not in environment:  # the fetched one is found below the home
                rocm = pathlib.Path(os.environ.get('XDG_CACHE_HOME') or pathlib.Path.home() / '.cache') / 'heddle' / 'rocm'
                if rocm.exists():
                    environment['HEDDLE_ROCM'] = str(rocm)
            subprocess.run([HEDDLE, 'pack', 'spec of %s.yaml' % name, '--target', 'gfx950', '-o', 'kernels.pack'], cwd=folder,
                           env=environment, check=True, capture_output=True)
            pack = (folder / 'kernels.pack').read_bytes()
            self.assertNotIn(str(folder).encode(), pack)
            sums.append(hashlib.sha256(pack).hexdigest())
            subprocess.run(['sha256sum', '-c', 'kernels.pack.sha256'], cwd=folder, check=True, capture_output=True)
        self.assertEqual(sums[0], sums[1])

    def test_a_pack_of_specs_is_that_of_the_cache_they_filled(self):
        built = self.pack()
        self.heddle('pack', '-o', 'all.pack')
        self.heddle('cache', 'export', '-o', 'exported.pack')
        self.assertEqual(built.read_bytes(), (self.folder / 'all.pack').read_bytes())
        self.assertEqual(built.read_bytes(), (self.folder / 'exported.pack').read_bytes())
        self.assertEqual(self.json('pack', '-o', 'other.pack', '--target', 'gfx942'), {'packed': 0, 'bad': 0})
        self.assertEqual(self.json('pack', '-o', 'same.pack', '--target', 'gfx950'), {'packed': 2, 'bad': 0})
        self.assertEqual(built.read_bytes(), (self.folder / 'same.pack').read_bytes())

    def test_entries_of_another_version_are_stale_and_nothing_bad(self):
        self.heddle('build', self.spec, '--target', 'gfx950')
        entry = next(path for path in (self.folder / 'cache' / 'objects').glob('*/*'))
        data = entry.read_bytes()
        older = bytearray(re.sub(rb'"descriptor": \d+', b'"descriptor": 1', data, count=1))
        self.assertEqual(len(older), len(data))
        entry.write_bytes(older)
        self.assertIn('2 entries, 1 bad', self.heddle('cache', 'verify', code=1)[0])  # the hash says that it was changed
        hashed = hashlib.sha256(older[:40])
        hashed.update(older[72:])
        older[40:72] = hashed.digest()
        entry.write_bytes(older)
        self.assertIn('2 entries, 0 bad, 1 of another version of heddle', self.heddle('cache', 'verify')[0])
        stale = [item for item in self.json('cache', 'verify') if item.get('stale')]
        self.assertEqual([item['key'] for item in stale], [entry.name])
        self.heddle('build', self.spec, '--target', 'gfx950')
        self.assertIn('2 entries, 0 bad\n', self.heddle('cache', 'verify')[0])

    def test_a_bad_entry_is_left_out_of_a_pack_and_said(self):
        self.heddle('build', self.spec, '--target', 'gfx950')
        entry = next(path for path in (self.folder / 'cache' / 'objects').glob('*/*'))
        data = bytearray(entry.read_bytes())
        data[-50] ^= 1
        entry.write_bytes(data)
        out, errors = self.heddle('cache', 'export', '-o', 'kernels.pack', code=1)
        self.assertIn('1 entries', out)
        self.assertIn('left out', errors)

    def test_without_a_compiler_packs_serve_and_what_is_missing_is_named(self):
        pack = self.pack()
        production = dict(self.WITHOUT_COMPILER, HEDDLE_CACHE_DIR=self.elsewhere(), HEDDLE_PACKS=str(pack))
        for jit in ['', '1']:
            results = self.json('build', self.spec, '--target', 'gfx950', HEDDLE_NO_JIT=jit, **production)
            self.assertEqual([True, True], [result['hit'] for result in results])
        results = self.json('build', self.spec, '--target', 'gfx950', '--variant', 'w2', code=3, HEDDLE_NO_JIT='1', **production)
        key = self.json('key', self.spec)['key']
        for result in results:
            (problem,) = result['diagnostics']
            self.assertEqual('compile.no-jit', problem['code'])
            for word in [key, 'gfx950', 'w2', result['kernel'], 'source key', str(pack), self.elsewhere()]:
                self.assertIn(word, problem['message'])
        results = self.json('build', self.spec, '--target', 'gfx950', '--variant', 'w2', code=3, **production)
        self.assertNotIn('compile.no-jit', [d['code'] for result in results for d in result['diagnostics']])

    def test_no_jit_compiles_nothing_where_a_compiler_is_and_names_the_key(self):
        results = self.json('build', self.spec, '--target', 'gfx950', code=3, HEDDLE_NO_JIT='1')
        self.assertEqual(0, self.json('cache', 'ls').__len__())
        built = self.json('build', self.spec, '--target', 'gfx950', HEDDLE_NO_JIT='0')
        for missing, made in zip(results, built):
            self.assertIn(made['key'], missing['diagnostics'][0]['message'])

    def test_what_was_packed_and_imported_is_in_the_folder(self):
        pack = self.pack()
        there = {'HEDDLE_CACHE_DIR': self.elsewhere()}
        self.assertEqual({'imported': 2, 'bad': 0}, self.json('cache', 'import', pack, **there))
        self.assertEqual([False, False], ['pack' in item for item in self.json('cache', 'ls', **there)])
        results = self.json('build', self.spec, '--target', 'gfx950', **there)
        self.assertEqual([True, True], [result['hit'] for result in results])
        data = bytearray(pack.read_bytes())
        data[-50] ^= 1
        pack.write_bytes(data)
        self.assertEqual({'imported': 1, 'bad': 1}, self.json('cache', 'import', pack, code=1, **there))
        self.assertIn('bad', self.heddle('cache', 'verify', code=1, HEDDLE_PACKS=str(pack), **there)[0])
        pack.write_bytes(data[:-1])
        self.heddle('cache', 'import', pack, code=1, **there)
        self.heddle('cache', 'import', 'nowhere.pack', code=3, **there)

    def test_verify_tells_of_a_pack_that_is_refused(self):
        pack = self.pack()
        self.assertIn('4 entries, 0 bad', self.heddle('cache', 'verify', HEDDLE_PACKS=str(pack))[0])
        pack.write_bytes(pack.read_bytes()[:-1])
        errors = self.heddle('cache', 'verify', code=1, HEDDLE_PACKS=str(pack))[1]
        self.assertIn('not of the size', errors)
        self.heddle('cache', 'ls', HEDDLE_PACKS=str(pack))

    def test_explain_names_the_field(self):
        (answer,) = self.json('cache', 'explain', self.spec, '--target', 'gfx950', '--kernel', 'decode', code=1)
        self.assertNotIn('nearest', answer)
        self.heddle('build', self.spec, '--target', 'gfx950')
        (answer,) = self.json('cache', 'explain', self.spec, '--target', 'gfx950', '--kernel', 'decode')
        self.assertTrue(answer['found'])
        here = answer['key']
        (answer,) = self.json('cache', 'explain', self.spec, '--target', 'gfx950', '--kernel', 'decode', '--compiler', 'llvm', code=1)
        self.assertEqual(here, answer['nearest'])
        self.assertEqual(['compiler', 'options'], [d['field'] for d in answer['differences']][:2])
        self.assertIn('llvm', answer['differences'][0]['wanted'])
        words = self.heddle('cache', 'explain', self.spec, '--target', 'gfx950', '--variant', 'w2', code=1)[0]
        self.assertRegex(words, r'variant +there +default\n +wanted +w2')

    def test_prune(self):
        self.heddle('build', self.spec, '--target', 'gfx950')
        sizes = [item['bytes'] for item in self.json('cache', 'ls')]
        self.assertEqual({'removed': 0, 'bytes': 0, 'left': sum(sizes)}, self.json('cache', 'prune'))
        self.assertEqual(1, self.json('cache', 'prune', '--max-bytes', sum(sizes) - 1)['removed'])
        self.assertEqual(0, self.json('cache', 'prune', '--max-bytes', 0)['left'])

    def test_what_goes_wrong_is_one_line_of_every_verb_that_builds(self):
        self.heddle('build', self.spec, '--target', 'gfx950')
        for verb in [['build', '--target', 'gfx950'], ['profile', '--device', 'emu:gfx950']]:
            for entry in (self.folder / 'cache' / 'objects').glob('*/*'):
                data = bytearray(entry.read_bytes())
                data[-50] ^= 1
                entry.write_bytes(data)
            lines = [line for line in self.heddle(verb[0], self.spec, *verb[1:])[1].splitlines() if 'is not used' in line]
            self.assertEqual(2, len(lines), lines)
            self.assertTrue(lines[0].startswith('heddle %s: cache: entry ' % verb[0]), lines)
        self.assertEqual(0, len([item for item in self.json('cache', 'verify') if not item['good']]))

    def test_usage(self):
        for arguments in [['cache', 'export'], ['pack'], ['cache', 'import'], ['cache', 'explain'], ['cache', 'ls', 'x'],
                          ['pack', self.spec], ['pack', '-o', 'x', '--target', 'gfx1']]:
            self.heddle(*arguments, code=2)


if __name__ == '__main__':
    unittest.main()
