"""No way out of the workspace, whatever the path looks like and whatever changes in between."""

import os
import stat
import threading
from pathlib import Path

import pytest

from desktop_agent.tools import replaced_folders
from desktop_agent.tools.open_folders import HAS_DESCRIPTORS
from desktop_agent.tools.workspace import Workspace, WorkspacePath
from desktop_agent.types.errors import OutsideWorkspace, ToolFailed, WrongUse

SECRET = b"secret of somebody else"
needs_descriptors = pytest.mark.skipif(not HAS_DESCRIPTORS, reason="no dir_fd")


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    (folder / "deep").mkdir(parents=True)
    (folder / "secret.txt").write_bytes(SECRET)
    (folder / "deep" / "secret.txt").write_bytes(SECRET)
    return folder


@pytest.fixture
def folder(tmp_path: Path, outside: Path) -> Path:
    """A workspace with inviting ways out."""
    folder = tmp_path / "work"
    (folder / "inner" / "most").mkdir(parents=True)
    (folder / "a.txt").write_bytes(b"mine")
    (folder / "inner" / "b.txt").write_bytes(b"mine too")
    (folder / "to-file").symlink_to(outside / "secret.txt")
    (folder / "to-folder").symlink_to(outside)
    (folder / "to-parent").symlink_to("..")
    (folder / "to-root").symlink_to("/")
    (folder / "inner" / "up-and-out").symlink_to("../../outside")
    (folder / "chain").symlink_to("to-folder")
    (folder / "to-nothing").symlink_to(outside / "new.txt")
    (tmp_path / "work-sibling").mkdir()
    (tmp_path / "work-sibling" / "secret.txt").write_bytes(SECRET)
    return folder


@pytest.fixture(params=[pytest.param(True, marks=needs_descriptors), False])
def workspace(folder: Path, request: pytest.FixtureRequest) -> Workspace:
    return Workspace(folder, by_descriptor=request.param)


WAYS_OUT = [
    "..",
    "../",
    "../outside/secret.txt",
    "..\\outside\\secret.txt",
    "../work-sibling/secret.txt",
    "../work/a.txt",
    "inner/../../outside/secret.txt",
    "inner/../inner/../../outside/secret.txt",
    "inner\\..\\..\\outside\\secret.txt",
    "./../outside/secret.txt",
    ".//..//outside/secret.txt",
    "nothing/../../outside/secret.txt",
    "a.txt/../../outside/secret.txt",
    "/etc/passwd",
    "//etc/passwd",
    "/",
    "\\etc\\passwd",
    "\\\\server\\share\\file",
    "C:\\Windows\\win.ini",
    "C:/Windows/win.ini",
    "c:a.txt",
    "~",
    "~/secret.txt",
    "~root/secret.txt",
    "a.txt\0.png",
    "\0",
    "a\nb",
    "a\x1bb",
    "a\x7fb",
    "\ud800.txt",
    "x" * 5000,
    "to-file",
    "to-folder",
    "to-folder/secret.txt",
    "to-folder/deep/secret.txt",
    "to-folder/new.txt",
    "to-parent/outside/secret.txt",
    "to-parent/work-sibling/secret.txt",
    "to-root/etc/passwd",
    "inner/up-and-out/secret.txt",
    "inner/up-and-out/deep/../secret.txt",
    "chain/secret.txt",
    "to-nothing",
    "/proc/self/root/etc/passwd",
    "/proc/self/cwd",
]


@pytest.mark.parametrize("path", WAYS_OUT)
def test_a_way_out_is_refused_with_a_sentence_that_begins_with_the_path(workspace: Workspace, path: str) -> None:
    with pytest.raises(OutsideWorkspace) as refused:
        workspace.locate(path)
    assert str(refused.value).startswith("“")
    assert str(refused.value).isprintable()


def test_absolute_paths_out_are_refused(workspace: Workspace, outside: Path, folder: Path) -> None:
    for path in (outside / "secret.txt", folder.parent, f"{folder}-sibling/secret.txt", f"{folder}/../outside"):
        with pytest.raises(OutsideWorkspace):
            workspace.locate(str(path))


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("a.txt", "a.txt"),
        ("./a.txt", "a.txt"),
        (".", "."),
        ("", "."),
        ("inner//b.txt", "inner/b.txt"),
        ("inner\\b.txt", "inner/b.txt"),
        ("inner/../a.txt", "a.txt"),
        ("new/folder/file.txt", "new/folder/file.txt"),
        ("...", "..."),
        ("..a", "..a"),
        ("a~b", "a~b"),
        ("日本.txt", "日本.txt"),
    ],
)
def test_what_is_inside_is_found(workspace: Workspace, path: str, expected: str) -> None:
    assert str(workspace.locate(path)) == expected


