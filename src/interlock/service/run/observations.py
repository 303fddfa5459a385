"""The git position of a workspace as observations: recorded at the start and at attempts, searched later.

See OBS-1 and OBS-6.
"""

from collections.abc import Iterable, Iterator
from typing import Literal

from interlock.kernel.budgets import PATH_CHARS_MAX
from interlock.kernel.ids import NodeId, RunId
from interlock.record.append_plan import EventDraft
from interlock.record.payloads import ObservationKey, ObservationRecorded, ObservationValue
from interlock.store.ports.workspace import GitAnchors
from interlock.views.resume import short_branch
from interlock.views.session import Session
from interlock.views.summary import path_digest

_REPO: Literal["repo_root_hash"] = "repo_root_hash"
_SHA1_CHARS = 40


def observed_of(anchors: GitAnchors, *, keeps_repo_root: bool) -> tuple[ObservationRecorded, ...]:
    """Return the observations of a workspace: always the digest of its repository's path, or of its own without one.

    The path of a repository itself is one of them only if configured.

    A path over its length limit is left out, because its digest identifies it; a branch name is shortened (OBS-4).
    """
    return tuple(_observed(anchors, keeps_repo_root=keeps_repo_root))


def new_observations(
    session: Session, run: RunId, node: NodeId, observed: Iterable[ObservationRecorded]
) -> tuple[EventDraft, ...]:
    """Return drafts of what differs from the last observation of its key in a run, for the node that is created.

    Another repository than the one where the run began is not its position, so nothing there is recorded (OBS-6).
    """
    values = {one.key: one for one in observed}
    known, here = session.observed(run, _REPO), values.get(_REPO)
    if here is None or known not in (None, here.value.value):
        return ()
    changed = (one for one in values.values() if one.value.value != session.observed(run, one.key))
    return tuple(EventDraft(data=one, run=run, node=node) for one in changed)


def _observed(anchors: GitAnchors, *, keeps_repo_root: bool) -> Iterator[ObservationRecorded]:
    root = anchors.repo_root
    if anchors.branch is not None:
        yield _observation("git_branch", ObservationValue(type="short_string", value=short_branch(anchors.branch)))
    if anchors.head_sha is not None:
        kind = "git_sha1" if len(anchors.head_sha) == _SHA1_CHARS else "short_string"
        yield _observation("git_head_sha", ObservationValue(type=kind, value=anchors.head_sha))
    if root is not None:
        yield _observation(_REPO, ObservationValue(type="sha256", value=path_digest(root)))
    if anchors.workspace is not None:
        yield _observation("workspace_hash", ObservationValue(type="sha256", value=path_digest(anchors.workspace)))
    if root is not None and keeps_repo_root and len(root) <= PATH_CHARS_MAX:
        yield _observation("repo_root", ObservationValue(type="path", value=root))


def _observation(key: ObservationKey, value: ObservationValue) -> ObservationRecorded:
    return ObservationRecorded(key=key, value=value, confidence="high")
