import farms  # noqa: F401  (puts the folder above in the path)
import pytest
import slurm
import sshd


@pytest.fixture(scope="session")
def cluster(tmp_path_factory):
    """A Slurm of five nodes."""
    # Its sockets' names have a bound, which pytest's long folders would pass.
    with slurm.cluster(tmp_path_factory.mktemp("s") / "c") as made:
        yield made


@pytest.fixture(scope="session")
def ssh(tmp_path_factory):
    """Options for ssh, to an ssh server on loopback."""
    with sshd.server(tmp_path_factory.mktemp("ssh") / "server") as options:
        yield options
