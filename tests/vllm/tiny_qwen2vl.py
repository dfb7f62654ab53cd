"""Write a tiny Qwen2-VL checkpoint with random weights: ``.vllm/bin/python tests/vllm/tiny_qwen2vl.py FOLDER``.

The architecture, the tokenizer's kind, the chat template's markers and the image processor are Qwen2-VL's own, so vLLM
treats it like a real one; 0.7 million parameters, so that it loads at once. What it answers is noise. Runs under the
interpreter of the environment that vLLM is in (it needs torch and transformers), downloads nothing.
"""

import argparse
import json
from pathlib import Path

import torch
from tokenizers import Tokenizer
from tokenizers.decoders import ByteLevel as BytesBack
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel
from tokenizers.trainers import BpeTrainer
from transformers import PreTrainedTokenizerFast, Qwen2VLConfig, Qwen2VLForConditionalGeneration

END_OF_TEXT = "<|endoftext|>"
TURN, TURN_END = "<|im_start|>", "<|im_end|>"
VISION, VISION_END, IMAGE, VIDEO = "<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>"
MARKERS = (END_OF_TEXT, TURN, TURN_END, VISION, VISION_END, IMAGE, VIDEO)

HEADS = 4
KEY_VALUE_HEADS = 2
HEAD_SIZE = 32
CONTEXT = 4096
PATCH, MERGE, FRAMES = 14, 2, 2

TRAINED_ON = [
    "Read this form and answer as JSON.",
    '{"name": "", "date": "", "total": 0, "signed": true, "none": null}',
]

CHAT_TEMPLATE = (
    "{%- for message in messages -%}"
    "<|im_start|>{{ message.role }}\n"
    "{%- if message.content is string -%}{{ message.content }}"
    "{%- else -%}{%- for part in message.content -%}"
    "{%- if part.type == 'text' -%}{{ part.text }}"
    "{%- else -%}<|vision_start|><|image_pad|><|vision_end|>{%- endif -%}"
    "{%- endfor -%}{%- endif -%}<|im_end|>\n"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}<|im_start|>assistant\n{%- endif -%}"
)

IMAGES = {
    "image_processor_type": "Qwen2VLImageProcessor",
    "processor_class": "Qwen2VLProcessor",
    "patch_size": PATCH,
    "temporal_patch_size": FRAMES,
    "merge_size": MERGE,
    "min_pixels": 4 * (PATCH * MERGE) ** 2,
    "max_pixels": 512 * (PATCH * MERGE) ** 2,
    "image_mean": [0.5, 0.5, 0.5],
    "image_std": [0.5, 0.5, 0.5],
}


def tokenizer() -> PreTrainedTokenizerFast:
    """A byte-level BPE: every byte is a token of its own, so any text can be said."""
    bpe = Tokenizer(BPE())
    bpe.pre_tokenizer = ByteLevel(add_prefix_space=False)
    bpe.decoder = BytesBack()
    alphabet = ByteLevel.alphabet()
    trainer = BpeTrainer(vocab_size=320, special_tokens=list(MARKERS), initial_alphabet=alphabet, show_progress=False)
    bpe.train_from_iterator(TRAINED_ON, trainer)
    whole = PreTrainedTokenizerFast(
        tokenizer_object=bpe,
        eos_token=TURN_END,
        pad_token=END_OF_TEXT,
        additional_special_tokens=list(MARKERS[1:]),
        model_max_length=CONTEXT,
    )
    whole.chat_template = CHAT_TEMPLATE
    return whole


def configuration(token: dict[str, int], vocabulary: int) -> Qwen2VLConfig:
    """Two layers of language, two of vision."""
    hidden = HEADS * HEAD_SIZE
    sections = [HEAD_SIZE // 8, 3 * HEAD_SIZE // 16, 3 * HEAD_SIZE // 16]  # of half a head: time, height, width
    return Qwen2VLConfig(
        text_config={
            "vocab_size": vocabulary,
            "hidden_size": hidden,
            "intermediate_size": 2 * hidden,
            "num_hidden_layers": 2,
            "num_attention_heads": HEADS,
            "num_key_value_heads": KEY_VALUE_HEADS,
            "max_position_embeddings": CONTEXT,
            "rope_scaling": {"type": "mrope", "rope_type": "default", "mrope_section": sections},
            "bos_token_id": token[END_OF_TEXT],
            "eos_token_id": token[TURN_END],
        },
        vision_config={
            "depth": 2,
            "embed_dim": hidden,
            "hidden_size": hidden,
            "num_heads": HEADS,
            "mlp_ratio": 2,
            "patch_size": PATCH,
            "spatial_merge_size": MERGE,
            "temporal_patch_size": FRAMES,
        },
        image_token_id=token[IMAGE],
        video_token_id=token[VIDEO],
        vision_start_token_id=token[VISION],
        vision_end_token_id=token[VISION_END],
        tie_word_embeddings=False,
    )


def write_checkpoint(folder: Path, seed: int = 0) -> None:
    """The whole model folder; the same seed gives the same weights."""
    folder.mkdir(parents=True, exist_ok=True)
    words = tokenizer()
    words.save_pretrained(folder)
    token = {marker: words.convert_tokens_to_ids(marker) for marker in MARKERS}
    torch.manual_seed(seed)
    model = Qwen2VLForConditionalGeneration(configuration(token, -(-len(words) // 64) * 64)).to(torch.bfloat16)
    model.generation_config.update(eos_token_id=token[TURN_END], pad_token_id=token[END_OF_TEXT])
    # Several shards with an index, as the checkpoints of large models have.
    model.save_pretrained(folder, max_shard_size="400KB")
    (folder / "preprocessor_config.json").write_text(json.dumps(IMAGES, indent=1))


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("folder", type=Path)
    arguments.add_argument("--seed", type=int, default=0)
    given = arguments.parse_args()
    write_checkpoint(given.folder, given.seed)
