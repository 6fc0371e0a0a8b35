#!/usr/bin/env python3
"""Resources of the shipped specs' AMD kernels, as a Markdown table: resources.py [--heddle build/heddle] [SPEC...]

What `heddle inspect` reads from the code objects that clang makes: registers, spills, LDS, loads, and how many waves they leave room for.
"""
import argparse
import glob
import json
import os
import subprocess


def inspected(heddle, spec, target, variant):
    """The kernels of a spec on a target, of a variant those that it changes; none where it is declined."""
    command = [heddle, 'inspect', spec, '--target', target, '--compiler', 'llvm', '--variant', variant, '--json']
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode == 1:
        return []
    done.check_returncode()
    return [k for k in json.loads(done.stdout) if variant == 'default' or k['kernel'] != 'heddle_write']


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    parser.add_argument('--heddle', default=os.path.join(root, 'build', 'heddle'))
    parser.add_argument('--variant', default='default', help='skips targets that have none such')
    parser.add_argument('specs', nargs='*', default=sorted(glob.glob(os.path.join(root, 'specs', '*.yaml'))))
    options = parser.parse_args()
    listed = json.loads(subprocess.run([options.heddle, 'targets', '--json'], check=True, capture_output=True, text=True).stdout)
    targets = [t['name'] for t in listed if t['family'] != 'cuda']
    print('| spec | kernel | target | VGPRs | spills | LDS, bytes | waves per SIMD | 16-byte loads, % of bytes loaded |')
    print('|---|---|---|---|---|---|---|---|')
    for spec in options.specs:
        name = os.path.splitext(os.path.basename(spec))[0]
        for target in targets:
            for k in inspected(options.heddle, spec, target, options.variant):
                print('| %s | %s | %s | %d | %d | %d | %s | %.0f |' % (
                    name, k['kernel'].replace('heddle_', ''), target, k['vgprs'], k['vgpr_spills'] + k['sgpr_spills'], k['lds_bytes'],
                    k.get('waves_per_simd', '?'), 100 * k['all']['share_16']))


if __name__ == '__main__':
    main()