def test_an_absolute_path_inside_is_found(workspace: Workspace, folder: Path) -> None:
    assert workspace.locate(str(folder / "inner" / "b.txt")) == WorkspacePath(("inner", "b.txt"))
    assert workspace.locate(str(folder)) == WorkspacePath(())


def test_an_absolute_path_through_another_name_of_the_folder_is_inside(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "alias").symlink_to(folder)
    workspace = Workspace(folder)
    for opened in (folder, tmp_path / "alias"):
        assert workspace.locate(str(opened / "a.txt")) == WorkspacePath(("a.txt",))


def test_a_link_that_stays_inside_is_followed_to_what_it_names(workspace: Workspace, folder: Path) -> None:
    (folder / "shortcut").symlink_to("inner")
    path = workspace.locate("shortcut/b.txt")
    assert str(path) == "inner/b.txt"
    assert workspace.read(path, 100) == b"mine too"


def test_links_in_a_circle_are_refused(workspace: Workspace, folder: Path) -> None:
    (folder / "round").symlink_to("round")
    with pytest.raises(OutsideWorkspace, match="link that cannot be followed"):
        workspace.read(workspace.locate("round"), 100)


@pytest.mark.parametrize(
    "path", ["CON", "con.txt", "Aux", "nul", "NUL .txt", "COM1", "lpt9.log", "com¹", "inner/PRN", "CONIN$"]
)
def test_device_names_of_windows_are_refused_where_they_mean_something(folder: Path, path: str) -> None:
    with pytest.raises(OutsideWorkspace, match="device"):
        Workspace(folder, windows_names=True).locate(path)
    assert Workspace(folder, windows_names=False).locate(path)


@pytest.mark.parametrize("path", ["a.txt:stream", "a.txt::$DATA", "inner.", "inner /b.txt", "a.txt...", "a.txt "])
def test_names_that_windows_reads_otherwise_are_refused_there(folder: Path, path: str) -> None:
    with pytest.raises(OutsideWorkspace):
        Workspace(folder, windows_names=True).locate(path)


def test_device_names_below_an_absolute_path_are_refused_too(folder: Path) -> None:
    with pytest.raises(OutsideWorkspace, match="device"):
        Workspace(folder, windows_names=True).locate(str(folder / "nul"))


def test_a_file_swapped_for_a_link_after_the_check_is_not_read(
    workspace: Workspace, folder: Path, outside: Path
) -> None:
    path = workspace.locate("a.txt")
    (folder / "a.txt").unlink()
    (folder / "a.txt").symlink_to(outside / "secret.txt")
    with pytest.raises(OutsideWorkspace):
        workspace.read(path, 100)


def test_a_folder_swapped_for_a_link_after_the_check_is_not_entered(
    workspace: Workspace, folder: Path, outside: Path
) -> None:
    (folder / "inner" / "secret.txt").write_bytes(b"mine")
    path = workspace.locate("inner/secret.txt")
    (folder / "inner").rename(folder / "moved")
    (folder / "inner").symlink_to(outside)
    with pytest.raises(OutsideWorkspace):
        workspace.read(path, 100)
    with pytest.raises(OutsideWorkspace):
        workspace.write(path, b"overwritten")
    with pytest.raises(OutsideWorkspace):
        workspace.entries(WorkspacePath(("inner",)), 10)
    assert (outside / "secret.txt").read_bytes() == SECRET


def test_a_target_swapped_for_a_link_after_the_check_is_not_written(
    workspace: Workspace, folder: Path, outside: Path
) -> None:
    path = workspace.locate("new.txt")
    (folder / "new.txt").symlink_to(outside / "secret.txt")
    with pytest.raises(OutsideWorkspace):
        workspace.write(path, b"overwritten")
    assert (outside / "secret.txt").read_bytes() == SECRET


