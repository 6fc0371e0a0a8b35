"""Claims about what is made of the table of verbs: help, manual pages, completion."""
import os
import pathlib
import re
import shlex
import subprocess
import unittest
from support import Case, HEDDLE, SPECS

SHELL_FOLDER = pathlib.Path(HEDDLE).parent / 'packaging' / 'shell'
# All of roff that the pages use.
MACROS = {'.TH', '.SH', '.SS', '.TP', '.B', '.BR', '.nf', '.fi'}


def complete(line, script, folder):
    """What bash offers behind `line`, with everything before the last word break taken off, as bash wants it."""
    run = 'source %s; COMP_LINE=$1; COMP_POINT=${#1}; _heddle; printf "%%s\\n" "${COMPREPLY[@]}"' % shlex.quote(str(script))
    done = subprocess.run(['bash', '--norc', '-c', run, 'bash', line], capture_output=True, text=True, cwd=folder, check=True)
    assert done.stderr == '', done.stderr
    return done.stdout.split()


class Help(Case):
    def setUp(self):
        super().setUp()
        self.verbs = self.json('help')['verbs']
        self.all = self.verbs + [action for verb in self.verbs for action in verb['actions']]

    def test_every_verb_and_action_has_help(self):
        overview, _ = self.heddle('--help')
        self.assertGreater(len(self.verbs), 15)
        for verb in self.verbs:
            self.assertRegex(overview, r'(?m)^  %s +%s$' % (verb['name'], re.escape(verb['summary'])))
        for verb in self.all:
            words = verb['name'].split()
            expected = self.heddle('help', *words)
            for way in ([*words, '--help'], [*words, '-h'], [*words, '--json', '--help'] if self.option(verb, 'json') else [*words, '-h']):
                self.assertEqual(self.heddle(*way), expected)
            self.assertEqual(expected[1], '')
            self.assertIn('heddle', expected[0].split('\nexamples:\n')[1])
            self.assertIn('\nexit codes: 0 ', expected[0])
            self.assertIn('2 usage, 3 ', expected[0])
            self.assertIn('\nenvironment:\n', expected[0])
            for option in verb['options']:
                self.assertIn('--' + option['name'], expected[0])
            for line in expected[0].splitlines():
                self.assertLessEqual(len(line), 120, line)

    def test_every_verb_gives_json(self):
        for verb in self.all:
            if verb['runs']:
                self.assertTrue(self.option(verb, 'json'), verb['name'])

    def option(self, verb, name):
        return next((option for option in verb['options'] if option['name'] == name), None)

    def test_examples_are_of_the_verb_and_use_options_it_has(self):
        for verb in self.all:
            # Lines that end with a backslash go on.
            lines = ' '.join(verb['examples']).replace('\\ ', ' ') if '\\' in str(verb['examples']) else '\n'.join(verb['examples'])
            self.assertIn('heddle', lines, verb['name'])
            for line in lines.splitlines():
                words = shlex.split(line.split('|')[0].split(' < ')[0].split(' > ')[0].split('<(')[-1].split('$(')[-1].rstrip(')'))
                if 'heddle' not in words:
                    continue
                words = words[words.index('heddle') + 1:]
                known = next(v for v in self.all if words[:len(v['name'].split())] == v['name'].split() and
                             (v['name'].count(' ') == 1 or words[1:2] not in [[a['name'].split()[1]] for a in v['actions']]))
                for word in words:
                    if word.startswith('--'):
                        self.assertTrue(self.option(known, word[2:].split('=')[0]), '%s: %s' % (line, word))

    def test_every_option_has_a_value_that_is_known(self):
        for verb in self.all:
            for option in verb['options']:
                self.assertEqual(option['kind'] == 'flag', 'value' not in option, option)
                if option['kind'] != 'flag' and option['value']['type'] == 'choice':
                    self.assertGreater(len(option['value']['choices']), 0)

    def test_manual_pages_are_roff_and_name_every_option(self):
        for verb in [None, *self.verbs]:
            page, errors = self.heddle('help', *([verb['name']] if verb else []), '--man')
            self.assertEqual(errors, '')
            lines = page.splitlines()
            self.assertRegex(lines[0], r'^\.TH "HEDDLE%s" "1" ' % (r'\\-' + verb['name'].upper() if verb else ''))
            for line in lines:
                if line[:1] in ".'":
                    self.assertIn(line.split()[0], MACROS, line)
            self.assertEqual(page.count('.nf\n'), page.count('.fi\n'))
            for section in ['NAME', 'SYNOPSIS', 'DESCRIPTION', 'EXIT STATUS', 'ENVIRONMENT']:
                self.assertIn('.SH %s\n' % section, page)
            for action in [verb, *verb['actions']] if verb else []:
                for option in action['options']:
                    self.assertIn('\\-\\-' + option['name'].replace('-', '\\-'), page)

    def test_the_build_makes_what_is_installed(self):
        made = {path.name for path in SHELL_FOLDER.glob('*.1')}
        self.assertEqual(made, {'heddle.1', *('heddle-%s.1' % verb['name'] for verb in self.verbs)})
        for name, words in [('heddle', ['--completion', 'bash']), ('_heddle', ['--completion', 'zsh']),
                            ('heddle.fish', ['--completion', 'fish']), ('heddle-cache.1', ['cache', '--man'])]:
            self.assertEqual((SHELL_FOLDER / name).read_text(), self.heddle('help', *words)[0], name)

    def test_scripts_are_right_for_their_shells(self):
        for shell in ('bash', 'zsh', 'fish'):
            script = self.file('complete.' + shell, self.heddle('help', '--completion', shell)[0])
            done = subprocess.run([shell, '-n', script], capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr), (0, ''), shell)
            for verb in self.all:
                self.assertIn(verb['name'].split()[-1], script.read_text())


