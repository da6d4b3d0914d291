"""The models of a graph, by role."""

from __future__ import annotations

import math
import os
import pickle
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeAlias

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import Runnable
from pydantic import SecretStr

from ..errors import ModelError, did_you_mean
from ..state import ROLES, Role
from ..values.digest import shallow
from . import usage
from .ask import Dialogue, ModelAsk, PlannerAsk, Reply
from .cache import ReplyCache, with_cache
from .client import StructuredClient, bind_within, find_model
from .decisions import ROLES as DECIDED
from .decisions import DecisionClient, find_decider
from .prompts import Prompts

TIMEOUT_S = 120.0
MAX_RETRIES = 2
MOST_CHOSEN = 16
"""Most models selected by contexts that are kept, with their connections."""

# these accept their default temperature only
_FIXED_TEMPERATURE = ("gpt-5", "o1", "o3", "o4")

# LangChain's packages of further providers
_PROVIDERS = "anthropic cohere deepseek fireworks google_genai google_vertexai groq huggingface mistralai ollama xai"
_PACKAGES = {name: f"langchain-{name.replace('_', '-')}" for name in _PROVIDERS.split()}
_PACKAGES |= {"azure_openai": "langchain-openai", "bedrock_converse": "langchain-aws", "together": "langchain-together"}

HOW = "pass model='openai:gpt-5-mini' or any chat model, or model=Models({role}=...)"

PROVIDERS = ("openai", *_PACKAGES)

ModelLike: TypeAlias = str | BaseChatModel | Runnable[Any, Any]
"""One model: `"provider:name"`, a chat or decision model, or one with retries, fallbacks or configurable fields."""

Listener: TypeAlias = Callable[[ModelAsk, Dialogue], Dialogue]


