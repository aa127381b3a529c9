"""PyTerrier: submit the runs of experiments, and compare the values of both programs.

    import pyterrier as pt
    import evalhub_client.pyterrier as eh

    names = ["BM25", "mono"]
    systems = [bm25, bm25 >> mono]
    eh.Experiment(systems, topics, qrels, ["map"], names=names, collection="robust04")
    # What pt.Experiment(save_dir=...) has written:
    eh.publish("experiments/robust04", collection="robust04")
    # Submitted by eh.flush():
    pipeline = bm25 >> mono >> eh.Submit("robust04", tag="mono")
    pt.get_dataset("evalhub:robust04").get_topics()

It needs PyTerrier 1.0 or later.
"""

from .datasets import CollectionDataset, CollectionDatasets
from .experiment import Experiment, publish
from .stage import Published, Submit, flush

__all__ = [
    "CollectionDataset",
    "CollectionDatasets",
    "Experiment",
    "Published",
    "Submit",
    "flush",
    "publish",
]