@pytest.mark.skipif(not HAS_DESCRIPTORS, reason="without dir_fd a swap inside one system call cannot be excluded")
def test_swapping_all_the_time_never_shows_what_is_outside(folder: Path, outside: Path) -> None:
    workspace = Workspace(folder)
    (folder / "inner" / "secret.txt").write_bytes(b"mine")
    (folder / "bait").symlink_to(outside)
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            (folder / "inner").rename(folder / "aside")
            (folder / "bait").rename(folder / "inner")
            (folder / "inner").rename(folder / "bait")
            (folder / "aside").rename(folder / "inner")

    swapper = threading.Thread(target=swap)
    swapper.start()
    contents: list[bytes] = []
    refused = 0
    try:
        for _ in range(2000):
            try:
                contents.append(workspace.read(workspace.locate("inner/secret.txt"), 100))
            except ToolFailed:
                refused += 1
    finally:
        stop.set()
        swapper.join()
    assert set(contents) == {b"mine"}
    assert refused


def test_the_swapped_workspace_folder_itself_is_not_followed(folder: Path, outside: Path, tmp_path: Path) -> None:
    workspace = Workspace(folder)
    folder.rename(tmp_path / "moved")
    folder.symlink_to(outside)
    with pytest.raises(ToolFailed):
        workspace.read(WorkspacePath(("secret.txt",)), 100)


@pytest.mark.parametrize("swapped", ["inner", "inner/most"])
def test_a_link_in_the_place_of_the_folder_or_of_one_above_is_not_followed(
    folder: Path, outside: Path, swapped: str
) -> None:
    chosen = folder / "inner" / "most"
    (outside / "most").mkdir()
    (folder / swapped).rename(folder / "moved")
    (folder / swapped).symlink_to(outside)
    with pytest.raises(WrongUse, match="leads to") as refused:
        Workspace(chosen)
    assert f"“{chosen}” leads to “{chosen.resolve()}” now." in str(refused.value)
    # Chosen again, it is the folder that it leads to.
    assert Workspace(chosen.resolve()).folder == chosen.resolve()


def test_where_it_leads_can_be_said_whatever_its_name_is(folder: Path) -> None:
    odd = folder / os.fsdecode(b"caf\xe9")
    odd.mkdir()
    (folder / "odd").symlink_to(odd)
    with pytest.raises(WrongUse, match="leads to") as refused:
        Workspace(folder / "odd")
    assert f"{folder}/caf?” now." in str(refused.value)


@pytest.mark.parametrize("by_descriptor", [pytest.param(True, marks=needs_descriptors), False])
def test_a_folder_above_that_is_swapped_later_is_not_followed(folder: Path, outside: Path, by_descriptor: bool) -> None:
    workspace = Workspace(folder / "inner" / "most", by_descriptor=by_descriptor)
    (outside / "most").mkdir()
    (outside / "most" / "secret.txt").write_bytes(SECRET)
    (folder / "inner").rename(folder / "moved")
    (folder / "inner").symlink_to(outside)
    secret, top = WorkspacePath(("secret.txt",)), WorkspacePath(())
    for use in (
        lambda: workspace.locate("secret.txt"),
        lambda: workspace.stat(WorkspacePath(("nothing",))),
        lambda: workspace.read(secret, 100),
        lambda: workspace.write(secret, b"overwritten"),
        lambda: workspace.remove(secret),
        lambda: workspace.entries(top, 10),
        lambda: workspace.make_folder(WorkspacePath(("new",))),
    ):
        with pytest.raises(ToolFailed, match="leads to"):
            use()
    assert {path.name: path.read_bytes() for path in (outside / "most").iterdir()} == {"secret.txt": SECRET}


