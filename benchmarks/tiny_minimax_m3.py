"""Write a MiniMax-M3 checkpoint without weights: the true architecture and widths, few layers and experts.

    python benchmarks/tiny_minimax_m3.py OUT --tokenizer FOLDER_WITH_A_TOKENIZER_JSON [--layers 5] [--experts 8]

For ``--load-format dummy``: vLLM fills it with random numbers, so that flags, memory, sharding and protocol are real
and the text is noise. The tokenizer is any byte-level one; M3's special tokens are added. Numbers of the text model:
the defaults of vLLM's own configuration class for it (vllm/transformers_utils/configs/minimax_m3.py, 0.24).
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

SPECIAL = ["]<]image[>[", "]<]video[>[", "]<]start of image[>[", "]<]end of image[>["]
TEMPLATE = (
    "{% for m in messages %}{{ m['role'] }}: {% if m['content'] is string %}{{ m['content'] }}{% else %}"
    "{% for part in m['content'] %}{% if part['type'] in ('image', 'image_url') %}]<]image[>["
    "{% elif 'text' in part %}{{ part['text'] }}{% endif %}{% endfor %}{% endif %}\n{% endfor %}"
    "{% if add_generation_prompt %}assistant: {% endif %}"
)
PICTURES = {
    "patch_size": 14,
    "temporal_patch_size": 2,
    "merge_size": 2,
    "max_pixels": 451584,
    "image_mean": [0.48145466, 0.4578275, 0.40821073],
    "image_std": [0.26862954, 0.26130258, 0.27577711],
    "processor_class": "MiniMaxVLProcessor",
}
DENSE_LAYERS = 3


def configuration(layers: int, experts: int) -> dict[str, object]:
    """``config.json``; the first three layers are dense, as in the true model."""
    kinds = [0] * min(DENSE_LAYERS, layers) + [1] * max(0, layers - DENSE_LAYERS)
    return {
        "architectures": ["MiniMaxM3SparseForConditionalGeneration"],
        "model_type": "minimax_m3_vl",
        "torch_dtype": "bfloat16",
        "projector_hidden_size": 6144,
        "text_config": {
            "architectures": ["MiniMaxM3SparseForCausalLM"],
            "model_type": "minimax_m3_text",
            "torch_dtype": "bfloat16",
            "vocab_size": 200064,
            "hidden_size": 6144,
            "intermediate_size": 3072,
            "dense_intermediate_size": 12288,
            "shared_intermediate_size": 3072,
            "num_hidden_layers": layers,
            "num_attention_heads": 64,
            "num_key_value_heads": 4,
            "head_dim": 128,
            "max_position_embeddings": 524288,
            "num_local_experts": experts,
            "num_experts_per_tok": 4,
            "moe_layer_freq": kinds,
            "sparse_attention_config": {
                "use_sparse_attention": True,
                "sparse_index_dim": 128,
                "sparse_num_index_heads": 4,
                "sparse_topk_blocks": 16,
                "sparse_block_size": 128,
                "sparse_disable_index_value": kinds,
                "sparse_score_type": "max",
                "sparse_init_block": 0,
                "sparse_local_block": 1,
                "sparse_attention_freq": kinds,
            },
        },
        "vision_config": {
            "model_type": "clip_vision_model",
            "hidden_size": 1280,
            "intermediate_size": 5120,
            "num_hidden_layers": 4,
            "num_attention_heads": 16,
            "num_channels": 3,
            "patch_size": 14,
            "image_size": 672,
            "layer_norm_eps": 1e-5,
            "hidden_act": "gelu",
            "rope_theta": 10000.0,
            "img_token_compression_config": {"spatial_merge_size": 2, "temporal_patch_size": 2},
        },
    }


def main() -> None:
    """Write the folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--tokenizer", type=Path, required=True, help="folder with a tokenizer.json")
    parser.add_argument("--layers", type=int, default=5)
    parser.add_argument("--experts", type=int, default=8)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    tokenizer = json.loads((given.tokenizer / "tokenizer.json").read_text(encoding="utf-8"))
    known = {added["content"] for added in tokenizer["added_tokens"]}
    number = max([*tokenizer["model"]["vocab"].values(), *(added["id"] for added in tokenizer["added_tokens"])])
    for content in SPECIAL:
        if content not in known:
            number += 1
            flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
            tokenizer["added_tokens"].append({"id": number, "content": content, **flags})
    files = {
        "config.json": configuration(given.layers, given.experts),
        "tokenizer.json": tokenizer,
        "tokenizer_config.json": {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|im_end|>"},
        "preprocessor_config.json": PICTURES | {"image_processor_type": "MiniMaxM3VLImageProcessor"},
        "video_preprocessor_config.json": PICTURES | {"video_processor_type": "MiniMaxM3VLVideoProcessor"},
        "generation_config.json": {"eos_token_id": 151645},
    }
    for name, content in files.items():
        (given.out / name).write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
    (given.out / "chat_template.jinja").write_text(TEMPLATE, encoding="utf-8")
    print(given.out)


if __name__ == "__main__":
    main()
