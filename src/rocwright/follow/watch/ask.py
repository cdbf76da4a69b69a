"""Many questions at once: the ones that took long last time first, and what an answer leads to at once."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass

from rocbase.errors import ExplainedError, NetworkError
from rocwright.follow.watch.question import Question
from rocwright.follow.watch.upstream import Answer

# Questions under way at a time.
AT_ONCE = 32


@dataclass(frozen=True, slots=True)
class Reply:
    """What came of a question: an answer, or the error; and the seconds it took."""

    answer: Answer
    error: ExplainedError | None
    seconds: float


def ask_all(
    questions: Iterable[Question],
    ask: Callable[[Question], Answer],
    follow: Callable[[Question, Answer], Iterable[Question]],
    durations: Mapping[str, float],
) -> dict[Question, Reply]:
    """Every question once, and once each that `follow` makes of an answer.

    `durations` are the seconds that a question took last time: the slow ones begin, so that none of them is
    left for the end.
    """
    first = sorted(dict.fromkeys(questions), key=lambda question: -durations.get(str(question), 0))
    replies: dict[Question, Reply] = {}
    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="watch") as pool:
        waiting: dict[Future[Reply], Question] = {
            pool.submit(_ask, ask, question): question for question in first
        }
        scheduled = set(first)
        try:
            while waiting:
                finished, _ = wait(waiting, return_when=FIRST_COMPLETED)
                for future in finished:
                    question = waiting.pop(future)
                    reply = replies[question] = future.result()
                    followups = follow(question, reply.answer) if reply.error is None else ()
                    for another in dict.fromkeys(followups):
                        if another not in scheduled:
                            scheduled.add(another)
                            waiting[pool.submit(_ask, ask, another)] = another
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return replies


def _ask(ask: Callable[[Question], Answer], question: Question) -> Reply:
    start = time.monotonic()
    answer: Answer = None
    error: ExplainedError | None = None
    try:
        answer = ask(question)
    except ExplainedError as refused:
        error = refused
    except (ValueError, KeyError, TypeError, AttributeError, OSError) as odd:
        # whoever answers may say anything at all: one answer that makes no sense must not end the others
        error = NetworkError(
            f"the answer to {question} cannot be understood",
            cause=f"{type(odd).__name__}: {odd}"[:300],
            next_step="open that address and check what it serves",
        )
    return Reply(answer, error, time.monotonic() - start)
