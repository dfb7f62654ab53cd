"""How many parameters a model has and how many bytes they take, computed from its architecture.

The sums are exact for the catalog's 16-bit models (tests hold them against the published counts), so that a plan needs
no download.
"""

from __future__ import annotations

from dataclasses import dataclass

from docmill.models.profile import Family, ModelProfile, TextModel, VisionModel

BYTES = 2
"""Of a 16-bit weight."""
VOCABULARY_MULTIPLE = 64
"""To which vLLM pads the vocabulary (``DEFAULT_VOCAB_PADDING_SIZE`` in its vocab_parallel_embedding.py)."""


@dataclass(frozen=True, slots=True)
class ParameterCounts:
    """Numbers of parameters.

    Attributes:
        attention, dense, experts: the decoder's matrices, which quantisation makes smaller.
        keys: those of ``attention`` that make keys and values, which are cut along the key-value heads.
        output: the output matrix; 0 where it is the embedding.
        embedding: the input matrix.
        small: norms and biases.
        routers: what chooses the experts.
        vision: the vision part with its projector.
    """

    attention: int
    keys: int
    dense: int
    experts: int
    output: int
    embedding: int
    small: int
    routers: int
    vision: int

    @property
    def total(self) -> int:
        """All of them."""
        decoder = self.attention + self.dense + self.experts + self.output + self.embedding
        return decoder + self.small + self.routers + self.vision


def parameter_counts(profile: ModelProfile) -> ParameterCounts:
    """The profile's parameters by kind."""
    text = profile.text
    q, kv = text.heads * text.head_dim, text.kv_heads * text.head_dim
    matrices = text.hidden * (2 * q + 2 * kv)
    small = 2 * text.hidden + (q + 2 * kv if text.qkv_bias else 0) + (2 * text.head_dim if text.qk_norm else 0)
    attention = text.layers * matrices
    small_total = text.layers * small + text.hidden
    sparse_layers = text.layers - text.dense_layers if text.experts else 0
    if text.index_heads:
        attention += sparse_layers * text.hidden * text.index_dim * (text.index_heads + 1)
        small_total += sparse_layers * 2 * text.index_dim
    dense, experts, routers = _feed_forward(text, sparse_layers)
    table = text.vocabulary * text.hidden
    return ParameterCounts(
        attention=attention,
        keys=text.layers * text.hidden * 2 * kv,
        dense=dense,
        experts=experts,
        output=0 if text.tied else table,
        embedding=table,
        small=small_total,
        routers=routers,
        vision=_vision(profile.family, profile.vision, text.hidden),
    )


def _feed_forward(text: TextModel, sparse_layers: int) -> tuple[int, int, int]:
    if not text.experts:
        return text.layers * 3 * text.hidden * text.intermediate, 0, 0
    dense = text.dense_layers * 3 * text.hidden * text.dense_intermediate
    dense += sparse_layers * 3 * text.hidden * text.shared_intermediate
    experts = sparse_layers * text.experts * 3 * text.hidden * text.intermediate
    routers = sparse_layers * text.experts * (text.hidden + (1 if text.router_bias else 0))
    return dense, experts, routers


def _linear(inputs: int, outputs: int, *, bias: bool = True) -> int:
    return inputs * outputs + (outputs if bias else 0)


def _vision(family: Family, vision: VisionModel, out: int) -> int:
    h, merged = vision.hidden, vision.hidden * vision.merge**2
    patches = 3 * vision.temporal * vision.patch**2 * h
    attention = _linear(h, 3 * h) + _linear(h, h)
    if family is Family.QWEN2_5_VL:
        block = attention + 2 * h + 2 * _linear(h, vision.intermediate) + _linear(vision.intermediate, h)
        return patches + vision.depth * block + h + _linear(merged, merged) + _linear(merged, out)
    block = attention + 4 * h + _linear(h, vision.intermediate) + _linear(vision.intermediate, h)
    blocks = vision.depth * block
    if family is Family.QWEN2_VL:
        return patches + blocks + 2 * h + _linear(merged, merged) + _linear(merged, out)
    if family is Family.QWEN3_VL:
        merger = 2 * h + _linear(merged, merged) + _linear(merged, out)
        deep = vision.deepstack * (2 * merged + _linear(merged, merged) + _linear(merged, out))
        return patches + h + vision.positions * h + blocks + merger + deep
    projector = _linear(h, out) + _linear(out, out) + _linear(out * vision.merge**2, out) + _linear(out, out)
    return patches + 2 * h + blocks + projector


def bytes_per_gpu(profile: ModelProfile, tensor_parallel_size: int) -> int:
    """Bytes of weights that each of the GPUs holds.

    Matrices are cut; norms, biases and routers are on every GPU, and so is the vision part with
    ``encoder_data_parallel``. Where there are more GPUs than key-value heads, each holds one head's keys and values.
    The embeddings are cut along the vocabulary, which vLLM pads.
    """
    counts, quantization, text = parameter_counts(profile), profile.quantization, profile.text
    packed = quantization.bytes_per_weight if quantization is not None else float(BYTES)
    others = float(BYTES) if quantization is not None and quantization.experts_only else packed
    output = packed if quantization is not None and quantization.output else float(BYTES)
    padded = padded_vocabulary(text.vocabulary) / text.vocabulary
    cut = (counts.attention - counts.keys + counts.dense) * others + counts.experts * packed
    cut += (counts.output * output + counts.embedding * BYTES) * padded
    keys = counts.keys * others / min(tensor_parallel_size, text.kv_heads)
    whole = float(counts.small * BYTES + counts.routers * _router_bytes(profile.family))
    if profile.encoder_data_parallel:
        whole += counts.vision * BYTES
    else:
        cut += counts.vision * BYTES
    return round(cut / tensor_parallel_size + keys + whole)


def padded_vocabulary(vocabulary: int) -> int:
    """As many rows as vLLM gives the embedding."""
    return -(-vocabulary // VOCABULARY_MULTIPLE) * VOCABULARY_MULTIPLE


def _router_bytes(family: Family) -> int:
    """Of one number: MiniMax M3 keeps its routers in 32 bits."""
    return 4 if family is Family.MINIMAX_M3 else BYTES
