"""Short backbone names and the full timm tag, network and pretraining, that each stands for.

timm renames defaults between versions; a full tag means the same weights for ever.
"""

from __future__ import annotations

from typing import NamedTuple


class Pinned(NamedTuple):
    """A published set of weights.

    Attributes:
        tag: timm's network and pretraining.
        file: the file as its authors published it.
        sha256: of that file; the first eight digits alone where the authors put just those into
            its name, None where nothing is known.
        source: who published it and who starts from it.
    """

    tag: str
    file: str
    sha256: str | None
    source: str


PINNED = {
    "resnet50": Pinned(
        "resnet50.tv_in1k",
        "resnet50-0676ba61.pth",
        "0676ba61",
        "torchvision's first ImageNet-1k weights, as RS@K, Smooth-AP and Proxy-Anchor start from "
        "(their file is the older copy resnet50-19c8e357.pth)",
    ),
    "vit_base_patch16_224": Pinned(
        "vit_base_patch16_224.augreg_in21k",
        "B_16-i21k-300ep-lr_0.001-aug_medium1-wd_0.1-do_0.0-sd_0.0.npz",
        None,
        "AugReg, ImageNet-21k: RS@K's vit_base_patch16_224_in21k of timm 0.4.12",
    ),
    "vit_base_patch32_224": Pinned(
        "vit_base_patch32_224.augreg_in21k",
        "B_32-i21k-300ep-lr_0.001-aug_medium1-wd_0.03-do_0.0-sd_0.0.npz",
        None,
        "AugReg, ImageNet-21k: RS@K's vit_base_patch32_224_in21k of timm 0.4.12",
    ),
    "vit_small_patch16_224": Pinned(
        "vit_small_patch16_224.augreg_in21k",
        "S_16-i21k-300ep-lr_0.001-aug_light1-wd_0.03-do_0.0-sd_0.0.npz",
        None,
        "AugReg, ImageNet-21k: HIER's ViT rows",
    ),
    "dino_vits16": Pinned(
        "vit_small_patch16_224.dino",
        "dino_deitsmall16_pretrain.pth",
        None,
        "DINO without head: HIER's DINO rows",
    ),
    "deit_small_distilled_patch16_224": Pinned(
        "deit_small_distilled_patch16_224.fb_in1k",
        "deit_small_distilled_patch16_224-649709d9.pth",
        "649709d9",
        "DeiT, ImageNet-1k: HIER's DeiT rows",
    ),
    "tf_efficientnet_lite0": Pinned(
        "tf_efficientnet_lite0.in1k",
        "tf_efficientnet_lite0-0aa007d2.pth",
        "0aa007d2",
        "Google's EfficientNet-Lite0, ImageNet-1k, ported by timm; see also models.wheel",
    ),
}
