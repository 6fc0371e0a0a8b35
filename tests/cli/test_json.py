"""Claims about --json: what every verb prints is what docs/json says, and docs/json.md is what docs/json says.

Case.json, which the other tests use too, holds each value against its schema; here every verb is run once.
"""
import json
import subprocess
import sys
import unittest
import npy
from json_schema import Schemas
from support import Case, SCHEMAS, SOURCE, SPECS

SPEC = SPECS / 'llama3-70b-tp8-bf16.yaml'
DEVICE = ('--device', 'emu:gfx950', '--compiler', 'llvm')
TENSORS = {'q': {'dtype': 'bf16', 'shape': [4, 16, 64]},
           'k_cache': {'dtype': 'bf16', 'shape': [16, 8, 16, 64]}, 'v_cache': {'dtype': 'bf16', 'shape': [16, 8, 16, 64]},
           'page_table': {'dtype': 'int32', 'shape': [4, 4]}, 'lengths': {'dtype': 'int32', 'shape': [4]}}


class Json(Case):
    def setUp(self):
        super().setUp()
        self.seen = set()

    def try_verb(self, *arguments, **options):
        words = str(arguments[0]), '%s %s' % (arguments[0], arguments[1] if len(arguments) > 1 else '')
        self.seen.add(words[1] if words[1] in SCHEMAS.names() else words[0])
        return self.json(*arguments, **options)

    def runnable(self):
        for verb in self.json('help')['verbs']:
            for one in [verb, *verb['actions']]:
                if one['runs']:
                    yield one['name']

    def test_every_verb_prints_what_its_schema_says(self):
        small = self.small(replace=[('targets: [gfx950]', 'targets: [gfx950]\ntune: {waves: [2], stages: [2]}')])
        bad = self.file('bad.yaml', 'heddle: 1\nkv: 3\n')
        request = self.file('request.json', json.dumps({'tensors': TENSORS, 'lse': True}))
        run = self.try_verb
        run('check', small, SPEC, bad, code=1)
        run('key', small)
        run('key', bad, code=1)
        run('diff', small, SPEC, code=1)
        run('new', '--from', request, '--kv-heads', 8)
        run('new', '--layout', 'nhd', '--kv-dtype', 'bf16', '--page', 16, '--head-dim', 64, '--heads-per-kv', 2, '-o', self.folder / 'new.yaml')
        run('tensors', small)
        run('tensors', small, '--kernel', 'write')
        run('match', '--request', request, '--target', 'gfx950', small)
        run('match', '--request', request, '--target', 'gfx950', SPEC, code=1)
        run('view', small, '--request', request, '--collapse-heads')
        run('layout', small)
        run('layout', small, '--at', '3,5')
        run('layout', SPECS / 'minimax-m3-dense-fp8.yaml', '--target', 'sm_90')
        run('plan', small, '--shape', '2x300x1')
        run('plan', SPECS / 'minimax-m3-dense-fp8.yaml', '--target', 'sm_90', '--shape', '2x300x1-ragged')
        run('emit', small)
        run('emit', small, '-o', self.folder / 'out')
        run('build', small, bad, '--verbose', '--compiler', 'llvm', code=1)
        run('pack', small, '--compiler', 'llvm', '-o', self.folder / 'a.pack')
        run('pack', '-o', self.folder / 'b.pack')
        run('inspect', small, '--kernel', 'decode', '--compiler', 'llvm')
        for action in (['ls'], ['verify'], ['path'], ['explain', small, '--compiler', 'llvm'], ['export', '-o', self.folder / 'c.pack'], ['prune', '--max-bytes', 0]):
            run('cache', *action)
        run('cache', 'explain', small, '--compiler', 'llvm', code=1)
        run('cache', 'import', self.folder / 'c.pack')
        run('cache', 'explain', SPEC, '--target', 'gfx950', '--compiler', 'llvm', code=1)
        for name, kind, shape in [('k', 'u2', (2, 1, 64)), ('slots', 'i8', (2,)), ('cache', 'u2', (4, 1, 16, 64))]:
            npy.write(self.folder / (name + '.npy'), kind, shape, [0] * npy.size_of(shape))
        tensors = ['--kernel', 'write', '--in', 'k=k.npy', '--in', 'v=k.npy', '--in', 'slot_mapping=slots.npy', '--in', 'k_cache=cache.npy',
                   '--in', 'v_cache=cache.npy', '--out', 'k_cache=out.npy']
        run('reference', small, *tensors)
        run('run', small, *tensors, *DEVICE, '--stats')
        run('verify', small, *DEVICE, '--only', 'lengths')
        run('bench', small, *DEVICE, '--shape', '2x32x1')
        record = self.folder / 'r.yaml'
        run('tune', small, *DEVICE, '--shape', '1x64x1', '--out', record)
        run('tune', small, '--list', '--target', 'gfx950')
        run('tune', 'show', record)
        run('tune', 'merge', record, record)
        run('tune', 'import', record, '--out', self.folder / 'tuned')
        run('tune', 'explain', small, '--target', 'gfx950', '--shape', '1x64x1')
        run('profile', small, *DEVICE, '--shape', '1x32x1')
        run('cache', 'clear')
        for verb in ('targets', 'doctor', 'explain', 'version', 'help'):
            run(verb)
        self.assertEqual(self.seen, set(self.runnable()))

    def test_there_is_a_schema_for_every_verb_and_none_for_others(self):
        self.assertEqual(SCHEMAS.names(), set(self.runnable()))

    def test_failures_are_of_one_form(self):
        for arguments, code in [(['key', 'nothing.yaml'], 3), (['diff', SPEC, 'nothing.yaml'], 3), (['emit', 'nothing.yaml'], 3), (['tune', 'show', 'nothing.yaml'], 3),
                                (['verify', 'nothing.yaml', '--device', 'emu:gfx950'], 3), (['reference', SPEC, '--kernel', 'decode', '--in', 'q=nothing.npy'], 3),
                                (['view', SPEC, '--request', 'nothing.json', '--collapse-heads'], 3)]:
            value = self.json(*arguments, code=code)
            self.assertEqual(SCHEMAS.failure_problems(value), [], arguments)

    def test_the_page_is_made_of_the_schemas(self):
        made = subprocess.run([sys.executable, SOURCE / 'tools' / 'json_doc.py'], capture_output=True, text=True, check=True).stdout
        self.assertEqual((SOURCE / 'docs' / 'json.md').read_text(), made, 'python3 tools/json_doc.py > docs/json.md')


