"""examples/transformers with a small random Llama: heddle's caches against PyTorch's attention. Run by tools/test_torch.sh."""
import os
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(os.environ["HEDDLE_SOURCE"]) / "examples" / "transformers"))
import fixture as f  # noqa: E402
import heddle  # noqa: E402
import heddle_cache  # noqa: E402
import torch  # noqa: E402
from compare import PyTorch  # noqa: E402
from transformers import LlamaConfig, LlamaForCausalLM  # noqa: E402
from transformers.cache_utils import DynamicCache  # noqa: E402

WHERE = "cpu" if f.DEVICE.startswith("emu") else "cuda"
CONFIG = LlamaConfig(vocab_size=64, hidden_size=576, intermediate_size=128, num_hidden_layers=2, num_attention_heads=9, num_key_value_heads=3,
                     max_position_embeddings=512)  # fmt: skip
BATCH, TOKENS = 2, 77  # more than a page, and no multiple of eight


class Transformers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        torch.manual_seed(0)
        cls.model = LlamaForCausalLM(CONFIG).to(device=WHERE, dtype=torch.bfloat16).eval()
        cls.ids = torch.randint(0, 64, (BATCH, TOKENS), device=WHERE)

    def logits(self, cache, attention, cuts):
        """Of all tokens, put through the model in pieces that end at `cuts`."""
        self.model.config._attn_implementation = attention
        with torch.inference_mode():
            parts = [self.model(part, past_key_values=cache, use_cache=True).logits for part in self.ids.tensor_split(cuts, 1)]
        return torch.cat(parts, 1).float()

    def heddle(self, kv, batch=BATCH, channels=None):
        return heddle_cache.HeddleCache(f.context(), CONFIG, batch=batch, longest=TOKENS + 8, kv=kv, channels=channels)

    def test_bf16_is_pytorchs_attention(self):
        expected = self.logits(DynamicCache(), "sdpa", ())
        for cuts in ((), (70, 71, 74), (1, 9)):
            found = self.logits(self.heddle("bf16"), "heddle", cuts)
            self.assertLess((found - expected).abs().max().item(), 0.03, cuts)

    def test_8_bits_are_attention_over_rounded_values(self):
        exact = self.logits(DynamicCache(), "sdpa", ())
        for kind, kv, channels in (("fp8", "fp8_e4m3", None), ("int8-fp8", "{k: int8, v: fp8_e4m3}", None), ("fp8-g32", "fp8_e4m3", 32)):
            expected = self.logits(PyTorch().cache(kind, BATCH, TOKENS), "sdpa", ())
            found = self.logits(self.heddle(kv, channels=channels), "heddle", (70, 71))
            self.assertLess((found - expected).abs().mean().item(), 0.5 * (exact - expected).abs().mean().item(), kind)
            self.assertLess((found - expected).abs().max().item(), 0.05, kind)

    def test_generate(self):
        texts = []
        for attention, cache in (("sdpa", DynamicCache()), ("heddle", self.heddle("bf16", 1))):
            self.model.config._attn_implementation = attention
            ids = self.ids[:1, :20]
            texts.append(self.model.generate(ids, attention_mask=torch.ones_like(ids), past_key_values=cache, max_new_tokens=6, do_sample=False,
                                             pad_token_id=0, eos_token_id=None).tolist())  # fmt: skip
        self.assertEqual(texts[0][0][:23], texts[1][0][:23])

    def test_other_caches_are_refused(self):
        with self.assertRaisesRegex(ValueError, "needs past_key_values=HeddleCache"):
            self.logits(DynamicCache(), "heddle", ())
        cache = self.heddle("bf16")
        with self.assertRaisesRegex(ValueError, "has room for 2 of 128"):
            for _ in range(2):
                self.logits(cache, "heddle", ())

    def test_fp8_is_about_half(self):
        self.assertLess(self.heddle("fp8_e4m3").bytes() / self.heddle("bf16").bytes(), 0.54)


if __name__ == "__main__":
    unittest.main()
