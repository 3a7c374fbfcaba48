"""The private display and buses: a reader in another process sees a window, and a keyring stores a secret."""

import subprocess
import sys

from tests.frame.a11y import Reader
from tests.frame.patience import PATIENCE

WINDOW = """
from PySide6.QtWidgets import QApplication, QPushButton
app = QApplication(["seen"])
app.setApplicationName("seen")
button = QPushButton("Press me")
button.clicked.connect(lambda: (print("pressed", flush=True), app.quit()))
button.show()
app.exec()
"""

SECRET = """
import keyring
keyring.set_password("desktop-agent-test", "key", "found again")
print(keyring.get_password("desktop-agent-test", "key"))
"""


def test_an_outside_reader_sees_a_window_and_presses_its_button(real_display: dict[str, str]) -> None:
    with subprocess.Popen([sys.executable, "-c", WINDOW], env=real_display, stdout=subprocess.PIPE, text=True) as app:
        try:
            reader = Reader(real_display, "seen")
            button = reader.wait_for("Press me")
            assert button["role"] in {"push button", "button"}
            reader.press("Press me")
            output, _ = app.communicate(timeout=20)
        finally:
            app.kill()
    assert output == "pressed\n"


def test_the_window_manager_runs(real_display: dict[str, str]) -> None:
    command = ["xprop", "-root", "_NET_SUPPORTING_WM_CHECK"]
    reply = subprocess.run(command, env=real_display, capture_output=True, check=True)
    assert b"window id" in reply.stdout


def test_the_private_keyring_keeps_a_secret(real_keyring: dict[str, str]) -> None:
    command = [sys.executable, "-c", SECRET]
    run = subprocess.run(command, env=real_keyring, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert run.stdout == "found again\n", run.stderr
