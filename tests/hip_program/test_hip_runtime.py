"""Claims about libheddle-hip.so: that it is libamdhip64's interface, and that HIP programs run on it unchanged.

Most of it needs ROCm's headers and library, which tools/fetch-rocm.sh gets; without them a CI machine fails and others skip."""
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = pathlib.Path(os.environ['HEDDLE_SOURCE'])
LIBRARY = pathlib.Path(os.environ['HEDDLE_HIP_LIBRARY'])
HEDDLE, CC, CLANG = os.environ['HEDDLE'], os.environ['CC'], os.environ['CLANG']
TARGETS = ['gfx942', 'gfx950', 'gfx1201', 'gfx1250']
DEVICE_ONLY = ['-x', 'hip', '--offload-device-only', '--no-gpu-bundle-output', '-nogpulib']


def rocm():
    """(headers, libraries) of the ROCm packages."""
    folders = [os.environ.get('HEDDLE_ROCM'),
               os.environ.get('XDG_CACHE_HOME') and os.environ['XDG_CACHE_HOME'] + '/heddle/rocm',
               str(pathlib.Path.home() / '.cache/heddle/rocm')]
    for folder in filter(None, folders):
        usr = pathlib.Path(folder) / 'usr'
        libraries = usr / 'lib/x86_64-linux-gnu'
        if (usr / 'include/hip/hip_runtime_api.h').exists() and (libraries / 'libamdhip64.so.7').exists():
            return usr / 'include', libraries
    return None


class Case(unittest.TestCase):
    def setUp(self):
        found = rocm()
        if found is None:
            problem = "ROCm's headers and libamdhip64.so.7 are not there: run tools/fetch-rocm.sh"
            if os.environ.get('CI') == 'true':
                self.fail(problem)
            self.skipTest(problem)
        self.include, self.rocm_libraries = found
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.log = self.folder / 'log'
        # Where a program that was linked to ROCm's library finds this one instead.
        self.place = self.folder / 'place'
        self.place.mkdir()
        (self.place / 'libamdhip64.so.7').symlink_to(LIBRARY)

    def command(self, *arguments, code=0, **environment):
        done = subprocess.run([str(a) for a in arguments], capture_output=True, text=True, cwd=self.folder, timeout=120,
                              env=dict(os.environ, HEDDLE_EMU_LOG=str(self.log), **environment))
        self.assertEqual(done.returncode, code, '%s\n%s%s' % (' '.join(map(str, arguments)), done.stdout, done.stderr))
        self.errors = done.stderr
        return done.stdout

    def link_to_rocm(self):
        # ROCm's library wants a newer C library than this machine may have: only its symbols are looked at.
        return ['-L', self.rocm_libraries, '-lamdhip64', '-Wl,--allow-shlib-undefined']

    def run_program(self, *arguments, **options):
        """Runs a program with this library in libamdhip64's place; nothing may be printed but by the program."""
        output = self.command(*arguments, LD_LIBRARY_PATH=str(self.place), **options)
        self.assertEqual(self.errors, '')
        return output


