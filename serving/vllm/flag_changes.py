"""Flags of vLLM's server that are gone or renamed, and what replaced them.

Read from the parsers of 0.24, 0.32 and 0.33; whether the installed vLLM has a flag is always asked from its own parser,
this only says what to write instead. Most were gone before 0.24 but stand in many a start script.
"""

from __future__ import annotations

REPLACED: dict[str, str] = {
    # answers
    "--guided-decoding-backend": '--structured-outputs-config \'{"backend": "xgrammar"}\'',
    "--guided-decoding-disable-fallback": "leave it out: there is no fallback any more",
    "--guided-decoding-disable-any-whitespace": '--structured-outputs-config \'{"backend": "xgrammar", '
    '"disable_any_whitespace": true}\'',
    "--guided-decoding-disable-additional-properties": '--structured-outputs-config \'{"backend": "guidance", '
    '"disable_additional_properties": true}\'',
    "--guided-json": "response_format in each request (guided_json there is silently ignored)",
    "--enable-reasoning": "--reasoning-parser alone",
    "--override-neuron-config": "--additional-config",
    "--override-pooler-config": "--pooler-config",
    "--logits-processor-pattern": "--logits-processors",
    # memory and cache
    "--swap-space": "leave it out: preempted requests are computed again",
    "--preemption-mode": "leave it out: preempted requests are computed again",
    "--kv-cache-memory": "--kv-cache-memory-bytes",
    "--calculate-kv-scales": "leave it out: scales come with the checkpoint",
    "--disable-mm-preprocessor-cache": "--mm-processor-cache-gb 0",
    "--mm-preprocessor-cache-size": "--mm-processor-cache-gb",
    "--mamba-cache-mode": "leave it out: it follows --enable-prefix-caching",
    # scheduling and graphs
    "--use-v2-block-manager": "leave it out: it is the only one",
    "--num-lookahead-slots": "--speculative-config",
    "--num-speculative-tokens": "--speculative-config '{\"num_speculative_tokens\": N, …}'",
    "--speculative-model": "--speculative-config '{\"model\": …}'",
    "--speculative-draft-tensor-parallel-size": "--speculative-config '{\"draft_tensor_parallel_size\": N, …}'",
    "--ngram-prompt-lookup-max": "--speculative-config '{\"prompt_lookup_max\": N, …}'",
    "--ngram-prompt-lookup-min": "--speculative-config '{\"prompt_lookup_min\": N, …}'",
    "--max-seq-len-to-capture": "--max-cudagraph-capture-size (counts tokens of a batch, not of a sequence)",
    "--max-context-len-to-capture": "--max-cudagraph-capture-size (counts tokens of a batch, not of a sequence)",
    "--cuda-graph-sizes": "--cudagraph-capture-sizes",
    "--full-cuda-graph": '--compilation-config \'{"cudagraph_mode": "FULL"}\'',
    "--num-scheduler-steps": "leave it out",
    "--multi-step-stream-outputs": "leave it out",
    "--scheduler-delay-factor": "leave it out",
    "--disable-async-output-proc": "leave it out",
    "--max-num-partial-prefills": "leave it out",
    "--max-long-partial-prefills": "leave it out",
    "--long-prefill-threshold": "--long-prefill-token-threshold",
    "--disable-cascade-attn": "leave it out: cascade attention is gone",
    # devices and sharding
    "--device": "leave it out: the installed build decides",
    "--worker-use-ray": "--distributed-executor-backend ray",
    "--engine-use-ray": "leave it out",
    "--tokenizer-pool-size": "leave it out",
    "--tokenizer-pool-type": "leave it out",
    "--tokenizer-pool-extra-config": "leave it out",
    "--enable-multimodal-encoder-data-parallel": "--mm-encoder-tp-mode data",
    "--num-redundant-experts": "--eplb-config '{\"num_redundant_experts\": N}'",
    "--eplb-window-size": "--eplb-config '{\"window_size\": N}'",
    "--eplb-step-interval": "--eplb-config '{\"step_interval\": N}'",
    "--eplb-log-balancedness": "--eplb-config '{\"log_balancedness\": true}'",
    "--nccl-timeout": "--distributed-timeout-seconds",
    # models
    "--task": "leave it out (--runner pooling is for models that embed)",
    "--rope-scaling": "--hf-overrides '{\"rope_parameters\": {…}}'",
    "--rope-theta": '--hf-overrides \'{"rope_parameters": {"rope_theta": N, …}}\'',
    "--override-attention-dtype": "leave it out",
    "--lora-extra-vocab-size": "leave it out",
    "--long-lora-scaling-factors": "leave it out",
    "--qlora-adapter-name-or-path": "--enable-lora",
    "--enable-prompt-adapter": "leave it out",
    "--image-input-type": "leave it out",
    "--image-token-id": "leave it out",
    # the server
    "--disable-log-requests": "leave it out: requests are logged only with --enable-log-requests",
    "--log-config-file": "--logging-config.pylogging_config_file",
    "--log-level": "--uvicorn-log-level, and VLLM_LOGGING_LEVEL in the environment",
    "--disable-frontend-multiprocessing": "VLLM_ENABLE_V1_MULTIPROCESSING=0 in the environment",
    "--max-num-queued-reqs": "leave it out: this vLLM has no limit of its own (0.29 has)",
}
"""Old spelling → what to write instead; entries that begin with ``leave it out`` have no successor."""

WITHOUT_EFFECT: dict[str, tuple[int, int]] = {
    "--disable-cascade-attn": (0, 32),
    "--mamba-cache-mode": (0, 32),
    "--log-config-file": (0, 32),
}
"""Flags that vLLM still takes but warns of, and the version since which it does (its parser does not mark them)."""
