"""Short backbone names and the full timm tag, network and pretraining, that each stands for."""

# timm renames defaults between versions; a full tag means the same weights for ever.
PINNED = {
    # torchvision's first ImageNet weights, what the RS@K and Proxy-Anchor code start from.
    "resnet50": "resnet50.tv_in1k",
    # AugReg, ImageNet-21k: what RS@K's names meant in timm 0.4.12.
    "vit_base_patch16_224": "vit_base_patch16_224.augreg_in21k",
    "vit_base_patch32_224": "vit_base_patch32_224.augreg_in21k",
    "vit_small_patch16_224": "vit_small_patch16_224.augreg_in21k",
    # DINO without head, HIER's backbone.
    "dino_vits16": "vit_small_patch16_224.dino",
}