class Validator(unittest.TestCase):
    """The validator itself finds what is wrong."""

    def test_it_refuses_what_a_schema_does_not_say(self):
        good = {'ok': False, 'status': 'declined', 'file': 'x', 'diagnostics': [
            {'severity': 'error', 'code': 'a.b', 'field': None, 'message': 'm', 'line': 1, 'column': 0}]}
        self.assertEqual(SCHEMAS.failure_problems(good), [])
        for change in [{'ok': True}, {'ok': 0}, {'status': 3}, {'more': 1}, {'diagnostics': {}}, {'diagnostics': [1]},
                       {'diagnostics': [dict(good['diagnostics'][0], severity='fatal')]}, {'diagnostics': [dict(good['diagnostics'][0], line=-1)]},
                       {'diagnostics': [dict(good['diagnostics'][0], line=1.5)]}, {'diagnostics': [dict(good['diagnostics'][0], field=True)]}]:
            self.assertNotEqual(SCHEMAS.failure_problems(dict(good, **change)), [], change)
        for name in good:
            self.assertNotEqual(SCHEMAS.failure_problems({k: v for k, v in good.items() if k != name}), [], name)
        self.assertNotEqual(SCHEMAS.problems({'file': 'x', 'name': 'y', 'key': 'not hex', 'canonical': ''}, 'key'), [])
        self.assertEqual(SCHEMAS.problems([good], 'build'), [])
        self.assertNotEqual(SCHEMAS.problems([dict(good, more=1)], 'build'), [])
        self.assertNotEqual(SCHEMAS.problems({'packed': 1}, 'pack'), [])

    def test_it_knows_every_keyword_that_the_schemas_use(self):
        def keywords(schema, properties=False):
            for key, value in schema.items():
                if not properties:
                    yield key
                if isinstance(value, dict):
                    yield from keywords(value, key in ('properties', '$defs') and not properties)
                for item in value if isinstance(value, list) else []:
                    if isinstance(item, dict):
                        yield from keywords(item)
        known = {'$' + name if name == 'ref' else name for name in (name[1:] for name in dir(Schemas) if name.startswith('_') and not name.startswith('__'))}
        from json_schema import NOTES
        for file in SCHEMAS.files.values():
            self.assertEqual(set(keywords(file)) - known - NOTES, set())


if __name__ == '__main__':
    unittest.main()
