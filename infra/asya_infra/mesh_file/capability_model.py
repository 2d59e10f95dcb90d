"""The model of a mesh file whose actors have the kinds and the options of its capabilities."""

from functools import cache
from typing import Annotated, Any, Literal, cast

import msgspec
from msgspec import Meta
from msgspec.structs import FieldInfo

from asya.monitoring import Threshold
from asya.option import Option
from asya.registry import PRODUCT, Registry
from asya_infra.mesh_file.actor_model import ActorSection, ActorSettings
from asya_infra.mesh_file.mesh_model import MeshFile
from asya_infra.mesh_file.notify_model import NotifySection, ThresholdsSection, threshold_field
from asya_infra.mesh_file.sections import keys_of

_Field = tuple[str, Any, Any]


def mesh_model(registry: Registry) -> type[MeshFile]:
    """Return the model of a mesh with these capabilities."""
    thresholds = [each for key, each in registry.thresholds.items() if key not in PRODUCT.thresholds]
    kinds = tuple((kind, registry.actor_functions[kind].text) for kind in registry.kinds)
    return _model(kinds, tuple(registry.options.values()), tuple(thresholds))


def settings_model(model: type[MeshFile]) -> type[ActorSettings]:
    """Return the section of `defaults` in a model."""
    return cast("type[ActorSettings]", keys_of(model)["defaults"].type)


@cache
def _model(
    kinds: tuple[tuple[str, str], ...], options: tuple[Option[Any], ...], thresholds: tuple[Threshold, ...]
) -> type[MeshFile]:
    common = [_field(option) for option in options if not option.kinds]
    special = [_field(option) for option in options if option.kinds]
    texts = " ".join(f"`{kind}`: {text}." for kind, text in kinds if text)
    kind = ("kind", Annotated[Literal[tuple(kind for kind, _ in kinds)] | None, Meta(description=texts)], None)
    settings = _extended(ActorSettings, common)
    actor = _extended(ActorSection, [kind, *common, *special])
    fields = keys_of(MeshFile)
    changed: list[_Field] = [
        ("defaults", settings, settings()),
        ("actors", Annotated[dict.__class_getitem__((str, actor)), *_marks(fields["actors"])], msgspec.NODEFAULT),
    ]
    if thresholds:
        values = _extended(ThresholdsSection, [threshold_field(each) for each in thresholds])
        notify = _extended(NotifySection, [("thresholds", values, values())])
        changed.append(("notify", notify, notify()))
    model: type[MeshFile] = _extended(MeshFile, changed)
    return model


def _field(option: Option[Any]) -> _Field:
    return (
        option.key,
        Annotated[option.type, Meta(description=option.text)],
        None if option.is_required else option.default,  # actors of other kinds have none
    )


def _extended(section: Any, fields: list[_Field]) -> Any:
    """Return a section with further fields, and with others in place of those of the same name."""
    return msgspec.defstruct(
        section.__name__,
        fields,
        bases=(section,),
        module=section.__module__,
        namespace={"__doc__": section.__doc__},
        frozen=True,
        kw_only=True,
    )


def _marks(field: FieldInfo) -> tuple[Any, ...]:
    return cast("tuple[Any, ...]", field.type.__metadata__)