class Models:
    """The models of a graph, by role. Immutable.

    Args:
        model: The model of every role that is not named: `"provider:name"` or a chat model; None for none.
        base_url: Address of an OpenAI-compatible server, for models given as text.
        prompts: A folder of your own prompts: `judge.md` replaces the judge's, and so on.
        timeout_s: Seconds per reply, for models given as text; by default 120 for OpenAI.
        temperature: For models given as text, see `chat_model`.
        prices: US dollars per million tokens by model name; they override the built-in ones.
        roles: Models of single roles, by role name; None leaves the role to rules. The judging roles (`judge`,
            `validator`, `claim_judge`, `label_judge`, `reranker`, `risk`) may have a decision model: a
            `BaseDecisionModel`, langchain-openai's `OpenAIDecisions`, or a `ChatDecisionModel`.

    Attributes:
        prompts: The prompts.
        chat: Returns a chat model for its name, with the same address and options.

    Raises:
        ModelError: Unknown role or provider, missing key, missing package, or an object that is no model.
        GeckoError: One of your prompts is invalid.
    """

    def __init__(
        self,
        model: ModelLike | None = None,
        *,
        base_url: str | None = None,
        prompts: str | Path | None = None,
        timeout_s: float | None = None,
        temperature: float | None = None,
        prices: Mapping[str, usage.Price] | None = None,
        **roles: ModelLike | None,
    ) -> None:
        self.prompts = Prompts(prompts)
        self.chat = partial(chat_model, base_url=base_url, timeout_s=timeout_s, temperature=temperature)
        self._prices = {**usage.PRICES, **(prices or {})}
        self._how = {"base_url": base_url, "prompts": prompts, "timeout_s": timeout_s, "temperature": temperature}
        self._given: dict[str, ModelLike] = {}
        self._cache: ReplyCache | None = None
        self._listen: Listener | None = None
        self._named = frozenset(roles)
        self._clients: dict[str, StructuredClient] = {}
        self._chosen: dict[str, Models] = {}
        everyone: dict[str, ModelLike | None] = dict.fromkeys(ROLES, model)
        made = self.replace(**{**everyone, **roles})
        self._clients, self._given = made._clients, made._given

    def __reduce__(self) -> Any:
        for role, each in self._given.items():
            try:
                pickle.dumps(each)
            except Exception as error:  # noqa: BLE001 - each client raises errors of its own
                why = f"its {type(each).__name__} cannot be sent to another process: give it as 'provider:name'"
                raise ModelError(f"{role}: {why} ({error})") from None
        if self._listen is not None:
            raise ModelError("models with a listener cannot be sent to another process")
        return _models_again, ({**self._how, "prices": self._prices}, self._given, self._named, self._cache)

    def caching(self, file: str | Path) -> Models:
        """Return the models with a file of cached replies: no question is asked twice. An earlier file is kept."""
        return self if self._cache else self._again(self._given, self._named, ReplyCache(file))

    def _again(self, given: Mapping[str, ModelLike], named: frozenset[str], cache: ReplyCache | None) -> Models:
        models: Models = shallow(self)
        models._cache = cache
        models = models.replace(**given)
        models._named = named
        return models

    @classmethod
    def of(cls, model: ModelsLike) -> Models:
        """Return the `model` argument of a factory as `Models`."""
        return model if isinstance(model, Models) else cls(model)

    def replace(self, **roles: ModelLike | None) -> Models:
        """Return the models with other models for these roles. Raises as the class does."""
        if unknown := sorted(roles.keys() - {*ROLES}):
            raise ModelError(f"unknown role {', '.join(map(repr, unknown))}; roles: {', '.join(ROLES)}")
        given = {role: each for role, each in roles.items() if each is not None}
        keys = {role: each if isinstance(each, str) else id(each) for role, each in given.items()}
        clients: dict[str | int, StructuredClient] = {}
        for role, key in keys.items():
            kind = StructuredClient if find_decider(given[role]) is None else DecisionClient
            if kind is DecisionClient and role not in DECIDED:
                raise ModelError(f"{role}: a decision model can only speak for {', '.join(DECIDED)}: name its roles")
            if key not in clients:
                model = self.chat(given[role])
                model = bind_within(model, partial(with_cache, cache=self._cache)) if self._cache else model
                clients[key] = kind(model, prices=self._prices, prompts=self.prompts)
        models: Models = shallow(self)
        models._chosen, models._named = {}, self._named | roles.keys()
        models._given = {role: each for role, each in self._given.items() if role not in roles} | given
        others = {role: client for role, client in self._clients.items() if role not in roles}
        models._clients = {**others, **{role: clients[key] for role, key in keys.items()}}
        return models

    def only_named(self, *roles: Role) -> Models:
        """Return the models without these roles' default: each needs a model given by its own name."""
        return self.replace(**dict.fromkeys(set(roles) - self._named))

    def chosen(self, model: str | None) -> Models:
        """Return the models of a run whose context selects one for all roles. Raises as the class does."""
        if model is None:
            return self
        if (made := self._chosen.get(model)) is None:
            made = self.replace(**dict.fromkeys(ROLES, model))
            if len(self._chosen) >= MOST_CHOSEN:
                self._chosen.clear()
            self._chosen[model] = made
        return made

    def listening(self, listen: Listener) -> Models:
        """Return the models with each dialogue passed through `listen`, which returns the reply for the node.

        Earlier listeners stay, and are called first.
        """
        models: Models = shallow(self)
        before = self._listen
        models._listen = listen if before is None else lambda ask, dialogue: listen(ask, before(ask, dialogue))
        models._chosen = {}
        return models

    def keeping(self, agent: Any) -> Any:
        """Return an agent; a chat model caches its replies as the roles' models do."""
        return self.replace(planner=agent).get("planner") if find_model(agent) is not None else agent

    def get(self, role: Role) -> Runnable[Any, Any] | None:
        """Return the model of a role: its own, else the default; None if neither was given."""
        client = self._clients.get(role)
        return client.model if client else None

    def has(self, role: Role) -> bool:
        """Return whether a model, or a reply, is there for a role."""
        return role in self._clients

    def require(self, *roles: Role) -> None:
        """Raise ModelError unless all of these roles have a model."""
        for role in roles:
            if role not in self._clients:
                raise ModelError(f"no model configured for role {role!r}: {HOW.format(role=role)}")

    def open(self, ask: ModelAsk) -> Dialogue:
        """Begin to answer an ask; `answer` and `aanswer` complete it."""
        client = self._clients.get(ask.role)
        if client is None:
            return _unanswered(ask)
        dialogue = client.plan(ask) if isinstance(ask, PlannerAsk) else client.ask(ask)
        return self._listen(ask, dialogue) if self._listen else dialogue


