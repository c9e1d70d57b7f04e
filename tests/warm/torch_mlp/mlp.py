"""A small network in PyTorch whose numbers depend on its parameters and its seed alone."""

import torch


def data(samples=512, inputs=16, classes=4):
    generator = torch.Generator().manual_seed(1)
    points = torch.randn(samples, inputs, generator=generator)
    labels = (points @ torch.randn(inputs, classes, generator=generator)).argmax(1)
    return points, labels


def losses(rate, hidden, seed, epochs):
    """Yields the loss after each epoch."""
    torch.manual_seed(seed)
    points, labels = data()
    model = torch.nn.Sequential(torch.nn.Linear(points.shape[1], hidden), torch.nn.ReLU(), torch.nn.Dropout(0.1),
                                torch.nn.Linear(hidden, int(labels.max()) + 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    for _ in range(epochs):
        for batch in torch.randperm(len(points)).split(64):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(points[batch]), labels[batch]).backward()
            optimizer.step()
        with torch.no_grad():
            yield torch.nn.functional.cross_entropy(model(points), labels).item()
