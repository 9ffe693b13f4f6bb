"""Parameters of the scikit-learn estimators: the declared settings, so that none is declared twice."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import numpy as np
from sklearn.utils import check_random_state

from maskmatch.config.matcher import classifier_options
from maskmatch.config.settings import declared
from maskmatch.config.training import TrainingConfig
from maskmatch.errors import MaskMatchError, did_you_mean

Init = TypeVar("Init", bound=Callable[..., None])

CLASSIFIER_PARAMETERS: dict[str, Any] = dict.fromkeys(each.name for each in classifier_options())
"""The settings of a classifier with their defaults. None: what the saved classifier, the task or the method says."""

SEED = "random_state"
"""What scikit-learn calls the seed."""

TRAINING_PARAMETERS: dict[str, Any] = {
    SEED if each.name == "seed" else each.name: None if isinstance(each.default, Mapping) else each.default
    for each in declared(TrainingConfig)
    if each.name != "class_weight"
} | {"class_weight": None}
"""The settings of training with their defaults; a dict is None, because scikit-learn wants no mutable default."""


def takes(*groups: Mapping[str, Any]) -> Callable[[Init], Init]:
    """Let an ``__init__`` with ``**settings`` take the settings of these groups, and store all that it is given.

    scikit-learn reads the parameters of an estimator from the signature of its ``__init__``.
    """

    def decorate(init: Init) -> Init:
        own = [each for each in inspect.signature(init).parameters.values() if each.kind is not each.VAR_KEYWORD]
        taken = {each.name for each in own}
        kind = inspect.Parameter.KEYWORD_ONLY
        others = {name: value for group in groups for name, value in group.items() if name not in taken}
        signature = inspect.Signature(
            [*own, *(inspect.Parameter(name, kind, default=value) for name, value in others.items())]
        )

        @functools.wraps(init)
        def stores(self: Any, *args: Any, **given: Any) -> None:
            _check_known(type(self).__name__, given, signature)
            bound = signature.bind(self, *args, **given)
            bound.apply_defaults()
            for name, value in list(bound.arguments.items())[1:]:
                setattr(self, name, value)

        stores.__signature__ = signature  # type: ignore[attr-defined]
        return stores  # type: ignore[return-value]

    return decorate


def _check_known(estimator: str, given: Iterable[str], signature: inspect.Signature) -> None:
    known = list(signature.parameters)[1:]
    for name in given:
        if name == "seed" and SEED in known:
            raise TypeError(f"{estimator} has no parameter 'seed'; scikit-learn calls it {SEED}.")
        if name not in known:
            hint = did_you_mean(name, known)
            raise TypeError(f"{estimator} has no parameter {name!r}; its parameters are {', '.join(known)}.{hint}")


def classifier_settings(estimator: Any) -> dict[str, Any]:
    """The settings of the classifier that an estimator was given."""
    return {name: getattr(estimator, name) for name in CLASSIFIER_PARAMETERS}


def training_settings(estimator: Any) -> TrainingConfig:
    """How an estimator trains."""
    given = {name: getattr(estimator, name) for name in TRAINING_PARAMETERS if name != "class_weight"}
    given["seed"] = _seed(given.pop(SEED))
    if given["arguments"] is None:
        del given["arguments"]
    if isinstance(estimator.class_weight, str):
        given["class_weight"] = estimator.class_weight
    return TrainingConfig().changed(given)


def _seed(random_state: Any) -> Any:
    """A seed from what scikit-learn calls a random state; it is drawn if that is None or a generator."""
    if random_state is None or isinstance(random_state, np.random.RandomState):
        return int(check_random_state(random_state).randint(2**31 - 1))
    if not isinstance(random_state, (int, np.integer)) or isinstance(random_state, bool):
        raise MaskMatchError(f"random_state is {random_state!r}; it must be an integer, None or a RandomState.")
    return int(random_state)
