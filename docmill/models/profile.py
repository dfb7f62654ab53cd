"""A profile: what docmill knows of one model. One schema for the catalog's files and for a model's own config.json."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, model_validator
from pydantic import Field as Setting


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Family(StrEnum):
    """Models with the same arithmetic of pictures and parameters."""

    QWEN2_VL = "qwen2_vl"
    QWEN2_5_VL = "qwen2_5_vl"
    QWEN3_VL = "qwen3_vl"
    MINIMAX_M3 = "minimax_m3"


class TextModel(_Part):
    """The decoder. Sizes are numbers of elements.

    Attributes:
        head_dim: of one head; heads times head_dim need not be the hidden size.
        tied: the output matrix is the embedding.
        qkv_bias, qk_norm: whether the projections have a bias; whether each head of q and k is normalised.
        experts: 0 for a dense model.
        dense_layers: with experts, how many layers are dense all the same.
        dense_intermediate: of those.
        shared_intermediate: of the expert that sees every token; 0 without one.
        index_heads, index_dim: of the branch that selects blocks in sparse attention; its keys are cached too.
    """

    layers: int = Setting(ge=1)
    hidden: int = Setting(ge=1)
    intermediate: int = Setting(ge=1, description="of the feed-forward layer, or of one expert")
    heads: int = Setting(ge=1)
    kv_heads: int = Setting(ge=1)
    head_dim: int = Setting(ge=1)
    vocabulary: int = Setting(ge=1)
    tied: bool = False
    qkv_bias: bool = True
    qk_norm: bool = False
    experts: int = Setting(0, ge=0)
    experts_per_token: int = Setting(0, ge=0)
    router_bias: bool = False
    dense_layers: int = Setting(0, ge=0)
    dense_intermediate: int = Setting(0, ge=0)
    shared_intermediate: int = Setting(0, ge=0)
    index_heads: int = Setting(0, ge=0)
    index_dim: int = Setting(0, ge=0)

    @model_validator(mode="after")
    def _experts_fit(self) -> Self:
        if self.experts and not 1 <= self.experts_per_token <= self.experts:
            raise ValueError("experts_per_token must be between 1 and experts")
        if self.dense_layers > self.layers:
            raise ValueError("dense_layers must not exceed layers")
        return self


class VisionModel(_Part):
    """The part that sees. A visual token is ``merge`` x ``merge`` patches of ``patch`` x ``patch`` pixels.

    Attributes:
        deepstack: how many of its layers feed the decoder besides the last (Qwen3-VL).
        positions: learned positions (Qwen3-VL).
        min_pixels, max_pixels: between which a picture's area is brought.
        long_side: where it is not 0, pictures are resized by their sides instead (MiniMax M3, when asked to): the
            longer one to at most so many pixels, the shorter one to at least ``short_side``.
    """

    depth: int = Setting(ge=1)
    hidden: int = Setting(ge=1)
    intermediate: int = Setting(ge=1)
    heads: int = Setting(ge=1)
    patch: int = Setting(14, ge=1)
    merge: int = Setting(2, ge=1)
    temporal: int = Setting(2, ge=1)
    deepstack: int = Setting(0, ge=0)
    positions: int = Setting(0, ge=0)
    min_pixels: int = Setting(ge=1)
    max_pixels: int = Setting(ge=1)
    long_side: int = Setting(0, ge=0)
    short_side: int = Setting(0, ge=0)

    @property
    def factor(self) -> int:
        """Both sides of a resized picture are multiples of it, in pixels."""
        return self.patch * self.merge

    @property
    def max_tokens(self) -> int:
        """Visual tokens of the largest picture."""
        if self.long_side:
            return (self.long_side // self.factor) ** 2
        return self.max_pixels // self.factor**2


class Quantization(_Part):
    """How the decoder's matrices are stored. The vision part, the embeddings and the norms stay in 16 bits.

    Attributes:
        method: vLLM's name of it.
        bits: of one weight.
        group: weights that share a scale; 0: a scale for each row, which is too little to count.
        group_bytes: scale and zero point of one group.
        block: what both sides of each GPU's part of a matrix must divide by; 0: nothing.
        output: whether the output matrix is quantised too.
        experts_only: everything but the experts' matrices stays in 16 bits.
        online: the checkpoint has 16 bits and vLLM makes it smaller as it loads: it must be told.
    """

    method: str = Setting(min_length=1)
    bits: int = Setting(ge=2, le=16)
    group: int = Setting(0, ge=0)
    group_bytes: float = Setting(0.0, ge=0)
    output: bool = False
    experts_only: bool = False
    block: int = Setting(0, ge=0)
    online: bool = False

    @property
    def bytes_per_weight(self) -> float:
        """With the groups' share."""
        return self.bits / 8 + (self.group_bytes / self.group if self.group else 0.0)


BoxConvention = Literal["relative_1000", "resized_pixels", "none"]


class ModelProfile(_Part):
    """One model.

    Attributes:
        name: what people and requests call it.
        hub_id: on the Hugging Face hub.
        architecture: the class name in config.json.
        boxes: how it writes boxes: thousandths of width and height, or pixels of the resized picture.
        context: the longest that it was made for, in tokens.
        max_model_len: what docmill serves it with unless told otherwise; longer costs memory for each request.
        images: pictures a request may have.
        quantization: None: 16-bit weights.
        arguments: flags that vLLM's server needs for it.
        request_extra: further fields of each request's body.
        least_version: of vLLM, such as ``0.24``.
        base: the profile that it is a quantised variant of.
        parameters: the public count, where known; the computed one is held against it.
        notes: what a person should know; ``docmill plan`` prints it.
        folder: where its files are on this machine, once known.
    """

    name: str = Setting(min_length=1)
    hub_id: str = ""
    family: Family
    architecture: str
    text: TextModel
    vision: VisionModel
    boxes: BoxConvention
    context: int = Setting(ge=1)
    max_model_len: int = Setting(ge=1)
    images: int = Setting(1, ge=1)
    quantization: Quantization | None = None
    arguments: tuple[str, ...] = ()
    request_extra: dict[str, Any] = Setting(default_factory=dict)
    least_version: str = "0.24"
    expert_parallel: bool = Setting(False, description="experts are spread over the GPUs instead of being cut")
    encoder_data_parallel: bool = Setting(False, description="each GPU holds the whole vision part")
    base: str | None = None
    parameters: int | None = None
    notes: tuple[str, ...] = ()
    folder: str | None = None
