"""Traffic that a scenario needs beside the usual: long prompts, long answers, conversations."""

from dataclasses import replace
from typing import Final

from tailburn.lab.faults.needs import SMALL
from tailburn.lab.workload import FIGURES, Profile, named
from tailburn.lab.workload.profiles import built

PROMPT_CAP: Final = 131_072
NEIGHBOUR_MOST: Final = 8_192
"""Most tokens of an answer to the client `neighbour`."""


def two_models() -> Profile:
    """The usual traffic, of which one client in five asks for the small model."""
    profile = named("azure-conv")
    clients = profile.clients
    of = clients.model_of.copy()
    of[3:-2:5] = len(clients.models)
    return replace(
        profile,
        name="azure-conv, two models",
        clients=replace(clients, models=(*clients.models, SMALL), model_of=of),
    )


def long_prompts() -> Profile:
    """The usual traffic, where a prompt may be as long as the model takes it."""
    profile = named("azure-conv")
    lengths = replace(profile.lengths, prompt_cap=PROMPT_CAP)  # type: ignore[type-var]
    most = profile.clients.max_tokens_of.copy()
    most[-1] = NEIGHBOUR_MOST
    clients = replace(profile.clients, max_tokens_of=most)
    return replace(profile, name="azure-conv, long prompts", clients=clients, lengths=lengths)


def long_answers() -> Profile:
    """The usual traffic with answers three times as long: 633 tokens in the mean."""
    usual = FIGURES["azure-conv"]
    return built(
        "azure-conv, long answers",
        replace(
            usual,
            prompt_cap=4_200,
            output=tuple(3.0 * tokens for tokens in usual.output),
            output_mean=3.0 * usual.output_mean,
            output_cap=4_096,
        ),
    )


def conversations() -> Profile:
    """Long conversations as `mooncake` has them, their prompts a quarter as long.

    A quarter, so that a fleet of some replicas prefills them; its cache holds a fifth to a
    third of the tokens.
    """
    return _mooncake("mooncake, a quarter as long", 0.25)


def short_conversations() -> Profile:
    """The same, a seventh as long: of a replica's cache in FP8 they find what the trace does."""
    return _mooncake("mooncake, a seventh as long", 0.15)


def _mooncake(name: str, prompts: float) -> Profile:
    usual = FIGURES["mooncake"]
    return built(
        name,
        replace(
            usual,
            prompt=tuple(prompts * tokens for tokens in usual.prompt),
            prompt_mean=prompts * usual.prompt_mean,
            prompt_cap=int(prompts * usual.prompt_cap),
            output=tuple(0.5 * tokens for tokens in usual.output),
            output_mean=0.5 * usual.output_mean,
            output_cap=usual.output_cap // 2,
        ),
    )
