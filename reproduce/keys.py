"""The keys of many runs at once: each data set is opened once, each code hash computed once."""

from __future__ import annotations

import datasets
from reproduce.code_hash import code_hash
from reproduce.config import RunConfig
from reproduce.execute import code_modules, load_source
from reproduce.runtime import Runtime
from reproduce.store import HASH_LENGTH, RunKey
from reproduce.weights_option import of_backbone


class Keys:
    """Run keys under one runtime; one object serves one invocation, in which nothing changes.

    Args:
        runtime: where the runs will execute.
        device_type: of the device there, if that is not this machine; None asks the runtime.
    """

    def __init__(self, runtime: Runtime, device_type: str | None = None) -> None:
        self.runtime = runtime
        self._device_type = device_type
        self._runtimes: dict[str, Runtime] = {}
        self._sources: dict[str, datasets.Source] = {}
        self._codes: dict[tuple[str, ...], str] = {}

    def of(self, config: RunConfig) -> RunKey:
        """What decides the run, and its hash.

        Raises:
            UserError: the data set is not there or broken.
        """
        return RunKey(
            config,
            self.source(config).index.fingerprint,
            self.code(config),
            self._device_type or self.runtime.torch_device().type,
            self.runtime_of(config).weights_sha256,
        )

    def runtime_of(self, config: RunConfig) -> Runtime:
        """The runtime of one run, with the weights of its backbone."""
        name = config.model.backbone
        if name not in self._runtimes:
            self._runtimes[name] = of_backbone(self.runtime, name)
        return self._runtimes[name]

    def source(self, config: RunConfig) -> datasets.Source:
        """The run's data set. Raises UserError as :func:`reproduce.execute.load_source` does."""
        name = config.data.model_dump_json()
        if name not in self._sources:
            self._sources[name] = load_source(config, self.runtime)
        return self._sources[name]

    def code(self, config: RunConfig) -> str:
        """The hash of the code that decides the run, 64 hex digits."""
        modules = code_modules(config)
        if modules not in self._codes:
            self._codes[modules] = code_hash(modules)
        return self._codes[modules]

    def short_code(self, config: RunConfig) -> str:
        """The same as it stands in records and results."""
        return self.code(config)[:HASH_LENGTH]
