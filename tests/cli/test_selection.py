"""Claims about ragged lists and lists of blocks and tokens: what decode gives on every emulated target is attention over the tokens that the
lists name, worked out here in plain Python from the words of docs/spec.md."""
import math
import random
import unittest
import npy
from support import Case, EMULATED as TARGETS

PAGE, BLOCK, DIM, GROUP = 16, 32, 64, 2
BLOCKS = """heddle: 1
name: blocks
query: {dtype: bf16, heads_per_kv: 2, rows: 4}
head_dim: 64
kv: {dtype: bf16, page: 16, k: [b, h, s, d], v: [b, h, s, d]}
select: {form: blocks, block: 32}
output: {dtype: fp32, lse: true}
"""
PREFILL = BLOCKS.replace('block: 32}', 'block: 32, per: row}').replace('rows: 4', 'rows: 1')
TOKENS = """heddle: 1
name: tokens
query: {dtype: bf16, heads_per_kv: 2}
head_dim: 64
kv: {dtype: bf16, page: 1, k: [b, h, d], v: [b, h, d]}
select: {form: tokens}
output: {dtype: fp32, lse: true}
"""
BY_HEAD = TOKENS.replace('form: tokens', 'form: tokens, per: kv_head, index: int64')

RAGGED = """heddle: 1
name: ragged
query: {dtype: bf16, heads_per_kv: 2, rows: 2}
head_dim: 64
kv: {dtype: bf16, page: 16, k: [b, h, s, d], v: [b, h, s, d]}
select: {form: indptr}
output: {dtype: fp32, lse: true}
"""

# Block lists of four, for sequences of up to three blocks and a part.
LISTS = [[-1, -1, -1, -1], [0, -1, -1, -1], [-1, 2, -1, 0], [3, 1, -1, -1], [1, 1, 1, 1], [0, 3, 3, 0], [9, 2147483647, 1, 4],
         [3, 2, 1, 0], [-2147483648, -1, 2, 3]]
LENGTHS = [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK, 3 * BLOCK + 1, 3 * BLOCK + PAGE + 1, 4 * BLOCK]


