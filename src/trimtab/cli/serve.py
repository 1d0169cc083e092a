"""`trimtab serve`, `trimtab token`: a service over HTTP, and its access tokens."""

from __future__ import annotations

import json
import time
from typing import Annotated

import typer

from trimtab.cli.completion import studies
from trimtab.cli.console import Program, app, say
from trimtab.cli.options import StoreOption
from trimtab.types import Document
from trimtab.util.extras import pip_install

token = Program(help="Create, list and revoke access tokens of a service.", no_args_is_help=True)
app.add_typer(token, name="token")


@app.command("serve", epilog="Example: trimtab serve --store postgresql://me@host/tuning --workers 4")
def serve(
    store: StoreOption = "trimtab.db",
    host: Annotated[str, typer.Option(help="Address to listen on; beyond this machine a token is required.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(min=0, max=65535, metavar="N", help="Port to listen on.")] = 8765,
    workers: Annotated[int, typer.Option(min=1, max=64, metavar="N", help="Number of worker processes.")] = 1,
    connections: Annotated[int, typer.Option(min=1, max=200, metavar="N", help="Store connections per worker.")] = 8,
    rate: Annotated[
        float, typer.Option(min=0, metavar="X", help="Requests per second and token; 0 means no limit.")
    ] = 0.0,
    metrics_studies: Annotated[
        int, typer.Option(min=0, max=10_000, metavar="N", help="Number of studies with metrics of their own.")
    ] = 0,
    quiet: Annotated[bool, typer.Option("--quiet", help="Do not log requests.")] = False,
    demo: Annotated[bool, typer.Option("--demo", help="Tune three simulated systems in a temporary store.")] = False,
) -> None:
    """Serve the studies of a store over HTTP, with a dashboard.

    Programs in any language can tune through it, on the same store that `trimtab tune` uses. Until a token exists, only
    requests from this machine are answered; `trimtab token create` creates one.
    """
    try:
        from trimtab.serve.server import check_port, run
        from trimtab.serve.settings import Settings, is_loopback
    except ImportError as error:
        raise ImportError(f"trimtab serve needs {error.name}: {pip_install('cli', 'serve')}") from error
    options: Document = {"host": host, "port": port, "workers": workers, "connections": connections, "rate": rate}
    check_port(host, port)
    options |= {"metrics_studies": metrics_studies, "access_log": not (quiet or demo)}
    if not demo:
        run(Settings(store=store, **options))
        return
    from trimtab.serve.demo import running_demo

    if not is_loopback(host):
        raise ValueError(f"--host {host}: --demo serves this machine only: leave --host out")
    with running_demo(port) as demo_store:
        print(f"Three simulated systems, tuned live: http://127.0.0.1:{port}", flush=True)
        run(Settings(store=demo_store, **options))


@token.command("create", epilog="Example: trimtab token create --scope tell --study ingest")
def create(
    scope: Annotated[str, typer.Option(help="read, tell, operate or admin; each includes those before it.")],
    study: Annotated[str | None, typer.Option(help="Restrict the token to this study.", autocompletion=studies)] = None,
    label: Annotated[str | None, typer.Option(help="Name of the holder, recorded in the history.")] = None,
    days: Annotated[
        float | None, typer.Option(min=0, metavar="X", help="Expire after this many days (default: never).")
    ] = None,
    store: StoreOption = "trimtab.db",
) -> None:
    """Create a token and print it.

    It is printed only once: the store keeps nothing but its hash.
    """
    from trimtab.serve.http import tokens
    from trimtab.store.shared_store import SharedStore

    with SharedStore(store) as opened:
        first = not tokens.has_tokens(opened)
        expires = None if days is None else time.time() + days * 86400
        print(tokens.create(opened, scope, study, label, expires=expires))
    if first and (study is not None or scope != "admin"):
        may = f"{scope}{'' if study is None else f' on study {study}'}"
        say(
            "warning:",
            f"this is the first token (valid only for {may}), so every request without a token is refused from now on,"
            " also from this machine; create one for yourself: trimtab token create --scope admin",
        )


@token.command("list", epilog="Example: trimtab token list --json")
def list_tokens(
    store: StoreOption = "trimtab.db",
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON list only.")] = False,
) -> None:
    """List all tokens by their ids, with scope, study, date and holder.

    The tokens themselves are not stored and cannot be shown.
    """
    from trimtab.serve.http import tokens
    from trimtab.store.shared_store import SharedStore

    with SharedStore(store, "write") as opened:
        found = tokens.listed(opened)
    if as_json:
        print(json.dumps([token._asdict() for token in found], indent=1))
        return
    if not found:
        print("No tokens yet: every user of this machine has full access.")
        print("To change that: trimtab token create --scope admin")
    for one in found:
        is_over = one.revoked is not None or (one.expires is not None and one.expires < time.time())
        created = time.strftime("%F", time.localtime(one.created))
        columns = [
            one.id,
            f"{one.scope:8}",
            f"{one.study or 'all studies':20}",
            created,
            one.label,
            "(expired or revoked)" if is_over else None,
        ]
        print("  ".join(filter(None, columns)))


@token.command("revoke", epilog="Example: trimtab token revoke 3f9a12bc04d1")
def revoke(
    id: Annotated[str, typer.Argument(help="Id of the token, as trimtab token list shows it.")],
    store: StoreOption = "trimtab.db",
) -> None:
    """Revoke a token; a running service refuses it within five seconds."""
    from trimtab.serve.http import tokens
    from trimtab.store.shared_store import SharedStore

    with SharedStore(store, "write") as opened:
        tokens.revoke(opened, id)
    print(f"revoked: {id}")