class Interface(Case):
    def exported(self, library):
        lines = self.command('nm', '-D', '--defined-only', library).split('\n')
        return {words[2] for words in map(str.split, lines) if len(words) == 3 and words[1] == 'T'}

    def test_every_exported_symbol_is_one_of_the_real_library_in_the_same_version(self):
        ours, theirs = self.exported(LIBRARY), self.exported(self.rocm_libraries / 'libamdhip64.so.7')
        self.assertGreater(len(ours), 100)
        self.assertEqual(ours - theirs, set())

    def test_every_declared_function_is_exported_and_the_other_way_round(self):
        declared = re.findall(r'\b((?:__)?hip[A-Z]\w+)\([^;]*\);', (SOURCE / 'runtime/emu_hip/api.h').read_text())
        self.assertEqual(set(declared), {name.split('@')[0] for name in self.exported(LIBRARY)})

    def check(self, folder, code=0):
        return self.command(CC, '-std=c17', '-Wall', '-Wextra', '-Werror', '-Wno-deprecated-declarations', '-fsyntax-only',
                            '-D__HIP_PLATFORM_AMD__', '-isystem', self.include, '-I', folder,
                            HERE / 'check_signatures.c', code=code)

    def test_signatures_numbers_and_layouts_are_those_of_the_real_headers(self):
        self.check(SOURCE / 'runtime/emu_hip')

    def test_a_wrong_signature_number_or_offset_would_be_noticed(self):
        for name, right, wrong in [('api.h', 'hipMalloc(void **out_pointer, size_t bytes)', 'hipMalloc(void **out_pointer, int bytes)'),
                                   ('api.h', 'void **parameters, void **extra);', 'void **parameters);'),
                                   ('api.h', 'hipError_t hipEventElapsedTime(float *', 'hipError_t hipEventElapsedTime(double *'),
                                   ('abi.h', 'X(hipErrorIllegalAddress, 700,', 'X(hipErrorIllegalAddress, 701,'),
                                   ('abi.h', 'X(hipMemcpyKind, hipMemcpyDefault, 4)', 'X(hipMemcpyKind, hipMemcpyDefault, 5)'),
                                   ('abi.h', '63, 388, 4, 336, 4, multiProcessorCount', '63, 392, 4, 336, 4, multiProcessorCount'),
                                   ('abi.h', '63, 388, 4, 336, 4, multiProcessorCount', '63, 388, 4, 340, 4, multiProcessorCount'),
                                   ('abi.h', 'hipDeviceAttributeWarpSize, 87', 'hipDeviceAttributeWarpSize, 86'),
                                   ('abi.h', 'X(hipFuncAttributes, numRegs, 32)', 'X(hipFuncAttributes, numRegs, 36)')]:
            with self.subTest(wrong):
                copy = self.folder / 'copy'
                shutil.copytree(SOURCE / 'runtime/emu_hip', copy, dirs_exist_ok=True)
                text = (copy / name).read_text()
                self.assertIn(right, text)
                (copy / name).write_text(text.replace(right, wrong))
                self.check(copy, code=1)

    def test_the_implementation_itself_compiles_against_the_real_headers(self):
        for path in sorted((SOURCE / 'runtime/emu_hip').glob('*.c')):
            self.command(CC, '-std=c17', '-Wall', '-Wextra', '-Werror', '-Wno-deprecated-declarations', '-fsyntax-only',
                         '-D_GNU_SOURCE', '-D__HIP_PLATFORM_AMD__', '-DHEDDLE_HIP_REAL_HEADERS', '-isystem', self.include, path)

    def test_error_names_and_texts_are_those_of_the_real_library(self):
        (self.folder / 'errors.c').write_text("""
          #include <dlfcn.h>
          #include <stdio.h>
          int main(int count, char **arguments) {
            void *library = dlopen(arguments[count - 1], RTLD_NOW);
            if (!library) return printf("%s", dlerror());
            const char *(*name)(int) = (const char *(*)(int))dlsym(library, "hipGetErrorName");
            const char *(*string)(int) = (const char *(*)(int))dlsym(library, "hipGetErrorString");
            for (int code = 0; code < 1100; ++code) printf("%d %s: %s\\n", code, name(code), string(code));
            return 0;
          }""")
        self.command(CC, '-o', 'errors', 'errors.c', '-ldl')
        # The real library opens under the loader that came with it.
        theirs = self.command(self.rocm_libraries / 'ld-linux-x86-64.so.2', '--library-path', self.rocm_libraries, './errors',
                              self.rocm_libraries / 'libamdhip64.so.7')
        self.assertIn('719 hipErrorLaunchFailure', theirs)
        self.assertEqual(self.command('./errors', LIBRARY), theirs)


