"""Whether the hub that timm downloads from answers, asked once and quickly.

The hub's own client tries each file six times with growing pauses: without a network, most of a
minute passes before it gives up.
"""

from __future__ import annotations

import timm
from huggingface_hub import constants, try_to_load_from_cache
from huggingface_hub.utils import get_session

from common.errors import UserError

SECONDS = 5.0
FILES = ("model.safetensors", "pytorch_model.bin")


def check_hub(tag: str, config: timm.models.PretrainedCfg) -> None:
    """Returns if the weights of ``tag`` are in the hub's cache, or the hub can be reached.

    One request without retries, of :data:`SECONDS` at most, through the hub client's own session:
    its proxies, mirror (HF_ENDPOINT) and offline mode (HF_HUB_OFFLINE) hold here too. Any answer
    will do, a refusal as well: then it is the download that says what is wrong. Weights that timm
    fetches from elsewhere are not asked for.

    Raises:
        UserError: no answer, and the weights are not in the cache.
    """
    if not config.hf_hub_id or is_cached(config):
        return
    try:
        get_session().head(constants.ENDPOINT, timeout=SECONDS)
    except Exception as error:  # requests' or httpx's, by the version of the client
        raise weights_missing(tag, error) from None


def weights_missing(tag: str, error: Exception) -> UserError:
    """The one sentence for weights that could not be downloaded, and what to do instead."""
    reason = (str(error) or type(error).__name__).splitlines()[0][:100]
    return UserError(
        f"the weights of {tag} could not be had ({reason}): fetch them elsewhere and pass "
        "--weights FILE, or set model.options.pretrained=random"
    )


def is_cached(config: timm.models.PretrainedCfg) -> bool:
    """Whether the weights are in the hub client's cache, so that no network is needed."""
    repository, _, revision = config.hf_hub_id.partition("@")
    names = (config.hf_hub_filename,) if config.hf_hub_filename else FILES
    found = (try_to_load_from_cache(repository, name, revision=revision or None) for name in names)
    return any(isinstance(path, str) for path in found)
