"""Claims about words, options, help and exit codes."""
import unittest
from support import Case, SPECS

VERBS = ['check', 'key', 'diff', 'match', 'view', 'emit', 'build', 'run', 'reference', 'verify', 'cache', 'targets', 'doctor']
SPEC = SPECS / 'minimax-m3-dense-fp8.yaml'


class Usage(Case):
    def test_every_verb_has_help_with_examples_and_exit_codes(self):
        overview, _ = self.heddle('--help')
        for verb in VERBS:
            self.assertIn(verb, overview)
            for way in ([verb, '--help'], [verb, '-h'], ['help', verb]):
                help_text, errors = self.heddle(*way)
                self.assertIn('heddle %s' % verb, help_text.split('examples:')[1])
                self.assertIn('exit codes: 0', help_text)
                self.assertEqual(errors, '')

    def test_no_lines_of_help_are_too_wide(self):
        for verb in VERBS:
            for line in self.heddle('help', verb)[0].splitlines():
                self.assertLessEqual(len(line), 120, line)

    def test_help_wins_over_missing_arguments(self):
        self.heddle('diff', '--help')

    def test_no_verb_is_a_usage_error_with_the_overview(self):
        _, errors = self.heddle(code=2)
        self.assertIn('verbs:', errors)

    def test_an_unknown_verb_gets_the_nearest(self):
        for word, near in [('chekc', 'check'), ('ky', 'key'), ('verfy', 'verify'), ('ref', 'reference')]:
            self.assertIn('did you mean %s?' % near, self.heddle(word, code=2)[1])
        self.assertNotIn('did you mean', self.heddle('zzzzzz', code=2)[1])

    def test_an_unknown_option_gets_the_nearest(self):
        self.assertIn('did you mean --target?', self.heddle('check', '--tagret', 'gfx950', SPEC, code=2)[1])
        self.assertIn('did you mean --json?', self.heddle('key', '--jsno', SPEC, code=2)[1])
        self.assertIn('unknown option -x', self.heddle('key', '-x', SPEC, code=2)[1])
        self.assertIn("unknown option '--zzz'", self.heddle('--zzz', code=2)[1])

    def test_an_unknown_target_gets_the_nearest(self):
        self.assertIn('did you mean gfx950?', self.heddle('check', '--target', 'gfx905', SPEC, code=2)[1])

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
            (['verify', SPEC], '--device is missing'),
            (['run', SPEC, '--kernel', 'decode'], '--device is missing'),
            (['verify', SPEC, '--device', 'emu:gfx950', '--seed', '99999999999999999999'], 'whole number'),
            (['cache', 'list'], 'unknown action'),
            (['cache'], 'missing argument'),
            (['key'], 'missing argument'),
            (['key', SPEC, SPEC], 'unexpected argument'),
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