class Selection(Case):
    def setUp(self):
        super().setUp()
        self.random = random.Random(11)

    def numbers(self, count):
        return [npy.bf16(self.random.gauss(0, 1)) for _ in range(count)]

    def write(self, name, kind, shape, values):
        return npy.write(self.folder / (name + '.npy'), kind, shape, values)

    def caches(self, pages, heads, page):
        """Files of K and V [pages, heads, page, DIM]; the numbers stay in self.k and self.v."""
        shape = (pages, heads, page, DIM) if page > 1 else (pages, heads, DIM)
        self.heads, self.page = heads, page
        stored = [self.numbers(pages * heads * page * DIM) for _ in range(2)]
        self.k, self.v = [[npy.from_bf16(x) for x in array] for array in stored]
        return {name: self.write(name, 'u2', shape, array) for name, array in zip(['k_cache', 'v_cache'], stored)}

    def queries(self, rows):
        stored = self.numbers(rows * self.heads * GROUP * DIM)
        self.q = [npy.from_bf16(x) for x in stored]
        return self.write('q', 'u2', (rows, self.heads * GROUP, DIM), stored)

    def attention(self, row, head, slots):
        """(out, lse) of one query row and query head over physical slots."""
        query = self.q[(row * self.heads * GROUP + head) * DIM:][:DIM]
        if not slots:
            return [0.0] * DIM, -math.inf
        at = [((slot // self.page * self.heads + head // GROUP) * self.page + slot % self.page) * DIM for slot in slots]
        logits = [sum(a * b for a, b in zip(query, self.k[i:i + DIM])) / math.sqrt(DIM) for i in at]
        top = max(logits)
        weights = [math.exp(x - top) for x in logits]
        total = sum(weights)
        out = [0.0] * DIM
        for weight, i in zip(weights, at):
            for d in range(DIM):
                out[d] += weight * self.v[i + d]
        return [x / total for x in out], top + math.log(total)

    def gives(self, contract, inputs, slots_of, split):
        """Runs decode on every target: out and lse are attention over slots_of(row, kv head)."""
        spec = self.file('spec.yaml', contract)
        words = []
        for name, path in inputs.items():
            words += ['--in', '%s=%s' % (name, path)]
        rows = len(self.q) // (self.heads * GROUP * DIM)
        wanted = [self.attention(row, head, slots_of(row, head // GROUP))
                  for row in range(rows) for head in range(self.heads * GROUP)]
        for target in TARGETS:
            self.heddle('run', spec, '--kernel', 'decode', '--device', 'emu:' + target, '--split', split, *words,
                        '--out', 'out=out.npy', '--out', 'lse=lse.npy')
            out, lse = npy.read(self.folder / 'out.npy')[2], npy.read(self.folder / 'lse.npy')[2]
            error = norm = 0.0
            for i, (row, row_lse) in enumerate(wanted):
                got = out[i * DIM:(i + 1) * DIM]
                error += sum((a - b) ** 2 for a, b in zip(got, row))
                norm += sum(b * b for b in row)
                if row_lse == -math.inf:
                    self.assertEqual((lse[i], set(got)), (row_lse, {0.0}), '%s: query %d lists nothing' % (target, i))
                else:
                    self.assertLess(abs(lse[i] - row_lse), 1e-3, '%s: query %d' % (target, i))
            self.assertGreater(norm, 0)
            self.assertLess(math.sqrt(error / norm), 2.5e-3, target)

    def test_ragged_lists_follow_one_another_by_sequence_and_in_it_by_kv_head(self):
        """Lists lie where they like in kv_indices, with what belongs to nobody before and behind them."""
        seqs, heads, rows = 3, 2, 2
        for by_head in (False, True):
            inputs = self.caches(30, heads, PAGE)
            tokens = [33, 0, 16, 1, 5, 47][:seqs * heads if by_head else seqs]  # of list seq * heads + head, or of list seq
            counts = [-(-n // PAGE) for n in tokens]
            lists = [self.random.sample(range(30), count) for count in counts]
            inputs['q'] = self.queries(seqs * rows)
            inputs['kv_indptr'] = self.write('indptr', 'i4', (len(lists) + 1,), [2 + sum(counts[:i]) for i in range(len(lists) + 1)])
            inputs['kv_indices'] = self.write('indices', 'i4', (sum(counts) + 3,), [-5, 99] + sum(lists, []) + [7777])
            inputs['last_page_len'] = self.write('last', 'i4', (len(lists),), [(n - 1) % PAGE + 1 if n else 9 for n in tokens])

            def slots(row, head):
                item = row // rows * heads + head if by_head else row // rows
                return [lists[item][t // PAGE] * PAGE + t % PAGE for t in range(max(tokens[item] - rows + row % rows + 1, 0))]
            self.gives(RAGGED.replace('indptr}', 'indptr, per: kv_head}') if by_head else RAGGED, inputs, slots, 2)

    def test_rows_attend_to_the_blocks_they_list(self):
        for rows, heads, split in [(1, 3, 1), (3, 2, 4)]:
            seqs, width = len(LENGTHS), 4 * BLOCK // PAGE
            inputs = self.caches(seqs * width, heads, PAGE)
            pages = self.random.sample(range(seqs * width), seqs * width)
            lists = [LISTS[i * 5 % len(LISTS)] for i in range(heads * seqs * rows)]
            inputs['q'] = self.queries(seqs * rows)
            inputs['page_table'] = self.write('table', 'i4', (seqs, width), pages)
            inputs['lengths'] = self.write('lengths', 'i4', (seqs,), LENGTHS)
            inputs['block_list'] = self.write('list', 'i4', (heads, seqs * rows, 4), sum(lists, []))

            def slots(row, head):
                seq = row // rows
                return [pages[seq * width + t // PAGE] * PAGE + t % PAGE
                        for t in range(LENGTHS[seq] - rows + row % rows + 1) if t // BLOCK in lists[head * seqs * rows + row]]
            self.gives(BLOCKS, inputs, slots, split)

    def test_tokens_of_a_prefill_attend_to_the_blocks_before_them(self):
        prompts, width, heads = [40, 5], 3, 1
        inputs = self.caches(2 * width, heads, PAGE)
        pages = [4, 0, 5, 2, -7, -7]
        of = [p for p, count in enumerate(prompts) for _ in range(count)]
        lengths = [t + 1 for count in prompts for t in range(count)]
        lists = [self.random.choice([[0, 1], [1, -1], [-1, 0], [1, 0], [1, 1]]) for _ in of]
        inputs['q'] = self.queries(len(of))
        inputs['page_table'] = self.write('table', 'i4', (2, width), pages)
        inputs['row_sequences'] = self.write('map', 'i4', (len(of),), of)
        inputs['lengths'] = self.write('lengths', 'i4', (len(of),), lengths)
        inputs['block_list'] = self.write('list', 'i4', (heads, len(of), 2), sum(lists, []))
        self.gives(PREFILL, inputs, lambda row, head: [
            pages[of[row] * width + t // PAGE] * PAGE + t % PAGE for t in range(lengths[row]) if t // BLOCK in lists[row]], 1)

    def test_rows_attend_to_the_tokens_they_list_as_often_as_listed(self):
        for contract, by_head in [(TOKENS, False), (BY_HEAD, True)]:
            heads, rows, listed = 2, 6, 21
            inputs = self.caches(50, heads, 1)
            count = rows * (heads if by_head else 1)
            lists = [[self.random.choice([-1, self.random.randrange(50)]) for _ in range(listed)] for _ in range(count)]
            lists[0] = [-1] * listed
            lists[1] = [-1] * (listed - 1) + [7]
            lists[2] = [3] * listed
            inputs['q'] = self.queries(rows)
            shape = (heads, rows, listed) if by_head else (rows, listed)
            inputs['token_list'] = self.write('list', 'i8' if by_head else 'i4', shape, sum(lists, []))
            self.gives(contract, inputs, lambda row, head: [
                token for token in lists[(head * rows if by_head else 0) + row] if token >= 0], 2)


if __name__ == '__main__':
    unittest.main()
