"""The model options: which model answers for which role, where it is reached, and how it is asked."""

from __future__ import annotations

import argparse
from collections.abc import Mapping

from langchain_core.language_models import BaseChatModel

from ..errors import GeckoError, ModelError, did_you_mean
from ..models import factory
from ..state import ROLES, Role

MODEL_OPTIONS = {
    "base_url": "it is the address of the model's server",
    "timeout": "it limits one reply of the model",
    "temperature": "it is the temperature of the model",
}


def check_model_options(options: argparse.Namespace) -> None:
    """Raise GeckoError where an option of a model is given without `--model` (or `--role-model`)."""
    if options.model or read_role_models(options):
        return
    for name, use in MODEL_OPTIONS.items():
        if getattr(options, name) is not None:
            raise GeckoError(f"--{name.replace('_', '-')} needs --model: {use}")


def read_role_models(options: argparse.Namespace) -> dict[Role, str]:
    """Return the model name of each role that `--role-model ROLE=NAME` gives one. Raises ModelError."""
    by_role: dict[Role, str] = {}
    for entry in getattr(options, "role_model", None) or ():
        given, equals, name = entry.partition("=")
        role = next((role for role in ROLES if role == given), None)
        if not equals or not name:
            raise ModelError(f"--role-model {entry}: write ROLE=NAME, for example judge=openai:gpt-5-mini")
        if role is None:
            raise ModelError(
                f"--role-model {entry}: unknown role{did_you_mean(given, ROLES)}; roles: {', '.join(ROLES)}"
            )
        by_role[role] = name
    return by_role


def live_roles(options: argparse.Namespace) -> frozenset[Role]:
    """Return the roles that a live model answers for."""
    return frozenset(ROLES if options.model else read_role_models(options))


def build_models(options: argparse.Namespace) -> tuple[BaseChatModel | None, Mapping[Role, BaseChatModel]]:
    """Return the model of all roles, if any, and those of single roles; one object for each name. Raises ModelError."""
    by_role = read_role_models(options)
    how = {"base_url": options.base_url, "timeout_s": options.timeout, "temperature": options.temperature}
    built = {name: factory.chat_model(name, **how) for name in {options.model, *by_role.values()} - {None}}
    return built.get(options.model), {role: built[name] for role, name in by_role.items()}
