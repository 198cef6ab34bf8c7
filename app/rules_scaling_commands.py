"""`tailburn rules scaling`: when replicas are added and when one may go, for autoscalers."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from tailburn.app.options import SloInput, SloPaths


class Part(StrEnum):
    """What of it is printed; in a folder each is a file."""

    RULES = "rules"
    ADAPTER = "adapter"
    HPA = "hpa"
    KEDA = "keda"
    DRAIN = "drain"


class EngineName(StrEnum):
    """Whose gauges show the queue and the KV cache."""

    VLLM = "vllm"
    SGLANG = "sglang"
    TRTLLM = "trtllm"
    TRITON = "triton"
    DYNAMO = "dynamo"


def scaling(
    paths: SloPaths = None,
    inputs: SloInput = None,
    slo: Annotated[
        str | None,
        typer.Option("--slo", metavar="NAME", help="Which SLO, where there are several."),
    ] = None,
    out: Annotated[
        str, typer.Option("--out", "-o", metavar="DIR|-", help="Folder for all; - for one part.")
    ] = "-",
    part: Annotated[Part, typer.Option("--part", help="What is printed.")] = Part.RULES,
    deployment: Annotated[
        str | None,
        typer.Option("--deployment", metavar="NAME", help="What is scaled. Default: the SLO."),
    ] = None,
    namespace: Annotated[
        str, typer.Option("--namespace", metavar="NAME", help="Where it runs.")
    ] = "default",
    replicas: Annotated[
        str, typer.Option("--replicas", metavar="MIN-MAX", help="How many there may be.")
    ] = "1-10",
    where: Annotated[
        list[str] | None,
        typer.Option(
            "--where",
            metavar="KEY=VALUE",
            help="What the deployment serves, such as model=llama, of an SLO by model; repeatable.",
        ),
    ] = None,
    engine: Annotated[
        EngineName | None,
        typer.Option(help="Read queue and KV cache from its gauges. Default: the SLO's source."),
    ] = None,
    match: Annotated[
        list[str] | None,
        typer.Option(
            metavar="LABEL=VALUE", help="Only these of its series, such as job=vllm; repeatable."
        ),
    ] = None,
    waiting: Annotated[
        float, typer.Option(metavar="N", help="Requests in the queue of a replica, at most.")
    ] = 5.0,
    kv: Annotated[
        float, typer.Option(metavar="SHARE", help="Use of a replica's KV cache, at most.")
    ] = 0.85,
    plain: Annotated[
        bool, typer.Option("--plain", help="Scale out also where the queue is not the cause.")
    ] = False,
    prometheus: Annotated[
        str | None,
        typer.Option(
            "--prometheus", metavar="URL", help="Whom KEDA asks. Default: http://prometheus:9090."
        ),
    ] = None,
    tailburn: Annotated[
        str | None,
        typer.Option(
            "--tailburn",
            metavar="URL",
            help="KEDA asks this service's web port, such as http://tailburn:9464; no Prometheus.",
        ),
    ] = None,
    token_secret: Annotated[
        str | None,
        typer.Option(
            "--token-secret",
            metavar="NAME",
            help="Secret whose key `token` is a token of scope read, for --tailburn.",
        ),
    ] = None,
) -> None:
    """Write scaling signals as recording rules, and the HPA or ScaledObject that reads them.

    The signals rest on the rules of `tailburn rules generate`: load both. Or on nothing but the
    service itself, with --tailburn.

    tailburn rules scaling slo/chat.yaml --deployment vllm --part keda

    tailburn rules scaling slo/chat.yaml --deployment vllm --part keda --tailburn http://tailburn:9464
    """
    from tailburn.app import rules_scaling as made
    from tailburn.app.slo_files import load_given, write_whole

    chosen = made.chosen(load_given(paths, inputs), slo)
    asked = made.Asked(
        slo=chosen,
        deployment=deployment or chosen.name,
        namespace=namespace,
        replicas=replicas,
        where=where or [],
        engine=engine,
        match=match or [],
        waiting=waiting,
        kv_ratio=kv,
        is_gated=not plain,
        prometheus_url=prometheus,
        service_url=tailburn,
        token_secret=token_secret,
    )
    if out == "-":
        sys.stdout.write(made.part(asked, part))
        return
    for name, text in made.render(asked).items():
        write_whole(Path(out) / made.file_name(asked, name), text)
