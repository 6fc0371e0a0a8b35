#!/usr/bin/env python3
"""Resources of the shipped specs' AMD kernels, as a Markdown table: resources.py [--heddle build/heddle] [SPEC...]

Each kernel is emitted, compiled with clang (clang-22 or $HEDDLE_CLANG) and read back: registers, spills and LDS from the code
object's note, loads from its disassembly. Waves per SIMD are what registers and LDS leave room for.
"""
import argparse
import glob
import json
import os
import re
import subprocess
import tempfile

# Vector registers of a SIMD for one lane, the granule they are given in, most waves, LDS of a compute unit (WGP), its SIMDs.
# CDNA3, CDNA4 and RDNA4 ISA documents; nothing public says it for gfx1250.
UNITS = {'gfx942': (512, 8, 8, 65536, 4), 'gfx950': (512, 8, 8, 163840, 4), 'gfx1201': (1536, 24, 16, 131072, 4)}


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def tool(name):
    clang = os.environ.get('HEDDLE_CLANG', 'clang-22')
    return clang if name == 'clang' else clang.replace('clang', name)


def notes(path):
    """The kernels of a code object and their resources, from the metadata note."""
    kernels = []
    for block in re.split(r'\n  - (?=\.a)', run(tool('llvm-readelf'), '--notes', path))[1:]:
        field = lambda name: re.search(r'\.%s:\s+(\S+)' % name, block)
        number = lambda name: int(field(name).group(1)) if field(name) else 0
        names = re.findall(r'^    \.name:\s+(\S+)', block, re.M)
        if names:
            kernels.append((names[-1], number('vgpr_count'), number('vgpr_spill_count') + number('sgpr_spill_count'),
                            number('group_segment_fixed_size'), number('max_flat_workgroup_size'), number('wavefront_size')))
    return kernels


def share_of_wide_loads(path, kernel):
    """Of the bytes' loads from global memory: those of 16 bytes, in percent, weighed by bytes."""
    text = run(tool('llvm-objdump'), '-d', '--disassemble-symbols=' + kernel, path)
    widths = {'dwordx4': 16, 'b128': 16, 'dwordx3': 12, 'b96': 12, 'dwordx2': 8, 'b64': 8, 'dword': 4, 'b32': 4, 'ushort': 2, 'u16': 2,
              'd16_b16': 2, 'short_d16': 2, 'ubyte': 1, 'u8': 1}
    loads = [widths.get(w, 4) for w in re.findall(r'\tglobal_load_(?:lds_|async_to_lds_)?(\w+)', text)]
    return 100 * sum(w for w in loads if w == 16) / sum(loads) if loads else 0


def waves(target, vgprs, lds, threads, wave):
    if target not in UNITS:
        return '?'
    registers, granule, most, unit_lds, simds = UNITS[target]
    by_registers = min(most, registers // (-(-max(vgprs, 1) // granule) * granule))
    by_lds = most if not lds else unit_lds // lds * (threads // wave) // simds
    return str(max(1 if by_lds else 0, min(by_registers, by_lds)))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    parser.add_argument('--heddle', default=os.path.join(root, 'build', 'heddle'))
    parser.add_argument('--variant', default='default', help='skips targets that have none such')
    parser.add_argument('specs', nargs='*', default=sorted(glob.glob(os.path.join(root, 'specs', '*.yaml'))))
    options = parser.parse_args()
    print('| spec | kernel | target | VGPRs | spills | LDS, bytes | waves per SIMD | 16-byte loads, % of bytes loaded |')
    print('|---|---|---|---|---|---|---|---|')
    with tempfile.TemporaryDirectory() as folder:
        for spec in options.specs:
            name = os.path.splitext(os.path.basename(spec))[0]
            for target in ('gfx942', 'gfx950', 'gfx1201', 'gfx1250'):
                emit = [options.heddle, 'emit', spec, '--target', target, '-o', folder]
                if options.variant != 'default':
                    emit += ['--kernel', 'decode', '--variant', options.variant]
                if subprocess.run(emit, capture_output=True).returncode == 1:
                    continue
                for source in sorted(glob.glob(os.path.join(folder, '*.%s.hip' % target))):
                    operation = source.split('.')[-3]
                    with open(source[:-4] + '.json') as f:
                        descriptor = json.load(f)
                    run(tool('clang'), '-x', 'hip', '--offload-arch=' + target, '--offload-device-only', '--no-gpu-bundle-output',
                        '-nogpuinc', '-nogpulib', '-std=c++17', '-O3', source, '-o', source + '.co')
                    for kernel, vgprs, spills, lds, threads, wave in notes(source + '.co'):
                        lds += sum(k.get('lds_bytes', 0) for k in descriptor['kernels'] if k['symbol'] == kernel)
                        print('| %s | %s | %s | %d | %d | %d | %s | %.0f |' % (
                            name, kernel.replace('heddle_', ''), target, vgprs, spills, lds,
                            waves(target, vgprs, lds, threads, wave), share_of_wide_loads(source + '.co', kernel)))
                    os.remove(source)
                    os.remove(source[:-4] + '.json')


if __name__ == '__main__':
    main()