class Bash(Case):
    def setUp(self):
        super().setUp()
        self.script = self.file('complete.bash', self.heddle('help', '--completion', 'bash')[0])
        self.inside = self.folder / 'inside'
        (self.inside / 'folder').mkdir(parents=True)
        for name in ('mine.yaml', 'other.txt', 'q.npy', 'my.pack'):
            (self.inside / name).touch()

    def offers(self, line):
        return complete(line, self.script, self.inside)

    def test_verbs_and_actions(self):
        self.assertEqual(self.offers('heddle ver'), ['verify', 'version'])
        self.assertEqual(len(self.offers('heddle ')), len(self.json('help')['verbs']) + 2)
        self.assertEqual(self.offers('heddle cache p'), ['path', 'prune'])
        self.assertEqual(self.offers('heddle cache --json p'), ['path', 'prune'])
        self.assertIn('show', self.offers('heddle tune sh'))

    def test_options_of_the_verb_and_of_the_action(self):
        self.assertEqual(self.offers('heddle check --s'), ['--syntax'])
        self.assertEqual(self.offers('heddle cache prune --m'), ['--max-bytes'])
        self.assertEqual(self.offers('heddle cache ls --m'), [])
        self.assertIn('--quiet', self.offers('heddle doctor --'))

    def test_specs_are_yaml_files_folders_and_shipped_ones(self):
        offered = self.offers('heddle check ')
        self.assertEqual({word for word in offered if '/' in word or '.' in word}, {'mine.yaml', 'folder/'})
        self.assertEqual({path.stem for path in SPECS.glob('*.yaml')}, {word for word in offered if '/' not in word and '.' not in word})
        self.assertEqual(self.offers('heddle check m3 min') , [word for word in offered if word.startswith('min')])

    def test_values_of_options(self):
        self.assertEqual(self.offers('heddle check --target gfx12'), ['gfx1201', 'gfx1250'])
        self.assertEqual(self.offers('heddle check --target=gfx95'), ['gfx950'])
        self.assertEqual(self.offers('heddle emit x.yaml --kernel '), ['write', 'decode'])
        self.assertEqual(self.offers('heddle build x.yaml --compiler l'), ['llvm'])
        self.assertEqual(self.offers('heddle bench x.yaml --preset t'), ['tiny'])
        self.assertEqual(self.offers('heddle check --target gfx950 --js'), ['--json'])
        # bash has cut the line at the colon: only what is behind it is replaced
        self.assertEqual(self.offers('heddle verify x.yaml -d emu:gfx94'), ['gfx942'])
        self.assertEqual(self.offers('heddle verify x.yaml --device e'), ['emu:gfx942', 'emu:gfx950', 'emu:gfx1201', 'emu:gfx1250'])

    def test_files_by_kind(self):
        self.assertEqual(sorted(self.offers('heddle cache import ')), ['folder/', 'my.pack'])
        self.assertEqual(self.offers('heddle match --request o'), ['other.txt'])
        self.assertEqual(self.offers('heddle emit x.yaml -o '), ['folder/'])
        self.assertEqual(self.offers('heddle run x.yaml --in k_c'), ['k_cache='])
        self.assertEqual(self.offers('heddle run x.yaml --in q=q'), ['q.npy'])


class Fish(Case):
    def test_the_same_is_offered_by_fish(self):
        script = self.file('complete.fish', self.heddle('help', '--completion', 'fish')[0])
        self.file('mine.yaml', '')
        for line, expected in [('heddle ver', ['verify', 'version']), ('heddle cache p', ['path', 'prune']), ('heddle cache prune --m', ['--max-bytes']),
                               ('heddle check --target gfx12', ['gfx1201', 'gfx1250']), ('heddle verify x --device emu:gfx94', ['emu:gfx942']), ('heddle check mi', ['mine.yaml', 'minimax-m3-dense-fp8', 'minimax-m3-sparse-blocks-fp8', 'minimax-m3-sparse-fp8']),
                               ('heddle tune sh', ['show'])]:
            done = subprocess.run(['fish', '--no-config', '-c', 'source $argv[1]; complete -C $argv[2]', script, line], capture_output=True, text=True, cwd=self.folder,
                                  env=dict(self.environment, HOME=str(self.folder)), check=True)
            self.assertEqual(sorted(row.split('\t')[0] for row in done.stdout.splitlines()), expected, line)


if __name__ == '__main__':
    unittest.main()
