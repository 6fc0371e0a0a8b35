"""What the tests of the command share: how it is run, and specs to run it on."""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

from json_schema import Schemas

HEDDLE = os.environ['HEDDLE']
SOURCE = pathlib.Path(os.environ['HEDDLE_SOURCE'])
SPECS = SOURCE / 'specs'
# What compilers are made of, by hash: the same for all tests, and the dearest part of a fresh cache.
IDENTITIES = pathlib.Path(HEDDLE).parent / 'tests' / 'identity'

# What the emulated device runs.
EMULATED = [t['name'] for t in json.loads(subprocess.check_output([HEDDLE, 'targets', '--json'])) if t['family'] != 'cuda']

SCHEMAS = Schemas(SOURCE / 'docs' / 'json')

# A small contract that the oracle gets through at once.
SMALL = """heddle: 1
name: small
kernels: [write, decode]
query: {dtype: bf16, heads_per_kv: 2, rows: 1}
head_dim: 64
kv:
  dtype: bf16
  page: 16
  k: [b, h, s, d]
  v: [b, h, s, d]
logits: {scale: argument}
output: {dtype: bf16, lse: true}
targets: [gfx950]
"""


def knows_compilers(cache):
    """Makes a cache's folder, which finds there what any test before it found out about compilers."""
    IDENTITIES.mkdir(parents=True, exist_ok=True)
    cache = pathlib.Path(cache)
    cache.mkdir(mode=0o700, exist_ok=True)
    (cache / 'identity').symlink_to(IDENTITIES)


class Case(unittest.TestCase):
    """A test in a folder of its own, with a cache of its own that knows the compilers already."""

    own_identities = False

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.environment = dict(os.environ, HEDDLE_CACHE_DIR=str(self.folder / 'cache'))
        if not self.own_identities:
            knows_compilers(self.folder / 'cache')

    def heddle(self, *arguments, code=0, stdin=None, **environment):
        """Runs the command, checks its exit code, and returns (stdout, stderr)."""
        done = subprocess.run([HEDDLE, *map(str, arguments)], capture_output=True, text=True, input=stdin,
                              cwd=self.folder, env=dict(self.environment, **environment), timeout=250)
        self.assertEqual(done.returncode, code,
                         'heddle %s\n%s%s' % (' '.join(map(str, arguments)), done.stdout, done.stderr))
        return done.stdout, done.stderr

    def json(self, *arguments, code=0, **options):
        """What --json prints, held against the verb's schema."""
        value = json.loads(self.heddle(*arguments, '--json', code=code, **options)[0])
        verb = str(arguments[0])
        if len(arguments) > 1 and '%s %s' % (verb, arguments[1]) in SCHEMAS.names():
            verb += ' %s' % arguments[1]
        problems = SCHEMAS.problems(value, verb)
        if code and problems and not SCHEMAS.failure_problems(value):
            problems = []
        self.assertEqual(problems, [], 'heddle %s --json' % ' '.join(map(str, arguments)))
        return value

    def file(self, name, contents):
        path = self.folder / name
        path.write_text(contents)
        return path

    def small(self, **replaced):
        """The small spec, with words replaced."""
        contents = SMALL
        for old, new in replaced.get('replace', []):
            assert old in contents
            contents = contents.replace(old, new)
        return self.file('small.yaml', contents)


class CachedCase(Case):
    """One whose tests share the class's cache: they need the same few kernels."""

    @classmethod
    def setUpClass(cls):
        cls.cache = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.cache.cleanup)
        knows_compilers(cls.cache.name)

    def setUp(self):
        super().setUp()
        self.environment['HEDDLE_CACHE_DIR'] = self.cache.name
