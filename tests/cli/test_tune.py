"""Claims about tune on the emulated device: records, resuming, replaying, dispatch by records."""
import json
import pathlib
import tempfile
import unittest
from support import SMALL, CachedCase, Case, SPECS

# A shipped contract with less to try.
FOLDER = tempfile.TemporaryDirectory()
SPEC = pathlib.Path(FOLDER.name) / 'spec.yaml'
SPEC.write_text((SPECS / 'nhd-fp16.yaml').read_text() + 'tune: {waves: [1, 2], stages: [2]}\n')
SHAPES = ('--shape', '1x256x1', '--shape', '8x256x1-ragged')
TUNE = ('tune', SPEC, '--device', 'emu:gfx950', '--compiler', 'llvm')


class Tune(CachedCase):
    def tune(self, *more, out='r.yaml', **options):
        return self.json(*TUNE, '--out', self.folder / out, *more, **options)

    def test_a_record_is_made_continued_and_replayed(self):
        record, log = self.folder / 'r.yaml', self.folder / 'times.log'
        first = self.tune(*SHAPES[:2], '--log', log)
        self.assertEqual((first['measured'], first['kept'], first['evidence']), (1, 0, 'simulated'))
        self.assertIn('evidence: simulated', record.read_text())
        self.assertIn('direct-o3', [p['variant'] for p in first['pruned']])
        second = self.tune(*SHAPES, '--log', log)
        self.assertEqual((second['measured'], second['kept']), (1, 1))
        self.assertEqual(log.read_text().count('time 1x256x1 default 1 3 '), 1, 'what is in the record is not measured again')
        self.assertEqual(self.heddle(*TUNE, '--out', record, *SHAPES, '--quiet'), ('', ''))
        # The same times give the same record, without a device.
        self.heddle('tune', SPEC, '--timings', log, '--out', self.folder / 'again.yaml', *SHAPES, HEDDLE_EMU_LIBRARY='/nowhere')
        self.assertEqual((self.folder / 'again.yaml').read_text(), record.read_text())
        # Other times give another one.
        slower = ''.join(line if not line.startswith('time 1x256x1 default') else line.rsplit(' ', 1)[0] + ' 1000\n'
                         for line in log.read_text().splitlines(True))
        self.heddle('tune', SPEC, '--timings', self.file('slower.log', slower), '--out', self.folder / 'slower.yaml', *SHAPES)
        entries = self.json('tune', 'show', self.folder / 'slower.yaml')[0]['entries']
        self.assertNotEqual(entries[0]['variant'], 'default')
        self.assertEqual(entries[0]['policy_us'], 1000)
        # A variant that was wrong is dropped in the replay too.
        out = self.heddle('tune', SPEC, '--timings', self.file('wrong.log', log.read_text() + 'wrong 1x256x1 default 1 made up\n'),
                          '--out', self.folder / 'wrong.yaml', *SHAPES)
        self.assertIn('dropped default split 1 at 1x256x1: made up', out[1])
        # Times that are missing are said.
        _, errors = self.heddle('tune', SPEC, '--timings', log, '--out', self.folder / 'more.yaml', '--shape', '2x256x1', code=1)
        self.assertIn('have no number for "time 2x256x1', errors)

    def test_dispatch_takes_what_the_record_says(self):
        log = self.folder / 'times.log'
        self.tune(*SHAPES[:2], '--log', log)
        times = ''.join(line if ' direct-w2 2 ' not in line else line.rsplit(' ', 1)[0] + ' 0.5\n' for line in log.read_text().splitlines(True))
        record = self.folder / 'tuned' / 'chosen.yaml'
        record.parent.mkdir()
        self.heddle('tune', SPEC, '--timings', self.file('fast.log', times), '--out', record, *SHAPES[:2])
        bench = ('bench', SPEC, '--device', 'emu:gfx950', '--compiler', 'llvm', '--shape', '1x300x1')
        result = self.json(*bench, '--tuned', record)['results'][0]
        self.assertEqual((result['variant'], result['split'], result['tuned'], result['by_policy']), ('direct-w2', 2, True, False))
        self.assertIn('bucket 1x256x1', result['choice'])
        # A folder, the variable, and a folder beside the spec do as well; none and a variant that is asked for come first.
        self.assertTrue(self.json(*bench, '--tuned', record.parent)['results'][0]['tuned'])
        self.assertTrue(self.json(*bench, HEDDLE_TUNED_DIR=str(record.parent))['results'][0]['tuned'])
        beside = self.file('copy.yaml', SPEC.read_text())
        self.assertTrue(self.json('bench', beside, *bench[2:])['results'][0]['tuned'])
        for more in (['--tuned', 'none'], ['--tuned', record, '--variant', 'w4'], ['--tuned', record, '--split', '3']):
            result = self.json(*bench, *more)['results'][0]
            self.assertFalse(result['tuned'])
        # Another contract, and a generator that emits other source: the policy, and why.
        result = self.json(*bench[:-1], '1x300x1x2', '--tuned', record)['results'][0]
        self.assertIn('it is for contract', result['choice'])
        text = record.read_text().splitlines(True)
        stale = self.file('stale.yaml', ''.join('  direct-w2: ' + '0' * 64 + '\n' if line.startswith('  direct-w2: ') else line for line in text))
        result = self.json(*bench, '--tuned', stale)['results'][0]
        self.assertEqual(result['variant'], 'default')
        self.assertIn('differently', result['choice'])
        out, _ = self.heddle('tune', 'explain', SPEC, '--target', 'gfx950', '--shape', '1x300x1', '--tuned', record)
        self.assertIn('direct-w2, split 2', out)
        self.matched(record)
        out, _ = self.heddle('tune', 'explain', SPEC, '--target', 'gfx950', '--shape', '1x300x1', '--tuned', stale)
        self.assertIn('ignored', out)
        self.assertIn('tune again', out)

    def matched(self, record):
        """A match says the same of the record: variant, split and where they come from."""
        def request(name, **more):
            shapes = {'q': [1, 4, 64], 'k_cache': [32, 16, 1, 64], 'v_cache': [32, 16, 1, 64], 'out': [1, 4, 64]}
            tensors = {n: {'dtype': 'fp16', 'shape': shape} for n, shape in shapes.items()}
            tensors |= {'page_table': {'dtype': 'int32', 'shape': [1, 32]}, 'lengths': {'dtype': 'int32', 'shape': [1]}}
            return self.file(name, json.dumps({'tensors': tensors, **more}))

        def match(asked, *more):
            return self.json('match', SPEC, '--target', 'gfx950', '--request', asked, *more)

        asked = request('request.json', longest=300)
        launch = match(asked, '--tuned', record)['launch']
        explained = self.json('tune', 'explain', SPEC, '--target', 'gfx950', '--shape', '1x300x1', '--tuned', record)
        self.assertEqual(launch, explained)
        self.assertEqual((launch['variant'], launch['split'], launch['tuned'], launch['file']), ('direct-w2', 2, True, str(record)))
        words = self.heddle('match', SPEC, '--target', 'gfx950', '--request', asked, '--tuned', record)[0]
        self.assertIn('1x300x1: direct-w2, split 2\n', words)
        self.assertIn('bucket 1x256x1', words)
        # Without a length: what the page table has room for. A split that is asked for is the one that is launched.
        self.assertEqual(match(request('room.json'), '--tuned', record)['launch']['shape'], '1x512x1')
        self.assertEqual(match(request('split.json', longest=300, splits=5), '--tuned', record)['launch']['split'], 5)
        untuned = match(asked, '--tuned', 'none')['launch']
        self.assertEqual((untuned['variant'], untuned['tuned']), ('default', False))
        self.assertNotIn('launch', match(asked))
        _, errors = self.heddle('match', SPEC, '--target', 'gfx950', '--request', asked, '--tuned', 'nowhere', code=3)
        self.assertIn('there is no nowhere', errors)

    def test_rows_over_ragged_lists_are_buckets_of_their_own(self):
        spec = self.file('rows.yaml', SMALL.replace('rows: 1', 'rows: 3') + 'select: {form: indptr}\ntune: {waves: [1], stages: [2]}\n')
        log, record = self.folder / 'times.log', self.folder / 'r.yaml'
        tune = ('tune', spec, '--device', 'emu:gfx950', '--out', record, '--log', log)
        self.assertEqual(self.json(*tune, '--shape', '1x96x1')['measured'], 1)
        more = self.json(*tune, '--shape', '1x96x1', '--shape', '1x96x1-2rows-ragged', '--rows', '1')
        self.assertEqual((more['measured'], more['kept']), (2, 0))
        entries = self.json('tune', 'show', record)[0]['entries']
        self.assertEqual(sorted((e['rows'], e['ragged']) for e in entries), [(1, False), (2, True), (3, False)])
        self.assertIn('  1x96x1-3rows ', self.heddle('tune', 'show', record)[0])
        # The times say their rows: a replay gives the same record.
        shapes = [word for e in entries for word in ('--shape', '1x96x1-%drows%s' % (e['rows'], '-ragged' * e['ragged']))]
        self.heddle('tune', spec, '--timings', log, '--out', self.folder / 'again.yaml', *shapes)
        self.assertEqual((self.folder / 'again.yaml').read_text(), record.read_text())
        # A launch takes the bucket of its rows, here by name and of the spec.
        bench = ('bench', spec, '--device', 'emu:gfx950', '--shape', '1x96x1', '--tuned', record)
        explain = ('tune', 'explain', spec, '--target', 'gfx950', '--tuned', record, '--shape')
        self.assertIn('bucket 1x96x1-3rows', self.json(*bench)['results'][0]['choice'])
        self.assertEqual(self.json(*explain, '1x96x1')['bucket'], '1x96x1-3rows')
        self.assertEqual(self.json(*explain, '1x96x1-1rows')['bucket'], '1x96x1')
        self.assertFalse(self.json(*bench, '--rows', '2')['results'][0]['tuned'], 'that one is ragged')
        _, errors = self.heddle(*tune, '--shape', '1x96x1-4rows', code=1)
        self.assertIn('bench.rows', errors)
        # Where each row has a list, rows are counted as sequences.
        by_row = self.file('by_row.yaml', spec.read_text().replace('indptr}', 'indptr, per: row}'))
        self.assertEqual(self.json('tune', 'explain', by_row, '--target', 'gfx950', '--shape', '1x96x1')['shape'], '1x96x1')

    def test_a_spent_budget_leaves_a_record_to_go_on_with(self):
        # One second is spent before the second shape's estimate would end, on any machine: compiling alone takes longer.
        value = self.tune(*SHAPES, '--budget', '1', '--seed', '7')
        self.assertLessEqual(value['measured'], 2)
        self.assertEqual(value['complete'], value['measured'] == 2)
        value = self.tune(*SHAPES, '--seed', '7')
        self.assertEqual(value['measured'] + value['kept'], 2)
        self.assertTrue(value['complete'])

    def test_merge_and_import_take_all_or_nothing(self):
        self.tune(*SHAPES[:2], out='a.yaml')
        self.tune(*SHAPES[2:], out='b.yaml')
        both = self.heddle('tune', 'merge', 'a.yaml', 'b.yaml')[0]
        self.assertEqual(both, self.heddle('tune', 'merge', 'b.yaml', 'a.yaml')[0])
        self.assertEqual(both.count('seqs: '), 2)
        self.heddle('tune', 'import', 'a.yaml', 'b.yaml', '--out', 'all')
        imported = list((self.folder / 'all').iterdir())
        self.assertEqual([p.read_text() for p in imported], [both])
        broken = self.file('broken.yaml', both.replace('target: "gfx950"', 'target: "gfx949"'))
        _, errors = self.heddle('tune', 'import', 'a.yaml', broken, '--out', 'none', code=1)
        self.assertIn('tune.record', errors)
        self.assertFalse((self.folder / 'none' ).exists() and list((self.folder / 'none').iterdir()))
        other = self.file('other.yaml', both.replace('compute_units: 256', 'compute_units: 255'))
        _, errors = self.heddle('tune', 'merge', 'a.yaml', other, code=1)
        self.assertIn('compute_units', errors)

    def test_a_record_of_something_else_is_not_written_over(self):
        path = self.folder / 'r.yaml'
        self.tune(*SHAPES[:2])
        lines = [line if not line.startswith('contract: ') else 'contract: "%s"\n' % ('0' * 64) for line in path.read_text().splitlines(True)]
        path.write_text(''.join(lines))
        _, errors = self.heddle(*TUNE, '--out', path, *SHAPES[:2], code=1)
        self.assertIn('another contract', errors)
        self.assertEqual(path.read_text(), ''.join(lines))
        # One that the generator has left behind is begun anew.
        lines = self.json(*TUNE, '--out', self.folder / 's.yaml', *SHAPES[:2]) and (self.folder / 's.yaml').read_text().splitlines(True)
        stale = ''.join(line[:line.index(':')] + ': ' + '0' * 64 + '\n' if line.startswith('  ') and line[2] != '-' else line for line in lines)
        (self.folder / 's.yaml').write_text(stale)
        _, errors = self.heddle(*TUNE, '--out', self.folder / 's.yaml', *SHAPES[:2])
        self.assertIn('begun anew', errors)
        self.assertEqual((self.folder / 's.yaml').read_text(), ''.join(lines))

    def test_what_is_asked_for_wrongly_is_refused(self):
        for words, message in [
            ((SPEC,), '--device is missing'),
            ((SPEC, '--device', 'emu:gfx950', '--shape', '4x4'), 'not a shape'),
            ((SPEC, '--device', 'emu:gfx950', '--shape', '4x4x4x4'), 'not a shape'),
            ((SPEC, 'more', '--device', 'emu:gfx950'), "unexpected argument 'more'"),
            (('merge', 'a'), 'tune merge RECORD RECORD'),
            (('show',), 'show RECORD'),
            (('explain', SPEC), '--shape is missing'),
            (('explain', SPEC, '--shape', '4x4x4'), '--target is missing'),
            (('import', 'a'), '--out is missing'),
        ]:
            _, errors = self.heddle('tune', *words, code=2)
            self.assertIn(message, errors)
        _, errors = self.heddle('tune', 'show', 'nothing.yaml', code=3)
        self.assertIn("can't read nothing.yaml", errors)
        _, errors = self.heddle('bench', SPEC, '--device', 'emu:gfx950', '--tuned', 'nowhere', code=3)
        self.assertIn('there is no nowhere', errors)
        _, errors = self.heddle('tune', SPEC, '--timings', self.file('bad.log', 'what is this\n'), code=1)
        self.assertIn('none of a timings file', errors)

    def test_a_broken_record_that_nobody_named_is_a_warning(self):
        folder = self.folder / 'tuned'
        folder.mkdir()
        (folder / 'x.yaml').write_text('heddle_tuned: 1\n')
        command = ('bench', SPEC, '--device', 'emu:gfx950', '--compiler', 'llvm', '--shape', '1x64x1')
        self.heddle(*command, '--tuned', folder, code=1)
        self.assertEqual(self.json(*command, HEDDLE_TUNED_DIR=str(folder))['results'][0]['tuned'], False)


class Shipped(Case):
    def test_shipped_records_are_records_of_shipped_specs(self):
        keys = {self.json('key', spec)['key'] for spec in sorted(SPECS.glob('*.yaml'))}
        for path in sorted((SPECS / 'tuned').glob('*.yaml')):
            record, = self.json('tune', 'show', path)
            self.assertTrue(record['entries'], path.name)
            self.assertTrue((SPECS / (record['name'] + '.yaml')).exists(), path.name)
            if '.g' not in path.name and '.p' not in path.name:
                self.assertIn(record['contract'], keys, path.name)


if __name__ == '__main__':
    unittest.main()
