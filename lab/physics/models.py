"""The shapes of models that decide what a step costs: published architectures."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

BYTES: Final = MappingProxyType({"bf16": 2.0, "fp8": 1.0})
"""Bytes of a number by its format."""


@dataclass(frozen=True)
class Model:
    """A decoder: sizes in elements. `ffn` is 0 where experts take its place."""

    name: str
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn: int
    vocabulary: int
    experts: int = 0
    experts_active: int = 0
    expert_ffn: int = 0

    @property
    def attention_weights(self) -> int:
        """Elements of a layer's four projections."""
        width = (self.heads + self.kv_heads) * self.head_dim
        return 2 * self.hidden * width

    @property
    def layer_weights(self) -> int:
        """Elements of a layer's products that every token visits."""
        return self.attention_weights + 3 * self.hidden * self.ffn

    @property
    def expert_weights(self) -> int:
        """Elements of one expert of a layer."""
        return 3 * self.hidden * self.expert_ffn

    @property
    def parameters(self) -> int:
        """All weights, embeddings and head included."""
        layer = self.layer_weights + self.experts * (self.expert_weights + self.hidden)
        return self.layers * layer + 2 * self.vocabulary * self.hidden

    def kv_bytes_per_token(self, kv_format: str) -> float:
        """Keys and values of one token over all layers, on all ranks together."""
        return 2 * self.layers * self.kv_heads * self.head_dim * BYTES[kv_format]


_MODELS: Final = (
    Model("Llama-3.1-8B", 32, 4096, 32, 8, 128, 14336, 128256),
    Model("Llama-3.1-70B", 80, 8192, 64, 8, 128, 28672, 128256),
    Model("Llama-3.1-405B", 126, 16384, 128, 8, 128, 53248, 128256),
    Model("Llama-2-70B", 80, 8192, 64, 8, 128, 28672, 32000),
    Model("Qwen3-32B", 64, 5120, 64, 8, 128, 25600, 151936),
    Model("Qwen3-235B-A22B", 94, 4096, 64, 4, 128, 0, 151936, 128, 8, 1536),
    Model("gpt-oss-120b", 36, 2880, 64, 8, 64, 0, 201088, 128, 4, 2880),
    Model("Mixtral-8x7B", 32, 4096, 32, 8, 128, 0, 32000, 8, 2, 14336),
)

MODELS: Final[Mapping[str, Model]] = MappingProxyType({model.name: model for model in _MODELS})
"""Every model the lab knows, by name."""
