"""The git position of a workspace as observations: recorded at the start, searched later (OBS-1)."""

from collections.abc import Iterator

from interlock.kernel.budgets import PATH_CHARS_MAX
from interlock.kernel.canonical import digest_of_bytes
from interlock.kernel.ids import Digest
from interlock.record.payloads import ObservationKey, ObservationRecorded, ObservationValue
from interlock.store.ports.workspace import GitAnchors
from interlock.views.resume import short_branch


def observed_of(anchors: GitAnchors, *, keeps_repo_root: bool) -> tuple[ObservationRecorded, ...]:
    """Return the observations of a workspace: always the digest of its path, the path itself only if configured.

    A path over its length limit is left out, because its digest identifies it; a branch name is shortened (OBS-4).
    """
    return tuple(_observed(anchors, keeps_repo_root=keeps_repo_root))


def repo_root_hash(repo_root: str) -> Digest:
    """Return the digest that identifies a repository without storing its path."""
    return digest_of_bytes(repo_root.encode("utf-8", "surrogatepass"))


def _observed(anchors: GitAnchors, *, keeps_repo_root: bool) -> Iterator[ObservationRecorded]:
    root = anchors.repo_root
    if anchors.branch is not None:
        yield _observation("git_branch", ObservationValue(type="short_string", value=short_branch(anchors.branch)))
    if anchors.head_sha is not None:
        yield _observation("git_head_sha", ObservationValue(type="git_sha1", value=anchors.head_sha))
    if root is not None:
        yield _observation("repo_root_hash", ObservationValue(type="sha256", value=repo_root_hash(root)))
    if root is not None and keeps_repo_root and len(root) <= PATH_CHARS_MAX:
        yield _observation("repo_root", ObservationValue(type="path", value=root))


def _observation(key: ObservationKey, value: ObservationValue) -> ObservationRecorded:
    return ObservationRecorded(key=key, value=value, confidence="high")
