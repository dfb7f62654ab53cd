"""From a name or a path to a profile."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path

from docmill.model_failures import ModelNotFound
from docmill.models.catalog_files import catalog
from docmill.models.hub_config import profile_of_folder
from docmill.models.profile import ModelProfile
from docmill.places import whole_path


def profile_names() -> list[str]:
    """Names of the catalog, variants included."""
    return list(catalog())


def load_profile(name_or_path: str, models: Mapping[str, Path] | None = None) -> ModelProfile:
    """The profile of a name, or of a model's folder.

    Args:
        name_or_path: a name of the catalog, a hub id of it, a name among ``models``, or a folder.
        models: name → folder with the model's files (``serving.models``); such a folder's config.json overrules what
            the catalog says.

    Raises:
        ModelNotFound: neither is there.
        ModelIncomplete, NotAVisionModel, UnsupportedModel: see :func:`profile_of_folder`.
    """
    if not name_or_path.strip():
        raise ModelNotFound("no model is named")
    known, folders = catalog(), dict(models or {})
    by_hub = {profile.hub_id.lower(): profile.name for profile in known.values() if profile.hub_id}
    name = by_hub.get(name_or_path.lower(), name_or_path if name_or_path in known else name_or_path.lower())
    if name_or_path in folders or name in folders:
        key = name_or_path if name_or_path in folders else name
        if not whole_path(folders[key]).is_dir():
            raise ModelNotFound(
                f"serving.models names {folders[key]} for {key}, and there is no such folder on this host",
                remedy="correct serving.models, or plan for the model where its files are",
            )
        return profile_of_folder(whole_path(folders[key]), base=known.get(key), name=key)
    if name in known:
        return known[name]
    if "/" in name_or_path or name_or_path.startswith((".", "~")) or Path(name_or_path).is_dir():
        return profile_of_folder(whole_path(name_or_path))
    close = get_close_matches(name, [*known, *folders], n=3, cutoff=0.5)
    raise ModelNotFound(
        f"no profile is called {name_or_path}" + (f"; did you mean {', '.join(close)}?" if close else "")
    )
