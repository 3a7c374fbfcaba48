"""Restore as a person does: by a forecast, with all conflicts ticked or none."""

from desktop_agent.engine.checkpoints import Checkpoints
from desktop_agent.tools.checkpoints.checkpointer import RestoreReport
from desktop_agent.types.checkpoints import RestorePlan


async def restore(checkpoints: Checkpoints, *ids: str, ticked: bool = False) -> tuple[RestoreReport, ...]:
    """Restore these checkpoints."""
    return await restore_plan(checkpoints, await checkpoints.preview(*ids), ticked=ticked)


async def restore_one(checkpoints: Checkpoints, id_: str, *, ticked: bool = False) -> RestoreReport:
    """Restore a checkpoint that is not restored."""
    (report,) = await restore(checkpoints, id_, ticked=ticked)
    return report


async def restore_since(
    checkpoints: Checkpoints, message_id: str, *, ticked: bool = False
) -> tuple[RestoreReport, ...]:
    """Restore all since a message."""
    return await restore_plan(checkpoints, await checkpoints.preview_since(message_id), ticked=ticked)


async def restore_plan(checkpoints: Checkpoints, plan: RestorePlan, *, ticked: bool) -> tuple[RestoreReport, ...]:
    """Restore as forecast."""
    return await checkpoints.restore_forecast(plan, [file for file in plan.files if ticked and file.is_conflict])
