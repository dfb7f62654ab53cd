"""Settings: ``docmill.toml``, then ``DOCMILL_*`` in the environment; everything has a default that works.

The only module of this package that reads the environment. Groups are the tables of the file; in the environment a
setting is ``DOCMILL_GROUP_NAME``, so ``[database] url`` is ``DOCMILL_DATABASE_URL``. Secrets may be given in files:
``database.url_file``, ``objects.secret_key_file``, ``prefect.api_key_file``, ``pipeline.passwords_file``.
"""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Any, Literal, Self
from urllib.parse import urlsplit

from platformdirs import user_config_path, user_data_path
from pydantic import BaseModel, ConfigDict, SecretStr, ValidationError, field_validator, model_validator
from pydantic import Field as Setting
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict, TomlConfigSettingsSource

from docmill.failures import ConfigurationError

FILE_NAME = "docmill.toml"
CONFIG_VARIABLE = "DOCMILL_CONFIG"


def cores() -> int:
    """Cores that this process may use: its affinity where the system has one."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


class _Group(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


def _secret_from(path: Path | None, value: SecretStr | None, name: str) -> SecretStr | None:
    if path is None:
        return value
    if value is not None:
        raise ValueError(f"give {name} or {name}_file, not both")
    try:
        return SecretStr(path.expanduser().read_text(encoding="utf-8").strip())
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{name}_file {path} cannot be read: {type(error).__name__}") from error


class DatabaseSettings(_Group):
    """``[database]``: where the ledger is."""

    url: SecretStr | None = Setting(None, description="postgresql://user:password@host:port/name; none: embedded")
    url_file: Path | None = Setting(None, description="file that holds the url")
    pool_size: int = Setting(8, ge=2, le=200, description="connections a process may hold")
    binaries: Path | None = Setting(None, description="folder with postgres and initdb for the embedded server")

    @model_validator(mode="after")
    def _read_files(self) -> Self:
        object.__setattr__(self, "url", _secret_from(self.url_file, self.url, "url"))
        text = self.url.get_secret_value() if self.url else ""
        if text and not text.startswith(("postgresql://", "postgres://", "postgresql+psycopg://")):
            raise ValueError("url must begin with postgresql://")
        return self


class ObjectSettings(_Group):
    """``[objects]``: where ``s3://`` leads."""

    endpoint: str | None = Setting(None, description="https://host:port of an S3 server; none: embedded")
    access_key: SecretStr | None = Setting(None, description="none: AWS_* or MINIO_* variables, ~/.aws, instance role")
    secret_key: SecretStr | None = None
    secret_key_file: Path | None = Setting(None, description="file that holds the secret key")
    region: str | None = None
    addressing: Literal["auto", "path", "virtual"] = Setting("auto", description="virtual: bucket.host instead of path")
    ca_file: Path | None = Setting(None, description="certificate authority of the server, PEM")
    concurrency: int = Setting(8, ge=1, le=256, description="requests at once; also the connection pool's size")
    timeout_seconds: float = Setting(30.0, gt=0)
    retries: int = Setting(5, ge=0, le=20, description="on 5xx, timeouts and broken connections only")
    bucket: str = Setting("forms", description="bucket of the embedded server, made at its start")

    @model_validator(mode="after")
    def _read_files(self) -> Self:
        object.__setattr__(self, "secret_key", _secret_from(self.secret_key_file, self.secret_key, "secret_key"))
        if self.endpoint is not None and not self.endpoint.startswith(("http://", "https://")):
            raise ValueError("endpoint must begin with http:// or https://")
        if (self.access_key is None) != (self.secret_key is None):
            raise ValueError("access_key and secret_key go together")
        return self


