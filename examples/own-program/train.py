"""A training of PyTorch under Fettle: killed at any moment, it goes on where it was, and it can start
from the checkpoint of another trial (docs/your-program.md)."""
import json, os, pathlib, signal, sys, torch  # noqa: E401

lr, until = float(os.environ["FETTLE_PARAM_LR"]), int(os.environ["FETTLE_UNTIL_STEP"])
checkpoints = pathlib.Path(os.environ["FETTLE_CHECKPOINTS"])
checkpoints.mkdir(parents=True, exist_ok=True)
stop = []
signal.signal(signal.SIGTERM, lambda *_: stop.append(True))
torch.manual_seed(7)
inputs = torch.randn(64, 8)
model = torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=lr)

def load(folder, most):  # the newest whole checkpoint up to a step; one that was cut off is passed over
    for step in sorted((int(file.stem) for file in folder.glob("[0-9]*.pt")), reverse=True):
        try:
            state = torch.load(folder / f"{step}.pt") if step <= most else {}
            model.load_state_dict(state["model"])
            optimizer.load_state_dict(state["optimizer"])
            optimizer.param_groups[0]["lr"] = lr  # this trial's, not that of the parent
            return step
        except Exception as error:
            print(f"passing over step {step}: {error!r}", file=sys.stderr)
    return 0

step = load(checkpoints, until)
if step == 0 and os.environ["FETTLE_PARENT"]:
    step = load(pathlib.Path(os.environ["FETTLE_PARENT"]), int(os.environ["FETTLE_PARENT_STEP"]))
while step < until and not stop:
    step += 1
    loss = torch.nn.functional.mse_loss(model(inputs), inputs.sum(1, keepdim=True))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(json.dumps({"step": step, "loss": loss.item()}), flush=True)
    try:  # a new name, then a rename: whoever reads sees a whole checkpoint or none
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, checkpoints / "new")
        os.replace(checkpoints / "new", checkpoints / f"{step}.pt")
    except (OSError, RuntimeError) as error:  # the disk is full: train on
        print(f"cannot save step {step}: {error}", file=sys.stderr)
sys.exit(143 if stop else 0)
