"""Runs a farm, and checks its rate against a reference: `reframe -C settings.py -c farm_rate.py -r`.

The references are events/s; write the ones of your own machines there.
"""

import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.builtins import parameter, performance_function, run_after, sanity_function


@rfm.simple_test
class FarmRate(rfm.RunOnlyRegressionTest):
    """A farm with 1 and with 2 events in hand at each node."""

    credits = parameter([1, 2])
    valid_systems = ["*"]
    valid_prog_environs = ["builtin"]
    sourcesdir = "."
    executable = "hodo"
    time_limit = "5m"
    # (events/s, how far below, how far above): a farm on a laptop passes.
    reference = {
        "here:local": {"rate": (4_000, -0.5, None, "events/s")},
        "here:slurm": {"rate": (4_000, -0.5, None, "events/s")},
    }

    @run_after("setup")
    def choose(self):
        """The file with this many credits, and who starts the processes."""
        launch = "local" if self.current_partition.scheduler.registered_name == "local" else "slurm"
        if launch == "slurm":
            self.num_tasks, self.num_tasks_per_node = 5, 1
            self.exclusive_access = True
        self.prerun_cmds = [f"sed 's/^accept/credits = {self.credits}\\naccept/' farm.toml >with-credits.toml"]
        self.executable_opts = ["farm", "run", "with-credits.toml", "--launch", launch]

    @sanity_function
    def is_done(self):
        """The run has ended by itself, with nothing to complain of."""
        return sn.assert_found(r"^farm: done after ", self.stdout)

    @performance_function("events/s")
    def rate(self):
        """As the run tells it."""
        return sn.extractsingle(r"(\d+) events/s$", self.stdout, 1, int)