class PrefectSettings(_Group):
    """``[prefect]``: which Prefect server runs the flows."""

    api_url: str | None = Setting(None, description="http://host:4200/api; none: embedded")
    api_key: SecretStr | None = None
    api_key_file: Path | None = Setting(None, description="file that holds the key")
    work_pool: str = Setting("docmill", min_length=1)
    task_runner: Literal["threads", "ray", "dask"] = Setting("threads", description="ray, dask: extras of the package")

    @model_validator(mode="after")
    def _read_files(self) -> Self:
        object.__setattr__(self, "api_key", _secret_from(self.api_key_file, self.api_key, "api_key"))
        if self.api_url is not None and not self.api_url.startswith(("http://", "https://")):
            raise ValueError("api_url must begin with http:// or https://")
        return self


class PipelineSettings(_Group):
    """``[pipeline]``: how pages are worked on."""

    workers: int = Setting(default_factory=lambda: min(8, cores() + 1), ge=1, le=256, description="drain tasks a run")
    processes: int = Setting(default_factory=cores, ge=1, le=128, description="rendering and OCR processes a run")
    shard_pages: int = Setting(4, ge=1, le=1000, description="pages a worker claims at a time")
    lease_seconds: float = Setting(60.0, ge=2, description="how long a claim lives without a heartbeat")
    page_deadline_seconds: float = Setting(180.0, gt=0, description="then the page's process is killed")
    max_attempts: int = Setting(3, ge=1, le=20, description="tries a page gets")
    max_crashes: int = Setting(3, ge=1, le=20, description="dead workers after which a page is set aside")
    transient_patience_seconds: float = Setting(600.0, ge=0, description="how long a page waits for a service")
    max_failure_rate: float = Setting(0.2, ge=0, le=1, description="share of outcomes above which a batch is Failed")
    max_document_bytes: int = Setting(512 * 2**20, ge=1)
    max_pages: int = Setting(5000, ge=1)
    max_pixels: int = Setting(12_000_000, ge=100_000, description="of a drawn page")
    max_source_pixels: int = Setting(180_000_000, ge=100_000, description="of a picture before it is made smaller")
    recycle_pages: int = Setting(200, ge=1, description="pages after which an OCR process is replaced")
    process_memory_bytes: int = Setting(4 * 2**30, ge=2**28, description="above it an OCR process is replaced")
    cache_bytes: int = Setting(2 * 2**30, ge=0, description="documents kept on disk between pages")
    passwords: tuple[SecretStr, ...] = Setting((), description="tried on every encrypted document")
    passwords_file: Path | None = Setting(None, description="file with one password a line")
    source_passwords: dict[str, tuple[SecretStr, ...]] = Setting(
        default_factory=dict, description="source prefix -> passwords tried first on what lies under it"
    )
    document_types: Path | None = Setting(None, description="folder with further document types")

    @model_validator(mode="after")
    def _read_files(self) -> Self:
        held = _secret_from(self.passwords_file, None, "passwords")
        if held is not None:
            more = tuple(SecretStr(line) for line in held.get_secret_value().splitlines() if line)
            object.__setattr__(self, "passwords", (*self.passwords, *more))
        return self

    def passwords_for(self, location: str) -> tuple[str, ...]:
        """The passwords to try on a document at ``s3://bucket/key`` or a path: its source's own first."""
        own = [p for prefix, held in self.source_passwords.items() if location.startswith(prefix) for p in held]
        return tuple(p.get_secret_value() for p in (*own, *self.passwords))


class OcrSettings(_Group):
    """``[ocr]``: the OCR engine."""

    threads: int = Setting(0, ge=0, le=128, description="of one process; 0: cores divided by processes")
    backend: Literal["auto", "openvino", "onnxruntime"] = Setting("auto", description="auto: OpenVINO on x86-64")
    straighten: bool = Setting(True, description="turn pages upright and take out their slant before reading")
    max_pixels: int = Setting(3_200_000, ge=100_000, description="text is looked for at this scale, read at full scale")


