import time
from tqdm import tqdm

epochs = tqdm(range(1, 4), desc="epochs")
for epoch in epochs:
    loss = 1.0 / epoch
    for batch in (bar := tqdm(range(30), desc="batches", leave=False)):
        time.sleep(0.01)
        loss *= 0.99
        bar.set_postfix(loss=f"{loss:.4f}")
    epochs.set_postfix(accuracy=f"{1 - loss:.4f}")