def _models_again(how: dict[str, Any], *given: Any) -> Models:
    return Models(**how)._again(*given)


ModelsLike: TypeAlias = ModelLike | Models | None
"""The type of the argument `model` of every factory."""


def chat_model(
    model: ModelLike,
    *,
    base_url: str | None = None,
    timeout_s: float | None = None,
    temperature: float | None = None,
) -> Runnable[Any, Any]:
    """Return a chat model for its name, `"provider:name"`; an object is returned unchanged.

    Args:
        model: For example `"openai:gpt-5-mini"`.
        base_url: Address of an OpenAI-compatible server; then no key is needed.
        timeout_s: Seconds per reply; the provider's default, for OpenAI 120.
        temperature: The provider's default; for OpenAI 0, if the model accepts it.

    Raises:
        ModelError: Another form, an invalid timeout, unknown provider, missing key, missing package.
    """
    if not isinstance(model, str):
        if find_model(model) is None and find_decider(model) is None:
            raise ModelError(f"expected 'provider:name', a chat model or Models(...), got {type(model).__name__}")
        return model
    if base_url is not None and not base_url.startswith(("http://", "https://")):
        raise ModelError(f"base_url {base_url!r}: write the whole address, for example 'http://localhost:8000/v1'")
    if timeout_s is not None and not 0 < timeout_s < math.inf:
        raise ModelError(f"timeout_s is {timeout_s!r}: give the seconds that a reply may take")
    provider, colon, name = model.partition(":")
    if not (colon and provider and name):
        raise ModelError(
            f"model {model!r}: write 'provider:name', for example 'openai:{model.strip(':') or 'gpt-5-mini'}'"
        )
    if provider == "openai":
        return _openai(name, base_url, timeout_s or TIMEOUT_S, temperature)
    return _other(provider, name, {"base_url": base_url, "timeout": timeout_s, "temperature": temperature})


def _openai(name: str, base_url: str | None, timeout_s: float, temperature: float | None) -> BaseChatModel:
    from langchain_openai import ChatOpenAI  # here, because the import is slow

    key = os.environ.get("OPENAI_API_KEY")
    address = base_url or os.environ.get("OPENAI_BASE_URL") or os.environ.get("OPENAI_API_BASE")
    if not key and not address:
        raise ModelError(
            f"model 'openai:{name}' needs a key: set OPENAI_API_KEY, or give base_url for a server that needs none"
        )
    if temperature is None and not name.startswith(_FIXED_TEMPERATURE):
        temperature = 0
    options: dict[str, Any] = {} if temperature is None else {"temperature": temperature}
    return ChatOpenAI(
        model=name,
        base_url=base_url,
        api_key=SecretStr(key or "none"),
        timeout=timeout_s,
        max_retries=MAX_RETRIES,
        stream_usage=True,
        **options,
    )


def _other(provider: str, name: str, given: Mapping[str, Any]) -> BaseChatModel:
    unknown = (
        f"unknown provider {provider!r}{did_you_mean(provider, PROVIDERS)}; known: {', '.join(PROVIDERS)}; a model of "
        "another one is given as a chat model, in Python"
    )
    if find_spec("langchain") is None:
        if provider not in PROVIDERS:
            raise ModelError(unknown)
        raise ModelError(f"provider {provider!r} needs two more packages: pip install langchain {_PACKAGES[provider]}")
    init_chat_model = import_module("langchain.chat_models").init_chat_model

    options: dict[str, Any] = {key: value for key, value in given.items() if value is not None}
    try:
        made = init_chat_model(name, model_provider=provider, **options)
    except Exception as error:
        reason = " ".join(str(error).split())[:300]
        refused = reason.startswith("Unsupported provider")
        raise ModelError(unknown if refused else f"model '{provider}:{name}': {reason}") from error
    if not isinstance(made, BaseChatModel):
        raise ModelError(f"model '{provider}:{name}': the provider gave no chat model")
    return made


def _unanswered(ask: ModelAsk) -> Dialogue:
    return Reply(None, f"no model configured for role {ask.role!r}", absent=True)
    yield  # makes this a generator, as a Dialogue must be
