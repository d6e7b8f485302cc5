"""The workload `cnn`: a convolutional network that infers until killed."""

import json
import sys
import time

import torch
from torch import nn

CLASSES = 10
POOL = 64  # pictures that are at hand


def network(channels: int, blocks: int) -> nn.Module:
    """A small network over colour pictures: each block has two convolutions, then half the size and twice the width."""
    layers: list[nn.Module] = []
    inside = 3
    for block in range(blocks):
        out = channels * 2**block
        for width in (inside, out):
            layers += [nn.Conv2d(width, out, 3, padding=1), nn.BatchNorm2d(out), nn.ReLU()]
        layers.append(nn.MaxPool2d(2))
        inside = out
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inside, CLASSES)).eval()


def main(options: dict[str, float]) -> None:
    """Infer batch after batch, at most `rate` a second where that is not 0."""
    torch.manual_seed(int(options["seed"]))
    torch.set_num_threads(int(options["threads"]))
    model = network(int(options["channels"]), int(options["blocks"]))
    batch, side, rate = int(options["batch"]), int(options["side"]), options["rate"]
    pictures = torch.rand(POOL, 3, side, side)
    due = time.monotonic()
    with torch.inference_mode():
        while True:
            model(pictures[torch.randint(POOL, (batch,))]).argmax(1)
            if rate:
                due = max(due + 1 / rate, time.monotonic() - 1)
                time.sleep(max(due - time.monotonic(), 0.0))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
