"""What can go wrong with models and the servers that run them: the same tree as docmill.failures, one branch of it.

::

    TransientError
    ├ ServerFailed           a crash loop: the supervisor gave up
    ├ ServerRestarted        the server went away while it worked on the request
    └ ServerFault            500, 502, 504, or something that is no answer of a model (a proxy's page, broken JSON)
    PermanentError
    ├ ModelNotFound ModelIncomplete NotAVisionModel UnsupportedModel
    ├ ParallelSizeImpossible NotEnoughGpuMemory NoFreeGpu PortTaken
    ├ VllmMissing UnsupportedFlag ServerOutOfMemory
    ├ ServedNameUnknown (404) BadRequest (400, 413, 422) ServerRefused (401, 403)
    └ ServerInUse ServerAlreadyUp ServerUnknown
"""

from __future__ import annotations

from docmill.failures import Category, PermanentError, TransientError


class ServerFailed(TransientError):
    """A model server crashed more often than its budget allows; its supervisor gave up."""

    code = "server_failed"
    category = Category.ENGINE
    default_remedy = "see the last log lines: docmill servers --all --json; mend the cause, then: docmill serve"


class ServerRestarted(TransientError):
    """The connection broke while the server worked on the request: it crashed or was restarted."""

    code = "server_restarted"
    category = Category.ENGINE
    default_remedy = "the request is sent again once the server is back; see: docmill servers"


class ServerFault(TransientError):
    """The server answered 5xx, or with something that is no answer of a model; ``detail["body"]`` is what it said."""

    code = "server_fault"
    category = Category.ENGINE
    default_remedy = "see what the server said in the failure's detail, and its log: docmill servers"


class ModelNotFound(PermanentError):
    """The model's folder is not there, or no profile has that name."""

    code = "model_not_found"
    category = Category.CONFIGURATION
    default_remedy = "name a profile (docmill plan --list) or a folder that holds config.json and the weights"


class ModelIncomplete(PermanentError):
    """The model's folder lacks a file, or a file is shorter than it says (a download that was cut off)."""

    code = "model_incomplete"
    category = Category.CONFIGURATION
    default_remedy = "download the named files again"


class NotAVisionModel(PermanentError):
    """The model has no vision part: it cannot read pages."""

    code = "not_a_vision_model"
    category = Category.CONFIGURATION
    default_remedy = "choose a vision-language model, such as Qwen2-VL"


class UnsupportedModel(PermanentError):
    """An architecture that docmill or the installed vLLM does not know."""

    code = "unsupported_model"
    category = Category.CONFIGURATION
    default_remedy = "see which there are: docmill plan --list"


class ParallelSizeImpossible(PermanentError):
    """Heads, key-value heads or the vocabulary do not divide by the tensor-parallel size."""

    code = "parallel_size_impossible"
    category = Category.CONFIGURATION
    default_remedy = "see the possible sizes: docmill plan"


class NotEnoughGpuMemory(PermanentError):
    """The model does not fit the GPUs, or others hold their memory."""

    code = "not_enough_gpu_memory"
    category = Category.CONFIGURATION
    default_remedy = "see what would make it fit: docmill plan"


class NoFreeGpu(PermanentError):
    """Every GPU of this host is held by another model server."""

    code = "no_free_gpu"
    category = Category.CONFIGURATION
    default_remedy = "see who holds them: docmill servers; end one with: docmill stop NAME"


class PortTaken(PermanentError):
    """Something else listens on the port."""

    code = "port_taken"
    category = Category.CONFIGURATION
    default_remedy = "choose another with --port, or leave it out and a free one is taken"


class VllmMissing(PermanentError):
    """No environment with vLLM is configured, or the one that is has none or an unsupported version."""

    code = "vllm_missing"
    category = Category.CONFIGURATION
    default_remedy = "make one with: docmill serve --install cuda (or cpu), or set serving.python"


class UnsupportedFlag(PermanentError):
    """A flag that the installed vLLM does not know, or a value that it does not take."""

    code = "unsupported_flag"
    category = Category.CONFIGURATION
    default_remedy = "see: docmill preflight"


class ServerOutOfMemory(PermanentError):
    """The GPU's memory ran out while the server started or worked."""

    code = "server_out_of_memory"
    category = Category.ENGINE
    default_remedy = (
        "in this order: lower serving.max_num_seqs, lower serving.max_model_len, lower "
        "serving.gpu_memory_utilization, choose a quantised profile, use more GPUs"
    )


class ServedNameUnknown(PermanentError):
    """The server does not serve a model of that name (404)."""

    code = "served_name_unknown"
    category = Category.ENGINE
    default_remedy = "ask for one of the names that the server lists, or check serving.base_urls"


class BadRequest(PermanentError):
    """The server refuses the request (400, 413, 422); ``detail["body"]`` is what it said."""

    code = "bad_request"
    category = Category.ENGINE
    default_remedy = "see what the server said in the failure's detail"


class ServerRefused(PermanentError):
    """The server refuses the key (401, 403)."""

    code = "server_refused"
    category = Category.ENGINE
    default_remedy = "set serving.api_key_file to the key that the server was started with"


class ServerInUse(PermanentError):
    """The server has live leases and is not stopped without force."""

    code = "server_in_use"
    category = Category.ENGINE
    default_remedy = "wait until its holders are done, or: docmill stop NAME --force"


class ServerAlreadyUp(PermanentError):
    """A server of that profile is up already."""

    code = "server_already_up"
    category = Category.ENGINE
    default_remedy = "use it; or stop it first: docmill stop NAME"


class ServerUnknown(PermanentError):
    """No model server of that name or id."""

    code = "server_unknown"
    category = Category.ENGINE
    default_remedy = "see: docmill servers --all"
