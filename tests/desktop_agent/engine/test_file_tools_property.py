"""The file tools themselves, a person, crashes and restorings in any order, against the model of the checkpoints."""

from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from desktop_agent.tools.files.change_tools import delete_file, edit_file, move_file, write_file
from desktop_agent.tools.tool import AnyTool, RunningCall
from desktop_agent.types.errors import ToolFailed
from desktop_agent.types.tool_calls import DiffPreview, Preview
from tests.desktop_agent.engine.test_checkpoints_property import FOLDER, PATHS, CheckpointMachine, parents_of, tree_of
from tests.frame.examples import examples

PLACES = st.sampled_from((*PATHS, "d/e", "new/deep/z"))
CRASH = st.integers(0, 9).map(lambda number: number == 0)


class FileToolsMachine(CheckpointMachine):
    """The same conversation; calls are those of the real tools, which also fail; what they name is saved."""

    def use(self, tool: AnyTool, arguments: dict[str, Any], *, crash: bool) -> None:
        checked = tool.checked(arguments)
        assert tool.changes is not None
        paths = set(self.do(tool.changes(checked)))
        before = tree_of(self.folder)
        shown = self.preview(tool, checked)
        assert tree_of(self.folder) == before
        failed: list[ToolFailed] = []

        def run() -> None:
            try:
                self.do(tool.run(checked, RunningCall("call", lambda _: None)))
            except ToolFailed as error:
                failed.append(error)

        self.call(paths, run, crash=crash)
        after = tree_of(self.folder)
        changed = {path for path in before | after if before.get(path) != after.get(path)}
        created = {path for path in changed if path not in before and after[path] == FOLDER}
        assert changed - created <= paths
        assert created <= {above for path in paths for above in parents_of(path)}
        assert bool(failed) == isinstance(shown, ToolFailed)
        if failed:
            assert changed <= created
        elif isinstance(shown, DiffPreview):
            written = after.get(shown.path)
            assert shown.after == (written[0].decode() if isinstance(written, tuple) else None)

    def preview(self, tool: AnyTool, checked: Any) -> Preview | ToolFailed | None:
        assert tool.preview is not None
        try:
            return self.do(tool.preview(checked))
        except ToolFailed as error:
            return error

    @rule(path=PLACES, crash=CRASH)
    def tool_writes(self, path: str, crash: bool) -> None:
        self.use(write_file(self.workspace), {"path": path, "content": self.fresh("call").decode()}, crash=crash)

    @rule(path=PLACES, old=st.sampled_from(("call", "person", "1", " ")), crash=CRASH, everywhere=st.booleans())
    def tool_edits(self, path: str, old: str, crash: bool, everywhere: bool) -> None:
        arguments = {"path": path, "old_text": old, "new_text": f"edited {self.number}", "replace_all": everywhere}
        self.use(edit_file(self.workspace), arguments, crash=crash)

    @rule(path=PLACES, crash=CRASH)
    def tool_deletes(self, path: str, crash: bool) -> None:
        self.use(delete_file(self.workspace), {"path": path}, crash=crash)

    @rule(source=PLACES, to=PLACES, crash=CRASH, replace=st.booleans())
    def tool_moves(self, source: str, to: str, crash: bool, replace: bool) -> None:
        arguments = {"source": source, "target": to, "replace": replace}
        self.use(move_file(self.workspace), arguments, crash=crash)

    @precondition(lambda self: self.existing())
    @rule(data=st.data(), to=PLACES, crash=CRASH)
    def tool_moves_what_is_there(self, data: st.DataObject, to: str, crash: bool) -> None:
        source = data.draw(st.sampled_from(self.existing()))
        self.use(move_file(self.workspace), {"source": source, "target": to, "replace": True}, crash=crash)


FileToolsMachine.TestCase.settings = settings(
    max_examples=examples(40), stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
)
TestFileTools = FileToolsMachine.TestCase
