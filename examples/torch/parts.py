"""What the trainings of this folder train, and on what."""

import pathlib

import torch
from torch import nn
from torch.utils.data import Dataset, TensorDataset


def digits():
    """1,797 handwritten digits of 8 by 8 points that come with scikit-learn: four fifths to train on, and the images and labels of the
    rest."""
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise SystemExit("the digits come with scikit-learn, which is not installed: pip install scikit-learn, "
                         "or apt install python3-sklearn") from None
    found = load_digits()
    images = torch.tensor(found.images, dtype=torch.float32).unsqueeze(1) / 16
    labels = torch.tensor(found.target)
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(0))
    train, test = order[:1437], order[1437:]
    return TensorDataset(images[train], labels[train]), (images[test], labels[test])


def convolutional(width=16):
    """A network for digits of 8 by 8 points, with so many channels in its first layer."""
    return nn.Sequential(
        nn.Conv2d(1, width, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(width, 2 * width, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(8 * width, 10),
    )


class Text(Dataset):
    """The pages of a folder as blocks of bytes, each with the bytes that follow one place later."""

    def __init__(self, folder, block):
        text = b"".join(path.read_bytes() for path in sorted(pathlib.Path(folder).glob("*.md")))
        if len(text) <= block:
            raise SystemExit(f"there is no text in {folder}")
        self.bytes, self.block = torch.tensor(list(text)), block

    def __len__(self):
        return (len(self.bytes) - 1) // self.block

    def __getitem__(self, i):
        at = i * self.block
        return self.bytes[at:at + self.block], self.bytes[at + 1:at + self.block + 1]


class Transformer(nn.Module):
    """A transformer that predicts the next byte."""

    def __init__(self, block, width=64, layers=2):
        super().__init__()
        self.bytes, self.places = nn.Embedding(256, width), nn.Embedding(block, width)
        layer = nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0.0, batch_first=True)
        self.layers, self.out = nn.TransformerEncoder(layer, layers), nn.Linear(width, 256)
        self.register_buffer("ahead", torch.triu(torch.full((block, block), float("-inf")), 1))

    def forward(self, text):
        length = text.shape[1]
        x = self.bytes(text) + self.places(torch.arange(length, device=text.device))
        return self.out(self.layers(x, mask=self.ahead[:length, :length]))
