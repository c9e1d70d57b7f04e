"""The programs of tests/programs: each is rude in one way, as real training scripts are.

PROGRAMS says of each how a person would say that its trials end.
"""
import dataclasses
import pathlib

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "programs"
LAST_EPOCH = 9


@dataclasses.dataclass(frozen=True)
class Program:
    """One of tests/programs/, and what is true of a trial that runs it."""

    file: str
    # A regular expression for the reason why its trials fail; "" for one that gets to its end.
    fails: str = ""
    # The step of its newest value when it has got to its end.
    last: int = LAST_EPOCH
    # What it reports at `step` where x is `x`; None: no finite number.
    loss: object = lambda x, step: 100 * x + 120 // step
    # Words of a reason that are untrue of every other program.
    may_say: str = ""
    trials: int = 6
    spec: dict = dataclasses.field(default_factory=dict)  # over the Study's spec
    trial: dict = dataclasses.field(default_factory=dict)  # over spec.trial
    limits: dict = dataclasses.field(default_factory=dict)

    @property
    def name(self):
        return self.file.partition(".")[0]


def regex(pattern):
    return {"metrics": {"regex": pattern}}


# All but a few report the loss 100 x + 120 / epoch, so a value tells the epoch that it is of.
PROGRAMS = [
    # When it reports.
    Program("every_second_epoch.sh", spec={"resource": {"unit": "epoch", "min": 3, "max": LAST_EPOCH}}),
    Program("own_patience.sh"),
    Program("only_at_the_end.sh"),
    Program("one_number.sh", last=1, loss=lambda x, step: 100 * x),
    Program("counts_from_zero.sh", last=LAST_EPOCH - 1, loss=lambda x, step: 100 * x + 120 // (step + 1)),
    Program("ignores_until_step.sh"),
    Program("good_only_at_the_end.sh", spec={"constraints": [{"metric": "accuracy", "min": 80}]}),
    Program("diverges.sh", loss=lambda x, step: None if x % 2 else 100 * x + 120 // step, may_say="finite"),
    Program("silent.sh", fails="exited with 0 but reported no metric"),
    # How it prints.
    Program("progress_bar.py", trial=regex(r"epoch (?P<step>\d+).*?(?P<name>loss)=(?P<value>\d+)")),
    Program("progress_bar_json.sh"),
    Program("colours.sh", trial=regex(r"(loss)=(\S+)")),
    Program("byte_order_mark.sh"),
    Program("block_buffered.py", trials=3, trial={"heartbeat": "5m"}),
    Program("json_logs.sh"),
    Program("invalid_text.sh"),
    Program("floods.py", trials=3),
    Program("long_line.py", trials=3),
    Program("closes_its_output.sh", last=4),
    # What it does with signals and processes.
    Program("ignores_sigterm.sh", trial={"gracePeriod": "2s"}),
    Program("saves_on_sigterm.py"),
    Program("behind_a_shell.sh"),
    Program("leaves_a_process.sh", may_say="behind killed", trial={"gracePeriod": "2s"}),
    Program("pool_of_workers.py"),
    Program("killed_once.sh", may_say="killed"),
    # How it ends, and what it does to the machine.
    Program("exits_with_3.sh", fails="exit code 3(.|\n)*cannot read shard 7"),
    Program("crashes.sh", fails="crashed with SIGSEGV", may_say="crashed"),
    Program("maps_a_file.py", trials=3, limits={"memory": "64Mi"}),
    Program("cleans_up.sh"),
    Program("asks.sh"),
]  # fmt: skip

# Untrue of every program that does not say so in may_say, and in every Study that was not interrupted.
ACCUSATIONS = ["finite", "behind", "killed", "crashed", "memory", "heartbeat", "reported nothing", "interrupted", "died"]