def test_links_of_the_system_may_be_part_of_a_stored_path(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    system, chain = tmp_path / "system", tmp_path / "system" / "chain"
    system.mkdir()
    (system / "home").symlink_to("chain")
    chain.symlink_to(tmp_path)
    (folder / "own").symlink_to("inner")
    with pytest.raises(WrongUse, match="leads to"):
        Workspace(system / "home" / "work")
    # Root may change everything, whatever the permissions are.
    closed = {*system.parents, system}
    monkeypatch.setattr(replaced_folders, "_is_closed", closed.__contains__)
    assert Workspace(system / "home" / "work" / "inner").folder == folder / "inner"
    # The person's own, below.
    with pytest.raises(WrongUse, match="leads to"):
        Workspace(system / "home" / "work" / "own")


@pytest.mark.skipif(os.name == "nt", reason="nobody says so there")
def test_only_what_others_own_and_may_change_is_the_systems(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not replaced_folders._is_closed(tmp_path)
    assert not replaced_folders._is_closed(tmp_path / "nothing")
    monkeypatch.setattr(os, "access", lambda _path, _mode: False)
    # The owner may restore the permissions.
    assert not replaced_folders._is_closed(tmp_path)
    monkeypatch.setattr(os, "geteuid", lambda: tmp_path.stat().st_uid + 1)
    assert replaced_folders._is_closed(tmp_path)


@pytest.mark.parametrize("name", ["a\0b", "\ud800", "nowhere", "x" * 5000])
def test_a_name_that_no_folder_can_have_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(WrongUse, match="no folder"):
        Workspace(tmp_path / name)


def test_a_named_pipe_does_not_hold_the_reader(workspace: Workspace, folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    with pytest.raises(ToolFailed, match="not an ordinary file"):
        workspace.read(workspace.locate("pipe"), 100)
    with pytest.raises(ToolFailed, match="not an ordinary file"):
        workspace.write(workspace.locate("pipe"), b"x")


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("nothing.txt", "There is no “nothing.txt” in the workspace."),
        ("inner", "“inner” is a folder, not a file."),
        (".", "“.” is a folder, not a file."),
        ("a.txt/b.txt", "A part of “a.txt/b.txt” is a file, not a folder."),
    ],
)
def test_what_cannot_be_read_is_said_in_a_sentence(workspace: Workspace, path: str, sentence: str) -> None:
    with pytest.raises(ToolFailed) as failed:
        workspace.read(workspace.locate(path), 100)
    assert str(failed.value) == sentence


def test_a_file_over_the_limit_is_refused(workspace: Workspace) -> None:
    assert workspace.read(workspace.locate("a.txt"), 4) == b"mine"
    with pytest.raises(ToolFailed, match="larger than"):
        workspace.read(workspace.locate("a.txt"), 3)


def test_writing_makes_parents_and_leaves_no_other_file(workspace: Workspace, folder: Path) -> None:
    workspace.write(workspace.locate("new/deep/file.txt"), b"text")
    assert (folder / "new/deep/file.txt").read_bytes() == b"text"
    assert [path.name for path in (folder / "new/deep").iterdir()] == ["file.txt"]


def test_writing_keeps_permissions_and_refuses_write_protected_files(workspace: Workspace, folder: Path) -> None:
    script = folder / "run.sh"
    script.write_bytes(b"old")
    script.chmod(0o750)
    workspace.write(workspace.locate("run.sh"), b"new")
    assert stat.S_IMODE(script.stat().st_mode) == 0o750
    script.chmod(0o444)
    with pytest.raises(ToolFailed, match="write-protected"):
        workspace.write(workspace.locate("run.sh"), b"newer")
    assert script.read_bytes() == b"new"


def test_a_write_that_is_stopped_changes_nothing(workspace: Workspace, folder: Path) -> None:
    def stop() -> None:
        raise ToolFailed("stopped")

    with pytest.raises(ToolFailed, match="stopped"):
        workspace.write(workspace.locate("a.txt"), b"new", before_replacing=stop)
    assert (folder / "a.txt").read_bytes() == b"mine"
    assert not list(folder.glob(".*.tmp"))


def test_a_hard_link_outside_keeps_its_content(workspace: Workspace, folder: Path, outside: Path) -> None:
    os.link(outside / "secret.txt", folder / "linked.txt")
    workspace.write(workspace.locate("linked.txt"), b"new")
    assert (outside / "secret.txt").read_bytes() == SECRET


def test_a_folder_that_is_none_is_wrong_use(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for path in (tmp_path / "nothing", tmp_path / "file"):
        with pytest.raises(WrongUse) as caught:
            Workspace(path)
        assert "another folder" in str(caught.value.remedy)


def test_a_workspace_that_is_gone_says_so(folder: Path, tmp_path: Path) -> None:
    workspace = Workspace(folder)
    folder.rename(tmp_path / "elsewhere")
    with pytest.raises(ToolFailed, match="not there any more") as caught:
        workspace.locate("a.txt")
    assert "another folder" in str(caught.value.remedy)
