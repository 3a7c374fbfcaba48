"""What every test gets without asking: a home of its own, a Qt without a screen, and a look-out for what it leaves.

Property tests take the same examples each time, so that what fails here fails everywhere, and fewer on a push than in
`make test-all`; `make test ARGS=--hypothesis-profile=default` looks for others.
"""

from tests.frame.examples import repeat_examples

repeat_examples()

pytest_plugins = (
    "tests.frame.selection",
    "tests.frame.homes",
    "tests.frame.disks",
    "tests.frame.patience",
    "tests.frame.leaks",
    "tests.frame.displays",
    "tests.frame.children",
)
