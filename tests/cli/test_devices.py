"""Claims about build, cache, run, verify and doctor: what needs compilers and the emulated device."""
import pathlib
import random
import unittest
import npy
from support import Case, SPECS

SPEC = SPECS / 'nhd-fp16.yaml'
DEVICE = 'emu:gfx950'


class Build(Case):
    def build(self, *more, **options):
        return self.json('build', SPEC, '--target', 'gfx950', '--compiler', 'llvm', *more, **options)

    def test_a_second_build_finds_everything(self):
        first, second = self.build('--verbose'), self.build('-j', '1')
        self.assertEqual([item['hit'] for item in first], [False, False])
        self.assertEqual([item['hit'] for item in second], [True, True])
        self.assertEqual([item['key'] for item in first], [item['key'] for item in second])
        for item in first:
            self.assertTrue(item['ok'])
            self.assertGreater(item['code_object_bytes'], 0)
            self.assertGreater(item['kernels'][0]['vgprs'], 0)
        line = self.heddle('build', SPEC, '--target', 'gfx950', '--compiler', 'llvm', '--kernel', 'write')[0]
        self.assertRegex(line, r'nhd-fp16 +write +gfx950 +hit +%s' % first[0]['key'][:12])

    def test_the_cache_lists_verifies_and_clears(self):
        keys = {item['key'] for item in self.build()}
        self.assertEqual({item['key'] for item in self.json('cache', 'ls')}, keys)
        self.assertTrue(all(item['good'] for item in self.json('cache', 'verify')))
        self.assertEqual(pathlib.Path(self.json('cache', 'path')['path']), self.folder / 'cache')
        self.assertEqual(self.json('cache', 'clear'), {'removed': 2})
        self.assertEqual(self.json('cache', 'ls'), [])

    def test_a_flipped_bit_is_found_and_rebuilt(self):
        self.build()
        entry = max((path for path in (self.folder / 'cache').rglob('*') if path.is_file()),
                    key=lambda path: path.stat().st_size)
        data = bytearray(entry.read_bytes())
        data[len(data) // 2] ^= 1
        entry.write_bytes(data)
        bad = [item for item in self.json('cache', 'verify', code=1) if not item['good']]
        self.assertEqual(len(bad), 1)
        self.assertTrue(bad[0]['problem'])
        self.assertEqual(sorted(item['hit'] for item in self.build()), [False, True])

    def test_declines_do_not_stop_what_can_be_built(self):
        declined = self.small(replace=[('head_dim: 64', 'head_dim: 1000')])
        result = self.json('build', declined, SPEC, '--target', 'gfx950', '--compiler', 'llvm', '--kernel', 'write', code=1)
        self.assertEqual([(item['spec'], item['ok']) for item in result], [('small', False), ('nhd-fp16', True)])
        self.assertEqual(result[0]['diagnostics'][0]['line'], 5)

    def test_a_worker_that_is_not_there_is_a_failure(self):
        _, errors = self.heddle('build', SPEC, '--target', 'gfx950', '--compiler', 'llvm', code=3,
                                HEDDLE_WORKER='/nowhere/worker')
        self.assertIn('/nowhere/worker', errors)

    def test_doctor_tells_what_is_there(self):
        found = {item['what']: item for item in self.json('doctor')['findings']}
        self.assertTrue(found['compiler llvm']['found'])
        self.assertTrue(found['device ' + DEVICE]['found'])
        self.assertTrue(found['cache']['found'])
        self.assertIn('found', self.heddle('doctor')[0])

    def test_doctor_ends_in_the_next_command(self):
        nowhere = {'HEDDLE_ROCM': '/nowhere', 'HEDDLE_CLANG': '/nowhere', 'CUDA_HOME': '/nowhere'}
        no_devices = {'HEDDLE_EMU_LIBRARY': '/nowhere', 'HEDDLE_CUDA_LIBRARY': '/nowhere', 'HEDDLE_HIP_LIBRARY': '/nowhere'}
        for variables, code, expected in [
            ({'HEDDLE_CUDA_LIBRARY': '/nowhere', 'HEDDLE_HIP_LIBRARY': '/nowhere'}, 0, 'heddle verify llama3-70b-tp8-bf16 --device emu:gfx942'),
            (no_devices, 1, 'heddle build llama3-70b-tp8-bf16 --target gfx950'),
            ({**nowhere, **no_devices, 'CUDA_PATH': '/nowhere'}, 1, None),
        ]:
            value = self.json('doctor', code=code, **variables)
            self.assertEqual(value['runs'], code == 0)
            self.assertEqual(self.heddle('doctor', code=code, **variables)[0].splitlines()[-1], 'next: ' + value['next'])
            if expected:
                self.assertEqual(value['next'], expected)
        # nvrtc may be installed anywhere; without the others it makes nothing for an emulated device
        value = self.json('doctor', code=1, **nowhere, HEDDLE_CUDA_LIBRARY='/nowhere', HEDDLE_HIP_LIBRARY='/nowhere')
        self.assertFalse(value['runs'])
        self.assertIn(value['next'], ['heddle build llama3-70b-tp8-bf16 --target sm_90', 'apt install clang-22 lld-22 && heddle doctor'])


class Device(Case):
    """The emulated device, with a cache that all these tests share."""

    @classmethod
    def setUpClass(cls):
        import tempfile
        cls.shared = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.shared.cleanup)

    def setUp(self):
        super().setUp()
        self.environment['HEDDLE_CACHE_DIR'] = self.shared.name

    def halves(self, name, shape):
        generator = random.Random(name)
        return npy.write(self.folder / name, 'f2', shape,
                         [generator.gauss(0, 1) for _ in range(npy.size_of(shape))])

    def words(self, option, files):
        return [word for name, path in files.items() for word in (option, '%s=%s' % (name, path))]

    def test_write_then_decode_equals_the_reference(self):
        tokens, pages, heads, group, dim = 37, 4, 2, 4, 64
        write_in = {
            'k': self.halves('k', (tokens, heads, dim)),
            'v': self.halves('v', (tokens, heads, dim)),
            'slot_mapping': npy.write(self.folder / 'slots', 'i8', (tokens,),
                                      [(2 + t // 16 * 7) % 4 * 16 + t % 16 for t in range(tokens)]),
            'k_cache': npy.write(self.folder / 'k0', 'f2', (pages, 16, heads, dim), [0] * (pages * 16 * heads * dim)),
            'v_cache': npy.write(self.folder / 'v0', 'f2', (pages, 16, heads, dim), [0] * (pages * 16 * heads * dim)),
        }
        decode_in = {
            'q': self.halves('q', (2, heads * group, dim)),
            'page_table': npy.write(self.folder / 'table', 'i4', (2, 3), [2, 1, 0, 1, -1, -1]),
            'lengths': npy.write(self.folder / 'lengths', 'i4', (2,), [37, 16]),
        }
        for name, verb in [('run', ['run', SPEC, '--device', DEVICE, '--compiler', 'llvm']), ('ref', ['reference', SPEC])]:
            self.heddle(*verb, '--kernel', 'write', *self.words('--in', write_in),
                        *self.words('--out', {'k_cache': name + '.k', 'v_cache': name + '.v'}))
            caches = {'k_cache': name + '.k', 'v_cache': name + '.v'}
            split = ['--split', '2'] if name == 'run' else []
            result = self.json(*verb, '--kernel', 'decode', *self.words('--in', {**decode_in, **caches}),
                               *self.words('--out', {'out': name + '.out'}), *split)
            self.assertEqual(result['dims']['splits'], 2 if split else 1)
        for tensor in ['k', 'v']:
            self.assertEqual(npy.read(self.folder / ('run.' + tensor)), npy.read(self.folder / ('ref.' + tensor)))
        _, shape, got = npy.read(self.folder / 'run.out')
        _, _, wanted = npy.read(self.folder / 'ref.out')
        self.assertEqual(shape, (2, heads * group, dim))
        error = sum((a - b) ** 2 for a, b in zip(got, wanted)) / sum(b * b for b in wanted)
        self.assertLess(error ** 0.5, 2.5e-3)

    def test_verify_finds_a_shipped_spec_good(self):
        result = self.json('verify', SPEC, '--device', DEVICE, '--compiler', 'llvm', '--only', 'split', '--cases', '0')
        self.assertTrue(result['ok'])
        self.assertEqual([item['case'] for item in result['cases']], ['split', 'split-more-than-tiles'])
        for item in result['cases']:
            self.assertEqual(item['codes_differ'], 0)
            self.assertTrue(0 < item['rms'] < 2.5e-3)
        self.assertTrue(result['emulated'])

    def test_a_setting_that_is_no_number_is_refused(self):
        for variable in ('HEDDLE_EMU_THREADS', 'HEDDLE_EMU_BUDGET'):
            for value in ('many', '0', '-1', ''):
                error = self.heddle('verify', SPECS / 'nhd-fp16.yaml', '--device', 'emu:gfx950', code=3, **{variable: value})[1]
                self.assertIn(variable, error)

    def test_verify_declines_what_is_not_served(self):
        declined = self.small(replace=[('head_dim: 64', 'head_dim: 1000')])
        self.heddle('verify', declined, '--device', DEVICE, code=1)


if __name__ == '__main__':
    unittest.main()
