#include "../../generator/sha256.h"
#include "../../generator/sha256_blocks.h"
#include <criterion/criterion.h>
#include <string.h>

static void expect_sum(const void *data, size_t length, const char *expected) {
  char hex[65];
  sha256_hex(data, length, hex);
  cr_expect_str_eq(hex, expected);
}

/* FIPS 180-4 example values and the NIST short-message vectors. */
Test(sha256, agrees_with_published_values) {
  expect_sum("", 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  expect_sum("abc", 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  const char *two_blocks = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
  expect_sum(two_blocks, strlen(two_blocks),
             "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

Test(sha256, agrees_on_a_million_bytes) {
  static char million[1000000];
  memset(million, 'a', sizeof million);
  expect_sum(million, sizeof million, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

/* On a processor without the instructions both are the portable ones. */
Test(sha256, the_instructions_give_what_portable_c_gives) {
  enum { MOST = 9 };
  static unsigned char blocks[MOST * 64 + 3];
  uint32_t seed = 1, instructions[8], portable[8];
  for (int round = 0; round < 2000; round++) {
    const size_t count = (size_t)round % (MOST + 1), start = (size_t)round % 4; /* at any address */
    for (size_t i = 0; i < sizeof blocks; i++)
      blocks[i] = (unsigned char)((seed = seed * 1664525u + 1013904223u) >> 24);
    for (int i = 0; i < 8; i++)
      instructions[i] = portable[i] = seed = seed * 1664525u + 1013904223u;
    if (sha256_has_instructions())
      sha256_blocks_instructions(instructions, blocks + start, count);
    else
      sha256_blocks_portable(instructions, blocks + start, count);
    sha256_blocks_portable(portable, blocks + start, count);
    cr_assert(memcmp(instructions, portable, sizeof portable) == 0, "round %d, %zu blocks", round, count);
  }
}

/* The padding has its corners at 55, 56, 63 and 64 bytes: there the whole must not depend on how it was cut.
 */
Test(sha256, the_cut_does_not_matter) {
  unsigned char data[200];
  for (size_t i = 0; i < sizeof data; i++)
    data[i] = (unsigned char)(i * 7 + 3);
  for (size_t length = 0; length <= sizeof data; length++) {
    unsigned char whole[32], parts[32];
    sha256 s;
    sha256_init(&s);
    sha256_update(&s, data, length);
    sha256_digest(&s, whole);
    sha256_init(&s);
    for (size_t i = 0; i < length; i++)
      sha256_update(&s, data + i, 1);
    sha256_digest(&s, parts);
    cr_assert(memcmp(whole, parts, 32) == 0, "%zu bytes", length);
    for (size_t cut = 0; cut <= length; cut++) {
      sha256_init(&s);
      sha256_update(&s, data, cut);
      sha256_update(&s, data + cut, length - cut);
      sha256_digest(&s, parts);
      cr_assert(memcmp(whole, parts, 32) == 0, "%zu of %zu bytes", cut, length);
    }
  }
}

Test(sha256, agrees_at_the_corners_of_the_padding) {
  char as[65];
  memset(as, 'a', sizeof as);
  expect_sum(as, 55, "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318");
  expect_sum(as, 56, "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a");
  expect_sum(as, 63, "7d3e74a05d7db15bce4ad9ec0658ea98e3f06eeecf16b4c6fff2da457ddc2f34");
  expect_sum(as, 64, "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb");
}