class ServingSettings(_Group):
    """``[serving]``: vLLM, which has an environment of its own, and the model servers (used by the vision engine)."""

    python: Path | None = Setting(None, description="interpreter of the environment that vLLM is installed in")
    base_urls: tuple[str, ...] = Setting((), description="OpenAI-compatible servers that others run; none is started")
    api_key: SecretStr | None = Setting(None, description="of servers that ask for one")
    api_key_file: Path | None = Setting(None, description="file that holds the key")
    profile: str = Setting("qwen2-vl-7b", min_length=1, description="model that the vision engine reads with")
    models: dict[str, Path] = Setting(default_factory=dict, description="profile -> folder with the model's files")
    start: Literal["here", "keep-warm", "never"] = Setting(
        "here", description="who starts a server that a run needs: its host, the deployment keep-warm, nobody"
    )
    work_pool: str = Setting("docmill", min_length=1, description="work pool of the GPU hosts, for keep-warm")
    host: str = Setting("127.0.0.1", min_length=1, description="address that servers listen on")
    port: int = Setting(0, ge=0, le=65535, description="0: a free one")
    tensor_parallel_size: int = Setting(0, ge=0, le=64, description="0: what docmill plan finds best")
    gpu_memory_utilization: float = Setting(0.9, gt=0, le=0.98, description="share of each GPU's memory")
    max_model_len: int | None = Setting(None, ge=512, description="context in tokens; none: the profile's")
    max_num_seqs: int | None = Setting(None, ge=1, le=4096, description="requests worked on at once")
    max_queued_requests: int = Setting(0, ge=0, description="more are answered 503; 0: no limit")
    quantization: str | None = Setting(
        None,
        min_length=1,
        description="smaller weights: awq, gptq-int4, nvfp4…: that checkpoint of the model; fp8: made as it loads",
    )
    cpu_kv_cache_bytes: int = Setting(2**30, ge=2**26, description="KV cache of a server on the CPU")
    extra_arguments: tuple[str, ...] = Setting((), description="further flags of vLLM's server, checked like the rest")
    ready_seconds: float = Setting(1800.0, gt=0, description="a start that takes longer is given up")
    lease_seconds: float = Setting(60.0, ge=2, description="how long a hold on a server lives without renewal")
    idle_sleep_seconds: float = Setting(600.0, gt=0, description="without leases, before the server is put to sleep")
    idle_stop_seconds: float = Setting(3600.0, gt=0, description="without leases, before it is stopped")
    hang_seconds: float = Setting(120.0, gt=0, description="without progress, before a server counts as hung")
    probe_seconds: float = Setting(60.0, gt=0, description="between two probes of a quiet server")
    restart_budget: int = Setting(5, ge=0, le=100, description="restarts within the window; one more is a failure")
    restart_window_seconds: float = Setting(1800.0, gt=0)
    drain_seconds: float = Setting(120.0, ge=0, description="that running requests get when a server is stopped")
    request_seconds: float = Setting(600.0, gt=0, description="deadline of one answer")

    @model_validator(mode="after")
    def _check(self) -> Self:
        object.__setattr__(self, "api_key", _secret_from(self.api_key_file, self.api_key, "api_key"))
        return self

    @field_validator("models", mode="before")
    @classmethod
    def _folders_are_named(cls, given: Any) -> Any:
        if isinstance(given, dict) and (bare := [name for name, folder in given.items() if not str(folder).strip()]):
            raise ValueError(f"no folder is given for {', '.join(map(str, bare))}")
        return given

    @field_validator("base_urls", mode="before")
    @classmethod
    def _one_or_several(cls, given: Any) -> Any:
        return (given,) if isinstance(given, str) else given

    @field_validator("base_urls")
    @classmethod
    def _addresses(cls, urls: tuple[str, ...]) -> tuple[str, ...]:
        for url in urls:
            try:
                parts = urlsplit(url.strip())
                usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
            except ValueError:
                usable = False
            if not usable or parts.query or parts.fragment:
                raise ValueError("base_urls must be of the form http://host:port or https://host:port")
            if parts.username is not None or parts.password is not None:
                raise ValueError("base_urls must hold no password: put the key into a file and name it in api_key_file")
        return urls


