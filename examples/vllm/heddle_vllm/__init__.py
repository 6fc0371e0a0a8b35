"""heddle's kernels as an attention backend of vLLM: vllm serve MODEL --attention-backend CUSTOM"""


def register():
    from vllm.v1.attention.backends.registry import AttentionBackendEnum, register_backend

    register_backend(AttentionBackendEnum.CUSTOM, "heddle_vllm.backend.HeddleBackend")
