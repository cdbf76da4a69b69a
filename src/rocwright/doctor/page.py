"""The known issues as a table for the documentation."""

from __future__ import annotations

from collections.abc import Iterable

from rocwright.catalog.issue import Issue


def as_markdown(issues: Iterable[Issue]) -> str:
    """A section an issue, by class and name: what it means, how it looks, cause, remedy and sources."""
    found = sorted(issues, key=lambda one: (one.failure.value, one.name))
    texts = []
    failure = ""
    for one in found:
        if one.failure.value != failure:
            failure = one.failure.value
            texts.append(f"## {failure[0].upper()}{failure[1:]}\n")
        texts.append(_section(one))
    return "\n".join(texts)


def _section(one: Issue) -> str:
    where = [f"in {', '.join(one.components)}"] if one.components else []
    where += [f"on {', '.join(one.targets)}"] if one.targets else []
    where += [f"with {', '.join(one.bases)}"] if one.bases else []
    where += [f"in {' or '.join(one.phases)}"] if one.phases else []
    where += [f"{name} {wanted}" for name, wanted in one.versions.items()]
    seen = f" (known {'; '.join(where)})" if where else ""
    fixed = [f"{each.component} {each.versions} ({_text(each.source)})" for each in one.fixed_in]
    mended = f"**Fixed in** {'; '.join(fixed)}.\n\n" if fixed else ""
    watched = "".join(f"Followed: <{address}>\n\n" for address in one.upstream)
    said = "\n".join(quote.line for quote in one.quotes) or "\n".join(one.examples)
    seen_in = "; ".join(f"<{quote.source}>{' (the text in the source)' * quote.made}" for quote in one.quotes)
    printed = f"Printed so: {seen_in}\n\n" if one.quotes else "Not to the letter.\n\n"
    return (
        f"### {one.name}\n\n{_text(one.means[0].upper() + one.means[1:])}{seen}.\n\n```\n{said}\n```\n\n"
        f"{printed}**Cause.** {_text(one.cause)}\n\n**Fix.** {_text(one.remedy)}\n\n"
        f"{mended}{watched}"
        f"Source: {_text('; '.join(one.source))} ({one.confidence}).\n"
    )


def _text(text: str) -> str:
    """Words in which no sign means anything to Markdown."""
    parts = text.split("`")
    for at in range(0, len(parts), 2):
        for sign in "\\*_<>[]#":
            parts[at] = parts[at].replace(sign, f"\\{sign}")
    return "`".join(parts)