class Settings(BaseSettings):
    """All settings."""

    model_config = SettingsConfigDict(
        env_prefix="DOCMILL_", env_nested_delimiter="_", env_nested_max_split=1, extra="forbid", frozen=True
    )

    data_dir: Path = Setting(
        default_factory=lambda: user_data_path("docmill"), description="embedded servers, logs, cache"
    )
    database: DatabaseSettings = DatabaseSettings()
    objects: ObjectSettings = ObjectSettings()
    prefect: PrefectSettings = PrefectSettings()
    pipeline: PipelineSettings = Setting(default_factory=PipelineSettings)
    ocr: OcrSettings = OcrSettings()
    serving: ServingSettings = ServingSettings()

    @field_validator("data_dir")
    @classmethod
    def _whole_path(cls, path: Path) -> Path:
        """The same folder for every process, wherever it runs."""
        return path.expanduser().absolute()

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Environment over file over defaults."""
        path = config_file()
        sources = (init_settings, env_settings)
        return sources if path is None else (*sources, TomlConfigSettingsSource(settings_cls, path))


def config_file() -> Path | None:
    """The file that is read: ``DOCMILL_CONFIG``, or docmill.toml here or in a folder above, or the user's own.

    Raises:
        ConfigurationError: ``DOCMILL_CONFIG`` names a file that is not there.
    """
    named = os.environ.get(CONFIG_VARIABLE)
    if named:
        path = Path(named).expanduser()
        if not path.is_file():
            raise ConfigurationError(
                f"{CONFIG_VARIABLE} names {path}, which is not there", remedy="make it or unset it"
            )
        return path
    here = Path.cwd()
    for folder in (here, *here.parents):
        if (folder / FILE_NAME).is_file():
            return folder / FILE_NAME
    users = user_config_path("docmill") / FILE_NAME
    return users if users.is_file() else None


def _allowed(location: tuple[int | str, ...]) -> str:
    """What the group that a wrong key stands in would allow."""
    model: Any = Settings
    for part in location[:-1]:
        known = model.model_fields.get(str(part)) if isinstance(model, type) and issubclass(model, BaseModel) else None
        model = known.annotation if known is not None else None
    if isinstance(model, type) and issubclass(model, BaseModel):
        return ", ".join(model.model_fields)
    return ""


def _explain(error: ValidationError, path: Path | None) -> str:
    told = []
    for problem in error.errors(include_input=False, include_url=False):
        location = problem["loc"]
        name = ".".join(str(part) for part in location) or "settings"
        variable = "DOCMILL_" + "_".join(str(part) for part in location).upper()
        place = variable if variable in os.environ else (str(path) if path else "the environment")
        if problem["type"] == "extra_forbidden":
            told.append(f"{name} ({place}) is no setting; there are: {_allowed(location)}")
        else:
            told.append(f"{name} ({place}): {problem['msg'].removeprefix('Value error, ')}")
    return "; ".join(told)


def _unknown_variables() -> list[str]:
    known = {CONFIG_VARIABLE, *(f"DOCMILL_{name}".upper() for name in Settings.model_fields)}
    groups = tuple(
        f"DOCMILL_{name}_".upper() for name, f in Settings.model_fields.items()
        if isinstance(f.annotation, type) and issubclass(f.annotation, BaseModel)
    )  # fmt: skip
    return sorted(v for v in os.environ if v.startswith("DOCMILL_") and v not in known and not v.startswith(groups))


def load_settings(**overrides: Any) -> Settings:
    """Read the settings.

    Raises:
        ConfigurationError: naming every wrong key or value, where it stands and what is allowed. Values are not
            quoted, since they may be secrets.
    """
    path = config_file()
    unknown = _unknown_variables()
    if unknown:
        raise ConfigurationError(
            f"{', '.join(unknown)}: no such setting",
            remedy=f"variables are DOCMILL_GROUP_NAME, groups: {', '.join(Settings.model_fields)}; docmill config show",
        )
    try:
        return Settings(**overrides)
    except ValidationError as error:
        raise ConfigurationError(
            f"wrong settings: {_explain(error, path)}",
            remedy="correct it where it stands; docs/reference/settings.md says what each setting takes",
        ) from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"{path} is not TOML: {error}", remedy="mend the file") from error
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path} cannot be read: {type(error).__name__}", remedy="mend the file") from error
