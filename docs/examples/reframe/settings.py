"""ReFrame's configuration: this machine, and a cluster with Slurm. Put the cluster's own partition in place of `farm`."""

site_configuration = {
    "systems": [
        {
            "name": "here",
            "descr": "processes of this machine",
            "hostnames": [".*"],
            "partitions": [
                {"name": "local", "scheduler": "local", "launcher": "local", "environs": ["builtin"]},
                {
                    "name": "slurm",
                    "scheduler": "squeue",
                    # `hodo farm run` calls srun itself, once for each process of the farm.
                    "launcher": "local",
                    "access": ["--partition=farm"],
                    "environs": ["builtin"],
                },
            ],
        }
    ],
    "environments": [{"name": "builtin"}],
}
