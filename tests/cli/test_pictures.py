"""Claims about layout and plan, and the pictures of bench and tune: what a picture says of a byte is what the contract says."""
import json
import random
import re
import shlex
import xml.etree.ElementTree as ElementTree

from support import EMULATED, SOURCE, SPECS, Case, unittest

TARGETS = [*EMULATED, 'sm_90']
SHIPPED = sorted(SPECS.glob('*.yaml'))
SVG = '{http://www.w3.org/2000/svg}'


class Layout:
    """A layout read anew from its text, as docs/spec.md has it: the tests' own idea of where an element lies."""

    def __init__(self, words, sizes, element_bytes, at=0, head_bytes=None):
        self.bytes, self.at, self.heads_outside = element_bytes, at, []
        self.steps, stride, outside = [], 1, False
        for factor in reversed(words.strip('[]').split(',')):
            factor, _, pad = factor.strip().partition('+')
            if factor in 'bh':
                if factor == 'h':
                    self.head, outside, stride = stride * element_bytes, True, 1
                continue
            if factor.isdigit():
                stride *= int(factor)
                continue
            axis, extent, divisor = factor[0], sizes[factor[0]], 1
            for operation, number in re.findall(r'([/%])(\d+)', factor[1:]):
                if operation == '/':
                    divisor, extent = divisor * int(number), extent // int(number)
                else:
                    extent = int(number)
            self.steps.append((axis, divisor, extent, stride, outside))
            stride = stride * extent + int(pad or 0)
        if not outside:
            self.head = stride * element_bytes
        if head_bytes:
            self.head = head_bytes

    def byte(self, heads, head, **at):
        offset = self.at + head * self.head
        for axis, divisor, extent, stride, outside in self.steps:
            digit = at[axis] // divisor % extent
            offset += digit * stride * (heads * self.head if outside else self.bytes)
        return offset