class Programs(Case):
    def test_a_host_program_runs_unchanged(self):
        self.command(CC, '-std=c17', '-Wall', '-Wextra', '-Werror', '-D__HIP_PLATFORM_AMD__', '-isystem', self.include,
                     HERE / 'host.c', '-o', 'host', '-pthread', *self.link_to_rocm())
        for target in TARGETS:
            with self.subTest(target):
                self.command(CLANG, *DEVICE_ONLY, '-nogpuinc', '-O2', '--offload-arch=' + target, HERE / 'kernels.hip',
                             '-o', 'kernels.co')
                self.log.unlink(missing_ok=True)
                output = self.run_program('./host', 'kernels.co', HEDDLE_HIP_TARGET=target + ',gfx942',
                                          HEDDLE_EMU_BUDGET='100000')
                self.assertEqual(output, '')
                # What the codes don't say is in the log: which kernel, what it did, the instruction.
                log = self.log.read_text()
                self.assertRegex(log, r'kernel beyond, .* write of 4 bytes at 0x[0-9a-f]+ is out of bounds')
                self.assertRegex(log, r'-> 0x[0-9a-f]+: (global|flat)_store_')
                self.assertRegex(log, r'kernel endless, .*still running')
                self.assertRegex(log, r'kernel unknown, ')

    def bundle(self, objects):
        """clang's offload bundle of {target: code object}, as clang-offload-bundler writes it."""
        ids = [b'host-x86_64-unknown-linux-gnu-'] + [b'hipv4-amdgcn-amd-amdhsa--' + target.encode() for target in objects]
        bodies = [b''] + list(objects.values())
        at, table, contents = 4096, b'__CLANG_OFFLOAD_BUNDLE__' + struct.pack('<Q', len(ids)), b''
        for name, body in zip(ids, bodies):
            table += struct.pack('<QQQ', at + len(contents), len(body), len(name)) + name
            contents += body + bytes(-len(body) % 4096)
        return table.ljust(at, b'\0') + contents

    def test_a_program_with_kernels_in_it_runs_unchanged(self):
        flags = ['-x', 'hip', '-nogpulib', '--rocm-path=%s' % self.include.parent, '-isystem', self.include, '-O1']
        objects = {}
        for target in ['gfx950', 'gfx1201']:
            self.command(CLANG, *flags, *DEVICE_ONLY, '--offload-arch=' + target, HERE / 'compiled.hip', '-o', 'device.co')
            objects[target] = (self.folder / 'device.co').read_bytes()
        (self.folder / 'kernels.hipfb').write_bytes(self.bundle(objects))
        self.command(CLANG, *flags, '--offload-host-only', '-Xclang', '-fcuda-include-gpubinary', '-Xclang', 'kernels.hipfb',
                     HERE / 'compiled.hip', '-c', '-o', 'compiled.o')
        self.command(CLANG, 'compiled.o', '-o', 'compiled', '-lstdc++', '-lm', *self.link_to_rocm())
        for target in objects:
            self.assertEqual(self.run_program('./compiled', HEDDLE_HIP_TARGET=target),
                             'heddle emulated %s (not hardware), %s\n' % (target, target) +
                             3 * '0 wrong, sum right, some registers\n')
        self.assertIn('no kernel image is available', self.run_program('./compiled', code=1, HEDDLE_HIP_TARGET='gfx942'))
        self.assertRegex(self.log.read_text(), 'no code object for gfx942 in the bundle; there are .*gfx950, .*gfx1201')

    def test_a_target_that_is_not_emulated_leaves_no_device(self):
        (self.folder / 'count.c').write_text("""
          #include <hip/hip_runtime_api.h>
          #include <stdio.h>
          int main(void) {
            int count = -1;
            hipError_t code = hipGetDeviceCount(&count);
            return !printf("%d %d\\n", code == hipErrorNoDevice, count);
          }""")
        self.command(CC, '-D__HIP_PLATFORM_AMD__', '-isystem', self.include, 'count.c', '-o', 'count', *self.link_to_rocm())
        self.assertEqual(self.run_program('./count', HEDDLE_HIP_TARGET='gfx950,gfx950'), '0 2\n')
        for wrong in ['gfx90a', 'gfx950,,gfx942', 'gfx950;gfx942', ','.join(['gfx950'] * 17)]:
            self.assertEqual(self.run_program('./count', HEDDLE_HIP_TARGET=wrong), '1 0\n', wrong)
        log = self.log.read_text()
        self.assertIn('no emulated target "gfx90a"; there are gfx942, gfx950, gfx1201, gfx1250', log)
        self.assertIn('HEDDLE_HIP_TARGET: "gfx90a" can\'t be emulated; up to 16 names, separated by commas', log)


class Heddle(unittest.TestCase):
    """These need nothing of ROCm."""

    def verify(self, device, **environment):
        done = subprocess.run([HEDDLE, 'verify', SOURCE / 'specs/minimax-m3-sparse-fp8.yaml', '--device', device, '--json',
                               '--only', 'split'], capture_output=True, text=True, timeout=200,
                              env=dict(os.environ, **environment))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        result = json.loads(done.stdout)
        name = result.pop('device')
        for case in result['cases']:
            case.pop('write_seconds')
            case.pop('decode_seconds')
        return name, result

    def test_a_spec_gives_the_same_numbers_as_on_the_emulated_device(self):
        name, through_hip = self.verify('hip:0')
        self.assertEqual(name, 'heddle emulated gfx950 (not hardware)')
        self.assertTrue(through_hip['emulated'])
        self.assertGreaterEqual(len(through_hip['cases']), 2)
        self.assertEqual(through_hip, self.verify('emu:gfx950')[1])

    def test_the_second_device_is_another_target(self):
        name, through_hip = self.verify('hip:1', HEDDLE_HIP_TARGET='gfx942,gfx1201')
        self.assertEqual(name, 'heddle emulated gfx1201 (not hardware)')
        self.assertEqual(through_hip, self.verify('emu:gfx1201')[1])


if __name__ == '__main__':
    unittest.main()
