"""A trial of one second in PyTorch: a few steps of a small network, then it waits.

It waits, so that two of them at a time leave the two cores of a small machine to whoever starts them: times beyond one
second are of starting and reporting. The seed decides the result to the last bit.
"""

import time

import torch

STEPS = 50


def train(lr, seed, seconds):
    """Returns the loss after STEPS steps, `seconds` after the call."""
    until = time.monotonic() + seconds
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    samples, labels = torch.randn(256, 16), torch.randint(0, 4, (256,))
    model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(samples), labels)
        loss.backward()
        optimizer.step()
    time.sleep(max(0.0, until - time.monotonic()))
    return loss.item()
