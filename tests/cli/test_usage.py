"""Claims about words, options, help and exit codes."""
import unittest
from support import Case, SPECS

SPEC = SPECS / 'minimax-m3-dense-fp8.yaml'


class Usage(Case):
    def test_help_wins_over_missing_arguments(self):
        self.heddle('diff', '--help')

    def test_no_verb_is_a_usage_error_with_the_overview(self):
        _, errors = self.heddle(code=2)
        self.assertIn('usage: heddle VERB', errors)

    def test_an_unknown_verb_gets_the_nearest(self):
        for word, near in [('chekc', 'check'), ('ky', 'key'), ('verfy', 'verify'), ('ref', 'reference')]:
            self.assertIn('did you mean %s?' % near, self.heddle(word, code=2)[1])
        self.assertNotIn('did you mean', self.heddle('zzzzzz', code=2)[1])

    def test_an_unknown_option_gets_the_nearest(self):
        self.assertIn('did you mean --target?', self.heddle('check', '--tagret', 'gfx950', SPEC, code=2)[1])
        self.assertIn('did you mean --json?', self.heddle('key', '--jsno', SPEC, code=2)[1])
        self.assertIn('unknown option -x', self.heddle('key', '-x', SPEC, code=2)[1])
        self.assertIn("unknown option '--zzz'", self.heddle('--zzz', code=2)[1])

    def test_words_that_are_equally_near_are_all_named(self):
        for arguments, near in ((['ver'], 'verify or version'), (['explain', 'bench'], 'bench.memory, bench.page or bench.rows'),
                                (['run', SPEC, '--kernel', 'decode', '--device', 'emu:gfx950', '--in', 'cache=k.npy'], 'k_cache or v_cache'),
                                (['new', '--out', 'a.yaml'], '--output or --output-dtype'), (['key', '--quit', SPEC], '--quiet'),
                                (['benchmark', SPEC], 'bench'), (['new', '--dtype', 'bf16'], '--kv-dtype'), (['new', '--scale', 'per_tensor'], 'tensor'),
                                (['check', '--target', 'gfx940', SPEC], 'gfx942'), (['check', '--target', 'gfx10', SPEC], 'gfx1201 or gfx1250')):
            self.assertIn('(did you mean %s?)' % near, self.heddle(*arguments, code=2)[1])

    def test_an_unknown_target_gets_the_nearest(self):
        self.assertIn('did you mean gfx950?', self.heddle('check', '--target', 'gfx905', SPEC, code=2)[1])
        for product, target in (('mi300x', 'gfx942'), ('MI325X', 'gfx942'), ('h100', 'sm_90')):
            self.assertIn('did you mean %s?' % target, self.heddle('check', '--target', product, SPEC, code=2)[1])
        self.assertIn('did you mean "gfx950"?', self.heddle('check', self.small(replace=[('[gfx950]', '[gfx905]')]), code=1)[1])

    def test_an_unknown_device_gets_the_nearest(self):
        for word, near in [('gfx950', 'emu:gfx950'), ('cuda', 'cuda:0'), ('hip', 'hip:0'), ('emu:gfx905', 'emu:gfx950'),
                           ('cuda:x', 'cuda:0'), ('emu:sm_90', None)]:
            errors = self.heddle('verify', SPEC, '--device', word, code=2)[1]
            self.assertIn("unknown device '%s'" % word, errors)
            self.assertEqual('did you mean %s?' % near in errors, near is not None, errors)

    def test_an_unknown_action_gets_the_nearest(self):
        self.assertIn('did you mean prune?', self.heddle('cache', 'prun', code=2)[1])
        self.assertIn('did you mean merge?', self.heddle('tune', 'mrege', 'a.yaml', code=2)[1])
        # tune also takes a spec, and there may be one of that name
        self.file('mrege', SPEC.read_text())
        self.assertIn('--device is missing', self.heddle('tune', 'mrege', code=2)[1])

    def test_actions_stand_before_or_behind_options(self):
        plain = self.heddle('cache', 'prune', '--max-bytes', '5', '--json')
        self.assertEqual(self.heddle('cache', '--max-bytes', '5', '--json', 'prune'), plain)
        self.assertEqual(self.heddle('cache', '--json', 'prune', '--max-bytes=5'), plain)

    def test_an_unknown_field_of_a_spec_gets_the_nearest(self):
        spec = self.small(replace=[('page: 16', 'pgae: 16'), ('output: {dtype', 'output: {dtpye')])
        errors = self.heddle('check', spec, code=1)[1]
        self.assertIn('did you mean "page"?', errors)
        self.assertIn('did you mean "dtype"?', errors)

    def test_shipped_specs_are_known_by_name(self):
        plain = self.heddle('key', '-q', SPEC)
        self.assertEqual(self.heddle('key', '-q', 'minimax-m3-dense-fp8'), plain)
        for path in SPECS.glob('*.yaml'):
            self.heddle('check', '-q', path.stem)
        for word in ('minimax-m3-dense-fp', 'minimax-m3-dense-pf8.yaml'):
            self.assertIn('did you mean the shipped spec minimax-m3-dense-fp8?', self.heddle('key', word, code=3)[1])
        self.assertNotIn('did you mean', self.heddle('key', 'something-else.yaml', code=3)[1])
        # a file of that name wins
        self.file('minimax-m3-dense-fp8', (SPECS / 'nhd-fp16.yaml').read_text())
        self.assertNotEqual(self.heddle('key', '-q', 'minimax-m3-dense-fp8'), plain)

    def test_quiet_leaves_errors_exit_codes_and_what_was_asked_for(self):
        self.assertEqual(self.heddle('check', '--quiet', SPEC), ('', ''))
        self.assertEqual(self.heddle('diff', '-q', SPEC, SPECS / 'nhd-fp16.yaml', code=1), ('', ''))
        self.assertEqual(self.heddle('targets', '-q'), ('', ''))
        self.assertEqual(self.heddle('key', '-q', SPEC)[0].count('\n'), 1)
        emitted = self.heddle('emit', SPEC, '--target', 'gfx950', '--kernel', 'write')
        self.assertEqual(self.heddle('emit', '-q', SPEC, '--target', 'gfx950', '--kernel', 'write'), emitted)
        self.assertTrue(self.json('check', '-q', SPEC)[0]['ok'])
        output, errors = self.heddle('check', '-q', self.small(replace=[('page: 16', 'pgae: 16')]), code=1)
        self.assertEqual(output, '')
        self.assertIn('error: unknown field', errors)

    def test_errors_end_in_what_to_type_next(self):
        good, bad = self.small(), self.file('bad.yaml', 'heddle: 2\n')
        wide = self.file('wide.yaml', good.read_text().replace('head_dim: 64', 'head_dim: 100'))
        request = self.file('r.json', '{"tensors": {}}')
        for arguments, code, expected in [
            (['chekc'], 2, 'heddle check'),
            (['check', '--tagret', 'x', good], 2, 'heddle check --help'),
            (['emit', 'nothing.yaml'], 3, 'heddle new -o nothing.yaml'),
            (['emit', bad], 1, 'heddle check %s' % bad),
            (['emit', wide, '--target', 'gfx950'], 1, 'heddle check %s' % wide),
            (['build', wide, '--target', 'gfx950'], 1, 'heddle check %s' % wide),
            (['reference', good, '--kernel', 'write'], 1, 'heddle tensors %s' % good),
            (['match', '--request', request, '--target', 'gfx950', good], 1, 'heddle new --from %s' % request),
            (['match', '--request', bad, '--target', 'gfx950', good], 1, 'heddle tensors minimax-m3-dense-fp8'),
            (['verify', good, '--device', 'cuda:0'], 3, 'heddle doctor'),
            (['emit', '-', '--target', 'gfx950'], 1, 'heddle explain spec.type'),
            (['new', '--layout', 'nhd', '--kv-dtype', 'bf16', '--page', '16', '--head-dim', '100', '--heads-per-kv', '8'], 1, 'heddle explain decline.head-dim'),
            (['check', bad], 1, 'heddle explain spec.version'),
            (['check', wide, '--target', 'gfx950'], 1, 'heddle explain decline.head-dim'),
            (['reference', good, '--kernel', 'decode', '--in', 'q=%s' % good], 1, 'heddle explain npy.magic'),
        ]:
            errors = self.heddle(*arguments, code=code, stdin='', HEDDLE_CUDA_LIBRARY='/nowhere')[1]
            last = errors.splitlines()[-1]
            self.assertEqual(last[5:] if last.startswith('try: ') else None, expected, errors)
            if code != 2:
                self.assertNotIn('try: ', self.heddle(*arguments, '-q', code=code, stdin='', HEDDLE_CUDA_LIBRARY='/nowhere')[1])

    def test_no_file_is_called_as_standard_output_is(self):
        for arguments, more in ((['new', '--layout', 'nhd', '-o', '-'], ': left out, it is standard output'), (['emit', SPEC, '-o', '-'], ': left out'),
                                (['pack', SPEC, '-o', '-'], ''), (['build', SPEC, '--embed', 'c', '--output=-'], '')):
            self.assertIn('--output takes a name, not -' + more, self.heddle(*arguments, code=2)[1])
            self.assertFalse((self.folder / '-').exists())

    def test_a_variant_that_is_not_served_is_explained(self):
        errors = self.heddle('emit', SPEC, '--target', 'gfx950', '--kernel', 'decode', '--variant', 'w3', code=1)[1]
        self.assertIn('try: heddle explain decline.waves', errors)

    def test_what_can_not_be_inspected_is_said_before_anything_is_compiled(self):
        errors = self.heddle('inspect', self.small(replace=[('[gfx950]', '[gfx950, sm_90]')]), '--target', 'sm_90', code=1, HEDDLE_WORKER='/nowhere')[1]
        self.assertIn("sm_90's kernels are no AMD code objects", errors)

    def test_codes_are_explained(self):
        import re
        found = {row['code']: row for row in self.json('explain')}
        self.assertGreater(len(found), 120)
        # Every code of the tables is there, and every code has a cause and a cure.
        for line in (SPECS.parent / 'docs' / 'declines.md').read_text().splitlines():
            for code in re.findall(r'^\| `([a-z]+\.[a-z-]+)`', line):
                self.assertIn(code, found)
        for row in found.values():
            self.assertTrue(row['cause'] and row['cure'], row['code'])
            self.assertNotIn('`', row['cause'] + row['cure'])
            self.assertTrue((SPECS.parent / 'docs' / row['document']).exists())
        output = self.heddle('explain', 'decline.head-dim')[0]
        self.assertIn('decline.head-dim (', output)
        self.assertIn('cure:', output)
        self.assertIn('did you mean decline.head-dim?', self.heddle('explain', 'decline.headdim', code=2)[1])

    def test_progress_is_for_terminals(self):
        spec = self.small()
        shown = self.on_terminal('build', spec, '--compiler', 'llvm')
        self.assertIn('\r[1/2] kernels', shown)
        self.assertTrue(shown.endswith('\r\033[K'), 'the line is taken away in the end')
        verify = ['verify', spec, '--device', 'emu:gfx950', '--compiler', 'llvm', '--only', 'zero']
        shown = self.on_terminal(*verify)
        count = len(self.json(*verify)['cases'])
        self.assertIn('[%d/%d] cases' % (count, count), shown)
        for more, variables in [(['-q'], {}), ([], {'TERM': 'dumb'})]:
            self.assertEqual(self.on_terminal(*verify, *more, **variables), '')
        self.assertEqual(self.heddle('build', spec, '--compiler', 'llvm')[1], '')

    def test_colour_is_for_terminals_and_for_those_who_ask(self):
        bad = self.small(replace=[('page: 16', 'pgae: 16')])
        self.assertNotIn('\033', self.heddle('check', bad, code=1)[1])
        self.assertNotIn('\033', self.heddle('check', '--color', 'never', bad, code=1)[1])
        self.assertIn('\033[1;31merror: \033[0m', self.heddle('check', '--color=always', bad, code=1)[1])
        for variables, coloured in [({}, True), ({'NO_COLOR': '1'}, False), ({'TERM': 'dumb'}, False)]:
            self.assertEqual('\033[' in self.on_terminal('check', bad, **variables), coloured, variables)

    def on_terminal(self, *arguments, **environment):
        """What the command writes to standard error where that is a terminal."""
        import os
        import pty
        import subprocess
        from support import HEDDLE
        ours, theirs = pty.openpty()
        subprocess.run([HEDDLE, *map(str, arguments)], stdout=subprocess.DEVNULL, stderr=theirs, cwd=self.folder,
                       env=dict(self.environment, **{'TERM': 'xterm', 'NO_COLOR': '', **environment}))
        os.close(theirs)
        found = b''
        try:
            while piece := os.read(ours, 65536):
                found += piece
        except OSError:  # the other side is closed
            pass
        os.close(ours)
        return found.decode()

    def test_values_of_options_are_checked(self):
        for arguments, message in [
            (['build', '-j', '0', SPEC], 'allowed are 1 to'),
            (['build', '-jx', SPEC], 'whole number'),
            (['build', '--timeout', 'soon', SPEC], 'takes a number'),
            (['build', '--timeout', '-1', SPEC], 'positive'),
            (['build', '--compiler', 'gcc', SPEC], 'unknown compiler'),
            (['build', SPEC, '--jobs'], 'needs a value'),
            (['build', '--verbose=1', SPEC], 'takes no value'),
            (['emit', '--kernel', 'read', SPEC], 'unknown kernel'),
            (['emit', '--variant', '???', SPEC], 'not a variant'),
            (['emit', '--variant', 'w4s3', SPEC], 'joined by -, direct or ring, line, wN'),
            (['verify', SPEC], '--device is missing'),
            (['run', SPEC, '--kernel', 'decode'], '--device is missing'),
            (['verify', SPEC, '--device', 'emu:gfx950', '--seed', '99999999999999999999'], 'whole number'),
            (['cache', 'list'], 'unknown action'),
            (['cache'], 'missing argument'),
            (['key'], 'missing argument'),
            (['key', SPEC, SPEC], 'unexpected argument'),
            (['bench', SPEC, '--device', 'emu:gfx950', '--preset', 'decod'], 'did you mean decode?'),
            (['build', SPEC, '--compiler', 'nvrct'], 'did you mean nvrtc?'),
            (['check', SPEC, '--color', 'alway'], 'did you mean always?'),
            (['cache', 'ls', 'what'], 'unexpected argument'),
            (['cache', 'ls', '--max-bytes', '1'], 'unknown option --max-bytes'),
            (['tune', 'show'], 'missing argument'),
            (['help', 'chekc'], 'did you mean check?'),
            (['help', 'cache', 'lss'], 'no action'),
        ]:
            output, errors = self.heddle(*arguments, code=2)
            self.assertIn(message, errors)
            self.assertEqual(output, '')

    def test_options_come_in_every_usual_form_and_place(self):
        plain = self.heddle('check', '--target', 'gfx950', SPEC)
        self.assertEqual(self.heddle('check', SPEC, '--target=gfx950'), plain)
        self.assertEqual(self.heddle('check', '--target=gfx950', '--', SPEC), plain)

    def test_a_result_that_can_not_be_written_is_a_failure(self):
        import subprocess
        from support import HEDDLE
        with open('/dev/full', 'w') as full:
            done = subprocess.run([HEDDLE, 'targets'], stdout=full, stderr=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 3)
        self.assertIn('standard output', done.stderr)


if __name__ == '__main__':
    unittest.main()
