"""``coterie score``: what everybody's models lose on a site's rows, and answers to further questions."""

from __future__ import annotations

from functools import partial
from itertools import chain
from typing import Annotated

from typer import Argument, Option

from coterie.cli.errors import one_sentence, require
from coterie.cli.files import find_files
from coterie.cli.options import Delimiter, Encoding, Folder, KnownKeys, Sign, parse_order
from coterie.cli.printing import tell


def score(
    tables: Annotated[
        list[str], Argument(metavar="TABLE...", help="These are the files that were shared from.")
    ],
    target: Annotated[str, Option(help="Predict this column. By default the one that was shared.")] = "",
    name: Annotated[str, Option(help="This site has this name, as it was shared.")] = "",
    folder: Folder = "",
    order: Annotated[str, Option(help="Give auto or none, as it was shared.")] = "auto",
    wait: Annotated[
        float, Option(min=0, help="Go on answering for this many seconds, in a folder that is kept in step.")
    ] = 0.0,
    sign: Sign = None,
    known_keys: KnownKeys = None,
    delimiter: Delimiter = None,
    encoding: Encoding = "utf-8",
) -> None:
    """Score everybody's models on this site's rows, or answer the next round; run it again for each round.

    Where sites sent exact moments, they are sent once more before the conclusion, above knots. After it, it
    says what others bring this site; that is learnt here, and nothing is sent.
    """
    find_files(tables)
    from coterie.cli.moments import are_open, send_bends, tell_verdict
    from coterie.cli.rounds import answer_questions, is_concluded, own_site, put_score
    from coterie.cli.sites import check_signer, check_wait, looks, open_folder, open_signer

    require(name=name)
    rows_in_order = parse_order(order)
    sealed = open_folder(folder, known_keys)
    check_wait(wait)
    signer = open_signer(sign, sealed)
    check_signer(sealed, signer, name)
    text_options = {"delimiter": delimiter, "encoding": encoding}
    with one_sentence():
        folder_contents = looks(partial(sealed.read, answers_of=name), wait)
        first_contents = next(folder_contents)
        if are_open(first_contents, name):
            send_bends(sealed, first_contents, name, tables, signer, **text_options)
            return
        if first_contents.moments_of(name) is not None:
            tell_verdict(first_contents, name, tables, rows_in_order, **text_options)
            return
        site = own_site(
            first_contents.share_of(name), first_contents, tables, target, rows_in_order, **text_options
        )
        refusals_named: dict[str, str] = {}
        for contents in chain([first_contents], folder_contents):
            scored = put_score(site, sealed, contents, signer)
            answers = answer_questions(site, sealed, contents, signer, refusals_named)
            if scored:
                tell(f"{name} scored {len(contents.shares)} models.")
            if answers:
                tell(f"{name} answered {answers} question{'s' if answers > 1 else ''}.")
            if is_concluded(contents, first_contents.conclusion):
                break
    if not (wait or scored or answers):
        tell(f"{name} has nothing to score or to answer now.")
