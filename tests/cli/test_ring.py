"""Claims about the ring on AMD targets, on the emulated device: right, coalesced, without bank conflicts; its waits are
needed, and none waits for more than it has to."""
import re
import subprocess
import unittest
from support import CachedCase, SMALL, SOURCE, SPECS

TARGETS = {'gfx950': 'vmcnt', 'gfx1250': 'asynccnt'}
SPARSE = SPECS / 'minimax-m3-sparse-fp8.yaml'
# Rows that see different tokens, a window, pages that are no power of two, heads inside the slots.
ROWS = SMALL.replace('rows: 1', 'rows: 3').replace('page: 16', 'page: 48').replace('[b, h, s, d]', '[b, s, h, d]') \
    .replace('logits:', 'mask: {window: 40}\nlogits:').replace('targets: [gfx950]', 'targets: [gfx950, gfx1250]')


class Ring(CachedCase):
    def verify(self, spec, target, *options, variant='ring', code=0, **environment):
        return self.heddle('verify', spec, '--device', 'emu:' + target, '--compiler', 'llvm', '--variant', variant, '--cases', '0',
                           *options, code=code, **environment)

    def test_it_computes_attention(self):
        rows = self.file('rows.yaml', ROWS)
        for target in TARGETS:
            self.assertIn(' 0 bad', self.verify(SPARSE, target)[0])
            self.assertIn(' 0 bad', self.verify(rows, target, variant='ring-w2-s3')[0])

    def test_it_reads_whole_lines_and_no_bank_twice(self):
        for target in TARGETS:
            for spec in (SPARSE, SPECS / 'llama3-70b-tp8-bf16.yaml'):
                value = self.json('profile', spec, '--device', 'emu:' + target, '--compiler', 'llvm', '--variant', 'ring',
                                  '--kernel', 'decode', '--shape', '1x256x1', '--split', '1')
                decode = value['operations'][0]
                self.assertEqual(decode['kv_segment_efficiency'], {'32': 1, '64': 1, '128': 1}, (target, spec))
                launch = decode['launches'][0]
                self.assertEqual(launch['lds']['conflict_cycles'], 0, (target, spec))
                self.assertEqual(launch['instructions']['scratch'], 0)

    def test_a_wait_for_one_copy_less_is_caught(self):
        for target, counter in TARGETS.items():
            templates = self.folder / target
            templates.mkdir()
            name = 'prelude_%s_copies.hip' % target
            text = (SOURCE / 'templates' / name).read_text()
            self.assertEqual(text.count('"n"(LEFT)'), 1)
            (templates / name).write_text(text.replace('"n"(LEFT)', '"n"(LEFT + 1)'))
            # Several tiles a wave: before the first, waiting for the query waits for all copies too.
            out, errors = self.verify(SPARSE, target, '--only', 'lengths', code=1, HEDDLE_TEMPLATES=str(templates))
            self.assertIn('it has to wait for ' + counter, out + errors)

    def test_the_loop_waits_for_counted_copies_only(self):
        """No wait of the compiler's own for all of them: it would empty the ring in every tile."""
        for target, counter in TARGETS.items():
            self.heddle('emit', SPARSE, '--target', target, '--kernel', 'decode', '--variant', 'ring', '-o', self.folder)
            source = next(self.folder.glob('*.%s.hip' % target))
            made = self.folder / (target + '.s')
            subprocess.run(['clang-22', '-x', 'hip', '--offload-arch=' + target, '--offload-device-only', '--no-gpu-bundle-output',
                            '-nogpuinc', '-nogpulib', '-O3', '-std=c++17', '-S', source, '-o', made], check=True)
            kernel = made.read_text().split('\nheddle_merge:')[0]
            copies = [m.start() for m in re.finditer(r'global_load_(async_to_)?lds', kernel)]
            loop = kernel[kernel.rindex('Loop Header', 0, copies[-1]):]  # the tiles', the last to copy
            loop = loop[:max(m.end() for m in re.finditer(r'in Loop: Header', loop))]
            of_loads = 'loadcnt' if target == 'gfx1250' else counter
            waits = [int(n, 0) for n in re.findall(counter + r'[ (](\w+)', loop)]
            self.assertTrue(waits and max(waits) > 16, waits)
            by_compiler = re.sub(r';;#ASMSTART.*?;;#ASMEND', '', loop, flags=re.S)
            self.assertEqual(re.findall(r'.*(?:%s|%s).*' % (counter, of_loads), by_compiler), [], target)


if __name__ == '__main__':
    unittest.main()
