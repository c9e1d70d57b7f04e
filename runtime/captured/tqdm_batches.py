import time
from tqdm import tqdm

for epoch in range(1, 4):
    loss = 1.0 / epoch
    bar = tqdm(range(50), desc=f"epoch {epoch}")
    for batch in bar:
        time.sleep(0.01)
        loss *= 0.99
        bar.set_postfix(loss=f"{loss:.4f}")
    print(f"epoch {epoch}: accuracy={1 - loss:.4f}", flush=True)
