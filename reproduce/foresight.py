"""What can be known of a run before it starts: its data, weights, batch layout and cost."""

from __future__ import annotations

from dataclasses import dataclass

from reproduce import data_state, estimate, weights_state
from reproduce.config import RunConfig
from reproduce.data_state import DataState
from reproduce.keys import Keys
from reproduce.runtime import Runtime
from reproduce.table import Planned


@dataclass(frozen=True)
class Outlook:
    """What is known of one distinct run.

    Attributes:
        cost: None where the number of images is not known.
        problems: sentences; empty if the run can start.
    """

    run: Planned
    data: DataState
    network: estimate.NetworkCost
    cost: estimate.RunCost | None
    problems: tuple[str, ...]


class Foresight:
    """Looks at runs under one runtime; equal networks and data sets are looked at once."""

    def __init__(self, runtime: Runtime, gpus: int) -> None:
        self.runtime, self.gpus = runtime, gpus
        self.keys = Keys(runtime)
        self._data: dict[str, DataState] = {}
        self._networks: dict[str, estimate.NetworkCost] = {}
        self._weights: dict[str, str | None] = {}

    def look(self, run: Planned) -> Outlook:
        """Data, weights, batch layout and cost of a run."""
        config = run.config
        problems: list[str] = []
        data = self.data(config)
        network = self._network(config, data.channels)
        lack = self._lack(config, data.channels)
        problems += [text for text in (data.problem, lack) if text]
        problems += layout_problems(config, network, self.gpus)
        cost = None
        if data.steps_per_epoch is not None and data.test_images is not None:
            cost = estimate.run_cost(
                config,
                network,
                config.train.epochs * data.steps_per_epoch,
                data.training_classes,
                data.test_images,
                self.gpus,
            )
        return Outlook(run, data, network, cost, tuple(problems))

    def data(self, config: RunConfig) -> DataState:
        """Presence and numbers of a configuration's images."""
        name = config.data.model_dump_json() + config.train.model_dump_json()
        if name not in self._data:
            self._data[name] = data_state.look(config, self.keys)
        return self._data[name]

    def _lack(self, config: RunConfig, channels: int) -> str | None:
        name = f"{config.model.model_dump_json()} {config.data.image_size} {channels}"
        if name not in self._weights:
            weights = self.keys.runtime_of(config).weights
            self._weights[name] = weights_state.problem(config, channels, weights)
        return self._weights[name]

    def _network(self, config: RunConfig, channels: int) -> estimate.NetworkCost:
        half = config.train.amp != "off"
        name = f"{config.model.model_dump_json()} {config.data.image_size} {channels} {half}"
        if name not in self._networks:
            self._networks[name] = estimate.network_cost(config, channels)
        return self._networks[name]


def layout_problems(config: RunConfig, network: estimate.NetworkCost, gpus: int) -> list[str]:
    """Sentences on a batch that these GPUs cannot share, or BatchNorm that would see a part."""
    train, said = config.train, []
    batch = train.classes_per_batch * train.images_per_class
    if batch % gpus:
        said.append(f"a batch of {batch} images cannot be dealt to {gpus} GPUs: choose a factor")
    if network.batch_norms and not train.chunk_batch_statistics:
        layer = network.batch_norms[0]
        if train.chunk_size is not None:
            said.append(f"train.chunk_size with BatchNorm in training mode ({layer}): freeze it")
        elif gpus > 1 and not train.sync_batch_norm:
            said.append(
                f"BatchNorm in training mode ({layer}) on {gpus} GPUs: set "
                "train.sync_batch_norm=true, or freeze it"
            )
    return said
