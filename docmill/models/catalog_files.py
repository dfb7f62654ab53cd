"""The catalog of profiles that docmill brings along: one YAML file a model, its quantised variants inside."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from docmill.failures import ConfigurationError
from docmill.models.profile import ModelProfile

FOLDER = Path(__file__).with_name("catalog")


@cache
def catalog() -> dict[str, ModelProfile]:
    """Name → profile, variants behind their base."""
    found: dict[str, ModelProfile] = {}
    for path in sorted(FOLDER.glob("*.yaml")):
        found |= {profile.name: profile for profile in read_profiles(path)}
    return found


def read_profiles(path: Path) -> list[ModelProfile]:
    """The profiles of one file: the model and its ``variants``, which say only what differs.

    Raises:
        ConfigurationError: it is no such file; the message names what is wrong.
    """
    try:
        held = yaml.safe_load(path.read_text(encoding="utf-8"))
        if not isinstance(held, dict):
            raise ConfigurationError(f"{path} is no profile", remedy="write it as the files of the catalog are")
        variants = held.pop("variants", [])
        base = ModelProfile.model_validate(held)
        return [base, *(_variant(held, base.name, each) for each in variants)]
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigurationError(f"{path} cannot be read: {type(error).__name__}", remedy="mend the file") from error
    except ValidationError as error:
        told = "; ".join(
            f"{'.'.join(str(part) for part in each['loc'])}: {each['msg']}"
            for each in error.errors(include_input=False, include_url=False)
        )
        raise ConfigurationError(f"{path}: {told}", remedy="mend the file") from error


def _variant(base: dict[str, Any], name: str, differs: dict[str, Any]) -> ModelProfile:
    text = base["text"] | differs.get("text", {})
    notes = [*base.get("notes", []), *differs.get("notes", [])]
    whole = base | {"hub_id": ""} | differs | {"text": text, "notes": notes, "base": name, "parameters": None}
    return ModelProfile.model_validate(whole)