class Pictures(Case):
    def contract(self, spec):
        """The canonical text as nested dicts, read line by line."""
        top, fields = {}, {}
        for line in self.heddle('key', spec, '--text')[0].splitlines():
            name, _, rest = line.strip().partition(':')
            if line.startswith('  '):
                fields.setdefault(name, rest.strip())
            else:
                fields = top.setdefault(name, {'': rest.strip()})
        return top

    def svg(self, *arguments):
        picture = self.folder / 'picture.svg'
        out, _ = self.heddle(*arguments, '--svg', picture)
        self.assertEqual(out, '')
        return picture.read_text()

    def titles(self, svg):
        """Of cells of bytes: (first byte, last byte, what)."""
        found = [title.text for title in ElementTree.fromstring(svg).iter(SVG + 'title')]
        return [(int(m[1]), int(m[2]), m[3]) for m in (re.match(r'bytes (\d+)–(\d+): (.*)', t, re.S) for t in found) if m]

    def test_every_cell_of_every_shipped_spec_holds_the_bytes_that_its_layout_gives_them(self):
        for spec in SHIPPED:
            c = self.contract(spec)
            page = int(c['kv']['page'])
            heads = 2 if ' s, h' in c['kv']['k'] else 1 # as layout draws them where heads lie inside a token
            dims = [int(n) for n in re.findall(r'\d+', c['head_dim'][''])]
            d_k, d_v, tail = dims[0], dims[-1], int(c['kv'].get('channels', 0))
            size = 2 if '16' in c['kv']['dtype'] else 1
            layouts = {'K': Layout(c['kv']['k'], {'s': page, 'd': d_k - tail}, size)}
            layouts['V'] = layouts['K'] if c['kv']['v'] == 'k' else Layout(c['kv']['v'], {'s': page, 'd': d_v}, size)
            svg = self.svg('layout', spec, '--target', 'gfx950')
            side, cells = '', 0
            for element in ElementTree.fromstring(svg).iter():
                if element.tag == SVG + 'text' and 'head' in element.get('class', '').split():
                    side = element.text.split()[0].rstrip(':') if 'scales' not in element.text.lower() else ''
                m = element.tag == SVG + 'title' and re.match(
                    r'bytes (\d+)–(\d+): (?:kv head (\d+), )?tokens? (\d+)(?:–(\d+))?, channels? (\d+)(?:–(\d+))?', element.text)
                if not m or not side:
                    continue
                first, last, head, t0, t1, d0, d1 = (int(g) if g else None for g in m.groups())
                tokens, channels = range(t0, (t1 or t0) + 1), range(d0, (d1 or d0) + 1)
                self.assertEqual(len(tokens) * len(channels) * size, last - first + 1, (spec.name, element.text))
                expected = [layouts[side].byte(heads, head or 0, s=t, d=d) for t in tokens for d in channels]
                self.assertEqual(expected, list(range(first, last + 1, size)), (spec.name, element.text))
                cells += 1
            self.assertGreater(cells, 100, spec.name)

    def test_an_element_is_in_the_cell_that_the_command_names(self):
        rng = random.Random(5)
        for name in ('minimax-m3-dense-fp8', 'vllm-inline-fp8', 'deepseek-mla-fp8-656', 'nhd-fp16'):
            spec = SPECS / (name + '.yaml')
            titles = self.titles(self.svg('layout', spec, '--target', 'gfx942', '--kv-heads', '2'))
            seen = 0
            for first, last, what in rng.sample(titles, 40):
                m = re.match(r'(?:kv head (\d+), )?tokens? (\d+)(?:–\d+)?, channels? (\d+)', what)
                if not m:
                    continue
                place = '%s,%s,%s' % (m[2], m[3], m[1] or 0)
                found = self.json('layout', spec, '--at', place, '--kv-heads', '2' if m[1] else '1')['elements']
                caches = [f['byte'] for f in found if f['tensor'].endswith('cache')]
                self.assertIn(first, caches, (name, what))
                seen += 1
            self.assertGreater(seen, 10)

    def test_scales_and_tail_lie_where_the_spec_puts_them(self):
        spec = SPECS / 'deepseek-mla-fp8-656.yaml'
        record = self.json('layout', spec, '--at', '3,130')['elements']
        self.assertEqual([(f['tensor'], f['byte'], f['bytes']) for f in record],
                         [('k_cache', 3 * 656 + 130, 1), ('k_scale', 3 * 656 + 512 + 4, 4)])
        tail = self.json('layout', spec, '--at', '3,514')['elements']
        self.assertEqual([(f['tensor'], f['byte'], f['bytes']) for f in tail], [('k_cache', 3 * 656 + 528 + 4, 2)])
        titles = self.titles(self.svg('layout', spec))
        self.assertIn((512, 527, 'scale of token 0, groups 0–3'), titles)
        self.assertIn((528, 543, 'tail of token 0, channels 512–519'), titles)

    def test_padding_is_shown(self):
        padded = self.small(replace=[('k: [b, h, s, d]', 'k: [b, h, s, d+8]')])
        titles = self.titles(self.svg('layout', padded))
        self.assertIn((128, 143, 'padding'), titles)

    def test_pictures_are_well_formed_and_the_same_each_time(self):
        for spec in SHIPPED:
            for target in TARGETS:
                for words in (('layout', spec, '--target', target), ('plan', spec, '--target', target, '--shape', '3x1000x2')):
                    svg = self.svg(*words)
                    root = ElementTree.fromstring(svg)
                    self.assertEqual(root.tag, SVG + 'svg')
                    self.assertEqual(root.get('viewBox').split()[:3], ['0', '0', '1000'])
                    self.assertEqual(svg.count('http'), 1, 'the name space alone')
                    self.assertIn('prefers-color-scheme:dark', svg)
                    height = float(root.get('height'))
                    for text in root.iter(SVG + 'text'):
                        self.assertLess(float(text.get('x')), 1000)
                        self.assertLess(float(text.get('y')), height)
            self.assertEqual(svg, self.svg(*words))

    def test_the_text_fits_a_terminal_and_has_colours_only_where_they_are_wanted(self):
        for columns, cells in (('80', 4), ('40', 1), ('200', 8)):
            for spec in SHIPPED[::3]:
                out, _ = self.heddle('layout', spec, COLUMNS=columns)
                self.assertLessEqual(max(map(len, out.splitlines())), int(columns), (spec.name, columns))
                self.assertNotIn('\x1b', out)
            self.assertEqual(max(len(re.findall(r't\d+ d', line)) for line in out.splitlines()), cells, out)
        coloured, _ = self.heddle('layout', SHIPPED[0], '--color', 'always')
        plain, _ = self.heddle('layout', SHIPPED[0])
        self.assertIn('\x1b[34m', coloured)
        self.assertEqual(re.sub('\x1b\\[[0-9;]*m', '', coloured), plain)
        for spec in SHIPPED:
            for columns in (80, 40):
                out, _ = self.heddle('plan', spec, '--shape', '5x3000x1', COLUMNS=str(columns))
                self.assertLessEqual(max(map(len, out.splitlines())), columns, out)

    def test_no_two_lanes_take_a_byte_and_all_are_of_the_page(self):
        for spec in SHIPPED:
            for target in TARGETS:
                for array in self.json('layout', spec, '--target', target)['arrays']:
                    for name in ('first_load', 'first_operand'):
                        taken = [b for lane in array.get(name, []) for b in range(lane['byte'], lane['byte'] + lane['bytes'])]
                        self.assertTrue(all(0 <= b < array['bytes'] for b in taken), (spec.name, target, name))
                        self.assertEqual(len(taken), len(set(taken)), (spec.name, target, name))

    def test_rows_are_as_many_as_asked_for(self):
        spec = SPECS / 'minimax-m3-dense-fp8.yaml'
        count = {n: len(self.titles(self.svg('layout', spec, '--rows', n))) for n in (4, 12)}
        self.assertLess(count[4], count[12])

    def test_a_plan_says_what_the_emitted_source_says(self):
        for spec in SHIPPED:
            for target in TARGETS:
                source, _ = self.heddle('emit', spec, '--target', target, '--kernel', 'decode')
                head = re.search(r'// ---- solved by the generator\n//\n((?://.*\n)+)', source)[1]
                sentences = [line[2:].strip() for line in head.splitlines()]
                plan = self.json('plan', spec, '--target', target)
                self.assertEqual(plan['summary'][:len(sentences)], sentences)
                out, _ = self.heddle('plan', spec, '--target', target, COLUMNS='200')
                for sentence in sentences:
                    self.assertIn(sentence, out)

    def test_splits_and_parts_hold_every_tile_once(self):
        for target, name in (('gfx950', 'splits_of_the_first'), ('sm_90', 'parts')):
            for shape, options in (('4x8192x1', ()), ('9x5000x2-ragged', ()), ('1x100x1', ()), ('7x9000x1', ('--split', '13'))):
                plan = self.json('plan', SPECS / 'minimax-m3-dense-fp8.yaml', '--target', target, '--shape', shape, *options)
                launch = plan['launch']
                spans = launch[name]
                self.assertEqual(spans[0][0], 0)
                self.assertEqual([b for _, b in spans[:-1]], [a for a, _ in spans[1:]])
                tiles = launch.get('line_tiles', -(-int(shape.split('x')[1]) // plan['tile']))
                self.assertEqual(spans[-1][1], tiles)
                self.assertEqual(sorted(sum(plan['score_rows'], [])), list(range(plan['tile'])))
                if options == ('--split', '13'):
                    self.assertEqual((launch['split'], launch['split_choice']), (13, 'asked for'))

    def test_a_plan_takes_the_split_that_explain_names(self):
        spec, shape = SPECS / 'nhd-fp16.yaml', '6x3000x2'
        explained = self.json('tune', 'explain', spec, '--target', 'gfx1250', '--shape', shape)
        launch = self.json('plan', spec, '--target', 'gfx1250', '--shape', shape)['launch']
        self.assertEqual((launch['split'], launch['workgroups']), (explained['split'], 6 * 2 * explained['split']))

    def test_what_is_asked_for_wrongly_is_refused(self):
        spec = SHIPPED[0]
        for words, message in [
            (['layout', spec, '--at', '5'], 'TOKEN,CHANNEL'),
            (['layout', spec, '--at', '64,0'], 'not in a page of 64 tokens'),
            (['layout', spec, '--rows', '2'], '3 to'),
            (['plan', spec, '--shape', '4x4'], 'not a shape'),
            (['plan', spec, '--split', '4'], '--shape is missing'),
            (['plan', spec, '--target', 'gfx942', '--target', 'gfx950'], 'one target'),
            (['bench'], 'missing argument'),
            (['bench', '--from', 'x.json'], '--svg FILE is missing'),
            (['bench', spec, '--from', 'x.json', '--svg', 'x.svg'], 'neither a spec'),
        ]:
            _, errors = self.heddle(*words, code=2)
            self.assertIn(message, errors)
        _, errors = self.heddle('bench', '--from', self.file('bad.json', '{"results": [1]}'), '--svg', 'x.svg', code=1)
        self.assertIn('bench.from', errors)
        _, errors = self.heddle('layout', spec, '--variant', 'ring', '--target', 'gfx942', code=1)
        self.assertIn('decline.structure', errors)

    def test_a_spec_that_no_target_serves_is_drawn_without_lanes(self):
        unserved = self.small(replace=[('head_dim: 64', 'head_dim: 1024')])
        out, _ = self.heddle('layout', unserved)
        self.assertIn('No lanes are drawn', out)
        _, errors = self.heddle('plan', unserved, code=1)
        self.assertIn('decline.head-dim', errors)

    def test_what_bench_prints_can_be_drawn(self):
        results = self.file('results.json', (SOURCE / 'docs/pictures/h200.json').read_text())
        svg = self.svg('bench', '--from', results)
        titles = [t.text for t in ElementTree.fromstring(svg).iter(SVG + 'title')]
        for result in json.loads(results.read_text())['results']:
            words = '%dx%dx%dx%d%s: %.2f µs, read %.2f µs, share %.1f %%' % (
                result['seqs'], result['length'], result['kv_heads'], result['heads_per_kv'], ' ragged' * result['ragged'],
                result['decode_us']['median'], result['read_us']['median'],
                100 * result['read_us']['median'] / result['decode_us']['median'])
            self.assertTrue(any(words in t for t in titles), words)

    def test_documented_pictures_are_what_the_commands_draw(self):
        folder = SOURCE / 'docs/pictures'
        drawn = set()
        for line in re.findall(r'^build/heddle (.*)$', (SOURCE / 'docs/pictures.md').read_text(), re.M):
            words = shlex.split(line, comments=True)
            if '--svg' not in words:
                continue
            path = SOURCE / words[words.index('--svg') + 1]
            words[words.index('--svg') + 1] = self.folder / path.name
            self.heddle(*[SOURCE / w if (SOURCE / str(w)).exists() and '/' in str(w) else w for w in words], HEDDLE_TUNED_DIR='/nowhere')
            self.assertTrue((self.folder / path.name).read_text() == path.read_text(), '%s is another now: tools/draw_pictures.sh draws it again' % path.name)
            self.assertLess(path.stat().st_size, 60 * 1024, path.name)
            drawn.add(path.name)
        self.assertEqual(drawn, {p.name for p in folder.glob('*.svg')}, 'pictures that docs/pictures.md has no command for')
        text = (SOURCE / 'docs/pictures.md').read_text()
        for name in drawn:
            self.assertIn('(pictures/%s)' % name, text)


if __name__ == '__main__':
    unittest.main()
