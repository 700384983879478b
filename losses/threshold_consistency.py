"""The threshold consistency penalty of OneFace, in our reading.

Liu et al., "OneFace: One Threshold for All", ECCV 2022 (paper 815). Its abstract was all that could
be found: it names the parts (implicit domain division; calibration and domain thresholds
estimation; a penalty on their inconsistency), not the formulas. All below is our reading.
"""

from __future__ import annotations

import math

import torch
from torch import nn

from common.errors import UserError
from common.geometry import normalise
from losses.checks import prepare
from losses.embedding_queue import EMPTY, EmbeddingQueue
from losses.sharing import gather_batches
from losses.sinkhorn import sinkhorn_plan


class ThresholdConsistencyPenalty(nn.Module):
    """Mean over hidden domains of |threshold of the domain - calibration threshold|.

    - Negatives: cosine similarities of images in the batch to those in a queue of recent batches
      with another label. The batch itself is pushed afterwards: it is never among its own.
    - Calibration threshold: the similarity that a share ``far`` of all negatives reaches, the k-th
      largest with k = max(1, floor(far n)). It carries no gradient.
    - Domains: prototypes on the unit sphere; images are assigned to them by their cosines through a
      balanced Sinkhorn plan (its largest entry), and prototypes follow the mean of their images by
      an exponential moving average.
    - Threshold of a domain: the same quantile over the negatives of its images. The gradient flows
      through the one pair of images at the quantile.

    Guesses, all of them: the quantile and its FAR, the absolute deviation, prototypes of
    embeddings, the Sinkhorn assignment, the queue, and every default value.

    Corner cases: with one domain, and with no negative in the queue, the penalty is 0 and connected
    to the graph; a domain without negatives is left out of the mean. Queue and prototypes change in
    training mode only, are saved in the state dict, and are the same in all processes of a
    distributed run.

    Args:
        embedding_dim: D.
        domains: number of prototypes M.
        queue_size: embeddings kept.
        far: false accept rate of the thresholds, in (0, 1).
        momentum: of the moving average, in [0, 1).
        temperature: of the Sinkhorn plan, above 0; smaller is closer to the nearest prototype.

    Raises:
        UserError: an option out of range; in the call, see :func:`losses.checks.prepare`.
    """

    def __init__(
        self,
        embedding_dim: int,
        domains: int = 8,
        queue_size: int = 8192,
        far: float = 1e-4,
        momentum: float = 0.99,
        temperature: float = 0.05,
    ) -> None:
        super().__init__()
        if domains < 1 or queue_size < 1:
            raise UserError("the penalty needs domains >= 1 and queue_size >= 1")
        if not 0 < far < 1 or not 0 <= momentum < 1 or temperature <= 0:
            raise UserError("the penalty needs 0 < far < 1, 0 <= momentum < 1, temperature > 0")
        self.far, self.momentum, self.temperature = far, momentum, temperature
        self.queue = EmbeddingQueue(queue_size, embedding_dim)
        self.register_buffer("prototypes", normalise(torch.randn(domains, embedding_dim)))
        # Of the last call: calibration threshold and the domains', NaN where there is none.
        self.last_thresholds: tuple[torch.Tensor, torch.Tensor] | None = None

    def forward(self, embeddings: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """The penalty of a batch: embeddings (B, D), labels (B,) >= 0 -> scalar, at least 0."""
        x, labels = prepare(embeddings, labels)
        with torch.autocast(x.device.type, enabled=False):
            x = normalise(x)
            everyone, everyones_labels, own = gather_batches(x, labels)
            domain = self.assign(everyone)
            value = self._penalty(x, labels, domain[own])
            if self.training:
                self._follow(everyone, domain)
                self.queue.push(everyone, everyones_labels)
        return value

    @torch.no_grad()
    def assign(self, x: torch.Tensor) -> torch.Tensor:
        """Domains of unit vectors, (B, D) -> (B,) in [0, M), balanced over the batch."""
        return sinkhorn_plan(x @ self.prototypes.to(x).T, self.temperature).argmax(1)

    def _penalty(self, x, labels, domain) -> torch.Tensor:
        stored, stored_labels = self.queue.embeddings.to(x), self.queue.labels
        with torch.no_grad():
            s = x @ stored.T
            negative = (labels[:, None] != stored_labels) & (stored_labels != EMPTY)
            s.masked_fill_(~negative, -torch.inf)

        # The queue changes before the gradient is computed: its row is copied.
        def threshold(rows: torch.Tensor) -> torch.Tensor | None:
            pair = false_accept_pair(s[rows], self.far)
            return None if pair is None else x[rows[pair[0]]] @ stored[pair[1]].clone()

        calibration = threshold(torch.arange(len(x), device=x.device))
        members = [(domain == m).nonzero()[:, 0] for m in range(len(self.prototypes))]
        thresholds = [threshold(rows) for rows in members]
        nothing = x.new_tensor(math.nan)
        self.last_thresholds = (
            nothing if calibration is None else calibration.detach(),
            torch.stack([nothing if t is None else t.detach() for t in thresholds]),
        )
        gaps = [(t - calibration.detach()).abs() for t in thresholds if t is not None]
        return torch.stack(gaps).mean() if gaps else 0 * x.sum()

    @torch.no_grad()
    def _follow(self, x: torch.Tensor, domain: torch.Tensor) -> None:
        for m, prototype in enumerate(self.prototypes):
            members = x[domain == m]
            if len(members):
                mean = members.mean(0).to(prototype)
                prototype.copy_(normalise(prototype.lerp(mean, 1 - self.momentum)))


def false_accept_pair(negatives: torch.Tensor, far: float) -> tuple[int, int] | None:
    """Where the k-th largest of n similarities stands, k = max(1, floor(far n)); None where n = 0.

    Args:
        negatives: (B, Q), -inf where a pair is no negative; n counts the others.
        far: share of the negatives that this similarity as a threshold would accept, nearly.
    """
    n = int((negatives > -torch.inf).sum())
    if n == 0:
        return None
    # The small number keeps 0.29 * 100 = 28.999999999999996 and its like from losing one.
    k = max(1, math.floor(far * n + 1e-9))
    index = negatives.flatten().kthvalue(negatives.numel() - k + 1).indices
    return divmod(int(index), negatives.shape[1])
