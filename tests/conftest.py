"""What every test gets without asking: a home of its own, a Qt without a screen, and a look-out for what it leaves."""

pytest_plugins = ("tests.frame.homes", "tests.frame.leaks", "tests.frame.displays")
