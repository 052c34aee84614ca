"""The conclusion of a sealed folder: who made it, and whether it follows from what the sites sent."""

from __future__ import annotations

from dataclasses import replace

from coterie.cli.errors import CommandError
from coterie.cli.moments import concluded_anew
from coterie.federated.conclusions import Conclusion
from coterie.federated.folder import FolderContents, SealedFolder
from coterie.federated.recomputing import check_conclusion


def _check_concluder(sealed: SealedFolder, contents: FolderContents, concluder: str) -> None:
    """Refuse a conclusion that is not signed by the key which the list gives to ``concluder``.

    A name alone proves nothing: the list of known keys says which public key the name has.
    """
    known_keys = sealed.known_keys
    if known_keys is None:
        raise CommandError("--concluder needs --known-keys: a name alone is nobody's signature.")
    if concluder not in known_keys:
        raise CommandError(f"The list of --known-keys has no key of {concluder!r}: add its line there.")
    if contents.concluder != known_keys[concluder]:
        raise CommandError(f"The conclusion is not signed by {concluder!r}: let {concluder!r} conclude.")


def read_conclusion(sealed: SealedFolder, concluder: str | None) -> tuple[FolderContents, Conclusion]:
    """Return what a folder holds, and its conclusion; refuse one that ``concluder`` did not sign.

    None: anybody may have concluded, so that the caller must check what the conclusion says.
    """
    contents = sealed.read()
    reason = next((w for n, w in contents.troubles.items() if n.startswith("conclusion")), None)
    if contents.conclusion is None and reason is not None:
        raise CommandError(f"The conclusion of the folder cannot be used: conclude again. {reason}")
    if contents.conclusion is None:
        raise CommandError("The folder has no conclusion yet: run `coterie conclude` first.")
    if concluder is not None:
        _check_concluder(sealed, contents, concluder)
    return contents, contents.conclusion


def trusted_conclusion(sealed: SealedFolder, concluder: str | None) -> Conclusion:
    """Return the conclusion signed by ``concluder``, or without that name what follows from the folder.

    Whoever concluded may have written anything, also in numbers that no prediction is made of. So all of
    it is computed again from the sites' messages, except who was left out.
    """
    contents, conclusion = read_conclusion(sealed, concluder)
    if concluder is not None:
        return conclusion
    if conclusion.mixtures:
        recomputed = check_conclusion(conclusion, contents.shares, contents.scores, contents.answered)
    else:
        recomputed = concluded_anew(contents).conclusion
    return replace(recomputed, left_out=conclusion.left_out)
