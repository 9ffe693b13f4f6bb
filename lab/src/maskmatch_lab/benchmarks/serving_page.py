"""The figures on the page about serving."""

from __future__ import annotations

from maskmatch_lab.benchmarks.markdown import origin, results_of, table


def figures() -> str:
    """The table of the page."""
    results = results_of("serving")
    if results is None:
        return "Not measured yet."
    medians, ratios, labels = results["medians"], results["ratios"], results["labels"]
    clients = results["clients"]
    rows = [
        ("`predict` on one list, texts per second", f"{medians['predict, texts per second']:.0f}"),
        (
            f"server, {clients} clients with single texts, texts per second",
            f"{medians['server, texts per second']:.0f}",
        ),
        ("relative to `predict`", f"{ratios['32 clients, of predict']:.2f} times"),
        ("relative to a FastAPI handler without batching", f"{ratios['32 clients, of a plain handler']:.1f} times"),
        (
            "relative to LitServe with batching, sentence-transformers and cosine similarity",
            f"{ratios['32 clients, of LitServe']:.1f} times",
        ),
        ("latency, median", f"{medians['server, p50 ms']:.0f} ms"),
        ("latency, 99th percentile", f"{medians['server, p99 ms']:.0f} ms"),
        ("latency of a FastAPI handler without batching, median", f"{medians['plain, p50 ms']:.0f} ms"),
        ("100 texts per request, relative to `predict`", f"{ratios['100 texts per request, of predict']:.2f} times"),
        ("one idle client, latency", f"{medians['server, one idle client ms']:.1f} ms"),
        ("`predict` of one text", f"{medians['predict, one text ms']:.1f} ms"),
        ("start of the process to the first answer", f"{results['seconds_to_start']:.1f} s"),
        ("100 new labels in a request", f"{labels['request, new labels']:.3f} s"),
        ("encoding 100 names without a server", f"{labels['encoding 100 names']:.3f} s"),
        ("the same labels again", f"{labels['request, same labels']:.3f} s"),
    ]
    about = "An int8 export of the default with five labels, short texts, two cores that client and server share."
    return "\n\n".join([about, table(("measured", ""), rows), origin(results)])
