"""Small networks and sizes in place of a recipe's own, so that it runs on a CPU within a second."""

from __future__ import annotations

from reproduce.config import RunConfig

# A network of the same kind: convolutional with BatchNorm, or a transformer with a class token.
BACKBONES = {
    "resnet50": "resnet18",
    "tf_efficientnet_lite0": "resnet18",
    "vit_base_patch16_224": "vit_tiny_patch16_224",
    "vit_base_patch32_224": "vit_tiny_patch16_224",
    "dino_vits16": "vit_tiny_patch16_224",
}
SIDE = 32


def reduced(config: RunConfig, **values: object) -> RunConfig:
    """The recipe with a small random network, images of 32 pixels and 8 images in a batch.

    Its options, loss, schedule, sampler and chunks stay.
    """
    options = dict(config.model.options)
    if config.model.backbone == "iresnet50":
        options |= {"blocks": [1, 1, 1, 1], "width": 8}
    elif config.model.backbone in BACKBONES:
        options["pretrained"] = "random"
    train = {"epochs": 1, "steps_per_epoch": 2, "classes_per_batch": 4, "images_per_class": 2}
    changes = {f"train.{key}": value for key, value in train.items()}
    changes |= {
        "model.backbone": BACKBONES.get(config.model.backbone, config.model.backbone),
        "model.embedding_dim": 16,
        "model.options": options,
        "data.image_size": SIDE,
        "data.resize": SIDE,
        "train.head_only_epochs": 0,
        "train.chunk_size": config.train.chunk_size and 4,
        "train.threads": 1,
        # Rare false accepts take more negatives than a few images have.
        "evaluation.tar_at": [],
    }
    if config.loss.name == "hier":
        changes["loss.options"] = {**config.loss.options, "proxies": 16, "neighbours": 4}
    return config.with_values(changes | values)
