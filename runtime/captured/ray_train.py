from ray import train
from ray.train.v2.api.data_parallel_trainer import DataParallelTrainer

def loop(config):
    accuracy = 0.0
    for epoch in range(3):
        accuracy += config["lr"]
        train.report({"epoch": epoch + 1, "accuracy": accuracy})
        print(f"epoch {epoch + 1}: accuracy={accuracy:.4f}")

DataParallelTrainer(
    loop, train_loop_config={"lr": 0.25}, scaling_config=train.ScalingConfig(num_workers=1)).fit()
