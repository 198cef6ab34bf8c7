"""The hashes under table, digest and ids: no collisions where real data is dense."""

import random

from tailburn.collector.otlp.ids import id_hash


def test_short_texts_do_not_collide() -> None:
    alphabet = [chr(c) for c in range(33, 127) if chr(c) not in "-_"]
    texts = {a for a in alphabet} | {a + b for a in alphabet for b in alphabet}
    texts |= {str(i) for i in range(100_000)} | {f"{i:08x}" for i in range(0, 1 << 24, 997)}
    assert len({id_hash(text) for text in texts}) == len(texts)


def test_one_bit_changes_half_of_the_hash() -> None:
    rng = random.Random(1)
    for length in (1, 3, 4, 7, 8, 9, 16, 17, 31, 40):
        changed = 0
        for _ in range(200):
            text = bytearray(rng.choices(range(0x41, 0x5A), k=length))
            before = id_hash(text.decode())
            text[rng.randrange(length)] ^= 1 << rng.randrange(3)
            changed += (before ^ id_hash(text.decode())).bit_count()
        assert 30 < changed / 200 < 34, length
